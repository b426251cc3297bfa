"""Tensors from NumPy arrays and back, and comparison, for the tests of this package."""

import numpy as np

import candelabra


def tensor(array, dtype=None):
    """A tensor with a copy of the numbers."""
    return candelabra.tensor(np.asarray(array), dtype=dtype)


def array(result):
    """The numbers of a tensor."""
    return result.detach().numpy()


def assert_close(result, expected, rtol=1e-10, atol=1e-12):
    """Same shape, and same numbers but for rounding."""
    found = array(result)
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)
