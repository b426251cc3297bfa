import sys
from pathlib import Path

import numpy as np
import pytest

import candelabra
from candelabra.testing.on_device import *  # noqa: F403

sys.path.insert(0, str(Path(__file__).parent))  # for nn_numerics


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(autouse=True)
def seeded():
    candelabra.manual_seed(0)
