"""Test elementwise kernels with a broadcast row: channel counts, channels last, and short rows."""

from __future__ import annotations

import numpy as np
import pytest

import candelabra

DTYPES = ["float32", "float64", "uint8", "int64", "complex64"]
SHAPES = [(4, 16, 40, 40), (2, 129, 6, 6), (3, 3, 50, 50), (2, 15, 9, 7)]


def numbers(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 50, shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_numbers_of_channels_are_added_to_channels_last_memory(dtype: str, shape: tuple[int, ...]) -> None:
    n, channels, height, width = shape
    x = numbers((n, height, width, channels), dtype, 0).transpose(0, 3, 1, 2)
    for other in ((channels, 1, 1), (n, channels, 1, 1), (1, width), (height, 1), (n, 1, 1, 1), (channels, 1, width)):
        y = numbers(other, dtype, 1)
        result = candelabra.from_numpy(x) + candelabra.from_numpy(y)
        np.testing.assert_array_equal(result.numpy(), x + y)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [2, 4, 15, 16, 63])
def test_short_rows_of_wider_ones(dtype: str, length: int) -> None:
    x, y = numbers((300, length + 3), dtype, 0), numbers((300, length + 1), dtype, 1)
    a, b = x[:, 1 : length + 1], y[:, :length]
    result = candelabra.from_numpy(x)[:, 1 : length + 1] * candelabra.from_numpy(y)[:, :length]
    np.testing.assert_array_equal(result.numpy(), a * b)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [1, 2, 5, 15, 33, 63])
def test_short_rows_of_results(dtype: str, length: int) -> None:
    x, y = numbers((3, 41, 9, length), dtype, 0), numbers((3, 41, 9, length + 2), dtype, 1)
    a, b = candelabra.from_numpy(x), candelabra.from_numpy(y)[..., 1 : length + 1]
    wanted = x + y[..., 1 : length + 1]
    out = candelabra.zeros((3, 41, 9, length + 3), dtype=a.dtype)
    candelabra.add(a, b, out=out[..., 2 : length + 2])
    np.testing.assert_array_equal(out.numpy()[..., 2 : length + 2], wanted)
    assert not out[..., :2].any() and not out[..., length + 2 :].any()
    rows = candelabra.from_numpy(y.copy())
    rows[..., 1 : length + 1].add_(a)
    np.testing.assert_array_equal(rows.numpy()[..., 1 : length + 1], wanted)
    np.testing.assert_array_equal(rows.numpy()[..., 0], y[..., 0])
    swapped = b.transpose(0, 2)[:, 3:]
    np.testing.assert_array_equal(
        (swapped * swapped).numpy(), np.square(y[..., 1 : length + 1].transpose(2, 1, 0, 3)[:, 3:])
    )


@pytest.mark.parametrize("dtype", [*DTYPES, "float16"])
def test_inputs_that_repeat_one_number_a_row(dtype: str) -> None:
    x, y = numbers((70, 1), dtype, 0), numbers((1, 70, 1), dtype, 1)
    a, b = candelabra.from_numpy(x).expand(70, 333), candelabra.from_numpy(y).expand(3, 70, 333)
    np.testing.assert_array_equal((a + b).numpy(), np.broadcast_to(x + y, (3, 70, 333)))
    np.testing.assert_array_equal((b == a).numpy(), np.broadcast_to(x == y, (3, 70, 333)))
    if dtype != "uint8":
        np.testing.assert_array_equal((-a).numpy(), np.broadcast_to(-x, (70, 333)))
    out = candelabra.zeros((70, 666), dtype=a.dtype)
    candelabra.mul(a, a, out=out[:, ::2])
    np.testing.assert_array_equal(out.numpy()[:, ::2], np.broadcast_to(x * x, (70, 333)))
    assert not out[:, 1::2].any()
