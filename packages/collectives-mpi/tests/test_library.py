"""The search for MPI, and what the package exports, in one process."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import candelabra_collectives_mpi as mpi
from candelabra_collectives_mpi.library import VARIABLE


def run(program: str, **variables: str) -> str:
    """Run a program in a process of its own, which is rank 0 of 1."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PMI")}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment | variables, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_path_or_a_folder_names_mpi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = tmp_path / "libmpi_abi.so.1"
    given.touch()
    for value in (given, tmp_path):
        monkeypatch.setenv(VARIABLE, str(value))
        assert mpi.mpi_path() == str(given)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(RuntimeError, match="CANDELABRA_MPI_LIBRARY is .*nowhere, where there is no libmpi_abi.so.1"):
        mpi.mpi_path()


def test_without_mpi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr("candelabra_collectives_mpi.library._NAME", "libno_mpi.so.1")
    with pytest.raises(RuntimeError, match=r"no MPI was found \(pip install mpich.*libno_mpi.so.1"):
        mpi.mpi_path()


def test_a_library_without_the_abi() -> None:
    text = run(
        "import candelabra_collectives_mpi as mpi\n"
        "try:\n    mpi.start()\n"
        "except RuntimeError as error:\n    print(error)\n",
        CANDELABRA_MPI_LIBRARY=str(mpi.library_path()),
    )
    assert "has no MPI_Abi_get_version: it is not of the standard ABI of MPI 5" in text


def test_importing_starts_nothing() -> None:
    text = run(
        "import candelabra, candelabra_collectives_mpi\n"
        "print(candelabra.communication.is_available('cpu'), 'libmpi' in open('/proc/self/maps').read())"
    )
    assert text.split() == ["False", "False"]


def test_one_process_alone() -> None:
    text = run(
        "import candelabra\n"
        "import candelabra_collectives_mpi as mpi\n"
        "print(*mpi.start())\n"
        "engine = mpi.Engine()\n"
        "engine.start(0, 1, {'CANDELABRA_TEST': '1'}, candelabra.device('cpu'))\n"
        "group = engine.communicator([0], 0, 'alone', 10.0)\n"
        "tensor = candelabra.arange(5)\n"
        "group.run('all_reduce', tensor, tensor)\n"
        "group.run('barrier')\n"
        "group.start('broadcast', tensor, tensor).wait()\n"
        "print(*tensor.tolist(), engine.describe() == '')\n"
        "import os\n"
        "print('CANDELABRA_TEST' in os.environ)\n"
    )
    assert text.split() == ["0", "1", "0", "1", "2", "3", "4", "True", "False"]


def test_the_entry_point() -> None:
    (found,) = (each for each in metadata.entry_points(group="candelabra.process_groups") if each.name == "mpi")
    engine = found.load().candelabra_process_group_engine()
    assert (engine.name, engine.device_types, engine.rank_and_size()) == ("mpi", ("cpu",), (0, 1))
    with pytest.raises(RuntimeError, match="was not started"):
        engine.communicator([0], 0, "world", None)


def test_the_library_needs_no_compiler_and_no_mpi() -> None:
    text = subprocess.run(["ldd", str(mpi.library_path())], capture_output=True, text=True, check=True).stdout
    assert "libmpi" not in text and "not found" not in text and "libstdc++" not in text
    assert mpi.library_path().stat().st_size < 1_000_000
