"""Test ``python -m candelabra``."""

import subprocess
import sys

import pytest

import candelabra as c
from candelabra import __main__ as program
from candelabra.testing import self_check


def test_it_prints_versions_devices_and_figures():
    done = subprocess.run([sys.executable, "-m", "candelabra"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"candelabra {c.__version__}, Python ")
    assert any(line.startswith("cpu: candelabra-backend-cpu") for line in lines)
    assert "GFLOP/s" in done.stdout
    assert "GB/s" in done.stdout
    assert lines[-1] == "all is well"


def test_without_the_check(capsys):
    assert program.main(["--no-check"]) == 0
    assert "GFLOP/s" not in capsys.readouterr().out


def test_a_missing_backend_names_the_command(monkeypatch, capsys):
    monkeypatch.setattr(program, "installed", dict)
    assert program.main(["--no-check"]) == 1
    assert "fault: no backend is installed: pip install candelabra-backend-cpu" in capsys.readouterr().out


def test_versions_that_do_not_fit_are_faults():
    found = {
        "candelabra-nn": ("0.1.0", ["candelabra-tensor-core<0.2,>=0.1", "numpy", "candelabra-optim; extra == 'test'"]),
        "candelabra-tensor-core": ("0.2.0", []),
        "candelabra-utils": ("0.1.0", ["candelabra-multiprocessing<0.2,>=0.1"]),
    }
    assert program.misfits(found) == [
        "candelabra-nn 0.1.0 needs candelabra-tensor-core<0.2,>=0.1, but candelabra-tensor-core 0.2.0 is installed",
        "candelabra-utils 0.1.0 needs candelabra-multiprocessing<0.2,>=0.1, which is not installed: "
        "pip install candelabra-multiprocessing",
    ]


def test_a_wrong_result_is_a_fault_and_the_other_parts_run(monkeypatch, capsys):
    def wrong(device):
        raise self_check.WrongResultError("1 is 2")

    monkeypatch.setattr(self_check, "PARTS", (wrong, self_check.saved_file))
    assert self_check.run("cpu") == ["cpu, wrong: 1 is 2"]
    assert "MiB written and read" in capsys.readouterr().out


def test_a_program_error_is_not_taken_for_a_fault(monkeypatch):
    def broken(device):
        raise KeyError("a mistake in the check")

    monkeypatch.setattr(self_check, "PARTS", (broken,))
    with pytest.raises(KeyError):
        self_check.run("cpu")
