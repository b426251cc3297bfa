"""Test the recipe for Ray: an actor for each rank."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("candelabra_collectives_mpi")
pytest.importorskip("ray.exceptions", reason="the recipe for Ray is tested where the package ray is installed")

EXAMPLE = Path(__file__).parents[2] / "examples" / "train_ray.py"


def test_the_example_goes_on_after_an_actor_was_killed() -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), "--ranks", "2", "--kill"],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"},
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(
        r"a rank has failed: .* on rank 0: rank 1 \(process \d+\) has ended, or was killed", done.stdout
    ), done.stdout
    first = int(re.findall(r"started at step (\d+)", done.stdout)[0])
    assert first == 10  # of 20
    before, after = map(float, re.findall(r"losses (\S+) to (\S+)", done.stdout)[0])
    assert after < before
