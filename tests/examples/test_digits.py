"""Run a shortened demo: it trains, saves, reloads and draws."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "examples" / "digits.py"


def test_digits(tmp_path):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--epochs", "3", "--output", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    accuracy = float(re.search(r"test accuracy ([\d.]+)%", done.stdout)[1])
    assert accuracy > 90
    assert (tmp_path / "digits.png").stat().st_size > 10_000
    assert (tmp_path / "digits.candelabra").exists()
