"""Test padding and interpolation with random shapes and layouts, against numpy.pad and products
with weight matrices.
"""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import candelabra
from candelabra.nn import functional as F

FEW = settings(max_examples=40, deadline=None, derandomize=True)
LAYOUTS = ["contiguous", "transposed", "strided", "flipped", "expanded", "channels last"]
seeds = st.integers(0, 2**32 - 1)


def pair(seed, shape, layout, dtype="float64"):
    """Return a tensor with this layout, and an array with the same values."""
    values = np.random.default_rng(seed).integers(-9, 10, shape) / 4
    values = values.astype("float32" if dtype == "bfloat16" else dtype)
    kind = getattr(candelabra, dtype)
    if layout == "expanded" and shape and shape[0]:
        values = np.broadcast_to(values[:1], shape)
        return candelabra.tensor(values[:1].copy(), dtype=kind).expand(shape), values
    made = candelabra.tensor(values, dtype=kind).reshape(shape)
    if layout == "transposed":
        made = made.transpose(0, -1).contiguous().transpose(0, -1)
    elif layout == "strided" and shape[-1]:
        made = made.repeat_interleave(2, -1)[..., ::2]
    elif layout == "flipped":
        made, values = made.flip(-1), np.flip(values, -1)
    elif layout == "channels last" and len(shape) == 4:
        made = made.to(memory_format=candelabra.channels_last)
    return made, values


def close(made, expected, tolerance=1e-12):
    array = (made.to(candelabra.float32) if made.dtype == candelabra.bfloat16 else made).numpy()
    assert array.shape == expected.shape
    np.testing.assert_allclose(array, expected, rtol=tolerance, atol=tolerance)


# ---- padding


def padded(array, amounts, mode, value):
    """Pad by positive amounts and crop by negative ones, one dimension at a time. Circular padding
    crops first.
    """
    names = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    for number, (before, after) in enumerate(zip(amounts[::2], amounts[1::2], strict=True)):
        axis = array.ndim - 1 - number
        more = [(0, 0)] * array.ndim
        more[axis] = (max(before, 0), max(after, 0))
        options = {"constant_values": value} if mode == "constant" else {}
        if mode == "circular":
            array = array[(slice(None),) * axis + (slice(max(-before, 0), array.shape[axis] - max(-after, 0)),)]
            before, after = max(before, 0), max(after, 0)
        length = array.shape[axis]
        array = np.pad(array, more, names[mode], **options)
        start, stop = max(-before, 0), max(before, 0) + length + max(after, 0) - max(-after, 0)
        array = array[(slice(None),) * axis + (slice(start, stop),)]
    return array


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
@FEW
@given(data=st.data(), layout=st.sampled_from(LAYOUTS), seed=seeds)
def test_pad(mode, data, layout, seed):
    least = 0 if mode == "constant" else 1
    dims = data.draw(st.integers(1, 3))
    spatial = data.draw(st.lists(st.sampled_from([least, 1, 2, 3, 5]), min_size=dims, max_size=dims))
    leading = data.draw(
        st.sampled_from([(2,), (2, 3), (1, 1), (0, 2)] if mode == "constant" else [(2,), (2, 3), (1, 1)])
    )
    shape = (*leading, *spatial)
    dtype = data.draw(st.sampled_from(["float64", "float32", "bfloat16", "float16", "int64", "complex128"]))
    if mode in ("reflect", "replicate"):
        dtype = data.draw(st.sampled_from(["float64", "float32", "complex128"]))
    tensor, array = pair(seed, shape, layout, dtype)
    amounts = []
    for n in reversed(spatial):
        most = {"constant": 3, "reflect": n - 1, "replicate": 4, "circular": n}[mode]
        before, after = data.draw(st.integers(-1, most)), data.draw(st.integers(-1, most))
        assume(mode != "circular" or max(before, after) <= n + min(before, 0) + min(after, 0))
        assume(n + before + after > (-1 if mode == "constant" else 0) and n + min(before, 0) + min(after, 0) >= least)
        amounts += [before, after]
    value = data.draw(st.sampled_from([0, 1, -2]))
    made = F.pad(tensor, amounts, mode, value if mode == "constant" else None)
    assert made.dtype == tensor.dtype
    close(made, padded(array, amounts, mode, value))


# ---- interpolation: each dimension is a product with a matrix


def sources(old, new, aligned, ratio, clamped=True):
    """Return the source coordinate of each output element."""
    i = np.arange(new)
    if aligned:
        return i * ((old - 1) / (new - 1)) if new > 1 else np.zeros(1)
    place = (i + 0.5) * ratio - 0.5
    return np.maximum(place, 0) if clamped else place


def keys_kernel(x, a):
    """Compute Keys' cubic convolution kernel (1981)."""
    x = np.abs(x)
    return np.where(
        x <= 1, (a + 2) * x**3 - (a + 3) * x**2 + 1, np.where(x < 2, a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a, 0)
    )


