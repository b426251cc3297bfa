"""Test gradients of linear algebra against finite differences, of functions whose value is unique
even where factors are not.
"""

import numpy
import pytest

import candelabra
from candelabra import linalg
from candelabra.autograd import gradcheck, gradgradcheck

DTYPES = [candelabra.float64, candelabra.complex128]


def matrix(*shape, dtype=candelabra.float64, seed=0, shift=0.0):
    random = numpy.random.default_rng(seed)
    values = random.standard_normal(shape)
    if dtype.is_complex:
        values = values + 1j * random.standard_normal(shape)
    return candelabra.tensor(values + shift * numpy.eye(*shape[-2:]), dtype=dtype, requires_grad=True)


def definite(x):
    return x @ x.mH + candelabra.eye(x.shape[-1], dtype=x.dtype)


def hermitian(x):
    return x + x.mH


def lower(x):
    return x.tril() + 2 * candelabra.eye(x.shape[-1], dtype=x.dtype)


SQUARE = {
    "cholesky": lambda x: linalg.cholesky(definite(x)),
    "cholesky_upper": lambda x: linalg.cholesky(definite(x), upper=True),
    "cholesky_solve": lambda x: candelabra.cholesky_solve(x, linalg.cholesky(definite(x))),
    "cholesky_inverse": lambda x: candelabra.cholesky_inverse(linalg.cholesky(definite(x))),
    "lu_factor": lambda x: linalg.lu_factor(x)[0],
    "lu": lambda x: linalg.lu(x)[1:],
    "lu_solve": lambda x: linalg.lu_solve(*linalg.lu_factor(x), x),
    "lu_solve_adjoint": lambda x: linalg.lu_solve(*linalg.lu_factor(x), x, adjoint=True),
    "lu_solve_right": lambda x: linalg.lu_solve(*linalg.lu_factor(x), x, left=False),
    "eigh": lambda x: (linalg.eigh(hermitian(x))[0], linalg.eigh(hermitian(x))[1].abs()),
    "eigvalsh": lambda x: linalg.eigvalsh(hermitian(x), UPLO="U"),
    "eigvals": lambda x: linalg.eigvals(x),
    "eigenvectors": lambda x: linalg.eig(x)[1].abs(),
    "inv": linalg.inv,
    "solve": lambda x: linalg.solve(x, x.mT),
    "solve_vector": lambda x: linalg.solve(x, x[0]),
    "solve_right": lambda x: linalg.solve(x, x.mT, left=False),
    "triangular_lower": lambda x: linalg.solve_triangular(lower(x), x, upper=False),
    "triangular_upper": lambda x: linalg.solve_triangular(lower(x).mT, x, upper=True),
    "triangular_right": lambda x: linalg.solve_triangular(lower(x), x, upper=False, left=False),
    "triangular_unit": lambda x: linalg.solve_triangular(lower(x), x, upper=False, unitriangular=True),
    "det": linalg.det,
    "slogdet": lambda x: tuple(linalg.slogdet(x)),
    "logdet": lambda x: candelabra.logdet(definite(x)).real,
    "matrix_exp": lambda x: candelabra.matrix_exp(0.5 * x),
    "matrix_exp_scaled": lambda x: candelabra.matrix_exp(4 * x) / 1000,
    "matrix_power": lambda x: linalg.matrix_power(x, -2),
    "cond": lambda x: linalg.cond(x),
    "cond_1": lambda x: linalg.cond(x, 1),
    "norm_nuc": lambda x: linalg.matrix_norm(x, "nuc"),
    "norm_2": lambda x: linalg.matrix_norm(x, 2),
    "pinv_hermitian": lambda x: linalg.pinv(hermitian(x), hermitian=True),
}
ANY = {
    "qr": lambda x: tuple(linalg.qr(x)),
    "svdvals": linalg.svdvals,
    "svd": lambda x: tuple(part.abs() for part in linalg.svd(x, full_matrices=False)),
    "svd_product": lambda x: (lambda U, S, Vh: (U / S.unsqueeze(-2).to(U.dtype)) @ Vh)(
        *linalg.svd(x, full_matrices=False)
    ),
    "pinv": linalg.pinv,
    "lstsq": lambda x: linalg.lstsq(x, x.sin()).solution,
    "lu_factor": lambda x: linalg.lu_factor(x)[0],
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SQUARE)
def test_square(name, dtype):
    assert gradcheck(SQUARE[name], (matrix(3, 3, dtype=dtype, seed=3),), atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("name", ["inv", "solve", "det", "cholesky", "lu_factor", "eigvalsh", "slogdet"])
def test_batches(name):
    assert gradcheck(SQUARE[name], (matrix(2, 3, 3, seed=5),), atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 2)])
@pytest.mark.parametrize("name", ANY)
def test_any_shape(name, shape, dtype):
    if name == "qr" and dtype.is_complex:
        return _check_complex_qr(shape)
    assert gradcheck(ANY[name], (matrix(*shape, dtype=dtype, seed=7),), atol=1e-4, rtol=1e-3)


def _check_complex_qr(shape):
    """For complex matrices, LAPACK makes the diagonal of R real, so the factors are unique."""
    assert gradcheck(
        lambda x: tuple(linalg.qr(x)), (matrix(*shape, dtype=candelabra.complex128, seed=7),), atol=1e-4, rtol=1e-3
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "count"), [((4, 3), 3), ((4, 3), 2), ((2, 3, 3), 3)])
def test_householder_product(dtype, shape, count):
    x, tau = (
        matrix(*shape, dtype=dtype),
        matrix(*shape[:-2], 1, count, dtype=dtype, seed=2).detach()[..., 0, :].requires_grad_(),
    )
    assert gradcheck(linalg.householder_product, (x, tau), atol=1e-4, rtol=1e-3)


def test_broadcast_batches_are_summed():
    A, B = matrix(1, 3, 3, shift=3.0), matrix(2, 3, 2, seed=1)
    assert gradcheck(linalg.solve, (A, B))
    assert gradcheck(lambda a, b: linalg.solve_triangular(a, b, upper=True), (A, B))
    assert gradcheck(lambda a, b: linalg.lstsq(a.expand(2, 3, 3), b).solution, (A, B))


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_determinant_of_singular_matrices(rank):
    random = numpy.random.default_rng(rank)
    values = random.standard_normal((3, rank)) @ random.standard_normal((rank, 3))
    assert gradcheck(linalg.det, (candelabra.tensor(values, requires_grad=True),))


@pytest.mark.parametrize("name", ["inv", "solve", "det", "cholesky", "triangular_lower", "slogdet", "eigvalsh"])
def test_second_derivatives(name):
    assert gradgradcheck(SQUARE[name], (matrix(2, 2, seed=11, shift=2.0),), atol=1e-3, rtol=1e-3)


def test_undetermined_losses_are_refused():
    x = matrix(3, 3, dtype=candelabra.complex128)
    with pytest.raises(RuntimeError, match="specified up to multiplication by e"):
        (linalg.eigh(hermitian(x))[1].real.sum() + linalg.eigh(hermitian(x))[1].imag.sum()).backward()
    with pytest.raises(RuntimeError, match="depends on Q"):
        linalg.qr(matrix(3, 2), mode="r")[1].sum().backward()
    with pytest.raises(RuntimeError, match="not differentiable when mode='complete'"):
        linalg.qr(matrix(3, 2), mode="complete")[1].sum().backward()
