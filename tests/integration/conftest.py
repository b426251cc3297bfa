import numpy as np
import pytest

import candelabra


@pytest.fixture(autouse=True)
def seeded():
    candelabra.manual_seed(0)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def digits():
    """Return handwritten digits: training images (N, 64) and classes, test images and classes."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    data = load_digits()
    parts = train_test_split(
        (data.data / 16).astype(np.float32), data.target.astype(np.int64), test_size=0.25, random_state=0, stratify=data.target
    )  # fmt: skip
    train_x, test_x, train_y, test_y = (candelabra.tensor(part) for part in parts)
    return train_x, train_y, test_x, test_y
