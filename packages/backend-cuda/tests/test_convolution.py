"""Test convolutions on a device against sums in NumPy: dimensions, groups, layouts, dtypes, cuDNN's
and the backend's kernels.
"""

from __future__ import annotations

import numpy as np
import pytest

import candelabra
from candelabra.testing.reference import convolution as reference

FLOATS = {"float32": 2e-3, "float64": 1e-10, "float16": 2e-2, "bfloat16": 1e-1}

#: batch, groups, input and output channels per group, sizes, kernel, stride, padding, dilation
CASES = [
    (2, 1, 3, 4, (7,), (3,), [1], [1], [1]),
    (1, 2, 2, 3, (70,), (2,), [2], [0], [2]),
    (2, 1, 3, 70, (6, 15), (3, 3), [1, 1], [1, 1], [1, 1]),
    (3, 2, 5, 3, (7, 6), (3, 2), [2, 1], [0, 1], [1, 2]),
    (1, 4, 1, 1, (5, 5), (3, 3), [1, 1], [1, 1], [1, 1]),
    (1, 2, 66, 2, (4, 4), (1, 1), [1, 1], [0, 0], [1, 1]),
    (1, 1, 2, 2, (8, 8), (3, 3), [3, 2], [2, 1], [2, 2]),
    (0, 1, 2, 3, (5, 5), (3, 3), [1, 1], [1, 1], [1, 1]),
    (2, 2, 2, 3, (5, 4, 6), (2, 3, 2), [1, 2, 1], [1, 0, 1], [1, 1, 2]),
]


@pytest.fixture(params=["cudnn", "own kernel"], autouse=True)
def way(request):
    with candelabra.backends.cudnn.flags(enabled=request.param == "cudnn", allow_tf32=False):
        yield request.param


def made(sizes, dtype, seed):
    """Return small integers, with an imaginary part for complex dtypes. Their products are exact in
    every dtype.
    """
    rng = np.random.default_rng(seed)
    values = rng.integers(-3, 4, size=sizes) if not dtype.startswith("uint") else rng.integers(0, 4, size=sizes)
    if dtype.startswith("complex"):
        values = values + 1j * rng.integers(-3, 4, size=sizes)
    return values, candelabra.tensor(values).to(getattr(candelabra, dtype))


def assert_right(got, want, dtype):
    values = got.cpu()
    values = values.to(candelabra.float32) if dtype in ("float16", "bfloat16") else values
    np.testing.assert_allclose(values.numpy(), want, rtol=FLOATS.get(dtype, 1e-5), atol=FLOATS.get(dtype, 1e-5))


