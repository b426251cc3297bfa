"""The inputs of tests/fuzz/coverage/corpus: each target returns for each of them, as it did when
they were found.
"""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import candelabra

FOLDER = Path(__file__).parents[2] / "fuzz" / "coverage"
#: What a target needs of other packages, and of native.cpp.
NEEDS = {
    "t7": "candelabra.legacy", "program": "candelabra.export", "runner": "candelabra_runner", "runner_file": "candelabra_runner",
    "backend_table": "native", "runner_npy": "native",
}  # fmt: skip
NAMES = sorted(folder.name for folder in (FOLDER / "corpus").iterdir() if folder.is_dir())


@pytest.fixture(scope="module")
def targets():
    threads = candelabra.get_num_threads()
    sys.path.insert(0, str(FOLDER))
    yield importlib.import_module("targets")
    sys.path.remove(str(FOLDER))
    # Targets set them for their process.
    candelabra.backends.set_memory_limit("cpu", None)
    candelabra.set_num_threads(threads)


@pytest.mark.parametrize("name", NAMES)
def test_corpus(targets, name):
    needed = NEEDS.get(name)
    if needed == "native" and targets.NATIVE not in os.environ:
        pytest.skip("native.cpp is compiled by nox -s fuzz-coverage")
    if needed == "candelabra_runner":
        runner = pytest.importorskip("candelabra_runner")
        try:
            runner.library_path()
        except ImportError as error:
            pytest.skip(str(error))
    elif needed not in (None, "native"):
        pytest.importorskip(needed)
    inputs = sorted((FOLDER / "corpus" / name).iterdir())
    for path in inputs:
        targets.TARGETS[name](path.read_bytes())
    assert inputs and name in targets.TARGETS


def test_every_target_has_a_corpus(targets):
    assert sorted(targets.TARGETS) == NAMES


def test_bytes_choose_the_same_arguments_again(targets):
    program = (
        f"import sys; sys.path.insert(0, {str(FOLDER)!r})\n"
        "from byte_draw import ByteDraw\nfrom candelabra.testing.hostile_values import shown, tensor\n"
        "print([shown(tensor(ByteDraw(bytes(range(n, 200))))) for n in range(20)])"
    )
    runs = {
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    assert len(runs) == 1 and "float" in runs.pop()
