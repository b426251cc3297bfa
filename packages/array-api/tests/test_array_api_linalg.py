"""Linear algebra and Fourier transforms of the array API standard, against NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

from array_api_arrays import COMPLEX, FLOATING, NUMERIC, REAL_FLOATING, check, pairs_of

import candelabra
import candelabra.array_api as xp

inf = math.inf


# ---- linear algebra


@pytest.mark.parametrize(("first", "second"), pairs_of(NUMERIC))
def test_products(first: str, second: str) -> None:
    rng = np.random.default_rng(7)

    def numbers(dtype: str, *shape: int) -> np.ndarray:
        return np.asarray(
            rng.integers(0, 5, shape) + (1j * rng.integers(0, 5, shape) if dtype in COMPLEX else 0), dtype
        )

    wanted_dtype = np.result_type(np.dtype(first), np.dtype(second))
    for shapes in (
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 2)),
        ((2, 3), (3, 4)),
        ((4, 1, 2, 3), (2, 3, 2)),
        ((0, 3), (3, 2)),
        ((2, 0), (0, 2)),
    ):
        x1, x2 = numbers(first, *shapes[0]), numbers(second, *shapes[1])
        wanted = np.matmul(x1.astype(wanted_dtype), x2.astype(wanted_dtype))
        check(xp.matmul(xp.asarray(x1), xp.asarray(x2)), wanted)
        check(xp.asarray(x1) @ xp.asarray(x2), wanted)
        check(candelabra.tensor(x1) @ xp.asarray(x2), wanted)
    x1, x2 = numbers(first, 2, 3, 4), numbers(second, 4, 3, 5)
    check(xp.tensordot(xp.asarray(x1), xp.asarray(x2), axes=1), np.tensordot(x1, x2, 1).astype(wanted_dtype))
    wanted = np.tensordot(x1, x2, ((1, 2), (1, 0))).astype(wanted_dtype)
    check(xp.tensordot(xp.asarray(x1), xp.asarray(x2), axes=((1, 2), (1, 0))), wanted)
    check(xp.tensordot(xp.asarray(x1), xp.asarray(x2), axes=0), np.tensordot(x1, x2, 0).astype(wanted_dtype))
    y1, y2 = numbers(first, 2, 3), numbers(second, 3)
    check(xp.vecdot(xp.asarray(y1), xp.asarray(y2)), np.vecdot(y1, y2).astype(wanted_dtype))

    check(xp.linalg.outer(xp.asarray(y1[0]), xp.asarray(y2)), np.outer(y1[0], y2).astype(wanted_dtype))
    z1, z2 = numbers(first, 2, 3), numbers(second, 3)
    check(
        xp.linalg.cross(xp.asarray(z1), xp.asarray(z2)),
        np.linalg.cross(z1.astype(wanted_dtype), z2.astype(wanted_dtype)),
    )


def test_product_errors() -> None:
    for shapes in (((), (2,)), ((2,), ()), ((2, 3), (2, 3)), ((2,), (3,)), ((2, 2, 3), (3, 2, 3))):
        with pytest.raises((ValueError, RuntimeError)):
            xp.matmul(xp.ones(shapes[0]), xp.ones(shapes[1]))
    with pytest.raises(ValueError, match="length"):
        xp.vecdot(xp.ones((2, 3)), xp.ones((2, 1)))
    with pytest.raises(ValueError, match="size 3"):
        xp.linalg.cross(xp.ones((2, 2)), xp.ones((2, 2)))
    with pytest.raises(ValueError, match="two dimensions"):
        xp.matrix_transpose(xp.ones(2))
    with pytest.raises(ValueError, match="vectors"):
        xp.linalg.outer(xp.ones((2, 2)), xp.ones(2))


def matrices(dtype: str, *shape: int) -> np.ndarray:
    rng = np.random.default_rng(sum(shape))
    return np.asarray(rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype in COMPLEX else 0), dtype)


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("batch", [(), (2,), (0,), (2, 1)])
def test_factorizations(dtype: str, batch: tuple[int, ...]) -> None:
    tolerance = 1e-4 if dtype in ("float32", "complex64") else 1e-10
    square, wide = matrices(dtype, *batch, 3, 3), matrices(dtype, *batch, 2, 4)
    hermitian = square + np.conj(np.swapaxes(square, -1, -2))
    positive = square @ np.conj(np.swapaxes(square, -1, -2)) + 3 * np.eye(3, dtype=dtype)

    def close(got: xp.Array, wanted: np.ndarray) -> None:
        check(got, np.asarray(wanted), rtol=tolerance, atol=tolerance)

    close(xp.linalg.cholesky(xp.asarray(positive)), np.linalg.cholesky(positive))
    upper = xp.linalg.cholesky(xp.asarray(positive), upper=True)
    close(xp.conj(xp.matrix_transpose(upper)) @ upper, positive)
    close(xp.linalg.det(xp.asarray(square)), np.linalg.det(square))
    sign, logabsdet = xp.linalg.slogdet(xp.asarray(square))
    close(sign, np.linalg.slogdet(square).sign)
    close(logabsdet, np.linalg.slogdet(square).logabsdet)
    close(xp.linalg.inv(xp.asarray(positive)), np.linalg.inv(positive))
    values, vectors = xp.linalg.eigh(xp.asarray(hermitian))
    close(values, np.linalg.eigvalsh(hermitian))
    close(xp.linalg.eigvalsh(xp.asarray(hermitian)), np.linalg.eigvalsh(hermitian))
    close((vectors * xp.astype(values, vectors.dtype)[..., None, :]) @ xp.conj(vectors.mT), hermitian)
    for n in (-2, -1, 0, 1, 3):
        close(xp.linalg.matrix_power(xp.asarray(positive), n), np.linalg.matrix_power(positive, n))
    for x in (square, wide, np.swapaxes(wide, -1, -2)):
        array = xp.asarray(x)
        close(xp.linalg.pinv(array), np.linalg.pinv(x))
        close(xp.linalg.pinv(array, rtol=1e-3), np.linalg.pinv(x, rtol=1e-3))
        check(
            xp.linalg.matrix_rank(array),
            np.linalg.matrix_rank(x).astype("int64") if batch else np.int64(np.linalg.matrix_rank(x)),
        )
        for mode in ("reduced", "complete"):
            q, r = xp.linalg.qr(array, mode=mode)  # type: ignore[arg-type]
            assert (q.shape, r.shape) == tuple(one.shape for one in np.linalg.qr(x, mode))
            close(q @ r, x)
        for full in (True, False):
            u, s, vh = xp.linalg.svd(array, full_matrices=full)
            wanted = np.linalg.svd(x, full_matrices=full)
            assert (u.shape, vh.shape) == (wanted.U.shape, wanted.Vh.shape)
            close(s, wanted.S)
            k = min(x.shape[-2:])
            close((u[..., :k] * xp.astype(s, u.dtype)[..., None, :]) @ vh[..., :k, :], x)
        close(xp.linalg.svdvals(array), np.linalg.svdvals(x))
        for order in ("fro", "nuc", 1, -1, 2, -2, inf, -inf):
            for keepdims in (False, True):
                wanted_norm = np.linalg.norm(x.astype("complex128"), order, (-2, -1), keepdims)
                close(xp.linalg.matrix_norm(array, ord=order, keepdims=keepdims), wanted_norm.astype(x.real.dtype))  # type: ignore[arg-type]
        for offset in (-9, -1, 0, 2, 9):
            close(xp.linalg.diagonal(array, offset=offset), np.linalg.diagonal(x, offset=offset))
            close(xp.linalg.trace(array, offset=offset), np.linalg.trace(x, offset=offset))
    right = matrices(dtype, *batch, 3, 2)
    close(xp.linalg.solve(xp.asarray(positive), xp.asarray(right)), np.linalg.solve(positive, right))
    vector = matrices(dtype, 3)
    close(xp.linalg.solve(xp.asarray(positive), xp.asarray(vector)), np.linalg.solve(positive, vector))


def test_solve_sees_no_vectors_in_matrices() -> None:
    a, b = np.eye(2)[None] * np.asarray([1.0, 2.0, 4.0])[:, None, None], np.arange(4.0).reshape(2, 2)
    check(xp.linalg.solve(xp.asarray(a), xp.asarray(b)), np.linalg.solve(a, b[None]))
    check(xp.linalg.solve(xp.asarray(a[:2]), xp.asarray(b)), np.linalg.solve(a[:2], b[None]))


@pytest.mark.parametrize("dtype", FLOATING)
def test_vector_norm(dtype: str) -> None:
    x = matrices(dtype, 2, 3, 4)
    magnitudes = np.abs(x.astype("complex128"))
    for order in (0, 1, 2, 3, 0.5, -1, inf, -inf):
        for axis in (None, 0, -1, (0, 2), (0, 1, 2)):
            axes = tuple(range(3)) if axis is None else axis
            if order == 0:
                wanted = (magnitudes != 0).sum(axes).astype("float64")
            elif math.isinf(order):
                wanted = magnitudes.max(axes) if order > 0 else magnitudes.min(axes)
            else:
                wanted = (magnitudes**order).sum(axes) ** (1 / order)
            got = xp.linalg.vector_norm(xp.asarray(x), axis=axis, ord=order)
            check(
                got,
                np.asarray(wanted, x.real.dtype),
                rtol=1e-4 if ("64" in dtype and dtype != "float64") or dtype == "float32" else 1e-12,
            )
            kept = xp.linalg.vector_norm(xp.asarray(x), axis=axis, ord=order, keepdims=True)
            assert kept.shape == np.sum(x, axis=axes, keepdims=True).shape
    check(xp.linalg.vector_norm(xp.asarray(x), axis=()), magnitudes.astype(x.real.dtype), rtol=1e-6)
    check(xp.linalg.vector_norm(xp.asarray(x[0, 0, 0])), np.abs(x[0, 0, 0]), rtol=1e-6)


def test_singular_matrices() -> None:
    for function in (xp.linalg.inv, xp.linalg.cholesky):
        with pytest.raises(candelabra.linalg.LinAlgError):
            function(xp.zeros((2, 2)))
    with pytest.raises(candelabra.linalg.LinAlgError):
        xp.linalg.solve(xp.zeros((2, 2)), xp.ones(2))
    assert int(xp.linalg.matrix_rank(xp.zeros((2, 2)))) == 0
    with pytest.raises(ValueError, match="mode"):
        xp.linalg.qr(xp.ones((2, 2)), mode="r")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="order 0"):
        xp.linalg.matrix_norm(xp.ones((2, 2)), ord=0)


# ---- Fourier transforms


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_fourier_transforms(dtype: str, norm: Any) -> None:
    tolerance = 1e-4 if dtype in ("float32", "complex64") else 1e-11
    x = matrices(dtype, 3, 4, 5)
    array = xp.asarray(x)
    complex_dtype = "complex64" if dtype in ("float32", "complex64") else "complex128"

    def close(got: xp.Array, wanted: np.ndarray) -> None:
        real = {"complex64": "float32", "complex128": "float64"}[complex_dtype]
        check(got, wanted.astype(real if wanted.dtype.kind == "f" else complex_dtype), rtol=tolerance, atol=tolerance)

    along = ["rfft", "ihfft"] if dtype in REAL_FLOATING else ["fft", "ifft", "irfft", "hfft"]
    for name in along:
        for n, axis in ((None, -1), (6, 1), (2, 0), (None, 0)):
            close(getattr(xp.fft, name)(array, n=n, axis=axis, norm=norm), getattr(np.fft, name)(x, n, axis, norm))
    over = ["rfftn"] if dtype in REAL_FLOATING else ["fftn", "ifftn", "irfftn"]
    for name in over:
        for s, axes in ((None, None), (None, (0, 2)), ((2, 6), (1, 2)), (None, (-1,)), ((4, 4, 4), None)):
            wanted_axes = tuple(range(3)) if axes is None and s is not None else axes
            close(
                getattr(xp.fft, name)(array, s=s, axes=axes, norm=norm), getattr(np.fft, name)(x, s, wanted_axes, norm)
            )
    for axes in (None, 1, (0, 2)):
        close(xp.fft.fftshift(array, axes=axes), np.fft.fftshift(x, axes))
        close(xp.fft.ifftshift(array, axes=axes), np.fft.ifftshift(x, axes))


def test_frequencies() -> None:
    for n in (1, 2, 5, 8):
        check(xp.fft.fftfreq(n, d=0.5), np.fft.fftfreq(n, 0.5).astype("float32"))
        check(xp.fft.rfftfreq(n, d=0.5, dtype=xp.float64, device="cpu"), np.fft.rfftfreq(n, 0.5))
    with pytest.raises((ValueError, RuntimeError)):
        xp.fft.fft(xp.ones(3), norm="other")  # type: ignore[arg-type]
