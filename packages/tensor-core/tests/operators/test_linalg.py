"""candelabra.linalg against NumPy and SciPy: what the conformance suite does not see: vectors,
ranks, tolerances, errors, out=.
"""

import numpy
import pytest
import scipy.linalg

import candelabra
from candelabra import linalg

RANDOM = numpy.random.default_rng(1)
DTYPES = ["float32", "float64", "complex64", "complex128"]


def values(*shape, dtype="float64"):
    made = RANDOM.standard_normal(shape)
    if dtype.startswith("complex"):
        made = made + 1j * RANDOM.standard_normal(shape)
    return made.astype(dtype)


def close(ours, theirs, tolerance=None):
    tolerance = tolerance or (1e-3 if ours.dtype in (candelabra.float32, candelabra.complex64) else 1e-9)
    numpy.testing.assert_allclose(ours.numpy(), theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_of_factors(dtype):
    a = values(2, 4, 3, dtype=dtype)
    x = candelabra.tensor(a)
    P, L, U = linalg.lu(x)
    close(P @ L @ U, a)
    Q, R = linalg.qr(x, mode="complete")
    close(Q @ R, a)
    packed, tau = candelabra.geqrf(x)
    close(candelabra.ormqr(packed, tau, packed.triu()), a)
    close(
        candelabra.ormqr(packed, tau, x.mH, left=False) @ candelabra.orgqr(packed, tau),
        (x.mH @ Q).numpy() @ linalg.qr(x)[0].numpy(),
    )
    U, S, V = candelabra.svd(x)
    close((U * S.unsqueeze(-2)) @ V.mH, a)
    LU, pivots, info = candelabra.lu(x, get_infos=True)
    close(candelabra.lu_unpack(LU, pivots)[2], linalg.lu(x).U.numpy())
    assert info.tolist() == [0, 0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
def test_matrix_exp(dtype, scale):
    a = scale * values(5, 5, dtype=dtype) / 3
    expected = scipy.linalg.expm(a.astype("complex128" if "complex" in dtype else "float64"))
    made = candelabra.matrix_exp(candelabra.tensor(a))
    tolerance = 1e-2 if dtype in ("float32", "complex64") else 1e-9
    assert numpy.abs(made.numpy() - expected).max() <= tolerance * numpy.abs(expected).max()


def test_matrix_exp_scales_each_matrix_of_a_batch():
    a = values(3, 4, 4) * numpy.array([1e-2, 1.0, 20.0])[:, None, None]
    made = candelabra.matrix_exp(candelabra.tensor(a)).numpy()
    for ours, matrix in zip(made, a, strict=True):
        numpy.testing.assert_allclose(ours, scipy.linalg.expm(matrix), rtol=1e-9, atol=1e-9 * numpy.abs(ours).max())


@pytest.mark.parametrize("p", [None, 2, -2, 1, -1, float("inf"), -float("inf"), "fro", "nuc"])
def test_norms_and_conditions(p):
    a = values(4, 4)
    x = candelabra.tensor(a)
    close(linalg.cond(x, p), numpy.linalg.cond(a, p))
    if p is not None:
        close(linalg.matrix_norm(x, p), numpy.linalg.norm(a, p))
        batch = values(3, 2, 4)
        wanted = [numpy.linalg.norm(matrix, p) for matrix in batch]
        close(linalg.matrix_norm(candelabra.tensor(batch), p), wanted)
        assert linalg.matrix_norm(candelabra.tensor(batch), p, dim=(0, 2), keepdim=True).shape == (1, 2, 1)


def test_ranks():
    a = values(5, 2) @ values(2, 4)
    x = candelabra.tensor(a)
    assert linalg.matrix_rank(x).item() == 2
    assert linalg.matrix_rank(candelabra.tensor(a @ a.T), hermitian=True).item() == 2
    assert linalg.matrix_rank(x, atol=1e9).item() == 0
    assert linalg.matrix_rank(x, rtol=0.9).item() == 1
    assert linalg.matrix_rank(candelabra.zeros(2, 0, 3)).tolist() == [0, 0]
    close(linalg.pinv(x), numpy.linalg.pinv(a))


@pytest.mark.parametrize("driver", [None, "gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4)])
def test_least_squares(driver, shape):
    a, b = values(*shape), values(shape[0], 2)
    solution, residuals, rank, singular = linalg.lstsq(candelabra.tensor(a), candelabra.tensor(b), driver=driver)
    expected = numpy.linalg.lstsq(a, b, rcond=None)
    close(solution, expected[0])
    if shape[0] > shape[1] and driver not in (None, "gelsy"):
        close(residuals, expected[1])
    assert rank.tolist() == ([] if driver == "gels" else min(shape))
    if driver in ("gelsd", "gelss"):
        close(singular, expected[3])
    one = linalg.lstsq(candelabra.tensor(a), candelabra.tensor(b[:, 0]).unsqueeze(-1), driver=driver).solution
    close(one[:, 0], expected[0][:, 0])


def test_one_right_hand_side_for_a_batch():
    a, b = values(4, 3, 2), values(3, 5)
    made = linalg.lstsq(candelabra.tensor(a), candelabra.tensor(b)).solution
    close(made, numpy.linalg.pinv(a) @ b)


def test_vectors_on_the_right():
    a, b = values(2, 3, 3), values(2, 3)
    close(
        linalg.solve(candelabra.tensor(a), candelabra.tensor(b)),
        numpy.stack([numpy.linalg.solve(m, v) for m, v in zip(a, b, strict=True)]),
    )
    close(linalg.solve(candelabra.tensor(a[0]), candelabra.tensor(b[0])), numpy.linalg.solve(a[0], b[0]))


def test_tensors_as_matrices():
    a, b = values(6, 2, 3), values(6)
    close(linalg.tensorsolve(candelabra.tensor(a), candelabra.tensor(b)), numpy.linalg.tensorsolve(a, b))
    c = values(4, 6, 8, 3)
    close(linalg.tensorinv(candelabra.tensor(c)), numpy.linalg.tensorinv(c))
    close(linalg.vander(candelabra.tensor([2.0, 3.0]), N=3), numpy.vander([2.0, 3.0], 3, increasing=True))


def test_determinants():
    a = values(2, 3, 3)
    close(linalg.det(candelabra.tensor(a)), numpy.linalg.det(a))
    sign, logarithm = linalg.slogdet(candelabra.tensor(a))
    close(sign, numpy.linalg.slogdet(a)[0])
    close(logarithm, numpy.linalg.slogdet(a)[1])
    assert linalg.det(candelabra.zeros(0, 0)).item() == 1
    assert linalg.slogdet(candelabra.zeros(2, 2)).logabsdet.item() == -float("inf")
    assert candelabra.logdet(-candelabra.eye(1)).isnan().item()


def test_out():
    a = candelabra.tensor(values(3, 3) + 3 * numpy.eye(3))
    out = candelabra.empty(0, dtype=candelabra.float64)
    assert linalg.inv(a, out=out) is out
    close(out @ a, numpy.eye(3))
    parts = [candelabra.empty(0, dtype=candelabra.float64) for _ in range(3)]
    made = linalg.svd(a, out=parts)
    assert all(given is returned for given, returned in zip(parts, made, strict=True))
    assert type(made).__name__ == "linalg_svd"
    with pytest.raises(TypeError, match="must hold 3 tensors, not 2"):
        linalg.svd(a, out=parts[:2])


SINGULAR = candelabra.tensor([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]]])
ERRORS = [
    (lambda: linalg.inv(SINGULAR[1]), linalg.LinAlgError, r"linalg\.inv: The diagonal element 2 is zero"),
    (lambda: linalg.inv(SINGULAR), linalg.LinAlgError, r"linalg\.inv: \(Batch element 1\): The diagonal element 2 is zero"),
    (lambda: linalg.solve(SINGULAR[1], candelabra.ones(2)), linalg.LinAlgError, "linalg.solve: The solver failed because the input matrix is singular"),
    (lambda: linalg.cholesky(-candelabra.eye(2)), linalg.LinAlgError, "leading minor of order 1 is not positive-definite"),
    (lambda: linalg.cholesky_ex(-candelabra.eye(2), check_errors=True), linalg.LinAlgError, "not positive-definite"),
    (lambda: linalg.lu_factor(SINGULAR[1]), RuntimeError, r"U\[2,2\] is zero"),
    (lambda: linalg.svd(candelabra.full((2, 2), float("nan"))), linalg.LinAlgError, "non-finite values"),
    (lambda: linalg.eigh(candelabra.full((2, 2), float("inf"))), linalg.LinAlgError, "non-finite values"),
    (lambda: linalg.eig(candelabra.full((2, 2), float("nan"))), RuntimeError, "non-finite values"),
    (lambda: linalg.inv(candelabra.ones(2, 3)), RuntimeError, "A must be batches of square matrices, but they are 2 by 3 matrices"),
    (lambda: linalg.inv(candelabra.ones(2)), RuntimeError, "must have at least 2 dimensions"),
    (lambda: linalg.inv(candelabra.ones(2, 2, dtype=candelabra.int64)), RuntimeError, "Expected a floating point or complex tensor as input. Got Long"),
    (lambda: linalg.svd(candelabra.ones(2, 2, dtype=candelabra.bfloat16)), RuntimeError, "Low precision dtypes not supported. Got BFloat16"),
    (lambda: linalg.qr(candelabra.ones(2, 2), mode="full"), RuntimeError, "qr received unrecognized mode 'full'"),
    (lambda: linalg.eigh(candelabra.eye(2), UPLO="X"), RuntimeError, "UPLO argument to be 'L' or 'U'"),
    (lambda: linalg.solve(candelabra.eye(2), candelabra.ones(3, 1)), RuntimeError, "Incompatible shapes of A and B for the equation AX = B"),
    (lambda: linalg.solve(candelabra.eye(2), candelabra.ones(2, 1, dtype=candelabra.float64)), RuntimeError, "Expected A and B to have the same dtype"),
    (lambda: linalg.lstsq(candelabra.eye(2), candelabra.ones(2), driver="qr"), RuntimeError, "parameter `driver` should be one of"),
    (lambda: linalg.lstsq(candelabra.full((2, 2), float("nan")), candelabra.ones(2)), RuntimeError, "elements that are not finite"),
    (lambda: linalg.lstsq(candelabra.ones(3, 2), candelabra.ones(2)), RuntimeError, r"input.size\(-2\) should match other.size\(-1\)"),
    (lambda: linalg.lstsq(candelabra.ones(3, 2), candelabra.ones(2, 2)), RuntimeError, r"input.size\(-2\) should match other.size\(-2\)"),
    (lambda: linalg.svdvals(candelabra.eye(2), driver="gesvd"), RuntimeError, "only supported on CUDA"),
    (lambda: linalg.matrix_norm(candelabra.eye(2), 3), RuntimeError, "Order 3 not supported"),
    (lambda: linalg.lu_solve(candelabra.eye(2), candelabra.tensor([9, 9], dtype=candelabra.int32), candelabra.ones(2, 1)), RuntimeError, "pivots must be between 1 and 2"),
    (lambda: linalg.lu_solve(candelabra.eye(2), candelabra.tensor([1, 2]), candelabra.ones(2, 1)), RuntimeError, "pivots to be of dtype int32"),
    (lambda: linalg.ldl_solve(candelabra.eye(2), candelabra.tensor([7, 0], dtype=candelabra.int32), candelabra.ones(2, 1)), RuntimeError, "pivots must be numbers of rows"),
    (lambda: linalg.tensorinv(candelabra.ones(2, 3), ind=1), RuntimeError, "to satisfy the requirement prod"),
    (lambda: linalg.det(candelabra.ones(3, 2)), RuntimeError, r"linalg\.det: A must be batches of square matrices, but they are 3 by 2"),
    (lambda: linalg.slogdet(candelabra.ones(2, 3)), RuntimeError, r"linalg\.slogdet: A must be batches of square matrices, but they are 2 by 3"),
    (lambda: candelabra.slogdet(candelabra.ones(2)), RuntimeError, "at least 2 dimensions"),
    (lambda: candelabra.logdet(candelabra.ones(3, 2)), RuntimeError, "logdet: A must be batches of square matrices"),
    (lambda: linalg.vecdot(candelabra.ones(2, dtype=candelabra.int64), candelabra.ones(2)), RuntimeError, "Expected a floating point or complex tensor"),
    (lambda: candelabra.cross(candelabra.ones(2, 3), candelabra.ones(3)), RuntimeError, "must have the same number of dimensions"),
    (lambda: candelabra.symeig(candelabra.eye(2)), RuntimeError, "linalg.eigh"),
    (lambda: candelabra.eye(2).lstsq(candelabra.eye(2)), RuntimeError, "linalg.lstsq"),
]  # fmt: skip


@pytest.mark.parametrize(("run", "kind", "message"), ERRORS)
def test_errors(run, kind, message):
    with pytest.raises(kind, match=message):
        run()


def test_a_failed_inverse_writes_nothing():
    out = candelabra.full((2, 2), 7.0)
    with pytest.raises(linalg.LinAlgError):
        linalg.inv(SINGULAR[1], out=out)
    assert out.tolist() == [[7.0, 7.0], [7.0, 7.0]]
