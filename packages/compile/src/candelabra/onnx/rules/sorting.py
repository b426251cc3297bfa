"""Rules of sorting."""

from __future__ import annotations

from ..builder import AnySize, Builder, Value
from .dtypes import computed_in, promoted
from .table import rule


def _top(b: Builder, self: Value, count: AnySize, dim: int, largest: bool, is_sorted: bool) -> list[str]:
    if self.rank == 0:
        return [b.name(self), b.constant(0)]
    inner = computed_in(self.dtype)
    values, places = b.several(
        "TopK", 2, b.cast(self, inner), b.size(count), axis=dim, largest=int(largest), sorted=int(is_sorted)
    )
    return [b.cast(values, self.dtype, inner), places]


@rule("sort")
def _sort(b: Builder, self: Value, dim: int = -1, descending: bool = False, stable: bool = False) -> list[str]:
    return _top(b, self, self.shape[dim] if self.rank else 1, dim, descending, True)


@rule("topk", sizes="k")
def _topk(b: Builder, self: Value, k: AnySize, dim: int = -1, largest: bool = True, sorted: bool = True) -> list[str]:
    return _top(b, self, k, dim, largest, sorted)


@rule("_searchsorted")
def _searchsorted(
    b: Builder, sorted_sequence: Value, values: Value, right: bool, out_int32: bool, sorter: Value | None
) -> str:
    """The number of elements of the sequence before each value."""
    if sorter is not None:
        b.refuse("it has a sorter")
    inner = computed_in(promoted(sorted_sequence, values))
    sequence = b.cast(sorted_sequence, inner)
    if sorted_sequence.rank > 1:
        sequence = b.unsqueeze(sequence, sorted_sequence.rank - 1)
    sought = b.unsqueeze(b.cast(values, inner), values.rank)
    is_before = b.op("LessOrEqual" if right else "Less", sequence, sought)
    return b.op("ReduceSum", b.cast(is_before, b.result.dtype), b.constant([-1]), keepdims=0)
