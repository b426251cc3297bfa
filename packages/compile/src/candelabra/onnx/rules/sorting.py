"""Rules of sorting."""

from __future__ import annotations

from ..builder import AnySize, Builder, Value
from .dtypes import computed_in
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
