"""The tiers in docs/backends.md are those of the catalogue and of the decompositions."""

import subprocess
import sys
from pathlib import Path


def test_the_page_is_current():
    tool = Path(__file__).parents[3] / "tools" / "make_tiers.py"
    done = subprocess.run([sys.executable, str(tool), "--check"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
