"""The pages of the documentation that are written by tools say what holds."""

import subprocess
import sys
from pathlib import Path

TOOLS = Path(__file__).parent.parent.parent / "tools"


def test_coverage_is_current():
    checked = subprocess.run(
        [sys.executable, str(TOOLS / "make_coverage.py"), "--check"], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stderr
