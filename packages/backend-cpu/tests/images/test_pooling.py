"""Test maximum and average pooling against loops over windows."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from harness import INDEX_ERROR, NOT_IMPLEMENTED, BFloat16, KernelError, call

import candelabra
from candelabra import ops

FLOATS = ["float16", "bfloat16", "float32", "float64"]
INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]
TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 1e-5, "float64": 1e-13}

# input sizes, kernel, stride, padding, dilation, ceil_mode
CASES: dict[str, tuple[tuple[int, ...], list[int], list[int], list[int], list[int], bool]] = {
    "2x2": ((2, 3, 8, 10), [2, 2], [2, 2], [0, 0], [1, 1], False),
    "3x3, stride 2, padding": ((2, 4, 9, 35), [3, 3], [2, 2], [1, 1], [1, 1], False),
    "3x3, stride 1": ((1, 2, 7, 40), [3, 3], [1, 1], [1, 1], [1, 1], False),
    "asymmetric": ((2, 3, 11, 13), [4, 2], [3, 5], [2, 0], [1, 1], False),
    "dilation": ((2, 2, 12, 13), [3, 2], [2, 1], [1, 1], [3, 2], False),
    "ceil": ((2, 3, 8, 9), [3, 3], [2, 2], [1, 0], [1, 1], True),
    "ceil drops a window in the padding": ((1, 2, 5, 5), [2, 2], [3, 3], [1, 1], [1, 1], True),
    "all": ((2, 3, 5, 6), [5, 6], [5, 6], [0, 0], [1, 1], False),
    "many channels": ((2, 20, 6, 7), [2, 3], [2, 2], [1, 1], [1, 1], False),
    "whole lines": ((2, 3, 9, 7), [3, 7], [2, 7], [0, 0], [1, 1], False),
    "too many channels for one block": ((2, 70, 5, 4), [3, 3], [2, 1], [1, 1], [1, 1], False),
    "1d": ((2, 3, 21), [3], [2], [1], [1], False),
    "1d, dilation, ceil": ((2, 3, 22), [3], [2], [1], [2], True),
    "no samples": ((0, 3, 6, 6), [2, 2], [2, 2], [0, 0], [1, 1], False),
}


def output_size(n: int, k: int, s: int, p: int, d: int, ceil: bool) -> int:
    size = (n + 2 * p - d * (k - 1) - 1 + (s - 1 if ceil else 0)) // s + 1
    return size - 1 if ceil and (size - 1) * s >= n + p else size


def output_shape(case: str) -> tuple[int, ...]:
    sizes, kernel, stride, padding, dilation, ceil = CASES[case]
    return (
        *sizes[:2],
        *(output_size(n, *rest, ceil) for n, *rest in zip(sizes[2:], kernel, stride, padding, dilation, strict=True)),
    )


def random(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    generator = np.random.default_rng([seed, *shape])
    if dtype == "bfloat16":
        return BFloat16.of(generator.standard_normal(shape))
    if dtype.startswith("float"):
        return generator.standard_normal(shape).astype(dtype)
    return generator.integers(0 if dtype == "uint8" else -100, 100, shape).astype(dtype)


def garbage(shape: tuple[int, ...], dtype: str) -> Any:
    if dtype == "bfloat16":
        return BFloat16.of(np.full(shape, np.nan))
    return np.full(shape, np.nan if dtype.startswith("float") else 99).astype(dtype)


def wide(value: Any) -> np.ndarray:
    array = value.values() if isinstance(value, BFloat16) else value
    return array.astype(np.float64 if array.dtype.kind == "f" else np.int64)


def channels_last(value: Any) -> Any:
    if isinstance(value, BFloat16):
        return BFloat16(channels_last(value.bits))
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(value, 1, -1)), -1, 1)


def stepped(value: Any) -> Any:
    """Return the same values with gaps in memory."""
    if isinstance(value, BFloat16):
        return BFloat16(stepped(value.bits))
    room = np.zeros((*value.shape[:-1], 2 * value.shape[-1]), value.dtype)[..., ::2]
    room[...] = value
    return room


PLACES = {"contiguous": lambda value: value, "channels_last": channels_last, "stepped": stepped}


def window(start: int, count: int, step: int, n: int) -> range:
    inside = [i for i in range(start, start + count * step, step) if 0 <= i < n]
    return range(inside[0], inside[-1] + 1, step) if inside else range(0)


def regular_windows(case: str) -> list[list[range]]:
    sizes, kernel, stride, padding, dilation, _ = CASES[case]
    return [
        [window(o * s - p, k, d, n) for o in range(outputs)]
        for n, outputs, k, s, p, d in zip(
            sizes[2:], output_shape(case)[2:], kernel, stride, padding, dilation, strict=True
        )
    ]


def adaptive_windows(sizes: tuple[int, ...], outputs: list[int]) -> list[list[range]]:
    return [[range(o * n // m, -((o + 1) * n // -m)) for o in range(m)] for n, m in zip(sizes, outputs, strict=True)]


def max_reference(x: np.ndarray, windows: list[list[range]]) -> tuple[np.ndarray, np.ndarray]:
    """Return values and indices: those of the last NaN, else of the first maximum."""
    shape = (*x.shape[:2], *(len(axis) for axis in windows))
    values, positions = np.zeros(shape, x.dtype), np.zeros(shape, np.int64)
    plane = np.arange(int(np.prod(x.shape[2:]))).reshape(x.shape[2:])
    for at in np.ndindex(*shape[2:]):
        places = np.ix_(*(axis[o] for axis, o in zip(windows, at, strict=True)))
        index = plane[places].ravel()
        part = x.reshape(*x.shape[:2], plane.size)[..., index]
        chosen = np.argmax(part, axis=-1)
        if x.dtype.kind == "f":
            nans = np.isnan(part)
            last = part.shape[-1] - 1 - np.argmax(nans[..., ::-1], axis=-1)
            chosen = np.where(nans.any(axis=-1), last, chosen)
        positions[(slice(None), slice(None), *at)] = index[chosen]
        values[(slice(None), slice(None), *at)] = np.take_along_axis(part, chosen[..., None], -1)[..., 0]
    return values, positions


def check(result: Any, expected: np.ndarray, scale: float = 1) -> None:
    dtype = "bfloat16" if isinstance(result, BFloat16) else result.dtype.name
    if dtype in TOLERANCE:
        np.testing.assert_allclose(wide(result), expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * scale)
    else:
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("place", PLACES)
def test_max_pool(case: str, dtype: str, place: str) -> None:
    sizes, kernel, stride, padding, dilation, ceil = CASES[case]
    x = PLACES[place](random(sizes, dtype))
    out, indices = (
        PLACES[place](garbage(output_shape(case), dtype)),
        PLACES[place](np.full(output_shape(case), -7, np.int64)),
    )
    call("max_pool", [out, indices], x, kernel, stride, padding, dilation, ceil)
    values, positions = max_reference(wide(x), regular_windows(case))
    np.testing.assert_array_equal(wide(out), values)
    np.testing.assert_array_equal(indices, positions)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_max_pool_of_nan_and_infinity(dtype: str, place: str) -> None:
    x = np.random.default_rng(0).standard_normal((2, 9, 8, 20)).astype(np.float32)
    x[0, :, 3, 5] = x[0, :, 4, 5] = np.nan
    x[1, 2, 2:5, 2:7] = -np.inf
    x[1, 3, 7, 19] = np.inf
    x[1, 4] = 0.5
    value = BFloat16.of(x) if dtype == "bfloat16" else x
    out, indices = garbage((2, 9, 8, 20), dtype), np.zeros((2, 9, 8, 20), np.int64)
    call("max_pool", [out, indices], PLACES[place](value), [3, 3], [1, 1], [1, 1], [1, 1], False)
    windows = [[window(o - 1, 3, 1, n) for o in range(n)] for n in (8, 20)]
    values, positions = max_reference(wide(value), windows)
    np.testing.assert_array_equal(wide(out), values)
    np.testing.assert_array_equal(indices, positions)


def test_max_pool_of_a_window_that_meets_only_padding() -> None:
    # The window covers offsets -1 and 2 of a single element.
    out, indices, x = np.zeros((1, 1, 1), np.float32), np.zeros((1, 1, 1), np.int64), np.ones((1, 1, 1), np.float32)
    call("max_pool", [out, indices], x, [2], [1], [1], [3], False)
    assert out[0, 0, 0] == -np.inf
    gradient = np.full((1, 1, 1), np.nan, np.float32)
    call("max_pool_backward", [gradient], np.ones((1, 1, 1), np.float32), indices, [1, 1, 1])
    assert gradient[0, 0, 0] == 0


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("place", PLACES)
def test_max_pool_backward(case: str, dtype: str, place: str) -> None:
    sizes = CASES[case][0]
    _, positions = max_reference(wide(random(sizes, dtype)), regular_windows(case))
    grad = PLACES[place](random(output_shape(case), dtype, 1))
    result = PLACES[place](garbage(sizes, dtype))
    call("max_pool_backward", [result], grad, PLACES[place](positions), list(sizes))
    expected = np.zeros((sizes[0] * sizes[1], int(np.prod(sizes[2:]))))
    planes = np.arange(len(expected))[:, None]
    np.add.at(
        expected,
        (planes, positions.reshape(len(expected), positions[:1, :1].size or 1)),
        wide(grad).reshape(len(expected), positions[:1, :1].size or 1),
    )
    check(result, expected.reshape(sizes), 4)


@pytest.mark.parametrize("index", [-2, 16, 1 << 40])
def test_max_pool_backward_refuses_indices_out_of_range(index: int) -> None:
    with pytest.raises(KernelError, match=f"index {index} is out of bounds for a plane of 16 elements") as caught:
        call(
            "max_pool_backward",
            [np.zeros((1, 1, 4, 4))],
            np.ones((1, 1, 2, 2)),
            np.full((1, 1, 2, 2), index),
            [1, 1, 4, 4],
        )
    assert caught.value.status == INDEX_ERROR


def average_reference(
    x: np.ndarray, case: str, count_include_pad: bool, divisor: int | None, transpose_of: np.ndarray | None = None
) -> np.ndarray:
    """Return the averages of x, or the gradient of x if `transpose_of` is a gradient of them."""
    sizes, kernel, stride, padding, _, _ = CASES[case]
    windows = regular_windows(case)
    shape = output_shape(case)
    result = np.zeros(shape if transpose_of is None else sizes)
    for at in np.ndindex(*shape[2:]):
        places = tuple(axis[o] for axis, o in zip(windows, at, strict=True))
        count = int(np.prod([len(place) for place in places]))
        padded = int(np.prod([
            min(o * s - p + k, n + p) - (o * s - p) for o, n, k, s, p in zip(at, sizes[2:], kernel, stride, padding, strict=True)
        ]))  # fmt: skip
        by = divisor if divisor is not None else padded if count_include_pad else count
        inputs = (slice(None), slice(None), *(slice(place.start, place.stop) for place in places))
        output = (slice(None), slice(None), *at)
        if count == 0:
            continue
        if transpose_of is None:
            total = x[inputs].sum(axis=tuple(range(2, x.ndim)))
            result[output] = total / by if x.dtype.kind == "f" else np.trunc(total / by)
        else:
            part = transpose_of[output] / by if transpose_of.dtype.kind == "f" else np.trunc(transpose_of[output] / by)
            result[inputs] += part.reshape(*part.shape, *(1,) * (x.ndim - 2))
    return result


UNDILATED = [name for name, case in CASES.items() if max(case[4]) == 1]


@pytest.mark.parametrize("dtype", [*FLOATS, "int64"])
@pytest.mark.parametrize("case", UNDILATED)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("count_include_pad", "divisor"), [(True, None), (False, None), (True, 7), (False, -2)])
def test_avg_pool(case: str, dtype: str, place: str, count_include_pad: bool, divisor: int | None) -> None:
    sizes, kernel, stride, padding, _, ceil = CASES[case]
    x = PLACES[place](random(sizes, dtype))
    out = PLACES[place](garbage(output_shape(case), dtype))
    call("avg_pool", [out], x, kernel, stride, padding, ceil, count_include_pad, divisor)
    check(out, average_reference(wide(x), case, count_include_pad, divisor), 4)

    grad, result = PLACES[place](random(output_shape(case), dtype, 1)), PLACES[place](garbage(sizes, dtype))
    call("avg_pool_backward", [result], grad, list(sizes), kernel, stride, padding, ceil, count_include_pad, divisor)
    check(result, average_reference(wide(x), case, count_include_pad, divisor, wide(grad)), 4)


def test_avg_pool_refuses_a_zero_divisor() -> None:
    options = ([2, 2], [2, 2], [0, 0], False, True, 0)
    with pytest.raises(RuntimeError, match="divisor must be not zero"):
        ops.avg_pool(candelabra.ones(1, 1, 2, 2), *options)
    with pytest.raises(RuntimeError, match="divisor must be not zero"):
        ops.avg_pool_backward(candelabra.ones(1, 1, 1, 1), [1, 1, 2, 2], *options)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("sizes", "outputs"),
    [((7, 10), [3, 4]), ((4, 4), [1, 1]), ((3, 3), [5, 7]), ((6, 6), [6, 2]), ((11,), [4]), ((5, 5), [0, 2])],
)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("channels", [3, 17])
def test_adaptive_pooling(sizes: tuple[int, ...], outputs: list[int], dtype: str, place: str, channels: int) -> None:
    windows = adaptive_windows(sizes, outputs)
    x, shape = PLACES[place](random((2, channels, *sizes), dtype)), (2, channels, *outputs)
    out, indices = PLACES[place](garbage(shape, dtype)), PLACES[place](np.full(shape, -7, np.int64))
    call("adaptive_max_pool", [out, indices], x, outputs)
    values, positions = max_reference(wide(x), windows)
    np.testing.assert_array_equal(wide(out), values)
    np.testing.assert_array_equal(indices, positions)

    out, grad = PLACES[place](garbage(shape, dtype)), PLACES[place](random(shape, dtype, 1))
    result = PLACES[place](garbage((2, channels, *sizes), dtype))
    call("adaptive_avg_pool", [out], x, outputs)
    call("adaptive_avg_pool_backward", [result], grad, [2, channels, *sizes])
    averages, gradient = np.zeros(shape), np.zeros((2, channels, *sizes))
    for at in itertools.product(*(range(n) for n in outputs)):
        inputs = (
            slice(None),
            slice(None),
            *(slice(axis[o].start, axis[o].stop) for axis, o in zip(windows, at, strict=True)),
        )
        output = (slice(None), slice(None), *at)
        averages[output] = wide(x)[inputs].mean(axis=tuple(range(2, 2 + len(sizes))))
        count = wide(x)[inputs][0, 0].size
        gradient[inputs] += (wide(grad)[output] / count).reshape(2, channels, *(1,) * len(sizes))
    check(out, averages, 4)
    check(result, gradient, 4)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("sizes", "outputs"),
    [
        ((300,), [7]),
        ((40,), [3]),
        ((9,), [20]),
        ((30, 26), [4, 5]),
        ((17, 3), [2, 5]),
        ((1, 50), [1, 2]),
        ((5, 6, 20), [2, 3, 3]),
    ],
)
@pytest.mark.parametrize("place", PLACES)
def test_adaptive_maxima_of_equal_values_nan_and_infinity(
    sizes: tuple[int, ...], outputs: list[int], dtype: str, place: str
) -> None:
    """Among equal values, the first index is returned; among NaNs, the last."""
    generator = np.random.default_rng(5)
    x = generator.integers(-2, 3, (3, 9, *sizes)).astype(np.float32)
    x[1][generator.random(x[1].shape) < 0.02] = np.nan
    x[2][generator.random(x[2].shape) < 0.9] = -np.inf
    x[2, 0] = -np.inf
    x[2, 1] = np.where(generator.random(x[2, 1].shape) < 0.5, 0.0, -0.0)
    x[1, 0] = np.nan
    value = PLACES[place](BFloat16.of(x) if dtype == "bfloat16" else x.astype(dtype))
    shape = (3, 9, *outputs)
    out, indices = PLACES[place](garbage(shape, dtype)), PLACES[place](np.full(shape, -7, np.int64))
    call("adaptive_max_pool", [out, indices], value, outputs)
    values, positions = max_reference(wide(value), adaptive_windows(sizes, outputs))
    np.testing.assert_array_equal(wide(out), values)
    np.testing.assert_array_equal(indices, positions)


@pytest.mark.parametrize(
    ("operator", "dtype"),
    [("adaptive_avg_pool", "int64"), ("adaptive_max_pool", "int32"), ("adaptive_avg_pool", "bool")],
)
def test_dtypes_without_a_kernel(operator: str, dtype: str) -> None:
    x, out = np.ones((1, 1, 4, 4), dtype), np.ones((1, 1, 2, 2), dtype)
    outputs = [out, np.zeros((1, 1, 2, 2), np.int64)] if operator == "adaptive_max_pool" else [out]
    with pytest.raises(KernelError) as caught:
        call(operator, outputs, x, [2, 2])
    assert caught.value.status == NOT_IMPLEMENTED
