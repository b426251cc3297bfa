import numpy as np
import pytest

import candelabra
from candelabra.testing.on_device import *  # noqa: F403


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(autouse=True)
def seed():
    candelabra.manual_seed(0)
