"""The library that products use is chosen once on a machine, so that processes give the same
bits.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from harness import BLAS

PROGRAM = """
import hashlib
import candelabra as c

c.manual_seed(1)
digest = hashlib.sha256()
for m, n, k in [(32, 128, 128), (4, 1024, 1024), (256, 10, 1024), (256, 256, 240), (512, 512, 512), (256, 128, 128), (1000, 64, 777)]:
    digest.update((c.randn(m, k) @ c.randn(k, n)).numpy().tobytes())
print(digest.hexdigest())
print(*(line for line in c._C.backend_info("cpu")["description"].splitlines() if line.startswith("float32 matmul")), sep="\\n")
"""
NAMES = ["compact", "heavy", "large", "narrow", "slender", "small"]


def start(cache: Path, **variables: str) -> subprocess.Popen[str]:
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in ("CANDELABRA_CPU_GEMM", "MKL_ENABLE_INSTRUCTIONS")
    }
    environment = {**inherited, "CANDELABRA_CACHE_DIR": str(cache), "OMP_NUM_THREADS": "1", **variables}
    return subprocess.Popen([sys.executable, "-c", PROGRAM], env=environment, stdout=subprocess.PIPE, text=True)


def lines_of(process: subprocess.Popen[str]) -> list[str]:
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return output.splitlines()


def stored(cache: Path) -> dict[str, str]:
    """The choices in the one folder for this processor and these settings."""
    found = [path for path in cache.rglob("*") if path.is_file()]
    assert len({path.parent for path in found}) <= 1
    return {path.name: path.read_text() for path in found}


def test_later_processes_choose_the_same(tmp_path: Path) -> None:
    first = lines_of(start(tmp_path))
    assert all("measured on" in line for line in first[1:] if "not chosen" not in line)
    choices = stored(tmp_path)
    assert choices
    assert set(choices) <= set(NAMES)
    assert all(text in (f"{BLAS}\n", "oneDNN\n", "AMX\n", "panels\n") for text in choices.values())
    second = lines_of(start(tmp_path))
    assert second[0] == first[0]
    for name, text in choices.items():
        assert f"float32 matmul, {name}: {text.strip()} (measured by an earlier process)" in second
    # A choice counts, whatever would be measured now.
    place = next(path for path in tmp_path.rglob("small"))
    for library in (BLAS, "oneDNN"):
        place.write_text(library + "\n")
        assert f"float32 matmul, small: {library} (measured by an earlier process)" in lines_of(start(tmp_path))


def test_processes_that_measure_at_once_agree(tmp_path: Path) -> None:
    results = [lines_of(process) for process in [start(tmp_path) for _ in range(4)]]
    assert len({lines[0] for lines in results}) == 1


@pytest.mark.parametrize("text", ["", "panels\n", "x" * 10_000], ids=["empty", "unfit", "noise"])
def test_damaged_choices_are_measured_again(tmp_path: Path, text: str) -> None:
    lines_of(start(tmp_path))
    place = next(path for path in tmp_path.rglob("small"))
    place.write_text(text)
    lines_of(start(tmp_path))
    assert place.read_text() in (f"{BLAS}\n", "oneDNN\n")


def test_the_number_of_threads_and_settings_have_choices_of_their_own(tmp_path: Path) -> None:
    for variables in ({}, {"OMP_NUM_THREADS": "2"}, {"CANDELABRA_CPU_ISA": "avx2"}):
        lines_of(start(tmp_path, **variables))
    assert len({path.parent for path in tmp_path.rglob("small")}) == 3


def test_without_a_place_for_them(tmp_path: Path) -> None:
    lines_of(start(tmp_path, CANDELABRA_CPU_GEMM_CACHE="0"))
    assert stored(tmp_path) == {}
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert all("earlier" not in line for line in lines_of(start(blocked)))
