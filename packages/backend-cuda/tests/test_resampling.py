"""Test resampling, grid sampling, padding and folding on a GPU against the CPU."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import candelabra
from candelabra import ops

FLOATS = ["float32", "float64", "float16", "bfloat16"]


def made(sizes: tuple[int, ...], dtype: str = "float32", seed: int = 0) -> candelabra.Tensor:
    values = np.random.default_rng(seed).standard_normal(sizes) * 3
    return candelabra.tensor(values).to(getattr(candelabra, dtype))


def compare(got: candelabra.Tensor, want: candelabra.Tensor, units: float = 16) -> None:
    assert got.dtype == want.dtype and got.shape == want.shape and got.stride() == want.stride()
    if want.dtype.is_floating_point:
        eps = float(candelabra.finfo(want.dtype).eps)
        values = want.double().numpy()
        scale = max(4.0, float(np.abs(values[np.isfinite(values)]).max(initial=0)))  # sums cancel
        np.testing.assert_allclose(got.cpu().double().numpy(), values, rtol=units * eps, atol=units * scale * eps)
    else:
        assert got.cpu().tolist() == want.tolist()


def same(values: candelabra.Tensor, cuda: candelabra.device) -> candelabra.Tensor:
    """Return the tensor on the GPU in the same memory format."""
    moved = values.to(cuda)
    if values.dim() == 4 and not values.is_contiguous():
        moved = moved.contiguous(memory_format=candelabra.channels_last)
    return moved


SHAPES = [
    ((2, 3, 9), (17,)),
    ((2, 3, 9), (4,)),
    ((2, 3, 8, 11), (16, 5)),
    ((1, 5, 7, 6), (7, 13)),
    ((1, 2, 4, 5, 6), (7, 5, 3)),
]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("sizes", "target"), SHAPES, ids=str)
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear", "cubic"])
def test_resample(cuda, mode, sizes, target, dtype):
    x = made(sizes, dtype)
    for align, scales in itertools.product((False, True), ((), tuple(1.7 for _ in target))):
        want = ops._upsample(x, target, scales, mode, align, False)
        compare(ops._upsample(x.to(cuda), target, scales, mode, align, False), want)
        back = ops._upsample_backward(want, sizes, scales, mode, align, False)
        compare(ops._upsample_backward(want.to(cuda), sizes, scales, mode, align, False), back, 64)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("target", [(9, 5), (40, 33), (3, 60), (1, 1)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_antialias(cuda, mode, target, dtype):
    x = made((2, 3, 33, 61), dtype)
    want = ops._upsample(x, target, (), mode, False, True)
    compare(ops._upsample(x.to(cuda), target, (), mode, False, True), want, 64)
    compare(
        ops._upsample_backward(want.to(cuda), x.shape, (), mode, False, True),
        ops._upsample_backward(want, x.shape, (), mode, False, True), 64,
    )  # fmt: skip


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_large_factors_go_by_dimension(cuda, mode):
    x = made((2, 3, 2, 3))
    want = ops._upsample(x, (40, 50), (), mode, False, False)
    compare(ops._upsample(x.to(cuda), (40, 50), (), mode, False, False), want)
    compare(
        ops._upsample_backward(want.to(cuda), x.shape, (), mode, False, False),
        ops._upsample_backward(want, x.shape, (), mode, False, False),
        512,
    )


@pytest.mark.same_as_cpu
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("last", [False, True])
def test_bytes(cuda, mode, antialias, last):
    x = candelabra.tensor(np.random.default_rng(1).integers(0, 256, (2, 3, 19, 23)).astype(np.uint8))
    if last:
        x = x.contiguous(memory_format=candelabra.channels_last)
    for target in ((30, 41), (7, 9), (19, 50), (5, 23), (19, 23)):
        want = ops._upsample(x, target, (), mode, False, antialias and mode != "nearest")
        compare(ops._upsample(same(x, cuda), target, (), mode, False, antialias and mode != "nearest"), want)


@pytest.mark.same_as_cpu
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("channels", [1, 3, 8])
def test_channels_last(cuda, mode, channels):
    x = made((2, channels, 7, 9)).contiguous(memory_format=candelabra.channels_last)
    want = ops._upsample(x, (12, 5), (), mode, False, False)
    compare(ops._upsample(same(x, cuda), (12, 5), (), mode, False, False), want)
    compare(
        ops._upsample_backward(same(want, cuda), x.shape, (), mode, False, False),
        ops._upsample_backward(want, x.shape, (), mode, False, False), 64,
    )  # fmt: skip


def test_infinite_neighbours_are_not_looked_at(cuda):
    x = candelabra.tensor([[[1.0, float("inf"), 2.0, 3.0]]])
    want = ops._upsample(x, (4,), (), "linear", False, False)
    assert ops._upsample(x.to(cuda), (4,), (), "linear", False, False).cpu().tolist() == want.tolist()


# ---- grid_sampler


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("outside", ["zeros", "border", "reflection"])
@pytest.mark.parametrize(
    ("mode", "dims"), [("bilinear", 2), ("nearest", 2), ("bicubic", 2), ("bilinear", 3), ("nearest", 3)]
)
def test_grid_sampler(cuda, mode, dims, outside, align, dtype):
    sizes, places = ((2, 3, 5, 7), (2, 6, 4, 2)) if dims == 2 else ((2, 3, 4, 5, 6), (2, 3, 4, 2, 3))
    x, grid = made(sizes, dtype), made(places, dtype, 1) * 0.4
    want = ops.grid_sampler(x, grid, mode, outside, align)
    compare(ops.grid_sampler(x.to(cuda), grid.to(cuda), mode, outside, align), want)
    grad = made(tuple(want.shape), dtype, 2)
    for needs in ((True, True), (True, False), (False, True)):
        wanted = ops.grid_sampler_backward(grad, x, grid, mode, outside, align, needs)
        got = ops.grid_sampler_backward(grad.to(cuda), x.to(cuda), grid.to(cuda), mode, outside, align, needs)
        for a, b, needed in zip(got, wanted, needs, strict=True):
            if needed:
                compare(a, b, 64)


def test_grid_sampler_takes_any_strides(cuda):
    x = made((2, 9, 8, 4)).permute(0, 3, 1, 2)
    grid = made((6, 2, 2, 5)).permute(1, 0, 3, 2) * 0.3
    moved = x.permute(0, 2, 3, 1).to(cuda).permute(0, 3, 1, 2), grid.permute(1, 0, 3, 2).to(cuda).permute(1, 0, 3, 2)
    compare(
        ops.grid_sampler(*moved, "bilinear", "border", False), ops.grid_sampler(x, grid, "bilinear", "border", False)
    )
    nan = candelabra.tensor([[[[float("nan"), 0.0], [2.0, float("inf")]]]])
    for outside in ("zeros", "border", "reflection"):
        want = ops.grid_sampler(x[:1], nan, "bilinear", outside, False)
        got = ops.grid_sampler(moved[0][:1], nan.to(cuda), "bilinear", outside, False)
        np.testing.assert_allclose(got.cpu().numpy(), want.numpy(), rtol=1e-5)


def test_many_places_at_one_pixel_are_added_in_the_same_order(cuda):
    x, grid = made((1, 2, 4, 4)), candelabra.full((1, 100, 50, 2), 3.0)
    grad = made((1, 2, 100, 50), seed=3)
    want = ops.grid_sampler_backward(grad, x, grid, "bilinear", "border", False, (True, False))[0]
    runs = [
        ops.grid_sampler_backward(grad.to(cuda), x.to(cuda), grid.to(cuda), "bilinear", "border", False, (True, False))[
            0
        ]
        .cpu()
        .numpy()
        for _ in range(2)
    ]
    assert np.array_equal(runs[0], runs[1])
    np.testing.assert_allclose(runs[0], want.numpy(), rtol=1e-4, atol=1e-3)


# ---- edges of padding, folding


@pytest.mark.same_as_cpu
@pytest.mark.parametrize("dtype", [*FLOATS, "complex64", "complex128"])
@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize(
    ("sizes", "padding"),
    [((2, 3, 5), (2, 4)), ((2, 3, 5, 6), (5, 1, 0, 3)), ((2, 2, 4, 3, 5), (1, 2, 2, 0, 3, 1)), ((3, 4, 6), (-1, 2))],
)
def test_edges(cuda, mode, sizes, padding, dtype):
    x = made(sizes, dtype)
    want = ops._reflection_replication_pad(x, padding, mode)
    compare_exactly(ops._reflection_replication_pad(x.to(cuda), padding, mode), want)
    grad = made(tuple(want.shape), dtype, 1)
    compare_exactly(
        ops._reflection_replication_pad_backward(grad.to(cuda), sizes, padding, mode),
        ops._reflection_replication_pad_backward(grad, sizes, padding, mode),
    )


def compare_exactly(got: candelabra.Tensor, want: candelabra.Tensor) -> None:
    assert got.shape == want.shape and got.stride() == want.stride() and got.dtype == want.dtype
    assert got.cpu().tolist() == want.tolist()


@pytest.mark.same_as_cpu
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64"])
@pytest.mark.parametrize("channels", [1, 4, 6])
def test_edges_of_channels_last(cuda, dtype, channels):
    x = made((2, channels, 5, 6)).to(getattr(candelabra, dtype)).contiguous(memory_format=candelabra.channels_last)
    for mode in ("reflect", "replicate"):
        compare_exactly(
            ops._reflection_replication_pad(same(x, cuda), (2, 1, 3, 0), mode),
            ops._reflection_replication_pad(x, (2, 1, 3, 0), mode),
        )


@pytest.mark.same_as_cpu
@pytest.mark.parametrize("dtype", [*FLOATS, "bool", "uint8", "int32", "int64", "complex64"])
@pytest.mark.parametrize(
    "geometry",
    [
        ((3, 3), (1, 1), (0, 0), (1, 1)),
        ((2, 3), (2, 1), (1, 2), (2, 1)),
        ((4, 1), (1, 1), (3, 0), (3, 2)),
        ((1, 1), (1, 1), (2, 2), (1, 3)),
    ],
)
def test_folding(cuda, geometry, dtype):
    x = made((2, 3, 9, 8)).to(getattr(candelabra, dtype))
    kernel, dilation, padding, stride = geometry
    want = ops.im2col(x, kernel, dilation, padding, stride)
    compare_exactly(ops.im2col(x.to(cuda), kernel, dilation, padding, stride), want)
    columns = made(tuple(want.shape), seed=4).to(getattr(candelabra, dtype))
    back = ops.col2im(columns, (9, 8), kernel, dilation, padding, stride)
    compare_exactly(ops.col2im(columns.to(cuda), (9, 8), kernel, dilation, padding, stride), back)
