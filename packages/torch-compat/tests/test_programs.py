"""Programs as people write them for PyTorch, without a line about Candelabra, run and learn."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_program(program: Path) -> None:
    # Other backends that are installed here, for instance those of examples/, have kernels for few
    # operators.
    environment = {"CANDELABRA_ACCELERATOR": "cuda", **os.environ}
    command = [sys.executable, "-m", "candelabra.torch", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, env=environment)
    assert done.returncode == 0, done.stderr
    assert "learned" in done.stdout
