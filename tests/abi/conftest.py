import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def cache(tmp_path_factory) -> Path:
    """Return the folder of the libraries that this session has compiled."""
    return tmp_path_factory.mktemp("libraries")
