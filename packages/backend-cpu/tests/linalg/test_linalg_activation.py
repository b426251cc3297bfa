"""Test products with a bias and activation epilogue: in blocks, in parts of rows, in one row."""

from __future__ import annotations

import numpy as np
import pytest
from harness import KernelError, Scalar, backend, call
from scipy.special import ndtr

SHAPES = [
    (3, 4, 5),
    (1, 5, 7),
    (70, 100, 33),
    (300, 256, 256),
    (600, 4, 600),
    (1400, 16, 900),
    (33, 0, 5),
    (0, 3, 2),
    (4, 3, 1),
]


def gelu(x: np.ndarray | float) -> np.ndarray:
    return x * ndtr(x)


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def finished(self: np.ndarray, a: np.ndarray, b: np.ndarray, beta: float, alpha: float, use_gelu: bool) -> np.ndarray:
    out = np.full((a.shape[0], b.shape[1]), 99, a.dtype)
    call("_addmm_activation", [out], np.broadcast_to(self, out.shape), a, b, Scalar(beta), Scalar(alpha), use_gelu)
    return out


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 2e-6), ("float64", 1e-14), ("float16", 2e-3)])
@pytest.mark.parametrize(("m", "k", "n"), SHAPES)
def test_sums_and_activations(m: int, k: int, n: int, dtype: str, tolerance: float) -> None:
    rng = np.random.default_rng(m + n)
    a, b = (rng.standard_normal(shape).astype(dtype) / np.sqrt(max(k, 1)).astype(dtype) for shape in ((m, k), (k, n)))
    for turned in (False, True):
        left, right = (np.ascontiguousarray(x.T).T if turned else x for x in (a, b))
        small = m * n < 10_000
        for shape in ((n,), (m, n), (m, 1)) if small else ((n,),):
            self = rng.standard_normal(shape).astype(dtype)
            for beta, alpha in ((1.0, 1.0), (2.0, 0.5), (0.0, 1.0)) if small else ((1.0, 2.0),):
                added = 0 if beta == 0 else beta * self.astype(np.float64)
                exact = added + alpha * (a.astype(np.float64) @ b.astype(np.float64)) + np.zeros((m, n))
                for use_gelu, function in ((False, relu), (True, gelu)):
                    result = finished(self, left, right, beta, alpha, use_gelu)
                    np.testing.assert_allclose(result, function(exact), rtol=tolerance * 4, atol=tolerance * 4)


def test_columns_and_gaps() -> None:
    rng = np.random.default_rng(0)
    a, b, bias = rng.standard_normal((40, 30)), rng.standard_normal((30, 50)), rng.standard_normal(50)
    for out in (np.zeros((50, 40)).T, np.zeros((40, 100))[:, ::2], np.zeros((40, 64))[:, :50]):
        call("_addmm_activation", [out], np.broadcast_to(bias, (40, 50)), a, b, Scalar(1.0), Scalar(1.0), True)
        np.testing.assert_allclose(out, gelu(a @ b + bias), rtol=1e-12, atol=1e-12)
    wide = np.repeat(bias, 2)[::2]
    np.testing.assert_allclose(finished(wide, a, b, 1.0, 1.0, False), relu(a @ b + bias), rtol=1e-12, atol=1e-12)
    # `self` is the output.
    out = np.tile(bias, (40, 1))
    call("_addmm_activation", [out], out, a, b, Scalar(1.0), Scalar(1.0), False)
    np.testing.assert_allclose(out, relu(a @ b + bias), rtol=1e-12, atol=1e-12)


def test_integers_and_what_is_no_number() -> None:
    a, b = np.arange(6).reshape(2, 3) - 3, np.arange(12).reshape(3, 4) - 5
    np.testing.assert_array_equal(
        finished(np.array([1, -9, 30, 2]), a, b, 1.0, 2.0, False), relu(2 * (a @ b) + [1, -9, 30, 2])
    )
    for shape in ((4, 5, 6), (256, 256, 256)):
        m, k, n = shape
        x, y = np.ones((m, k), np.float32), np.ones((k, n), np.float32)
        bias = np.zeros(n, np.float32)
        bias[1], bias[2], bias[3] = np.nan, np.inf, -np.inf
        for use_gelu in (False, True):
            result = finished(bias, x, y, 1.0, 1.0, use_gelu)
            assert np.isnan(result[:, 1]).all() and np.isposinf(result[:, 2]).all()
            np.testing.assert_allclose(result[:, 0], gelu(k) if use_gelu else k, rtol=1e-6)
        assert (finished(bias, x, y, 1.0, 1.0, False)[:, 3] == 0).all()
    # With beta == 0, self is not read.
    assert (finished(np.full(4, np.nan), np.ones((2, 2)), np.ones((2, 4)), 0.0, 1.0, False) == 2).all()


def test_any_number_of_threads() -> None:
    rng = np.random.default_rng(0)
    table = backend().table
    threads = table.thread_count()
    a, b, bias = (rng.standard_normal(shape).astype(np.float32) for shape in ((700, 300), (300, 900), (900,)))
    try:
        table.set_thread_count(1)
        one = finished(bias, a, b, 1.0, 1.0, True)
        for count in (2, 3):
            table.set_thread_count(count)
            np.testing.assert_allclose(finished(bias, a, b, 1.0, 1.0, True), one, rtol=1e-5, atol=1e-5)
    finally:
        table.set_thread_count(threads)


def test_complex_numbers_are_refused() -> None:
    a = np.ones((2, 2), bool)
    with pytest.raises(KernelError):
        finished(a, a, a, 1.0, 1.0, False)
