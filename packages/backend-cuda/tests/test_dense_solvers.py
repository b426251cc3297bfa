"""Test factorizations, systems and eigenvalues beyond the conformance suite: sizes at which another
routine is used, singular and infinite matrices, strided results, failures.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.linalg

import candelabra

DTYPES = ["float32", "float64", "complex64", "complex128"]
#: One matrix; a batch for the batched routines; a few matrices that are too large for them.
CASES = [
    *(((5,), dtype) for dtype in DTYPES),
    *(((3, 5), dtype) for dtype in DTYPES),
    ((2, 2, 33), "complex128"),
    ((2, 2, 33), "float32"),
    ((2, 140), "float64"),
]


def made(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    values = generator.standard_normal(shape)
    if dtype.startswith("complex"):
        values = values + 1j * generator.standard_normal(shape)
    return values.astype(dtype)


def square(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    return made((*shape, shape[-1]), dtype, seed)


def adjoint(a: np.ndarray) -> np.ndarray:
    return a.conj().swapaxes(-1, -2)


def on(device: candelabra.device, a: np.ndarray) -> candelabra.Tensor:
    return candelabra.from_numpy(a).to(device)


def close(result: candelabra.Tensor, expected: np.ndarray, scale: float = 1.0) -> None:
    wide = result.dtype in (candelabra.float64, candelabra.complex128)
    tolerance = scale * (1e-10 if wide else 2e-3)
    np.testing.assert_allclose(
        result.cpu().numpy(),
        expected,
        rtol=tolerance,
        atol=tolerance * max(1.0, float(np.abs(expected).max(initial=0))),
    )


@pytest.mark.parametrize(("shape", "dtype"), CASES, ids=str)
class TestFactorizations:
    def test_cholesky(self, cuda: candelabra.device, shape: tuple[int, ...], dtype: str) -> None:
        a = square(shape, dtype)
        a = a @ adjoint(a) + shape[-1] * np.eye(shape[-1], dtype=dtype)
        for upper in (False, True):
            close(
                candelabra.linalg.cholesky(on(cuda, a), upper=upper),
                adjoint(np.linalg.cholesky(a)) if upper else np.linalg.cholesky(a),
            )

    def test_lu_and_solve(self, cuda: candelabra.device, shape: tuple[int, ...], dtype: str) -> None:
        a, b = square(shape, dtype), made((*shape, 3), dtype, 1)
        P, L, U = candelabra.linalg.lu(on(cuda, a))
        close(P @ L @ U, a)
        close(
            candelabra.linalg.solve(on(cuda, a), on(cuda, b)),
            np.linalg.solve(a.astype("complex128" if "complex" in dtype else "float64"), b),
            20,
        )
        LU, pivots = candelabra.linalg.lu_factor(on(cuda, a))
        for transposed in (False, True):
            matrix = adjoint(a) if transposed else a
            x = candelabra.linalg.lu_solve(LU, pivots, on(cuda, b), adjoint=transposed)
            close(on(cuda, np.ascontiguousarray(matrix)) @ x, b, 20)

    def test_inverse(self, cuda: candelabra.device, shape: tuple[int, ...], dtype: str) -> None:
        a = square(shape, dtype) + shape[-1] * np.eye(shape[-1], dtype=dtype)
        close(candelabra.linalg.inv(on(cuda, a)) @ on(cuda, a), np.broadcast_to(np.eye(shape[-1]), a.shape))

    def test_qr(self, cuda: candelabra.device, shape: tuple[int, ...], dtype: str) -> None:
        for columns in (shape[-1], max(1, shape[-1] - 2), shape[-1] + 2):
            a = made((*shape, columns), dtype)
            for mode in ("reduced", "complete"):
                Q, R = candelabra.linalg.qr(on(cuda, a), mode=mode)
                close(Q @ R, a)
                close(Q.mH @ Q, np.broadcast_to(np.eye(Q.shape[-1]), (*a.shape[:-2], Q.shape[-1], Q.shape[-1])))
                close(R.tril(-1), np.zeros(R.shape))

    def test_eigh(self, cuda: candelabra.device, shape: tuple[int, ...], dtype: str) -> None:
        a = square(shape, dtype)
        a = a + adjoint(a)
        for uplo in "LU":
            values, vectors = candelabra.linalg.eigh(on(cuda, a), UPLO=uplo)
            close(values, np.linalg.eigvalsh(a))
            close(on(cuda, a) @ vectors - vectors * values.unsqueeze(-2), np.zeros(a.shape), 10)

    def test_eig(self, cuda: candelabra.device, shape: tuple[int, ...], dtype: str) -> None:
        a = square(shape, dtype)
        values, vectors = candelabra.linalg.eig(on(cuda, a))
        wide = a.astype(values.cpu().numpy().dtype)
        close(on(cuda, wide) @ vectors - vectors * values.unsqueeze(-2), np.zeros(a.shape), 10)
        close(vectors.abs().square().sum(-2), np.ones(shape))

    def test_svd(self, cuda: candelabra.device, shape: tuple[int, ...], dtype: str) -> None:
        for columns in (shape[-1], max(1, shape[-1] - 2), shape[-1] + 2)[: 3 if shape[-1] < 100 else 1]:
            a = made((*shape, columns), dtype)
            for full in (False, True):
                U, S, Vh = candelabra.linalg.svd(on(cuda, a), full_matrices=full)
                k = min(a.shape[-2:])
                assert U.shape[-1] == (a.shape[-2] if full else k) and Vh.shape[-2] == (columns if full else k)
                close(S, np.linalg.svd(a, compute_uv=False))
                close((U[..., :k] * S.unsqueeze(-2)) @ Vh[..., :k, :], a)
                close(U.mH @ U, np.broadcast_to(np.eye(U.shape[-1]), (*a.shape[:-2], U.shape[-1], U.shape[-1])))

    def test_triangular(self, cuda: candelabra.device, shape: tuple[int, ...], dtype: str) -> None:
        n = shape[-1]
        a, b = square(shape, dtype) / n + np.eye(n, dtype=dtype), made((*shape, 3), dtype, 1)
        for upper in (False, True):
            triangle = np.triu(a) if upper else np.tril(a)
            for turned in (False, True):  # as memory has it
                A = on(cuda, np.ascontiguousarray(a.swapaxes(-1, -2))).mT if turned else on(cuda, a)
                close(on(cuda, triangle) @ candelabra.linalg.solve_triangular(A, on(cuda, b), upper=upper), b)
                right = np.ascontiguousarray(b.swapaxes(-1, -2))
                close(
                    candelabra.linalg.solve_triangular(A, on(cuda, right), upper=upper, left=False)
                    @ on(cuda, triangle),
                    right,
                )

    def test_ldl(self, cuda: candelabra.device, shape: tuple[int, ...], dtype: str) -> None:
        a, b = square(shape, dtype), made((*shape, 3), dtype, 1)
        for i in range(0, shape[-1], 2):
            a[..., i, i] = 0  # blocks of two rows
        for hermitian in (False, True):
            matrix = a + (adjoint(a) if hermitian else a.swapaxes(-1, -2))
            LD, pivots = candelabra.linalg.ldl_factor(on(cuda, matrix), hermitian=hermitian)
            name = "hetrf" if hermitian and dtype.startswith("complex") else "sytrf"
            (factor,) = scipy.linalg.get_lapack_funcs((name,), (matrix,))
            last = matrix.reshape(-1, shape[-1], shape[-1])[-1]
            expected, exchanges, _ = factor(last, lower=1)
            assert pivots.reshape(-1, shape[-1])[-1].tolist() == exchanges.tolist()
            assert min(exchanges) < 0 or shape[-1] < 10
            close(LD.reshape(-1, shape[-1], shape[-1])[-1], np.tril(expected), 20)
            x = candelabra.linalg.ldl_solve(LD, pivots, on(cuda, b), hermitian=hermitian)
            close(on(cuda, matrix) @ x, b, 50)


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(7, 4), (4, 7), (3, 6, 6), (2, 50, 3)], ids=str)
def test_least_squares(cuda: candelabra.device, shape: tuple[int, ...], dtype: str, driver: str) -> None:
    a, b = made(shape, dtype), made((*shape[:-1], 2), dtype, 1)
    result = candelabra.linalg.lstsq(on(cuda, a), on(cuda, b), driver=driver)
    close(result.solution, np.linalg.pinv(a) @ b, 5)
    if driver != "gels":
        assert bool((result.rank == min(shape[-2:])).all())
    if driver != "gelsy" and shape[-2] > shape[-1]:
        close(result.residuals, (np.abs(a @ (np.linalg.pinv(a) @ b) - b) ** 2).sum(-2), 5)
    if driver in ("gelsd", "gelss"):
        close(result.singular_values, np.linalg.svd(a, compute_uv=False), 5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_least_squares_of_low_rank(cuda: candelabra.device, dtype: str) -> None:
    a = made((6, 2), dtype) @ made((2, 4), dtype, 1)
    b = made((6, 1), dtype, 2)
    result = candelabra.linalg.lstsq(on(cuda, a), on(cuda, b), rcond=1e-4, driver="gelsd")
    assert result.rank.item() == 2
    close(result.solution, np.linalg.pinv(a, rcond=1e-4) @ b, 5)


def test_iterations_that_do_not_converge(cuda: candelabra.device) -> None:
    # The emulated library's iteration does not converge for such matrices, and the other algorithm
    # runs.
    for shape in ((4, 3), (3, 4), (2, 5, 5), (2, 40, 36)):
        a = made(shape, "float64")
        a[..., 0, 0] = 5000
        for full in (False, True):
            U, S, Vh = candelabra.linalg.svd(on(cuda, a), full_matrices=full)
            k = min(shape[-2:])
            close((U[..., :k] * S.unsqueeze(-2)) @ Vh[..., :k, :], a)
        close(candelabra.linalg.svdvals(on(cuda, a)), np.linalg.svd(a, compute_uv=False))


@pytest.mark.parametrize("shape", [(6, 6), (3, 6, 6)], ids=str)
def test_what_is_singular(cuda: candelabra.device, shape: tuple[int, ...]) -> None:
    a = np.tile(np.eye(6), (*shape[:-2], 1, 1))
    a[..., 3, 3] = 0
    info = candelabra.linalg.solve_ex(on(cuda, a), on(cuda, a)).info
    assert info.cpu().numpy().tolist() == np.full(shape[:-2], 4).tolist()
    assert candelabra.linalg.inv_ex(on(cuda, a)).info.cpu().numpy().max() == 4
    assert candelabra.linalg.cholesky_ex(on(cuda, -a)).info.cpu().numpy().max() == 1
    assert candelabra.linalg.ldl_factor_ex(on(cuda, a)).info.cpu().numpy().max() == 4
    with pytest.raises(candelabra.linalg.LinAlgError, match="singular"):
        candelabra.linalg.inv(on(cuda, a))
    with pytest.raises(candelabra.linalg.LinAlgError, match="not positive-definite"):
        candelabra.linalg.cholesky(on(cuda, -a))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite(cuda: candelabra.device, value: float) -> None:
    a = np.stack([np.eye(4), np.diag([3.0, 2.0, value, 1.0]), 2 * np.eye(4)])
    tensor = on(cuda, a)
    for values, info in (
        candelabra.ops.linalg_eigh_ex(tensor)[::2],
        candelabra.ops.linalg_eig_ex(tensor)[::2],
        candelabra.ops.linalg_svd_ex(tensor)[1::2],
    ):
        assert info.tolist() == [0, -1, 0]
        np.testing.assert_allclose(values[::2].cpu().numpy(), [np.ones(4), 2 * np.ones(4)])
    with pytest.raises(candelabra.linalg.LinAlgError, match=r"Batch element 1"):
        candelabra.linalg.svdvals(tensor)
    with pytest.raises(RuntimeError, match="not finite"):
        completed(candelabra.linalg.lstsq, tensor, tensor)


def completed(function: Callable[..., object], *arguments: object, **others: object) -> None:
    """Call the function, then synchronize, so that faults are raised."""
    function(*arguments, **others)
    candelabra.cuda.synchronize()


def test_failures_of_least_squares(cuda: candelabra.device) -> None:
    a = candelabra.ones(3, 2, device=cuda).cumsum(0) * candelabra.tensor([1.0, 0.0], device=cuda)
    with pytest.raises(RuntimeError, match=r"full rank \(error code: 2\)"):
        completed(candelabra.linalg.lstsq, a, candelabra.ones(3, 1, device=cuda), driver="gels")
    assert candelabra.ones(2, device=cuda).sum().item() == 2  # the device is still usable


def test_pivots_that_cannot_be(cuda: candelabra.device) -> None:
    LU, b = candelabra.eye(3, device=cuda), candelabra.ones(3, 1, device=cuda)
    high, none = (candelabra.tensor(each, dtype=candelabra.int32, device=cuda) for each in ([1, 7, 3], [1, 0, 3]))
    with pytest.raises(RuntimeError, match="linalg.lu_solve: pivots must be between 1 and 3, but got 7"):
        completed(candelabra.linalg.lu_solve, LU, high, b)
    with pytest.raises(
        RuntimeError,
        match="linalg.ldl_solve: pivots must be numbers of rows from 1 to 3, or their negatives, but got 0",
    ):
        completed(candelabra.linalg.ldl_solve, LU, none, b)


def test_strided_arguments_and_results(cuda: candelabra.device) -> None:
    storage = made((4, 6, 3, 6), "float64")
    a = on(cuda, storage).permute(0, 2, 3, 1)[::2]  # (2, 3, 6, 6) of odd strides
    expected = storage.transpose(0, 2, 3, 1)[::2]
    spread = expected @ adjoint(expected) + 6 * np.eye(6)
    definite = a @ a.mH + 6 * candelabra.eye(6, device=cuda, dtype=candelabra.float64)
    out = candelabra.zeros(2, 3, 6, 12, device=cuda, dtype=candelabra.float64)[..., ::2]
    candelabra.linalg.cholesky(definite.mT, out=out)
    close(out, np.linalg.cholesky(spread))
    close(candelabra.linalg.inv(a) @ a, np.broadcast_to(np.eye(6), (2, 3, 6, 6)))
    b = candelabra.ones(6, 1, device=cuda, dtype=candelabra.float64).expand(2, 3, 6, 4)
    close(a @ candelabra.linalg.solve(a, b), np.ones((2, 3, 6, 4)))
    one = candelabra.linalg.solve_triangular(definite[0, 0].expand(2, 3, 6, 6), b, upper=True)
    close(definite[0, 0].triu() @ one, np.ones((2, 3, 6, 4)))


def test_empty(cuda: candelabra.device) -> None:
    none, wide = candelabra.zeros(0, 0, device=cuda), candelabra.zeros(2, 3, 0, device=cuda)
    assert candelabra.linalg.cholesky(none).shape == (0, 0)
    assert candelabra.linalg.solve(none, candelabra.zeros(0, 2, device=cuda)).shape == (0, 2)
    Q, R = candelabra.linalg.qr(wide, mode="complete")
    close(Q, np.broadcast_to(np.eye(3), (2, 3, 3)))
    assert R.shape == (2, 3, 0)
    U, S, Vh = candelabra.linalg.svd(wide)
    close(U, np.broadcast_to(np.eye(3), (2, 3, 3)))
    assert S.shape == (2, 0) and Vh.shape == (2, 0, 0)
    assert candelabra.linalg.eigvals(none).shape == (0,)
    assert candelabra.linalg.lstsq(wide, candelabra.zeros(2, 3, 1, device=cuda)).solution.shape == (2, 0, 1)


def test_captures(cuda: candelabra.device) -> None:
    a = candelabra.eye(4, device=cuda) * 2
    graph = candelabra.cuda.CUDAGraph()
    candelabra.linalg.cholesky_ex(a)  # create the handles first
    with candelabra.cuda.graph(graph):
        factor = candelabra.linalg.cholesky_ex(a).L
    a.mul_(2)
    graph.replay()
    close(factor, 2 * np.eye(4))
    with pytest.raises(RuntimeError, match="cannot be captured"), candelabra.cuda.graph(candelabra.cuda.CUDAGraph()):
        candelabra.ops.linalg_svd_ex(a)
    assert candelabra.ones(2, device=cuda).sum().item() == 2
