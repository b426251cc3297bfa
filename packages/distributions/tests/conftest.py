import numpy as np
import pytest

import candelabra


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(autouse=True)
def seed():
    candelabra.manual_seed(0)