def weights(mode, old, new, aligned, ratio, antialias):
    made = np.zeros((new, old))
    if antialias:
        scale = max(ratio if not aligned else (old - 1) / (new - 1) if new > 1 else 0.0, 1.0)
        support = scale * (1 if mode == "linear" else 2)
        step = ((old - 1) / (new - 1) if new > 1 else 0.0) if aligned else ratio
        for i in range(new):
            center = step * (i + 0.5)  # also with align_corners, as in PyTorch
            first, last = max(int(center - support + 0.5), 0), min(int(center + support + 0.5), old)
            x = (np.arange(first, last) - center + 0.5) / scale
            row = np.maximum(1 - np.abs(x), 0) if mode == "linear" else keys_kernel(x, -0.5)
            made[i, first:last] = row / row.sum()
        return made
    if mode in ("nearest", "nearest-exact"):
        shift = 0.5 if mode == "nearest-exact" else 0
        chosen = np.minimum(np.floor((np.arange(new) + shift) * ratio), old - 1).astype(int)
        made[np.arange(new), chosen] = 1
    elif mode == "area":
        for i in range(new):
            first, last = i * old // new, -(-(i + 1) * old // new)
            made[i, first:last] = 1 / (last - first)
    else:
        place = sources(old, new, aligned, ratio, mode == "linear")
        for i, p in enumerate(place):
            whole = int(np.floor(p))
            reach = range(whole, whole + 2) if mode == "linear" else range(whole - 1, whole + 3)
            for j in reach:
                weight = max(1 - abs(p - j), 0) if mode == "linear" else keys_kernel(p - j, -0.75)
                made[i, min(max(j, 0), old - 1)] += weight
    return made


def resampled(array, matrices):
    for number, matrix in enumerate(matrices):
        axis = 2 + number
        array = np.moveaxis(np.moveaxis(array, axis, -1) @ matrix.T, -1, axis)
    return array


LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "area", "linear", "bicubic"])
@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data(), layout=st.sampled_from(LAYOUTS), seed=seeds)
def test_interpolate(mode, data, layout, seed):
    dims = 2 if mode == "bicubic" else data.draw(st.integers(1, 3))
    # Size ratios that float32 represents exactly, so that rounding does not affect "nearest".
    spatial = data.draw(st.lists(st.sampled_from([1, 2, 4, 8, 3]), min_size=dims, max_size=dims))
    nearest = mode.startswith("nearest")
    sizes = [
        data.draw(st.sampled_from([1, 2, 4] if nearest else [1, 2, 3, 5, 7])) * (n if nearest and n == 3 else 1)
        for n in spatial
    ]
    shape = (*data.draw(st.sampled_from([(1, 1), (2, 3), (0, 2)])), *spatial)
    tensor, array = pair(seed, shape, layout)
    aligned = mode in ("linear", "bicubic") and data.draw(st.booleans())
    antialias = mode in ("linear", "bicubic") and dims == 2 and data.draw(st.booleans())
    kind = "cubic" if mode == "bicubic" else mode
    matrices = [weights(kind, n, m, aligned, n / m, antialias) for n, m in zip(spatial, sizes, strict=True)]
    options = {"align_corners": aligned} if mode in ("linear", "bicubic") else {}
    made = F.interpolate(tensor, sizes, mode=LINEAR[dims] if mode == "linear" else mode, antialias=antialias, **options)
    close(made, resampled(array, matrices), 1e-10)


@pytest.mark.parametrize("mode", ["nearest", "linear", "area"])
@FEW
@given(data=st.data(), seed=seeds)
def test_scale_factors(mode, data, seed):
    """Output sizes are rounded down. Coordinates use the given factor, or the sizes with
    recompute_scale_factor.
    """
    dims = data.draw(st.integers(1, 3))
    spatial = data.draw(st.lists(st.sampled_from([2, 4, 6]), min_size=dims, max_size=dims))
    factors = [
        data.draw(st.sampled_from([0.5, 1.0, 1.25, 2.0] if mode != "nearest" else [0.5, 1.0, 2.0])) for _ in spatial
    ]
    tensor, array = pair(seed, (2, 2, *spatial), "contiguous")
    again = data.draw(st.booleans()) if mode == "linear" else False
    sizes = [int(n * factor) for n, factor in zip(spatial, factors, strict=True)]
    matrices = [
        weights(
            mode, n, m, False, n / m if again or n == m else 1 / factor, False
        )  # an equal size is a copy, as in PyTorch
        for n, m, factor in zip(spatial, sizes, factors, strict=True)
    ]
    options = {"align_corners": False, "recompute_scale_factor": again} if mode == "linear" else {}
    made = F.interpolate(tensor, scale_factor=factors, mode=LINEAR[dims] if mode == "linear" else mode, **options)
    close(made, resampled(array, matrices), 1e-10)


@FEW
@given(data=st.data(), seed=seeds, mode=st.sampled_from(["nearest", "linear", "cubic", "antialias"]))
def test_gradients_go_the_way_back(data, seed, mode):
    """The backward operator multiplies with the transposed matrices."""
    old, new = (
        data.draw(st.sampled_from([(4, 8), (5, 3), (3, 3), (1, 4)])),
        data.draw(st.sampled_from([(8, 4), (3, 5), (2, 1)])),
    )
    sizes, antialias = [old[1], new[1]], mode == "antialias"
    kind = "linear" if antialias else mode
    grad, array = pair(seed, (2, 1, *sizes), "contiguous")
    made = candelabra.ops._upsample_backward(grad, [2, 1, old[0], new[0]], [], kind, False, antialias)
    matrices = [weights(kind, n, m, False, n / m, antialias) for n, m in zip((old[0], new[0]), sizes, strict=True)]
    close(made, resampled(array, [matrix.T for matrix in matrices]), 1e-10)
