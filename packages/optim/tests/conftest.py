import sys
from pathlib import Path

import numpy as np
import pytest

from candelabra.testing.on_device import *  # noqa: F403

sys.path.insert(0, str(Path(__file__).parent))  # for update_rules


@pytest.fixture
def rng():
    return np.random.default_rng(0)
