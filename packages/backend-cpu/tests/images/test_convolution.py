"""Test convolution and its gradients against a direct sum in float64 (int64, complex128)."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import NOT_IMPLEMENTED, BFloat16, KernelError, backend, call

import candelabra
from candelabra import ops

TOLERANCE = {
    "float16": 2e-3,
    "bfloat16": 1.6e-2,
    "float32": 4e-6,
    "float64": 1e-13,
    "complex64": 8e-6,
    "complex128": 1e-13,
}
DTYPES = ["uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]


@dataclass(frozen=True)
class Case:
    """The sizes of one convolution. The length of `input` is the number of spatial dimensions."""

    batch: int
    channels: tuple[int, int]
    input: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int = 1

    @property
    def output(self) -> tuple[int, ...]:
        return tuple(
            (n + 2 * p - d * (k - 1) - 1) // s + 1
            for n, k, s, p, d in zip(self.input, self.kernel, self.stride, self.padding, self.dilation, strict=True)
        )

    @property
    def input_shape(self) -> tuple[int, ...]:
        return (self.batch, self.channels[0], *self.input)

    @property
    def weight_shape(self) -> tuple[int, ...]:
        return (self.channels[1], self.channels[0] // self.groups, *self.kernel)

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (self.batch, self.channels[1], *self.output)

    @property
    def arguments(self) -> tuple[Any, ...]:
        return (list(self.stride), list(self.padding), list(self.dilation), self.groups)


CASES = {
    "3x3": Case(2, (16, 24), (12, 13), (3, 3), (1, 1), (1, 1), (1, 1)),
    "one channel": Case(3, (1, 8), (10, 11), (3, 3), (1, 1), (0, 0), (1, 1)),
    "few channels, 7x7, stride 2": Case(2, (3, 16), (21, 20), (7, 7), (2, 2), (3, 3), (1, 1)),
    "1x1": Case(2, (20, 12), (6, 7), (1, 1), (1, 1), (0, 0), (1, 1)),
    "1x1, stride 2": Case(2, (20, 12), (7, 7), (1, 1), (2, 2), (0, 0), (1, 1)),
    "1x1 with padding": Case(1, (4, 5), (3, 4), (1, 1), (1, 1), (1, 2), (1, 1)),
    "asymmetric": Case(2, (5, 7), (15, 9), (4, 2), (3, 1), (2, 0), (1, 3)),
    "unreached input": Case(1, (3, 4), (11, 12), (2, 2), (5, 4), (0, 0), (1, 1)),
    "dilation": Case(2, (16, 16), (14, 14), (3, 3), (1, 1), (2, 2), (2, 2)),
    "groups": Case(2, (12, 18), (9, 8), (3, 3), (1, 1), (1, 1), (1, 1), 3),
    "depthwise": Case(2, (32, 32), (9, 10), (3, 3), (1, 1), (1, 1), (1, 1), 32),
    "depthwise, stride 2": Case(1, (17, 17), (9, 10), (3, 3), (2, 2), (1, 1), (1, 1), 17),
    "depthwise with multiplier": Case(2, (6, 12), (9, 10), (5, 5), (1, 1), (2, 2), (1, 1), 6),
    "kernel over all": Case(3, (5, 6), (4, 4), (4, 4), (1, 1), (0, 0), (1, 1)),
    "1d": Case(2, (16, 8), (30,), (5,), (1,), (2,), (1,)),
    "1d, stride, dilation, groups": Case(3, (6, 4), (31,), (3,), (2,), (3,), (2,), 2),
    "3d": Case(2, (8, 16), (5, 6, 7), (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1)),
    "3d, stride, padding, dilation": Case(1, (3, 4), (7, 6, 9), (2, 3, 2), (2, 1, 3), (1, 0, 2), (1, 2, 3)),
    "3d, groups": Case(2, (6, 4), (4, 5, 3), (3, 1, 2), (1, 2, 1), (1, 0, 1), (1, 1, 1), 2),
    "3d, one deep": Case(1, (2, 3), (1, 5, 5), (1, 3, 3), (1, 1, 1), (0, 1, 1), (1, 1, 1)),
    "enough for Winograd's method": Case(2, (32, 48), (17, 18), (3, 3), (1, 1), (1, 1), (1, 1)),
    "one pixel": Case(1, (1, 1), (1, 1), (1, 1), (1, 1), (0, 0), (1, 1)),
}


def random(shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    generator = np.random.default_rng([seed, *shape])
    if dtype == "bfloat16":
        return BFloat16.of(generator.standard_normal(shape))
    if dtype.startswith("complex"):
        return (generator.standard_normal(shape) + 1j * generator.standard_normal(shape)).astype(dtype)
    if dtype.startswith("float"):
        return generator.standard_normal(shape).astype(dtype)
    return generator.integers(0 if dtype == "uint8" else -20, 20, shape).astype(dtype)


def garbage(shape: tuple[int, ...], dtype: str) -> Any:
    if dtype == "bfloat16":
        return BFloat16.of(np.full(shape, np.nan))
    return np.full(shape, np.nan if dtype.startswith(("float", "complex")) else 99).astype(dtype)


def wide(value: Any) -> np.ndarray:
    array = value.values() if isinstance(value, BFloat16) else value
    if np.iscomplexobj(array):
        return array.astype(np.complex128)
    return array.astype(np.float64 if array.dtype.kind == "f" else np.int64)


def channels_last(value: Any) -> Any:
    """Return the same values in channels-last memory format."""
    if isinstance(value, BFloat16):
        return BFloat16(channels_last(value.bits))
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(value, 1, -1)), -1, 1)


def windows(case: Case, padded: np.ndarray) -> np.ndarray:
    """Return a view of a padded input: (batch, group, channel, kernel..., output...)."""
    spatial = padded.strides[2:]
    shape = (case.batch, case.groups, case.channels[0] // case.groups, *case.kernel, *case.output)
    strides = (
        padded.strides[0], padded.strides[1] * (case.channels[0] // case.groups), padded.strides[1],
        *(s * d for s, d in zip(spatial, case.dilation, strict=True)), *(s * t for s, t in zip(spatial, case.stride, strict=True)),
    )  # fmt: skip
    return np.lib.stride_tricks.as_strided(padded, shape, strides)


def pad(case: Case, x: np.ndarray) -> np.ndarray:
    return np.pad(x, [(0, 0), (0, 0), *((p, p) for p in case.padding)])


def subscripts(case: Case) -> tuple[str, str]:
    return "zyx"[-len(case.input) :], "dhw"[-len(case.input) :]


def forward(case: Case, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    k, o = subscripts(case)
    w = w.reshape(case.groups, case.channels[1] // case.groups, *w.shape[1:])
    return np.einsum(f"ngi{k}{o},goi{k}->ngo{o}", windows(case, pad(case, x)), w).reshape(case.output_shape)


def weight_gradient(case: Case, grad: np.ndarray, x: np.ndarray) -> np.ndarray:
    k, o = subscripts(case)
    grad = grad.reshape(case.batch, case.groups, -1, *case.output)
    return np.einsum(f"ngi{k}{o},ngo{o}->goi{k}", windows(case, pad(case, x)), grad).reshape(case.weight_shape)


def input_gradient(case: Case, grad: np.ndarray, w: np.ndarray) -> np.ndarray:
    k, o = subscripts(case)
    grad = grad.reshape(case.batch, case.groups, -1, *case.output)
    w = w.reshape(case.groups, case.channels[1] // case.groups, *w.shape[1:])
    parts = np.einsum(f"ngo{o},goi{k}->ngi{k}{o}", grad, w)
    padded = np.zeros(
        (case.batch, case.channels[0], *(n + 2 * p for n, p in zip(case.input, case.padding, strict=True))), parts.dtype
    )
    view = windows(case, padded)
    for at in np.ndindex(*case.kernel):  # at one kernel offset, windows do not overlap
        view[(slice(None),) * 3 + at] += parts[(slice(None),) * 3 + at]
    inner = tuple(slice(p, p + n) for n, p in zip(case.input, case.padding, strict=True))
    return padded[(slice(None), slice(None), *inner)]


def check(result: Any, expected: np.ndarray, magnitude: np.ndarray) -> None:
    dtype = "bfloat16" if isinstance(result, BFloat16) else result.dtype.name
    if dtype in TOLERANCE:
        error = np.abs(wide(result) - expected) / (magnitude + 1e-30)
        assert error.size == 0 or np.nanmax(error) <= TOLERANCE[dtype], float(np.nanmax(error))
        assert not np.isnan(wide(result)).any()
    else:
        np.testing.assert_array_equal(result, expected.astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("memory", ["contiguous", "channels_last"])
def test_convolution(name: str, dtype: str, memory: str) -> None:
    case = CASES[name]
    place = channels_last if memory == "channels_last" else (lambda value: value)
    x, w = place(random(case.input_shape, dtype, 0)), random(case.weight_shape, dtype, 1)
    bias, grad = random((case.channels[1],), dtype, 2), place(random(case.output_shape, dtype, 3))
    offset = wide(bias).reshape(-1, *(1,) * len(case.input))
    magnitude = forward(case, np.abs(wide(x)), np.abs(wide(w)))

    out = place(garbage(case.output_shape, dtype))
    call("convolution", [out], x, w, None, *case.arguments)
    check(out, forward(case, wide(x), wide(w)), magnitude)
    out = place(garbage(case.output_shape, dtype))
    call("convolution", [out], x, w, bias, *case.arguments)
    check(out, forward(case, wide(x), wide(w)) + offset, magnitude + np.abs(offset))

    result = place(garbage(case.input_shape, dtype))
    call("convolution_backward_input", [result], grad, w, list(case.input_shape), *case.arguments)
    check(result, input_gradient(case, wide(grad), wide(w)), input_gradient(case, np.abs(wide(grad)), np.abs(wide(w))))

    result = garbage(case.weight_shape, dtype)
    call("convolution_backward_weight", [result], grad, x, list(case.weight_shape), *case.arguments)
    check(
        result, weight_gradient(case, wide(grad), wide(x)), weight_gradient(case, np.abs(wide(grad)), np.abs(wide(x)))
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_mixed_memory_formats(dtype: str) -> None:
    case = CASES["groups"]
    x, w = random(case.input_shape, dtype, 0), channels_last(random(case.weight_shape, dtype, 1))
    grad = channels_last(random(case.output_shape, dtype, 3))
    out = channels_last(garbage(case.output_shape, dtype))
    call("convolution", [out], x, w, None, *case.arguments)
    check(out, forward(case, wide(x), wide(w)), forward(case, np.abs(wide(x)), np.abs(wide(w))))
    result = garbage(case.input_shape, dtype)
    call("convolution_backward_input", [result], grad, w, list(case.input_shape), *case.arguments)
    check(result, input_gradient(case, wide(grad), wide(w)), input_gradient(case, np.abs(wide(grad)), np.abs(wide(w))))
    result = channels_last(garbage(case.weight_shape, dtype))
    call("convolution_backward_weight", [result], grad, x, list(case.weight_shape), *case.arguments)
    check(
        result, weight_gradient(case, wide(grad), wide(x)), weight_gradient(case, np.abs(wide(grad)), np.abs(wide(x)))
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16"])
def test_strided_result_and_bias(dtype: str) -> None:
    case = CASES["3x3"]
    x, w, bias = random(case.input_shape, dtype, 0), random(case.weight_shape, dtype, 1), random((48,), dtype, 2)[::2]
    shape = case.output_shape
    out = garbage((shape[0], shape[1], 2 * shape[2], 3 * shape[3]), dtype)[:, :, ::2, ::3]
    call("convolution", [out], x, w, bias, *case.arguments)
    offset = wide(bias).reshape(-1, 1, 1)
    check(
        out, forward(case, wide(x), wide(w)) + offset, forward(case, np.abs(wide(x)), np.abs(wide(w))) + np.abs(offset)
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_empty(dtype: str) -> None:
    x, w, bias = random((0, 4, 5, 5), dtype, 0), random((3, 4, 3, 3), dtype, 1), random((3,), dtype, 2)
    arguments = ([1, 1], [0, 0], [1, 1], 1)
    call("convolution", [garbage((0, 3, 3, 3), dtype)], x, w, bias, *arguments)
    grad = random((0, 3, 3, 3), dtype, 3)
    call("convolution_backward_input", [garbage((0, 4, 5, 5), dtype)], grad, w, [0, 4, 5, 5], *arguments)
    result = garbage((3, 4, 3, 3), dtype)
    call("convolution_backward_weight", [result], grad, x, [3, 4, 3, 3], *arguments)
    np.testing.assert_array_equal(wide(result), np.zeros((3, 4, 3, 3)))
    # Without input channels, the result is the bias.
    out = garbage((2, 3, 3, 3), dtype)
    call("convolution", [out], random((2, 0, 5, 5), dtype, 0), random((3, 0, 3, 3), dtype, 1), bias, *arguments)
    np.testing.assert_array_equal(wide(out), np.broadcast_to(wide(bias).reshape(3, 1, 1), (2, 3, 3, 3)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("extra", [0, 1, 2])
def test_input_gradient_as_transposed_convolution_with_output_padding(dtype: str, extra: int) -> None:
    # No window reaches the elements that output_padding adds.
    case = Case(2, (5, 6), (10 + extra, 10 + extra), (3, 3), (3, 3), (1, 1), (1, 1))
    assert case.output == (4, 4)
    grad, w = random(case.output_shape, dtype, 0), random(case.weight_shape, dtype, 1)
    result = garbage(case.input_shape, dtype)
    call("convolution_backward_input", [result], grad, w, list(case.input_shape), *case.arguments)
    check(result, input_gradient(case, wide(grad), wide(w)), input_gradient(case, np.abs(wide(grad)), np.abs(wide(w))))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_nan_and_infinity_stay_in_their_windows(dtype: str) -> None:
    case = Case(1, (3, 5), (9, 9), (3, 3), (1, 1), (1, 1), (1, 1))
    x, w = np.ones(case.input_shape), np.ones(case.weight_shape)
    x[0, 1, 2, 2], x[0, 2, 7, 7] = np.nan, np.inf
    make = BFloat16.of if dtype == "bfloat16" else (lambda values: values.astype(dtype))
    out = garbage(case.output_shape, dtype)
    call("convolution", [out], make(x), make(w), None, *case.arguments)
    expected = forward(case, x, w)
    if dtype == "bfloat16":
        # AMX kernels multiply some pixels beside a window by zero. So NaN may spread further, but
        # must not be lost.
        touched = ~np.isfinite(expected)
        assert not np.isfinite(wide(out)[touched]).any()
        np.testing.assert_array_equal(wide(out)[0, :, 6:, :5], expected[0, :, 6:, :5])
    else:
        np.testing.assert_array_equal(wide(out), expected)


def test_bool_is_refused() -> None:
    x, w = np.ones((1, 1, 3, 3), dtype=bool), np.ones((1, 1, 2, 2), dtype=bool)
    with pytest.raises(KernelError) as caught:
        call("convolution", [np.ones((1, 1, 2, 2), dtype=bool)], x, w, None, [1, 1], [0, 0], [1, 1], 1)
    assert caught.value.status == NOT_IMPLEMENTED


@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_weight_gradient_does_not_depend_on_threads(dtype: str) -> None:
    case = CASES["groups"]
    x, grad = random(case.input_shape, dtype, 0), random(case.output_shape, dtype, 1)
    results = []
    threads = backend().table.thread_count()
    try:
        for count in (1, 3):
            backend().table.set_thread_count(count)
            results.append(garbage(case.weight_shape, dtype))
            call("convolution_backward_weight", [results[-1]], grad, x, list(case.weight_shape), *case.arguments)
    finally:
        backend().table.set_thread_count(threads)
    assert results[0].tobytes() == results[1].tobytes()


FORK = """
import os
import numpy as np
from harness import backend, call
def run():
    x, w, out = np.ones((4, 16, 30, 30), np.float32), np.ones((16, 16, 3, 3), np.float32), np.zeros((4, 16, 28, 28), np.float32)
    call("convolution", [out], x, w, None, [1, 1], [0, 0], [1, 1], 1)
    assert (out == 144).all()
backend().table.set_thread_count(4)
run()
child = os.fork()
if child == 0:
    run()
    os._exit(17)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17
"""


def test_a_forked_child_convolves() -> None:
    result = subprocess.run(
        [sys.executable, "-c", FORK],
        cwd=Path(__file__).parents[1],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_four_spatial_dimensions_are_refused() -> None:
    x, w = (candelabra.ones(1, 1, *(side,) * 4) for side in (3, 2))
    with pytest.raises(RuntimeError, match="convolutions have three spatial dimensions at most, but got 4"):
        ops.convolution(x, w, None, [1], [0], [1], 1)
