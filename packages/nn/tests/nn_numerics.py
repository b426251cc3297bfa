"""Convert between tensors and NumPy arrays, and compare them."""

import numpy as np

import candelabra


def tensor(array, dtype=None):
    """Return a tensor with a copy of the values."""
    return candelabra.tensor(np.asarray(array), dtype=dtype)


def array(result):
    """Return the values of a tensor."""
    return result.detach().numpy()


def assert_close(result, expected, rtol=1e-10, atol=1e-12):
    """Assert that shapes are equal and values agree within the tolerances."""
    found = array(result)
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)
