"""Test softmax, log_softmax and their gradients against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special
from values import FLOATS, assert_values, cases, random_tensor, tensor, wide

import candelabra
from candelabra import ops

SHAPES = [(), (1,), (6,), (5000,), (3, 5), (40, 100), (100, 40), (7, 1000), (4, 9, 33), (2, 5, 3, 4)]


def along(x: object) -> range:
    return range(max(1, getattr(x, "ndim", 0)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_softmax(dtype: str) -> None:
    for x in cases(SHAPES, dtype):
        for dim in along(x):
            array = wide(x)
            expected = np.ones(()) if x.ndim == 0 else special.softmax(array, dim)
            # x - max is rounded before exp, so the relative error grows with |x - max|.
            scale = expected if x.ndim == 0 else expected * (2 + array.max(dim, keepdims=True) - array)
            assert_values(ops.softmax(x, dim), expected, scale=scale)


@pytest.mark.parametrize("dtype", FLOATS)
def test_log_softmax(dtype: str) -> None:
    for x in cases(SHAPES, dtype):
        for dim in along(x):
            array = wide(x)
            expected = np.zeros(()) if x.ndim == 0 else special.log_softmax(array, dim)
            assert_values(
                ops.log_softmax(x, dim), expected, scale=np.abs(expected) + np.abs(array).max(initial=1), units=2
            )


@pytest.mark.parametrize("dtype", FLOATS)
def test_gradients(dtype: str) -> None:
    for x in cases(SHAPES[1:], dtype):
        for dim in along(x):
            grad = random_tensor(tuple(x.shape), dtype, "transposed", 9)
            g = wide(grad)
            y = ops.softmax(x, dim)
            total = (g * wide(y)).sum(dim, keepdims=True)
            expected = wide(y) * (g - total)
            assert_values(
                ops.softmax_backward(grad, y, dim),
                expected,
                scale=wide(y) * (np.abs(g) + np.abs(g * wide(y)).sum(dim, keepdims=True)),
            )
            log_y = ops.log_softmax(x, dim)
            weight = np.exp(wide(log_y))
            expected = g - weight * g.sum(dim, keepdims=True)
            scale = np.abs(g) + weight * (
                np.abs(g).sum(dim, keepdims=True) + np.abs(wide(log_y) * g.sum(dim, keepdims=True))
            )
            assert_values(ops.log_softmax_backward(grad, log_y, dim), expected, scale=scale)


@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values(dtype: str) -> None:
    rows = np.array(
        [
            [1000.0, 1000, 999],
            [-1000, -1001, -1e4],
            [-np.inf, 0, 1],
            [-np.inf] * 3,
            [np.inf, 0, 1],
            [np.nan, 0, 1],
            [60000, -60000, 0],
        ]
    )
    with np.errstate(all="ignore"):
        for x, dim in (
            (tensor(rows, dtype), 1),
            (tensor(rows.T.copy(), dtype).T, 1),
            (tensor(np.tile(rows.T, (1, 3)), dtype), 0),
        ):
            array = wide(x)
            shifted = array - array.max(dim, keepdims=True)
            expected = np.exp(shifted) / np.exp(shifted).sum(dim, keepdims=True)
            assert_values(ops.softmax(x, dim), expected, scale=1)
            logarithm = shifted - np.log(np.exp(shifted).sum(dim, keepdims=True))
            assert_values(ops.log_softmax(x, dim), logarithm, scale=np.where(np.isfinite(array), np.abs(array), 1) + 1)


@pytest.mark.parametrize("dim", [0, 1])
def test_empty(dim: int) -> None:
    for shape in ((0, 3), (3, 0)):
        assert tuple(ops.softmax(candelabra.zeros(*shape), dim).shape) == shape
        assert tuple(ops.log_softmax(candelabra.zeros(*shape), dim).shape) == shape


def test_long_lines_are_accurate() -> None:
    x = random_tensor((2, 500_000), "float32")
    for value, dim in ((x, 1), (x.T.contiguous(), 0)):
        expected = special.softmax(wide(value), dim)
        assert_values(
            ops.softmax(value, dim), expected, scale=expected * (2 + wide(value).max(dim, keepdims=True) - wide(value))
        )


@pytest.mark.parametrize("dtype", ["int64", "bool", "complex64"])
def test_other_dtypes_are_refused(dtype: str) -> None:
    with pytest.raises((RuntimeError, NotImplementedError), match="(?i)not implemented|floating"):
        ops.softmax(candelabra.ones(3, dtype=getattr(candelabra, dtype)), 0)
