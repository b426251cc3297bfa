"""Tests import what they share from this folder and from each other, whatever folder they are
in.
"""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), *(str(folder) for folder in sorted(HERE.iterdir()) if any(folder.glob("test_*.py")))]
