"""Rules of views and changes of shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import candelabra
import candelabra.export
from candelabra.export.interface import Size

from ..builder import INT64, LARGEST, AnySize, Builder, Value
from .table import rule

Sizes = Sequence[int | Size]


def _at(dim: int, rank: int) -> int:
    return dim + rank if dim < 0 else dim


def _list(dims: int | Sequence[int]) -> list[int]:
    return [dims] if isinstance(dims, int) else list(dims)


@rule("view", "reshape", sizes="size shape")
def _view(b: Builder, self: Value, size: Sizes) -> str:
    return b.reshape(self, size)


@rule("unflatten", sizes="sizes")
def _unflatten(b: Builder, self: Value, dim: int, sizes: Sizes) -> str:
    at = _at(dim, self.rank)
    return b.reshape(self, [*self.shape[:at], *sizes, *self.shape[at + 1 :]])


@rule("permute")
def _permute(b: Builder, self: Value, dims: Sequence[int]) -> str:
    return b.transpose(self, [_at(dim, self.rank) for dim in dims])


@rule("transpose")
def _transpose(b: Builder, self: Value, dim0: int, dim1: int) -> str:
    order = list(range(self.rank))
    if order:
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return b.transpose(self, order)


@rule("t")
def _t(b: Builder, self: Value) -> str:
    return b.transpose(self, range(self.rank)[::-1])


@rule("movedim")
def _movedim(b: Builder, self: Value, source: int | Sequence[int], destination: int | Sequence[int]) -> str:
    moved = [_at(dim, self.rank) for dim in _list(source)]
    order = [dim for dim in range(self.rank) if dim not in moved]
    for to, dim in sorted(zip((_at(dim, self.rank) for dim in _list(destination)), moved, strict=True)):
        order.insert(to, dim)
    return b.transpose(self, order)


@rule("unsqueeze")
def _unsqueeze(b: Builder, self: Value, dim: int) -> str:
    return b.unsqueeze(self, _at(dim, self.rank + 1))


@rule("squeeze")
def _squeeze(b: Builder, self: Value, dim: int | Sequence[int] | None = None) -> str:
    dims = range(self.rank) if dim is None else [_at(one, self.rank) for one in _list(dim)]
    ones = [one for one in dims if self.rank and self.shape[one] == 1]
    return b.squeeze(self, *ones) if ones else b.name(self)


@rule("expand", sizes="size")
def _expand(b: Builder, self: Value, size: Sizes, *, implicit: bool = False) -> str:
    new = len(size) - self.rank
    return b.expand(self, [self.shape[k - new] if one == -1 else one for k, one in enumerate(size)])


# ---- parts


@rule("select", sizes="index")
def _select(b: Builder, self: Value, dim: int, index: int | Size) -> str:
    return b.op("Gather", self, b.number(index), axis=_at(dim, self.rank))


@rule("slice", sizes="start end")
def _slice(b: Builder, self: Value, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> str:
    start, end = 0 if start is None else start, LARGEST if end is None else end
    if start == 0 and end == LARGEST and step == 1:
        return b.name(self)
    return b.slice(self, _at(dim, self.rank), start, end, step)


@rule("narrow", sizes="start length")
def _narrow(b: Builder, self: Value, dim: int, start: AnySize, length: AnySize) -> str:
    if isinstance(start, int) and start < 0:
        start = b.plus(self.shape[dim], start)
    return b.slice(self, _at(dim, self.rank), start, b.plus(start, length))


@rule("split", sizes="split_size")
def _split(b: Builder, self: Value, split_size: AnySize | Sequence[AnySize], dim: int = 0) -> list[str]:
    at, count = _at(dim, self.rank), len(b.results)
    sizes: list[Any] = list(split_size) if type(split_size) is list else [split_size] * count
    starts: list[AnySize] = [0]
    for size in sizes:
        starts.append(b.plus(size, starts[-1]))
    return [b.slice(self, at, starts[k], starts[k + 1]) for k in range(count)]


@rule("diagonal")
def _diagonal(b: Builder, self: Value, *arguments: int, **names: int) -> str:
    return _taken(b, self, lambda places: candelabra.ops.diagonal(places, *arguments, **names))


@rule("unfold")
def _unfold(b: Builder, self: Value, *arguments: int, **names: int) -> str:
    return _taken(b, self, lambda places: candelabra.ops.unfold(places, *arguments, **names))


@rule("as_strided")
def _as_strided(b: Builder, self: Value, *arguments: Any, **names: Any) -> str:
    return _taken(b, self, lambda places: candelabra.ops.as_strided(places, *arguments, **names))


def _taken(b: Builder, self: Value, view: Any) -> str:
    """Return the elements that a view has, given a function that makes it."""
    sizes = [b.static(size, "a size of the tensor") for size in self.shape]
    places = candelabra.arange(candelabra.Size(sizes).numel(), dtype=INT64, device="cpu").reshape(sizes)
    return b.op("Gather", b.reshape(self, [-1]), b.tensor(view(places)), axis=0)


@rule("flip")
def _flip(b: Builder, self: Value, dims: int | Sequence[int]) -> str:
    axes = [_at(dim, self.rank) for dim in _list(dims)]
    ones = [-1] * len(axes)
    return b.op("Slice", self, b.constant(ones), b.constant([-LARGEST] * len(axes)), b.constant(axes), b.constant(ones))


@rule("tril")
def _tril(b: Builder, self: Value, diagonal: int = 0) -> str:
    return _triangle(b, self, diagonal, 0)


@rule("triu")
def _triu(b: Builder, self: Value, diagonal: int = 0) -> str:
    return _triangle(b, self, diagonal, 1)


def _triangle(b: Builder, self: Value, diagonal: int, upper: int) -> str:
    wide = candelabra.float32 if self.dtype.is_floating_point else INT64
    inner = self.dtype if self.dtype in (candelabra.float64, candelabra.bool) else wide
    found = b.op("Trilu", b.cast(self, inner), b.constant(diagonal), upper=upper)
    return b.cast(found, self.dtype, inner)


# ---- channels and pixels


@rule("pixel_shuffle")
def _pixel_shuffle(b: Builder, self: Value, upscale_factor: int) -> str:
    if self.rank != 4:
        b.refuse("its argument does not have four dimensions")
    return b.op("DepthToSpace", self, blocksize=upscale_factor, mode="CRD")


@rule("pixel_unshuffle")
def _pixel_unshuffle(b: Builder, self: Value, downscale_factor: int) -> str:
    *outer, channels, height, width = self.shape
    if len(outer) != 1:
        b.refuse("its argument does not have four dimensions")
    r = downscale_factor
    small = [size // r if isinstance(size, int) else size._replace(divisor=r) for size in (height, width)]
    cut = b.reshape(self, [outer[0], channels, small[0], r, small[1], r])
    moved = b.transpose(cut, [0, 1, 3, 5, 2, 4])
    return b.reshape(moved, [outer[0], b.static(channels, "the number of channels") * r * r, *small])


@rule("channel_shuffle")
def _channel_shuffle(b: Builder, self: Value, groups: int) -> str:
    channels = b.static(self.shape[1], "the number of channels")
    cut = b.reshape(self, [self.shape[0], groups, channels // groups, *self.shape[2:]])
    order = [0, 2, 1, *range(3, self.rank + 1)]
    return b.reshape(b.transpose(cut, order), [self.shape[0], channels, *self.shape[2:]])
