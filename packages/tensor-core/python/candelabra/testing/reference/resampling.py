"""References of resampling, grid sampling and padding, by matrices of weights and loops over
elements.

Resampling multiplies each dimension by a matrix; its gradient is the transposed matrix. The weights
of cubic convolution are those of Keys (1981).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from candelabra.testing.sampling import FLOATS, Input, Reference, Sample, numbers

Array = np.ndarray


def _keys(x: float, a: float) -> float:
    x = abs(x)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0


def _keys_slope(x: float, a: float) -> float:
    sign, x = math.copysign(1.0, x), abs(x)
    if x <= 1:
        return sign * (3 * (a + 2) * x**2 - 2 * (a + 3) * x)
    return sign * (3 * a * x**2 - 10 * a * x + 8 * a) if x < 2 else 0.0


def _place(i: int, old: int, new: int, align_corners: bool, scale: float) -> float:
    if align_corners:
        return i * (old - 1) / (new - 1) if new > 1 else 0.0
    return (i + 0.5) * (1 / scale if scale > 0 else old / new) - 0.5


def matrix(
    old: int, new: int, mode: str, align_corners: bool = False, scale: float = 0.0, antialias: bool = False
) -> Array:
    """Return the weights of one dimension, of shape (new, old)."""
    weights = np.zeros((new, old))
    ratio = (
        (old - 1) / (new - 1)
        if align_corners and new > 1
        else 0.0
        if align_corners
        else 1 / scale
        if scale > 0
        else old / new
    )
    for i in range(new):
        if mode in ("nearest", "nearest-exact"):
            step = np.float32(ratio)
            at = np.float32(i + 0.5) * step if mode == "nearest-exact" else np.float32(i) * step
            weights[i, min(int(at), old - 1)] = 1
        elif antialias:
            wide = max(ratio, 1.0)
            centre, reach = (i + 0.5) * ratio, (2.0 if mode == "cubic" else 1.0) * wide
            for j in range(max(int(centre - reach + 0.5), 0), min(int(centre + reach + 0.5), old)):
                x = (j - centre + 0.5) / wide
                weights[i, j] = _keys(x, -0.5) if mode == "cubic" else max(1 - abs(x), 0)
            weights[i] /= weights[i].sum()
        elif mode == "linear":
            place = max(_place(i, old, new, align_corners, scale), 0.0) if old != new else float(i)
            first = min(int(place), old - 1)
            part = min(place - first, 1.0)
            weights[i, first] += 1 - part
            weights[i, min(first + 1, old - 1)] += part
        else:
            place = _place(i, old, new, align_corners, scale)
            low = math.floor(place)
            for k in range(-1, 3):
                weights[i, min(max(low + k, 0), old - 1)] += _keys(place - low - k, -0.75)
    return weights


def _along(x: Array, dim: int, weights: Array) -> Array:
    return np.moveaxis(np.tensordot(x, weights, ([dim], [1])), -1, dim)


def upsample(x: Array, size: Any, scales: Any, mode: str, align_corners: bool, antialias: bool) -> Array:
    for d, new in enumerate(size):
        scale = scales[d] if len(scales) else 0.0
        x = _along(x, 2 + d, matrix(x.shape[2 + d], new, mode, align_corners, scale, antialias))
    return x


def _upsample_backward(
    grad: Array, input_size: Any, scales: Any, mode: str, align_corners: bool, antialias: bool
) -> Array:
    for d, old in enumerate(input_size[2:]):
        scale = scales[d] if len(scales) else 0.0
        grad = _along(grad, 2 + d, matrix(old, grad.shape[2 + d], mode, align_corners, scale, antialias).T)
    return grad


#: Sizes of the input and the result, mode, align_corners, antialias, scales.
_RESAMPLED: tuple[tuple[tuple[int, ...], tuple[int, ...], str, bool, bool, tuple[float, ...]], ...] = (
    ((2, 3, 5), (8,), "linear", False, False, ()),
    ((2, 3, 5), (3,), "nearest", False, False, (0.65,)),
    ((2, 2, 4, 5), (7, 3), "linear", False, False, ()),
    ((2, 2, 4, 5), (7, 10), "linear", True, False, ()),
    ((2, 2, 4, 5), (4, 9), "nearest-exact", False, False, ()),
    ((1, 2, 4, 5), (6, 9), "cubic", False, False, (1.5, 1.9)),
    ((1, 2, 4, 5), (1, 9), "cubic", True, False, ()),
    ((1, 2, 9, 7), (4, 3), "linear", False, True, ()),
    ((1, 2, 9, 7), (4, 12), "cubic", False, True, ()),
    ((1, 2, 3, 2, 4), (5, 4, 3), "linear", False, False, ()),
    ((1, 9, 3, 4), (5, 8), "linear", False, False, ()),
)


def _resamples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape, size, mode, align_corners, antialias, scales in _RESAMPLED:
        for layout in ("contiguous", "strided"):
            x = Input(numbers(rng, dtype, shape, -2, 2), dtype, layout)
            yield Sample((x, size, scales, mode, align_corners, antialias))


def _resample_backwards(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape, size, mode, align_corners, antialias, scales in _RESAMPLED:
        grad = Input(numbers(rng, dtype, (*shape[:2], *size), -1, 1), dtype)
        yield Sample((grad, shape, scales, mode, align_corners, antialias))


# ---- grid sampling


def _confined(place: float, size: int, padding_mode: str, align_corners: bool) -> tuple[float, float]:
    """Return a coordinate after padding, and its derivative."""
    if padding_mode == "zeros":
        return place, 1.0
    slope = 1.0
    if padding_mode == "reflection":
        low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
        if low == high:
            return 0.0, 0.0
        while not low <= place <= high:
            place, slope = (2 * low - place if place < low else 2 * high - place), -slope
    if place <= 0 or place >= size - 1:
        slope = 0.0
    return min(max(place, 0.0), size - 1.0), slope


def _axis(
    number: float, size: int, mode: str, padding_mode: str, align_corners: bool
) -> list[tuple[float, float, float]]:
    """Return indices, weights, and derivatives of the weights, of one coordinate."""
    scale = (size - 1) / 2 if align_corners else size / 2
    place = (number + 1) * scale - (0 if align_corners else 0.5)
    if mode == "bicubic":
        low = math.floor(place)
        taps = []
        for k in range(-1, 3):
            at = _confined(low + k, size, padding_mode, align_corners)[0]
            x = place - low - k
            taps.append(
                (
                    float(round(at)) if padding_mode == "reflection" else at,
                    _keys(x, -0.75),
                    _keys_slope(x, -0.75) * scale,
                )
            )
        return taps
    place, slope = _confined(place, size, padding_mode, align_corners)
    if mode == "nearest":
        return [(float(np.round(place)), 1.0, 0.0)]
    low = math.floor(place)
    part = place - low
    return [(low, 1 - part, -slope * scale), (low + 1, part, slope * scale)]


def _taps(
    sizes: Any, places: Any, mode: str, padding_mode: str, align_corners: bool
) -> Iterator[tuple[Any, float, list[float]]]:
    """Return the indices inside with their weights, and the derivatives along each dimension of the
    grid (the last one first).
    """
    axes = [
        _axis(float(p), size, mode, padding_mode, align_corners) for p, size in zip(places[::-1], sizes, strict=True)
    ]
    for taps in itertools.product(*axes):
        if all(0 <= tap[0] < size for tap, size in zip(taps, sizes, strict=True)):
            weights = [tap[1] for tap in taps]
            changes = [tap[2] * math.prod(weights[:d]) * math.prod(weights[d + 1 :]) for d, tap in enumerate(taps)]
            yield tuple(int(tap[0]) for tap in taps), math.prod(weights), changes[::-1]


def grid_sampler(x: Array, grid: Array, mode: str, padding_mode: str, align_corners: bool) -> Array:
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]), dtype=x.dtype)
    for n, *at in np.ndindex(*grid.shape[:-1]):
        for place, weight, _ in _taps(x.shape[2:], grid[(n, *at)], mode, padding_mode, align_corners):
            out[(n, slice(None), *at)] += weight * x[(n, slice(None), *place)]
    return out


def grid_sampler_backward(
    grad: Array, x: Array, grid: Array, mode: str, padding_mode: str, align_corners: bool, needs: Any
) -> tuple[Array, Array]:
    of_x, of_grid = np.zeros_like(x), np.zeros_like(grid)
    for n, *at in np.ndindex(*grid.shape[:-1]):
        slope = grad[(n, slice(None), *at)]
        for place, weight, changes in _taps(x.shape[2:], grid[(n, *at)], mode, padding_mode, align_corners):
            of_x[(n, slice(None), *place)] += weight * slope
            of_grid[(n, *at)] += (slope * x[(n, slice(None), *place)]).sum() * np.array(changes)
    empty = np.zeros(0)
    return of_x if needs[0] else empty, of_grid if needs[1] else empty


_GRIDS: tuple[tuple[tuple[int, ...], tuple[int, ...], str], ...] = (
    ((2, 3, 4, 5), (3, 2), "bilinear"),
    ((2, 3, 4, 5), (3, 2), "nearest"),
    ((1, 2, 4, 5), (3, 3), "bicubic"),
    ((1, 2, 3, 4, 2), (2, 2, 3), "bilinear"),
    ((1, 2, 3, 4, 2), (2, 1, 3), "nearest"),
)


def _grids(rng: np.random.Generator, dtype: str) -> Iterator[tuple[Any, ...]]:
    for (shape, places, mode), padding_mode in itertools.product(_GRIDS, ("zeros", "border", "reflection")):
        for align_corners, layout in ((False, "strided"), (True, "contiguous")):
            x = Input(numbers(rng, dtype, shape, -2, 2), dtype, layout)
            # Away from the centres and edges of pixels, where rounding decides.
            values = rng.integers(-11, 11, (shape[0], *places, len(places))) / 8 + 1 / 32
            yield x, Input(values, dtype, layout), mode, padding_mode, align_corners


def _grid_samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for call in _grids(rng, dtype):
        yield Sample(call)


def _grid_backwards(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for number, (x, grid, *options) in enumerate(_grids(rng, dtype)):
        grad = Input(numbers(rng, dtype, (*x.values.shape[:2], *grid.values.shape[1:-1]), -1, 1), dtype)
        yield Sample((grad, x, grid, *options, ((True, True), (True, False), (False, True))[number % 3]))


# ---- padding

_NUMPY_MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def _sources(shape: Any, padding: Any, mode: str) -> list[Array]:
    """Return the source indices of each dimension."""
    sources = [np.arange(size) for size in shape]
    for number in range(len(padding) // 2):
        d = len(shape) - 1 - number
        before, after = padding[2 * number : 2 * number + 2]
        if before or after:
            padded = np.pad(sources[d], (max(before, 0), max(after, 0)), mode=_NUMPY_MODES[mode])  # type: ignore[call-overload]
            sources[d] = padded[max(-before, 0) : len(padded) - max(-after, 0)]
    return sources


_PATCHES: tuple[tuple[tuple[int, ...], list[int], list[int], list[int], list[int]], ...] = (
    ((2, 3, 5, 6), [2, 2], [1, 1], [0, 0], [1, 1]),
    ((1, 2, 5, 4), [2, 3], [2, 1], [1, 1], [1, 2]),
    ((2, 1, 7, 9), [3, 3], [1, 2], [2, 1], [2, 3]),
    ((0, 2, 3, 3), [2, 1], [1, 1], [0, 0], [1, 1]),
    ((2, 8, 40, 37), [3, 3], [1, 1], [1, 1], [1, 1]),
)


def _patch_counts(image: tuple[int, ...], kernel: Any, dilation: Any, padding: Any, stride: Any) -> list[int]:
    return [(image[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in range(2)]


def _patch_calls(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape, *how in _PATCHES:
        for layout in ("contiguous", "transposed"):
            yield Sample((Input(numbers(rng, dtype, shape), dtype, layout), *how))


def _patch_backward_calls(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for (batch, channels, *image), *how in _PATCHES:
        down, across = _patch_counts(tuple(image), *how)
        columns = numbers(rng, dtype, (batch, channels * how[0][0] * how[0][1], down * across))
        yield Sample((Input(columns, dtype), image, *how))


def _places(
    padded: Array, kernel: Any, dilation: Any, stride: Any, counts: list[int]
) -> Iterator[tuple[int, int, Array]]:
    """Yield each kernel element, and the view of the input that it is multiplied by."""
    for a in range(kernel[0]):
        for b in range(kernel[1]):
            rows, columns = (
                slice(k * dilation[i], k * dilation[i] + (counts[i] - 1) * stride[i] + 1, stride[i])
                for i, k in enumerate((a, b))
            )
            yield a, b, padded[:, :, rows, columns]


def im2col(x: Array, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Array:
    counts = _patch_counts(x.shape[2:], kernel, dilation, padding, stride)
    padded = np.pad(x, [(0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2])
    made = np.empty((*x.shape[:2], *kernel, *counts), x.dtype)
    for a, b, seen in _places(padded, kernel, dilation, stride, counts):
        made[:, :, a, b] = seen
    return made.reshape(x.shape[0], x.shape[1] * kernel[0] * kernel[1], counts[0] * counts[1])


def col2im(grad: Array, image: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Array:
    counts = _patch_counts(tuple(image), kernel, dilation, padding, stride)
    channels = grad.shape[1] // (kernel[0] * kernel[1])
    parts = grad.reshape(grad.shape[0], channels, *kernel, *counts)
    padded = np.zeros((grad.shape[0], channels, image[0] + 2 * padding[0], image[1] + 2 * padding[1]), grad.dtype)
    for a, b, seen in _places(padded, kernel, dilation, stride, counts):
        seen += parts[:, :, a, b]
    return padded[:, :, padding[0] : padding[0] + image[0], padding[1] : padding[1] + image[1]]


def _constants(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape, padding in (
        ((3,), [2, 1]), ((3,), [-1, -2]), ((2, 5), [1, 0, 0, 3]), ((2, 3, 4), [0, 0, 2, 1]), ((2, 3, 4), [-1, 2, 1, -1, 0, 1]),
        ((0, 2), [1, 1]), ((2, 0), [1, 1]), ((40, 300), [3, 5, 1, 2]), ((2, 3, 4), []),
    ):  # fmt: skip
        values = numbers(rng, dtype, shape)
        for layout in ("contiguous", "transposed", "strided"):
            yield Sample((Input(values, dtype, layout), padding, 1))


def _constant_pad_nd(x: Array, padding: Any, value: Any) -> Array:
    pairs = [(padding[2 * i], padding[2 * i + 1]) for i in range(len(padding) // 2)]
    pairs = [(0, 0)] * (x.ndim - len(pairs)) + pairs[::-1]
    cut = x[
        tuple(slice(max(-before, 0), n - max(-after, 0)) for n, (before, after) in zip(x.shape, pairs, strict=True))
    ]
    return np.pad(cut, [(max(before, 0), max(after, 0)) for before, after in pairs], constant_values=value)


def _reflection_replication_pad(x: Array, padding: Any, mode: str) -> Array:
    return x[np.ix_(*_sources(x.shape, padding, mode))]


def _reflection_replication_pad_backward(grad: Array, input_size: Any, padding: Any, mode: str) -> Array:
    out = np.zeros(tuple(input_size), dtype=grad.dtype)
    np.add.at(out, np.ix_(*_sources(input_size, padding, mode)), grad)
    return out


_PADDED: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((5,), (2, 3)), ((2, 4), (3, -1)), ((2, 3, 4), (-2, 1)), ((2, 3, 4), (1, 2, 2, 0)), ((1, 2, 3, 4), (2, 2, 0, 0)),
    ((1, 2, 3, 4, 3), (1, 2, 3, 0, 2, 1)), ((0, 2, 3), (1, 1)),
)  # fmt: skip


def _pads(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for (shape, padding), mode in itertools.product(_PADDED, _NUMPY_MODES):
        if mode == "circular" and min(padding) < 0:
            continue
        values = rng.random(shape) < 0.5 if dtype == "bool" else numbers(rng, dtype, shape, 0, 9)
        yield Sample((Input(values, dtype, "strided"), padding, mode))


def _pad_backwards(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for (shape, padding), mode in itertools.product(_PADDED, _NUMPY_MODES):
        if mode == "circular" and min(padding) < 0:
            continue
        sizes = [len(source) for source in _sources(shape, padding, mode)]
        yield Sample((Input(numbers(rng, dtype, tuple(sizes), -1, 1), dtype), shape, padding, mode))


REFERENCES: dict[str, Reference] = {
    "_upsample": Reference(upsample, _resamples, FLOATS, 4),
    "_upsample_backward": Reference(_upsample_backward, _resample_backwards, FLOATS, 8),
    "grid_sampler": Reference(grid_sampler, _grid_samples, FLOATS, 8),
    "grid_sampler_backward": Reference(grid_sampler_backward, _grid_backwards, ("float32", "float64"), 20),
    "im2col": Reference(im2col, _patch_calls, ("int64", *FLOATS, "complex64")),
    "col2im": Reference(col2im, _patch_backward_calls, ("int64", *FLOATS, "complex64"), 5),
    "_constant_pad_nd": Reference(_constant_pad_nd, _constants, ("bool", "uint8", "int64", *FLOATS, "complex64")),
    "_reflection_replication_pad": Reference(
        _reflection_replication_pad, _pads, ("bool", "uint8", "int64", *FLOATS, "complex64")
    ),
    "_reflection_replication_pad_backward": Reference(
        _reflection_replication_pad_backward, _pad_backwards, (*FLOATS, "complex64"), 2
    ),
}
