"""Rules of indexing with tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import candelabra

from ..builder import INT64, Builder, Value
from .table import rule

_REDUCTIONS = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}


def _places(b: Builder, index: Value) -> str:
    return b.cast(index, INT64)


@rule("index_select")
def _index_select(b: Builder, self: Value, dim: int, index: Value) -> str:
    places = b.reshape(index, [1]) if index.rank == 0 else b.name(index)
    return b.op("Gather", self, b.cast(places, INT64, index.dtype), axis=dim)


@rule("take")
def _take(b: Builder, self: Value, index: Value) -> str:
    return b.op("Gather", b.reshape(self, [-1]), _places(b, index), axis=0)


@rule("gather")
def _gather(b: Builder, self: Value, dim: int, index: Value) -> str:
    return b.op("GatherElements", self, _places(b, index), axis=dim)


# ---- indices of several dimensions


class _Index:
    """Indices of some dimensions, with those dimensions moved to the front."""

    def __init__(self, b: Builder, self_: Value, indices: Sequence[Value | None]) -> None:
        self._b = b
        at = [dim for dim, index in enumerate(indices) if index is not None]
        given = [index for index in indices if index is not None]
        if any(index.dtype in (candelabra.bool, candelabra.uint8) for index in given):
            b.refuse("an index is a mask")
        self.order = at + [dim for dim in range(self_.rank) if dim not in at]
        self.rank = max(index.rank for index in given)
        self.rest = [self_.shape[dim] for dim in self.order[len(at) :]]
        is_together = at[-1] - at[0] == len(at) - 1
        #: Where the dimensions of the indices are in the result.
        self.first = at[0] if is_together else 0
        self.places = self._stacked(given)

    def _stacked(self, given: list[Value]) -> str:
        """Return the indices as the last dimension of one tensor."""
        b = self._b
        names = [_places(b, index) for index in given]
        if len({index.shape for index in given}) > 1:
            zero = b.op("Mul", names[0], b.constant(0))
            for name in names[1:]:
                zero = b.op("Add", zero, b.op("Mul", name, b.constant(0)))
            names = [b.op("Add", name, zero) for name in names]
        names = [b.unsqueeze(name, self.rank) for name in names]
        return names[0] if len(names) == 1 else b.op("Concat", *names, axis=self.rank)

    def result_order(self) -> list[int]:
        """Return the permutation from (indices, rest) to the result."""
        rest = [self.rank + k for k in range(len(self.rest))]
        return rest[: self.first] + list(range(self.rank)) + rest[self.first :]


def _inverse(order: Sequence[int]) -> list[int]:
    return [list(order).index(k) for k in range(len(order))]


@rule("index")
def _index(b: Builder, self: Value, indices: Sequence[Value | None]) -> str:
    given = [(dim, index) for dim, index in enumerate(indices) if index is not None]
    if len(given) == 1 and given[0][1].dtype not in (candelabra.bool, candelabra.uint8):
        return b.op("Gather", self, _places(b, given[0][1]), axis=given[0][0])
    found = _Index(b, self, indices)
    taken = b.op("GatherND", b.transpose(self, found.order), found.places)
    return b.transpose(taken, found.result_order())


@rule("index_put")
def _index_put(
    b: Builder, self: Value, indices: Sequence[Value | None], values: Value, accumulate: bool = False
) -> str:
    masks = [index for index in indices if index is not None]
    if len(masks) == len(indices) == 1 and masks[0].dtype is candelabra.bool and values.rank == 0 and not accumulate:
        ones = [1] * (self.rank - masks[0].rank)
        mask = b.reshape(masks[0], [*masks[0].shape, *ones]) if ones else b.name(masks[0])
        return b.op("Where", mask, b.cast(values, self.dtype), self)
    found = _Index(b, self, indices)
    # The values are broadcast to the result of indexing, which is (indices, rest) in some order.
    shape = b.slice(b.op("Shape", found.places), 0, 0, -1)
    rest = b.sizes(found.rest) if found.rest else b.constant([])
    order = found.result_order()
    whole = b.op("Gather", b.op("Concat", shape, rest, axis=0), b.constant(order), axis=0)
    updates = b.transpose(b.op("Expand", b.cast(values, self.dtype), whole), _inverse(order))
    moved = b.transpose(self, found.order)
    put = b.op("ScatterND", moved, found.places, updates, reduction="add" if accumulate else None)
    return b.transpose(put, _inverse(found.order))


# ---- scattering


def _scattered(b: Builder, self: Value, dim: int, index: Value, source: Any, reduction: str | None) -> str:
    if self.rank == 0:
        b.refuse("its argument has no dimensions")
    if isinstance(source, Value):
        name = b.cast(source, self.dtype)
        if source.shape != index.shape:
            zeros = b.constant([0] * self.rank)
            name = b.op("Slice", name, zeros, b.sizes(index.shape), b.constant(list(range(self.rank))))
    else:
        name = b.expand(b.constant(source, self.dtype), index.shape)
    return b.op("ScatterElements", self, _places(b, index), name, axis=dim, reduction=reduction)


@rule("scatter")
def _scatter(b: Builder, self: Value, dim: int, index: Value, src: Any) -> str:
    return _scattered(b, self, dim, index, src, None)


@rule("scatter_add")
def _scatter_add(b: Builder, self: Value, dim: int, index: Value, src: Any) -> str:
    return _scattered(b, self, dim, index, src, "add")


@rule("scatter_reduce")
def _scatter_reduce(
    b: Builder, self: Value, dim: int, index: Value, src: Any, reduce: str, *, include_self: bool = True
) -> str:
    if reduce not in _REDUCTIONS or not include_self:
        b.refuse(f"reduce={reduce!r} with include_self={include_self}")
    return _scattered(b, self, dim, index, src, _REDUCTIONS[reduce])


def _of_slices(b: Builder, self: Value, dim: int, index: Value, source: str, reduction: str | None) -> str:
    """Return `self` with slices along a dimension replaced, or added to."""
    at = dim + self.rank if dim < 0 else dim
    order = [at, *(k for k in range(self.rank) if k != at)]
    places = b.unsqueeze(b.reshape(_places(b, index), [-1]), 1)
    put = b.op("ScatterND", b.transpose(self, order), places, b.transpose(source, order), reduction=reduction)
    return b.transpose(put, _inverse(order))


@rule("index_add")
def _index_add(b: Builder, self: Value, dim: int, index: Value, source: Value, *, alpha: Any = 1) -> str:
    name = b.cast(source, self.dtype)
    if alpha != 1:
        name = b.op("Mul", name, b.constant(alpha, self.dtype))
    return _of_slices(b, self, dim, index, name, "add")


@rule("index_copy")
def _index_copy(b: Builder, self: Value, dim: int, index: Value, source: Value) -> str:
    return _of_slices(b, self, dim, index, b.cast(source, self.dtype), None)


@rule("index_fill")
def _index_fill(b: Builder, self: Value, dim: int, index: Value, value: Any) -> str:
    at = dim + self.rank if dim < 0 else dim
    count = index.shape[0] if index.rank else 1
    sizes = [*self.shape[:at], count, *self.shape[at + 1 :]]
    return _of_slices(b, self, dim, index, b.expand(b.as_dtype(value, self.dtype), sizes), None)
