"""Test linear systems and determinants against NumPy: least squares of tall matrices, which start
with a QR factorization, and tiny matrices, which are factored without LAPACK.
"""

import numpy as np
import pytest

import candelabra


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("scale", [1.0, 1e-36, 1e36])
@pytest.mark.parametrize("deficient", [False, True])
@pytest.mark.parametrize(
    "rows, columns, right", [(8, 4, 3), (160, 40, 3), (159, 4, 3), (200, 10, 240), (256, 64, 8), (161, 1, 1)]
)
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


def _random(shape, dtype, seed=7):
    random = np.random.default_rng([seed, *shape])
    values = random.standard_normal(shape)
    return (values + 1j * random.standard_normal(shape) if dtype.startswith("complex") else values).astype(dtype)


def _wide(array):
    return array.astype("complex128" if array.dtype.kind == "c" else "float64")


DTYPES = ["float32", "float64", "complex64", "complex128"]
SIDES = [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (8, 8), (9, 9), (17, 17), (2, 7), (7, 2), (4, 3), (3, 12), (12, 3)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows, columns", SIDES)
def test_factors_of_tiny_matrices(rows, columns, dtype):
    for given in (
        _random((3, 5, rows, columns), dtype),
        np.swapaxes(_random((6, columns, rows), dtype), -1, -2),
        _random((4, 2 * rows, 3 * columns), dtype)[:, ::2, ::3],
    ):
        x = candelabra.from_numpy(given)
        P, L, U = (factor.numpy() for factor in candelabra.linalg.lu(x))
        eps = np.finfo(dtype).eps
        k = min(rows, columns)
        np.testing.assert_allclose(_wide(P) @ _wide(L) @ _wide(U), _wide(given), rtol=0, atol=40 * k * eps)
        np.testing.assert_array_equal(L, np.tril(L, -1) + np.eye(rows, k))
        np.testing.assert_array_equal(U, np.triu(U))
        assert np.all(np.abs(L) <= 1.42)
        np.testing.assert_array_equal(P.sum(-1), np.ones(P.shape[:-1]))
        np.testing.assert_array_equal(P.sum(-2), np.ones(P.shape[:-1]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 7, 8, 9, 30])
def test_determinants(n, dtype):
    for given in (_random((2, 9, n, n), dtype), np.swapaxes(_random((700, n, n), dtype), -1, -2)):
        x = candelabra.from_numpy(given)
        expected = np.linalg.det(_wide(given))
        # Relative to Hadamard's bound.
        most = 1e-5 * (n + 1) * np.prod(np.linalg.norm(_wide(given), axis=-1), axis=-1)
        allowed = most if dtype in ("float32", "complex64") else 1e-8 * most
        assert np.all(np.abs(candelabra.linalg.det(x).numpy() - expected) <= allowed)
        sign, logarithm = (_wide(result.numpy()) for result in candelabra.linalg.slogdet(x))
        assert np.all(np.abs(sign * np.exp(logarithm) - expected) <= 10 * allowed)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 6, 8, 9, 20])
def test_singular_tiny_matrices(n, dtype):
    given = _random((4, n, n), dtype)
    given[1, :, n // 2] = 0  # a zero pivot
    given[2] = 0
    given[3] *= np.finfo(dtype).tiny * (8 if n > 1 else 1)  # some inverses overflow to infinity
    x = candelabra.from_numpy(given)
    LU, _, info = candelabra.linalg.lu_factor_ex(x)
    assert info.tolist() == [0, n // 2 + 1, 1, 0]
    assert np.isfinite(LU.numpy()[:3]).all()
    assert candelabra.linalg.det(x)[1:3].tolist() == [0, 0]
    sign, logarithm = candelabra.linalg.slogdet(x)
    assert sign[1:3].tolist() == [0, 0] and logarithm[1:3].tolist() == [-np.inf, -np.inf]
    with pytest.raises(candelabra.linalg.LinAlgError, match="Batch element 1"):
        candelabra.linalg.inv(x)


@pytest.mark.parametrize("n", [3, 4, 12])
def test_not_a_number_stays(n):
    given = _random((3, n, n), "float64")
    given[1, n - 1, n - 1] = np.nan
    given[2, 0, 0] = np.nan
    x = candelabra.from_numpy(given)
    for result in (candelabra.linalg.det(x), candelabra.linalg.slogdet(x).logabsdet):
        assert np.isnan(result.numpy()).tolist() == [False, True, True]


def test_exchanges_of_rows_that_are_not_there():
    for pivot in (0, 4, -1):
        pivots = candelabra.tensor([1, pivot, 3], dtype=candelabra.int32)
        with pytest.raises(RuntimeError, match="pivots must be between 1 and 3"):
            candelabra.lu_unpack(candelabra.eye(3), pivots)
