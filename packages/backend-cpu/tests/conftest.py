"""Put every folder of tests on the path, so that tests can import shared modules."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), *(str(folder) for folder in sorted(HERE.iterdir()) if any(folder.glob("test_*.py")))]
