"""Compiled groups in the user's cache folder: other processes load them, and only sound ones."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("llvmlite")

PROGRAM = """
import sys
import candelabra
from candelabra_backend_cpu import llvm

def function(x):
    return (x**NUMBER + 1).exp() * 0.5 - x

x = candelabra.linspace(-3, 3, 70_000)
made = candelabra.compile(function, fullgraph=True)
for _ in range(5):
    assert made(x).equal(function(x))
(program,) = made.programs
print(*program.compiled_sizes, "llvmlite.binding" in sys.modules)
"""


def run(folder, number=2, **variables):
    """Return how many operators were compiled, and whether LLVM was loaded for it."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("NUMBER", str(number))],
        env={**os.environ, "CANDELABRA_CACHE_DIR": str(folder), **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    size, is_loaded = done.stdout.split()
    return int(size), is_loaded == "True"


def saved(folder):
    return sorted(path for path in folder.rglob("compiled/*") if path.is_file())


def test_the_second_process_loads_no_compiler(tmp_path):
    assert run(tmp_path) == (5, True)
    (file,) = saved(tmp_path)
    assert file.stat().st_mode & 0o777 == 0o600 and file.parent.stat().st_mode & 0o022 == 0
    before = file.read_bytes()
    assert run(tmp_path) == (5, False)
    assert file.read_bytes() == before


def test_damaged_files_are_compiled_anew(tmp_path):
    run(tmp_path)
    (file,) = saved(tmp_path)
    sound = file.read_bytes()
    middle = len(sound) // 2
    damaged = [
        b"",
        sound[:7],
        sound[:100],
        sound[:-1],
        sound[:middle] + bytes([sound[middle] ^ 1]) + sound[middle + 1 :],
        b"\xff" * len(sound),
    ]
    for contents in damaged:
        file.write_bytes(contents)
        assert run(tmp_path) == (5, True)
        assert file.read_bytes() == sound


def test_the_code_of_another_group_is_refused(tmp_path):
    """Numbers are not in a file's name. LLVM's code of a power is that of its exponent."""
    assert run(tmp_path) == (5, True)
    assert run(tmp_path, number=3) == (5, True)
    assert len(saved(tmp_path)) == 1
    assert run(tmp_path, number=3) == (5, False)
    assert run(tmp_path) == (5, True)


def test_files_that_others_can_write_are_not_loaded(tmp_path):
    run(tmp_path)
    (file,) = saved(tmp_path)
    file.chmod(0o666)
    assert run(tmp_path) == (5, True)
    assert file.stat().st_mode & 0o777 == 0o600, "replaced by one of this process"
    elsewhere = tmp_path / "elsewhere"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    assert run(tmp_path) == (5, True)


def test_nothing_is_kept_where_that_is_switched_off(tmp_path):
    assert run(tmp_path, CANDELABRA_COMPILE_CACHE="0") == (5, True)
    assert saved(tmp_path) == []


def test_without_a_folder(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    assert run(file) == (5, True)
