import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import few

if few.COMPILER is None:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(autouse=True, scope="session")
def device():
    few.install()
    return "few"