@pytest.mark.parametrize("dtype", [*FLOATS, "int64", "int8", "uint8", "int16", "int32", "complex64", "complex128"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_all_three(cuda, case, dtype):
    batch, groups, inputs, outputs, sizes, window, stride, padding, dilation = case
    a, input = made((batch, groups * inputs, *sizes), dtype, 1)
    w, weight = made((groups * outputs, inputs, *window), dtype, 2)
    b, bias = made((groups * outputs,), dtype, 3)
    rest = (stride, padding, dilation, groups)
    want = reference.forward(a, w, b, *rest)
    if "int8" in dtype:  # which wraps
        want = want.astype(dtype)
    layouts = [candelabra.contiguous_format]
    if len(sizes) > 1:
        layouts.append(candelabra.channels_last if len(sizes) == 2 else candelabra.channels_last_3d)
    for layout in layouts:
        x, k = input.to(cuda).contiguous(memory_format=layout), weight.to(cuda)
        got = candelabra.ops.convolution(x, k, bias.to(cuda), *rest)
        assert_right(got, want, dtype)
        if x.numel() and len(sizes) == 2:
            assert got.is_contiguous(memory_format=layout)
        if dtype.startswith(("int", "uint")):
            continue
        g, grad = made(want.shape, dtype, 4)
        g = g.astype(np.complex128 if dtype.startswith("complex") else np.float64)
        if not dtype.startswith("complex"):
            x_grad = candelabra.ops.convolution_backward_input(grad.to(cuda), k, input.shape, *rest)
            assert_right(x_grad, reference.input_gradient(g, w, list(a.shape), *rest), dtype)
            w_grad = candelabra.ops.convolution_backward_weight(grad.to(cuda), x, weight.shape, *rest)
            assert_right(w_grad, reference.weight_gradient(g, a, list(w.shape), *rest), dtype)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("case", [case for case in CASES if len(case[4]) < 3], ids=str)
def test_complex_gradients_are_bilinear(cuda, case, dtype):
    """A complex convolution equals the combination of those of real and imaginary parts."""
    batch, groups, inputs, outputs, sizes, window, stride, padding, dilation = case
    a, input = made((batch, groups * inputs, *sizes), dtype, 1)
    w, weight = made((groups * outputs, inputs, *window), dtype, 2)
    rest = (stride, padding, dilation, groups)
    g, grad = made(reference.forward(a, w, None, *rest).shape, dtype, 4)

    def both(function, left, right, size):
        parts = [[function(x, y, size, *rest) for y in (right.real, right.imag)] for x in (left.real, left.imag)]
        return parts[0][0] - parts[1][1] + 1j * (parts[0][1] + parts[1][0])

    got = candelabra.ops.convolution_backward_input(grad.to(cuda), weight.to(cuda), input.shape, *rest)
    assert_right(got, both(reference.input_gradient, g, w, list(a.shape)), dtype)
    got = candelabra.ops.convolution_backward_weight(grad.to(cuda), input.to(cuda), weight.shape, *rest)
    assert_right(got, both(reference.weight_gradient, g, a, list(w.shape)), dtype)


def test_strides_of_any_kind(cuda):
    a, input = made((2, 6, 9, 8), "float32", 1)
    w, weight = made((4, 3, 3, 3), "float32", 2)
    x, k = input.to(cuda), weight.to(cuda)
    rest = ([1, 1], [1, 0], [1, 1], 1)
    cases = [
        (x[:, ::2], a[:, ::2]),
        (x[:, :3].flip(2), a[:, :3, ::-1]),
        (x[:, 3:, 1:], a[:, 3:, 1:]),
        (x[:1, :3].expand(3, 3, 9, 8), a[[0, 0, 0], :3]),
    ]
    for seen, values in cases:
        assert_right(
            candelabra.ops.convolution(seen, k, None, *rest), reference.forward(values, w, None, *rest), "float32"
        )
    turned = k.transpose(2, 3)
    assert_right(
        candelabra.ops.convolution(x[:, :3], turned, None, *rest),
        reference.forward(a[:, :3], w.swapaxes(2, 3), None, *rest),
        "float32",
    )


def test_the_same_bits_again(cuda):
    x, k = (
        candelabra.tensor(np.random.default_rng(s).standard_normal(n).astype("float32")).to(cuda)
        for s, n in ((1, (4, 8, 12, 12)), (2, (8, 8, 3, 3)))
    )
    rest = ([1, 1], [1, 1], [1, 1], 1)
    with candelabra.backends.cudnn.flags(enabled=candelabra.backends.cudnn.enabled, deterministic=True):
        y = candelabra.ops.convolution(x, k, None, *rest)
        first = [candelabra.ops.convolution_backward_weight(y, x, k.shape, *rest).cpu().numpy() for _ in range(3)]
    assert all(np.array_equal(first[0], again) for again in first)


def test_measured_and_captured(cuda):
    """Plans chosen by timing, and a convolution in a graph, give the same sums."""
    a, input = made((2, 4, 9, 8), "float32", 1)
    w, weight = made((6, 4, 3, 3), "float32", 2)
    x, k = input.to(cuda), weight.to(cuda)
    rest = ([1, 1], [1, 1], [1, 1], 1)
    want = reference.forward(a, w, None, *rest)
    enabled = candelabra.backends.cudnn.enabled
    with candelabra.backends.cudnn.flags(enabled=enabled, benchmark=True, allow_tf32=False):
        for _ in range(2):
            assert_right(candelabra.ops.convolution(x, k, None, *rest), want, "float32")
    graph = candelabra.cuda.CUDAGraph()
    with candelabra.cuda.graph(graph):
        y = candelabra.ops.convolution(x, k, None, *rest)
    graph.replay()
    assert_right(y, want, "float32")
    x.mul_(2)
    graph.replay()
    assert_right(y, 2 * want, "float32")
