"""Least squares: tall matrices, which are reduced to a triangle first, against NumPy."""

import numpy as np
import pytest

import candelabra


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("scale", [1.0, 1e-36, 1e36])
@pytest.mark.parametrize("deficient", [False, True])
@pytest.mark.parametrize("rows, columns, right", [(8, 4, 3), (160, 40, 3), (159, 4, 3), (200, 10, 240), (256, 64, 8), (161, 1, 1)])
def test_least_squares_of_tall_matrices(rows, columns, right, deficient, scale, dtype):
    random = np.random.default_rng(5)
    A, B = random.standard_normal((rows, columns)), random.standard_normal((rows, right))
    if dtype.startswith("complex"):
        A, B = A + 1j * random.standard_normal(A.shape), B - 1j * random.standard_normal(B.shape)
    if deficient and columns > 2:
        A[:, 2] = 2 * A[:, 0] - A[:, 1]
    expected, _, rank, _ = np.linalg.lstsq(A, B, rcond=1e-4)
    given, wanted = (A * scale).astype(dtype), (B * scale).astype(dtype)
    got = candelabra.linalg.lstsq(candelabra.tensor(given), candelabra.tensor(wanted), rcond=1e-4)
    assert int(got.rank) == rank
    tolerance = 2e-4 if dtype in ("float32", "complex64") else 1e-10
    np.testing.assert_allclose(got.solution.numpy(), expected, rtol=tolerance, atol=tolerance)


def test_least_squares_of_nothing_but_zeros():
    got = candelabra.linalg.lstsq(candelabra.zeros(170, 3), candelabra.ones(170, 2))
    assert int(got.rank) == 0 and got.solution.tolist() == [[0.0, 0.0]] * 3
    got = candelabra.linalg.lstsq(candelabra.ones(170, 3) + candelabra.eye(170, 3), candelabra.zeros(170, 2))
    assert int(got.rank) == 3 and got.solution.tolist() == [[0.0, 0.0]] * 3
