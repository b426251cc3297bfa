"""Resampling, values at places and padded edges as decompositions, and their gradients.

Each dimension is treated on its own: a position of the result takes a few old ones, weighted. The
``*_backward`` decompositions are written with differentiable operators: second derivatives go
through them.
"""

from __future__ import annotations

import math

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..elementwise.elementwise import narrow_to, wide
from ..memory_formats import channels_last_of
from ..movement.views import reshape
from ..registration import decomposes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from candelabra._C import Tensor

_NEAREST = ("nearest", "nearest-exact")
_CUBIC = -0.75
_CUBIC_WIDENED = -0.5


def _arange(count: int, dtype: Any, device: Any) -> Any:
    return OPERATORS["arange"](0, count, 1, dtype=dtype, device=device)


def _clamp(x: Any, low: float | None = None, high: float | None = None) -> Any:
    return OPERATORS["clamp"](x, low, high)


def _whole(x: Any) -> Any:
    return OPERATORS["_to_copy"](x, dtype=_C.int64)


def _shaped(x: Any, dim: int, ndim: int) -> Any:
    return x.reshape([-1 if at == dim else 1 for at in range(ndim)])


def _filled(shape: Any, like: Any, value: float = 0.0) -> Any:
    return OPERATORS["fill_"](OPERATORS["empty"](tuple(shape), dtype=like.dtype, device=like.device), value)


# ---- resampling


def _ratio(old: int, new: int, align_corners: bool, scale: float) -> float:
    """Return the distance of adjacent output indices in input pixels."""
    if align_corners:
        return (old - 1) / (new - 1) if new > 1 else 0.0
    return min(1 / scale, 1e9) if scale > 0 else old / new


