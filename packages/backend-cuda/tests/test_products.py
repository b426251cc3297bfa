"""Test matrix products: batches that are one product, factors that cuBLASLt reads in place and
those that are copied first, threads.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest
from scipy.special import ndtr

import candelabra


def made(*shape: int, dtype: str = "float64") -> np.ndarray:
    values = np.random.default_rng(sum(shape)).standard_normal(shape)
    return (values + 1j * values[::-1] if dtype.startswith("complex") else values).astype(dtype)


def on(device: candelabra.device, a: np.ndarray) -> candelabra.Tensor:
    return candelabra.from_numpy(a).to(device)


@pytest.mark.parametrize("dtype", ["float64", "complex128", "int64"])
def test_batches_with_one_factor(cuda: candelabra.device, dtype: str) -> None:
    a, b = made(4, 3, 5, dtype=dtype), made(5, 6, dtype=dtype)
    left, right = on(cuda, a), on(cuda, b).expand(4, 5, 6)
    tolerance = {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(candelabra.bmm(left, right).cpu().numpy(), a @ b, **tolerance)
    # gaps between the matrices: not a single product
    np.testing.assert_allclose(candelabra.bmm(left[::2], right[::2]).cpu().numpy(), a[::2] @ b, **tolerance)
    np.testing.assert_allclose(candelabra.bmm(left[:, :1], right).cpu().numpy(), a[:, :1] @ b, **tolerance)
    # the first factor is shared, and the others are adjacent
    c = made(5, 4, 2, dtype=dtype)
    out = candelabra.empty(3, 4, 2, dtype=getattr(candelabra, dtype), device=cuda).permute(1, 0, 2)
    candelabra.bmm(left[:1].expand(4, 3, 5), on(cuda, c).permute(1, 0, 2), out=out)
    np.testing.assert_allclose(out.cpu().numpy(), a[0] @ c.transpose(1, 0, 2), **tolerance)
    x = made(4, 3, 6, dtype=dtype)
    sums = candelabra.baddbmm(on(cuda, x), left, right, beta=2, alpha=3)
    np.testing.assert_allclose(sums.cpu().numpy(), 2 * x + 3 * (a @ b), **tolerance)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_any_strides(cuda: candelabra.device, dtype: str) -> None:
    a, b = made(6, 8, dtype=dtype), made(8, 10, dtype=dtype)
    A, B = on(cuda, a), on(cuda, b)
    for rows in (A, A.mT.contiguous().mT, on(cuda, np.repeat(a, 2, 1))[:, ::2]):
        for columns in (B, B.mT.contiguous().mT, on(cuda, np.repeat(b, 2, 0))[::2]):
            np.testing.assert_allclose((rows @ columns).cpu().numpy(), a @ b, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose((A[:1].expand(6, 8) @ B).cpu().numpy(), np.repeat(a[:1] @ b, 6, 0), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose((A @ B[:, 3]).cpu().numpy(), a @ b[:, 3], rtol=1e-4, atol=1e-4)


def test_more_batches_than_a_grid_has(cuda: candelabra.device) -> None:
    a, b = made(66000, 1, 2), made(66000, 2, 1)
    np.testing.assert_allclose(candelabra.bmm(on(cuda, a), on(cuda, b)).cpu().numpy(), a @ b)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
def test_bias(cuda: candelabra.device, dtype: str) -> None:
    element = getattr(candelabra, dtype)
    x, weight, bias = (
        candelabra.arange(n, device=cuda).reshape(shape).to(element)
        for n, shape in ((12, (2, 2, 3)), (15, (5, 3)), (6, (6,)))
    )
    expected = x.to(candelabra.complex128) @ weight.to(candelabra.complex128).mT + bias[1:].to(candelabra.complex128)
    # a bias that is not aligned, and one that has gaps
    for each in (bias[1:], bias[1:].repeat_interleave(2)[::2], bias[1:].clone()):
        result = candelabra.ops.linear(x, weight, each)
        np.testing.assert_allclose(result.to(candelabra.complex128).cpu().numpy(), expected.cpu().numpy(), rtol=1e-2)


def test_threads_share_what_was_chosen(cuda: candelabra.device) -> None:
    a = made(16, 16)
    results: list[np.ndarray] = []

    def multiply() -> None:
        x = on(cuda, a)
        for _ in range(3):
            results.append((x @ x).cpu().numpy())

    threads = [threading.Thread(target=multiply) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 12
    for result in results:
        np.testing.assert_array_equal(result, results[0])
    np.testing.assert_allclose(results[0], a @ a)


def _gelu(x: np.ndarray, tanh: bool) -> np.ndarray:
    if tanh:
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return x * ndtr(x)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float16", 2e-3), ("bfloat16", 1e-2), ("float32", 1e-5), ("float64", 1e-12)]
)
def test_bias_and_activation(cuda: candelabra.device, dtype: str, tolerance: float) -> None:
    element = getattr(candelabra, dtype)
    a, b = (on(cuda, x / 4).to(element) for x in (made(6, 8), made(8, 16)))
    wide_a, wide_b = (x.to(candelabra.float64).cpu().numpy() for x in (a, b))
    row = on(cuda, made(32)).to(element)
    # matrices that the library can read, an unaligned row, one with gaps, a column, a matrix
    for self in (row[:16], row[1:17], row[::2], row[:6].unsqueeze(1), on(cuda, made(6, 16)).to(element)):
        added = self.to(candelabra.float64).cpu().numpy()
        for beta, alpha in ((1, 1), (1, 2), (0.5, 1), (0, 1)):
            exact = beta * added + alpha * (wide_a @ wide_b)
            for use_gelu in (False, True):
                for turned in (False, True):
                    # a column-major result, which has no rows for the library's bias
                    out = candelabra.empty(16, 6, dtype=element, device=cuda).t() if turned else None
                    result = candelabra._addmm_activation(
                        self, a, b, beta=beta, alpha=alpha, use_gelu=use_gelu, out=out
                    )
                    expected = _gelu(exact, False) if use_gelu else np.maximum(exact, 0)
                    given = result.to(candelabra.float64).cpu().numpy()
                    slack = 5e-4 if dtype in ("float16", "bfloat16") else 0
                    np.testing.assert_allclose(given, expected, rtol=tolerance, atol=tolerance + slack)


def test_gelu_of_the_library_is_for_half_precisions(cuda: candelabra.device) -> None:
    """The tanh approximation of GELU differs from gelu by more than float32's precision, but by
    less than float16's near one.
    """
    x = np.linspace(-4, 4, 16)
    a = candelabra.eye(16, device=cuda)
    for element, tanh in ((candelabra.float32, False), (candelabra.float16, True)):
        given = candelabra._addmm_activation(
            candelabra.zeros(16, dtype=element, device=cuda),
            a.to(element),
            on(cuda, np.diag(x)).to(element),
            use_gelu=True,
        )
        rounded = on(cuda, x).to(element).to(candelabra.float64).cpu().numpy()
        result = given.to(candelabra.float64).cpu().numpy().diagonal()
        tolerance = 1e-6 if element is candelabra.float32 else 1e-3
        np.testing.assert_allclose(result, _gelu(rounded, tanh), rtol=tolerance, atol=1e-6)


def test_a_bias_is_added_by_the_product(cuda: candelabra.device) -> None:
    # addmm as linear: one row, a factor of one
    a, b, bias = made(5, 8, dtype="float32"), made(8, 12, dtype="float32"), made(12, dtype="float32")
    result = candelabra.addmm(on(cuda, bias), on(cuda, a), on(cuda, b), alpha=3)
    np.testing.assert_allclose(result.cpu().numpy(), bias + 3 * (a @ b), rtol=1e-5, atol=1e-5)
    one = on(cuda, bias).unsqueeze(0).clone()  # the row is also the output
    one.addmm_(on(cuda, a[:1]), on(cuda, b))
    np.testing.assert_allclose(one.cpu().numpy(), bias + a[:1] @ b, rtol=1e-5, atol=1e-5)