def cubic_weights(t: Any, a: float = _CUBIC) -> list[Any]:
    """Return the weights of the four neighbours of a point at distance `t` from the second."""
    near, far = 1 - t, 2 - t
    return [
        ((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a,
        ((a + 2) * t - (a + 3)) * t * t + 1,
        ((a + 2) * near - (a + 3)) * near * near + 1,
        ((a * far - 5 * a) * far + 8 * a) * far - 4 * a,
    ]


def cubic_slopes(t: Any, a: float = _CUBIC) -> list[Any]:
    """Return the derivatives of :func:`cubic_weights`."""
    near, far = 1 - t, 2 - t
    return [
        (3 * a * (t + 1) - 10 * a) * (t + 1) + 8 * a,
        (3 * (a + 2) * t - 2 * (a + 3)) * t,
        -((3 * (a + 2) * near - 2 * (a + 3)) * near),
        -((3 * a * far - 10 * a) * far + 8 * a),
    ]


def _taps(like: Any, old: int, new: int, scale: float, mode: str, align_corners: bool) -> list[tuple[Any, Any]]:
    """Return the taps of one dimension: input indices and weights (None for one)."""
    device = like.device
    if mode in _NEAREST:
        # In single precision as in PyTorch, so that points halfway between two pixels round alike.
        step = _filled((), OPERATORS["empty"]((), dtype=_C.float32, device=device), _ratio(old, new, False, scale))
        index = _arange(new, _C.float32, device)
        places = (index + 0.5) * step if mode == "nearest-exact" else index * step
        return [(_clamp(_whole(OPERATORS["floor"](places)), high=old - 1), None)]
    if mode == "linear" and old == new:
        return [(_arange(new, _C.int64, device), None)]
    ratio = _ratio(old, new, align_corners, scale)
    index = _arange(new, like.dtype, device)
    places = index * ratio if align_corners else (index + 0.5) * ratio - 0.5
    if mode == "linear":
        places = _clamp(places, 0)
        first = _clamp(_whole(OPERATORS["floor"](places)), high=old - 1)
        part = _clamp(places - first.to(places.dtype), 0, 1)
        return [(first, 1 - part), (_clamp(first + 1, high=old - 1), part)]
    low = OPERATORS["floor"](places)
    weights = cubic_weights(places - low)
    second = _whole(_clamp(low, -4, old + 4))
    return [(_clamp(second + offset, 0, old - 1), weight) for offset, weight in enumerate(weights, -1)]


def _widened(like: Any, old: int, new: int, scale: float, mode: str, align_corners: bool) -> Any:
    """Return the matrix of weights, of shape (new, old), with a filter that is widened for
    downsampling.
    """
    ratio = _ratio(old, new, align_corners, scale)
    wider = max(ratio, 1.0)
    cubic = mode == "cubic"
    centres = OPERATORS["unsqueeze"]((_arange(new, _C.float64, like.device) + 0.5) * ratio, 1)
    reach = (2.0 if cubic else 1.0) * wider
    places = _arange(old, _C.float64, like.device)
    first = _clamp(OPERATORS["trunc"](centres - reach + 0.5), 0)
    last = _clamp(OPERATORS["trunc"](centres + reach + 0.5), high=old)
    distance = OPERATORS["abs"]((places - centres + 0.5) / wider)
    if cubic:
        weights = cubic_weights(distance, _CUBIC_WIDENED)[1], cubic_weights(distance - 1, _CUBIC_WIDENED)[0]
        drawn = OPERATORS["where"](distance < 1, weights[0], OPERATORS["where"](distance < 2, weights[1], 0.0))
    else:
        drawn = _clamp(1 - distance, 0)
    drawn = OPERATORS["where"]((places >= first) & (places < last), drawn, 0.0)
    # A scale that contradicts the sizes may lead outside of the input, where all weights are zero.
    total = OPERATORS["sum"](drawn, 1, True)
    return narrow_to(drawn / OPERATORS["masked_fill"](total, OPERATORS["eq"](total, 0), 1.0), like.dtype)


def _checked_sizes(name: str, old: Sequence[int], new: Sequence[int]) -> None:
    if len(old) != len(new):
        raise RuntimeError(f"{name}(): sizes {list(old)} and {list(new)} do not belong together")
    if any(size <= 0 for size in (*old, *new)):
        raise RuntimeError(
            f"{name}(): Input and output sizes should be greater than 0, but got input {list(old)} and output {list(new)}"
        )


@decomposes("_upsample")
def _upsample(self: Tensor, output_size: Any, scales: Any, mode: str, align_corners: bool, antialias: bool) -> Any:
    _checked_sizes("_upsample", self.shape[2:], output_size)
    whole = not self.dtype.is_floating_point
    result: Any = self
    if mode not in _NEAREST:
        result = OPERATORS["_to_copy"](self, dtype=_C.float32) if whole else wide(self)
    for at, new in enumerate(output_size):
        dim, old, scale = 2 + at, self.shape[2 + at], scales[at] if len(scales) else 0.0
        if antialias:
            drawn = OPERATORS["movedim"](result, dim, -1) @ OPERATORS["t"](
                _widened(result, old, new, scale, mode, align_corners)
            )
            result = OPERATORS["movedim"](drawn, -1, dim)
            continue
        total: Any = None
        for places, weight in _taps(result, old, new, scale, mode, align_corners):
            part = OPERATORS["index_select"](result, dim, places)
            part = part if weight is None else part * _shaped(weight, dim, self.ndim)
            total = part if total is None else total + part
        result = total
    if result.dtype is not self.dtype:
        result = narrow_to(_clamp(OPERATORS["round"](result), 0, 255) if whole else result, self.dtype)
    return _in_format_of(self, result)


@decomposes("_upsample_backward")
def _upsample_backward(
    grad: Tensor, input_size: Any, scales: Any, mode: str, align_corners: bool, antialias: bool
) -> Any:
    _checked_sizes("_upsample_backward", input_size[2:], grad.shape[2:])
    result: Any = wide(grad)
    for at in reversed(range(grad.ndim - 2)):
        dim, old, new, scale = 2 + at, input_size[2 + at], grad.shape[2 + at], scales[at] if len(scales) else 0.0
        if antialias:
            drawn = OPERATORS["movedim"](result, dim, -1) @ _widened(result, old, new, scale, mode, align_corners)
            result = OPERATORS["movedim"](drawn, -1, dim)
            continue
        total = _filled([old if d == dim else size for d, size in enumerate(result.shape)], result)
        for places, weight in _taps(result, old, new, scale, mode, align_corners):
            part = result if weight is None else result * _shaped(weight, dim, grad.ndim)
            total = OPERATORS["index_add"](total, dim, places, part)
        result = total
    return _in_format_of(grad, narrow_to(result, grad.dtype))


def _in_format_of(like: Tensor, result: Any) -> Any:
    """Return a result in channels-last order if a batch of images or volumes is, else row-major."""
    return OPERATORS["contiguous"](result, memory_format=channels_last_of(like) or _C.contiguous_format)


# ---- grid sampling


def _unnormalized(grid: Any, size: int, align_corners: bool) -> Any:
    return (grid + 1) * ((size - 1) / 2) if align_corners else ((grid + 1) * size - 1) / 2


def _confined(places: Any, size: int, padding_mode: str, align_corners: bool) -> tuple[Any, Any]:
    """Apply the padding mode to coordinates; return them and their derivatives. NaN becomes 0.

    Those that are no numbers go to the beginning.
    """
    if padding_mode == "zeros":
        return places, None
    slope: Any = 1.0
    if padding_mode == "reflection":
        low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
        if low == high:
            return places * 0.0, 0.0
        distance = OPERATORS["abs"](places - low)
        turns = OPERATORS["floor"](distance.detach() / (high - low))
        rest = distance - turns * (high - low)
        even = OPERATORS["remainder"](turns, 2) == 0
        slope = OPERATORS["where"](OPERATORS["eq"](places < low, even), -1.0, 1.0)
        places = OPERATORS["where"](even, rest + low, high - rest)
    slope = OPERATORS["where"]((places > 0) & (places < size - 1), slope, 0.0)
    places = OPERATORS["where"](OPERATORS["isnan"](places), 0.0, places)
    return _clamp(places, 0, size - 1), slope


class _Places:
    """The taps of each point of a grid: indices, and for each dimension weights, their derivatives,
    and those of the coordinate.
    """

    def __init__(self, sizes: Sequence[int], grid: Any, mode: str, padding_mode: str, align_corners: bool) -> None:
        dims = len(sizes)
        self.sizes = sizes
        self.at: list[list[Any]] = []
        self.weights: list[list[Any]] = []
        self.slopes: list[list[Any]] = []
        self.steps: list[Any] = []
        for d, size in enumerate(sizes):
            scale = (size - 1) / 2 if align_corners else size / 2
            place = _unnormalized(OPERATORS["select"](grid, -1, dims - 1 - d), size, align_corners)
            if mode == "bicubic":
                low = OPERATORS["floor"](place.detach())
                at = [_confined(low + offset, size, padding_mode, align_corners)[0] for offset in (-1.0, 0.0, 1.0, 2.0)]
                self.at.append([OPERATORS["round"](one) for one in at] if padding_mode == "reflection" else at)
                self.weights.append(cubic_weights(place - low))
                self.slopes.append(cubic_slopes(place - low))
                self.steps.append(scale)
                continue
            place, slope = _confined(place, size, padding_mode, align_corners)
            self.steps.append(scale if slope is None else slope * scale)
            if mode == "nearest":
                self.at.append([OPERATORS["round"](place.detach())])
                self.weights.append([None])
                self.slopes.append([None])
                continue
            low = OPERATORS["floor"](place.detach())
            self.at.append([low, low + 1])
            self.weights.append([1 - (place - low), place - low])
            self.slopes.append([-1.0, 1.0])

    def taps(self) -> list[tuple[int, ...]]:
        """Return the choices of one neighbour per dimension."""
        choices: list[tuple[int, ...]] = [()]
        for places in self.at:
            choices = [(*choice, k) for choice in choices for k in range(len(places))]
        return choices

    def weight(self, tap: tuple[int, ...], along: int = -1) -> Any:
        """Return the weight of a tap, or its derivative along a dimension; None for one."""
        total: Any = None
        for d, k in enumerate(tap):
            factor = self.slopes[d][k] if d == along else self.weights[d][k]
            if factor is not None:
                total = factor if total is None else total * factor
        return total

    def flat(self, tap: tuple[int, ...], channels: int) -> tuple[Any, Any]:
        """Return the flattened indices of a tap for each channel (0 outside), and whether it is
        inside.
        """
        inside: Any = None
        flat: Any = None
        for places, k, size in zip(self.at, tap, self.sizes, strict=True):
            place = places[k]
            there = (place >= 0) & (place < size)
            inside = there if inside is None else inside & there
            at = _whole(OPERATORS["where"](there, place, 0.0))
            flat = at if flat is None else flat * size + at
        count = math.prod(flat.shape[1:])
        return OPERATORS["expand"](
            flat.reshape(flat.shape[0], 1, count), (flat.shape[0], channels, count)
        ), inside.unsqueeze(1)


def _places_of(self: Any, grid: Any, mode: str, padding_mode: str, align_corners: bool) -> _Places:
    name = "grid_sampler(): "
    if self.dtype is not grid.dtype:
        raise RuntimeError(
            f"{name}expected input and grid to have same dtype, but input has {self.dtype} and grid has {grid.dtype}"
        )
    if (
        self.ndim not in (4, 5)
        or self.ndim != grid.ndim
        or self.shape[0] != grid.shape[0]
        or grid.shape[-1] != self.ndim - 2
    ):
        raise RuntimeError(f"{name}input of sizes {list(self.shape)} and grid of sizes {list(grid.shape)} do not fit")
    if 0 in self.shape[2:]:
        raise RuntimeError(
            f"{name}expected input to have non-empty spatial dimensions, but input has sizes {list(self.shape)}"
        )
    if mode == "bicubic" and self.ndim != 4:
        raise RuntimeError(f"{name}bicubic interpolation only supports 4D input")
    return _Places(self.shape[2:], wide(grid), mode, padding_mode, align_corners)


def _values(flat: Any, inside: Any, planes: Any, shape: Sequence[int]) -> Any:
    return OPERATORS["where"](inside, OPERATORS["gather"](planes, 2, flat).reshape((*planes.shape[:2], *shape)), 0.0)


@decomposes("grid_sampler")
def grid_sampler(self: Tensor, grid: Tensor, mode: str, padding_mode: str, align_corners: bool) -> Any:
    places = _places_of(self, grid, mode, padding_mode, align_corners)
    batch, channels = self.shape[:2]
    planes = wide(self).reshape(batch, channels, math.prod(self.shape[2:]))
    total: Any = None
    for tap in places.taps():
        flat, inside = places.flat(tap, channels)
        value = _values(flat, inside, planes, grid.shape[1:-1])
        weight = places.weight(tap)
        value = value if weight is None else value * weight.unsqueeze(1)
        total = value if total is None else total + value
    return narrow_to(total, self.dtype)


@decomposes("grid_sampler_backward")
def grid_sampler_backward(
    grad: Tensor, self: Tensor, grid: Tensor, mode: str, padding_mode: str, align_corners: bool, needs: Any
) -> Any:
    places = _places_of(self, grid, mode, padding_mode, align_corners)
    batch, channels = self.shape[:2]
    count = math.prod(self.shape[2:])
    slopes = wide(grad)
    planes = wide(self).reshape(batch, channels, count)
    of_self = _filled((batch, channels, count), slopes)
    of_grid: list[Any] = [None] * len(places.sizes)
    for tap in places.taps():
        flat, inside = places.flat(tap, channels)
        if needs[0]:
            weight = places.weight(tap)
            part = OPERATORS["where"](inside, slopes if weight is None else slopes * weight.unsqueeze(1), 0.0)
            of_self = OPERATORS["scatter_add"](of_self, 2, flat, part.reshape(flat.shape))
        if needs[1] and mode != "nearest":
            change = OPERATORS["sum"](slopes * _values(flat, inside, planes, grid.shape[1:-1]), 1)
            for d in range(len(places.sizes)):
                part = change * places.weight(tap, d) * places.steps[d]
                of_grid[d] = part if of_grid[d] is None else of_grid[d] + part
    made_self = narrow_to(of_self.reshape(self.shape), self.dtype) if needs[0] else _filled((0,), self)
    if not needs[1]:
        return made_self, _filled((0,), self)
    if mode == "nearest":
        return made_self, _filled(grid.shape, self)
    return made_self, narrow_to(OPERATORS["stack"](of_grid[::-1], -1), self.dtype)


# ---- padding


def _sources(length: int, before: int, after: int, mode: str, device: Any) -> Any:
    """Return the source indices of a padded dimension."""
    if mode == "reflect" and (before >= length or after >= length) and (before or after):
        raise RuntimeError(
            "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding "
            f"({before}, {after}) for a dimension of size {length}"
        )
    if mode == "circular" and (before > length or after > length):
        raise RuntimeError("Padding value causes wrapping around more than once.")
    if length == 0 and (before or after):
        raise RuntimeError(f"Expected a non-empty dimension for {mode} padding")
    places = OPERATORS["arange"](-before, length + after, 1, dtype=_C.int64, device=device)
    if mode == "reflect":
        return (length - 1) - OPERATORS["abs"]((length - 1) - OPERATORS["abs"](places))
    return _clamp(places, 0, length - 1) if mode == "replicate" else OPERATORS["remainder"](places, length)


@decomposes("im2col")
def im2col(self: Tensor, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    x = (
        OPERATORS["_constant_pad_nd"](self, (padding[1], padding[1], padding[0], padding[0]), 0)
        if any(padding)
        else self
    )
    for i in range(2):
        x = OPERATORS["unfold"](x, 2 + i, dilation[i] * (kernel_size[i] - 1) + 1, stride[i])
    for i in range(2):
        x = OPERATORS["slice"](x, 4 + i, None, None, dilation[i])
    down, across = x.shape[2:4]
    patches = OPERATORS["permute"](x, (0, 1, 4, 5, 2, 3))
    return OPERATORS["clone"](reshape(patches, x.shape[0], x.shape[1] * kernel_size[0] * kernel_size[1], down * across))


@decomposes("col2im")
def col2im(grad: Tensor, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    area, size = kernel_size[0] * kernel_size[1], [output_size[i] + 2 * padding[i] for i in range(2)]
    counts = [(size[i] - dilation[i] * (kernel_size[i] - 1) - 1) // stride[i] + 1 for i in range(2)]
    batch, channels = grad.shape[0], grad.shape[1] // area
    parts: Any = reshape(wide(grad), batch, channels, kernel_size[0], kernel_size[1], counts[0], counts[1])
    places = [
        OPERATORS["arange"](0, counts[i] * stride[i], stride[i], dtype=_C.int64, device=grad.device) for i in range(2)
    ]
    # Dimension by dimension, and kernel element by kernel element.
    tall = _filled((batch, channels, kernel_size[1], size[0], counts[1]), parts)
    for k in range(kernel_size[0]):
        tall = OPERATORS["index_add"](tall, 3, places[0] + k * dilation[0], OPERATORS["select"](parts, 2, k))
    whole: Any = _filled((batch, channels, *size), parts)
    for k in range(kernel_size[1]):
        whole = OPERATORS["index_add"](whole, 3, places[1] + k * dilation[1], OPERATORS["select"](tall, 2, k))
    for i in range(2):
        whole = OPERATORS["narrow"](whole, 2 + i, padding[i], output_size[i])
    return narrow_to(OPERATORS["clone"](whole), grad.dtype)


@decomposes("_constant_pad_nd")
def _constant_pad_nd(self: Tensor, padding: Any, value: Any) -> Any:
    inner, sizes = self, list(self.shape)
    for number in range(len(padding) // 2):
        dim = self.ndim - 1 - number
        before, after = padding[2 * number : 2 * number + 2]
        sizes[dim] += before + after
        cut = max(-before, 0)
        inner = OPERATORS["narrow"](inner, dim, cut, inner.shape[dim] - cut - max(-after, 0))
    made = OPERATORS["empty"](
        tuple(sizes), dtype=self.dtype, device=self.device, memory_format=channels_last_of(self) or _C.contiguous_format
    )
    result: Any = OPERATORS["fill_"](made, value)
    place = result
    for number in range(len(padding) // 2):
        dim = self.ndim - 1 - number
        place = OPERATORS["narrow"](place, dim, max(padding[2 * number], 0), inner.shape[dim])
    place.copy_(inner)
    return result


@decomposes("_reflection_replication_pad")
def _reflection_replication_pad(self: Tensor, padding: Any, mode: str) -> Any:
    result: Any = self
    for number in range(len(padding) // 2):
        dim = self.ndim - 1 - number
        before, after = padding[2 * number : 2 * number + 2]
        if before or after:
            places = _sources(self.shape[dim], before, after, mode, self.device)
            result = OPERATORS["index_select"](result, dim, places)
    if result is self:
        return OPERATORS["clone"](self)
    spatial = len(padding) == 2 * (self.ndim - 2) and mode != "circular"
    return _in_format_of(self, result) if spatial else result


@decomposes("_reflection_replication_pad_backward")
def _reflection_replication_pad_backward(grad: Tensor, input_size: Any, padding: Any, mode: str) -> Any:
    result: Any = wide(grad)
    for number in range(len(padding) // 2):
        dim = grad.ndim - 1 - number
        before, after = padding[2 * number : 2 * number + 2]
        if before or after:
            places = _sources(input_size[dim], before, after, mode, grad.device)
            shape = [input_size[dim] if d == dim else size for d, size in enumerate(result.shape)]
            result = OPERATORS["index_add"](_filled(shape, result), dim, places, result)
    if result is grad:
        return OPERATORS["clone"](grad)
    result = narrow_to(result, grad.dtype)
    spatial = len(padding) == 2 * (grad.ndim - 2) and mode != "circular"
    return _in_format_of(grad, result) if spatial else result
