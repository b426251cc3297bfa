"""Rules of reductions and scans."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import candelabra

from ..builder import INT64, Builder, Value
from .dtypes import computed_in
from .table import rule

Dims = Sequence[int] | int | None


def _dims(dim: Dims) -> list[int]:
    return [] if dim is None else [dim] if isinstance(dim, int) else list(dim)


def _reduced(b: Builder, kind: str, value: Any, dim: Dims, keepdim: bool) -> str:
    """Return a reduction over some dimensions; over all if none are named."""
    dims = _dims(dim)
    return b.op(kind, value, b.constant(dims) if dims else None, keepdims=int(keepdim))


def _reduction(kind: str) -> Any:
    def function(b: Builder, self: Value, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> str:
        inner = computed_in(b.result.dtype)
        return b.cast(_reduced(b, kind, b.cast(self, inner), dim, keepdim), b.result.dtype, inner)

    return function


for _operator, _kind in {
    "amax": "ReduceMax", "amin": "ReduceMin", "logsumexp": "ReduceLogSumExp", "mean": "ReduceMean", "prod": "ReduceProd", "sum": "ReduceSum",
}.items():  # fmt: skip
    rule(_operator)(_reduction(_kind))


@rule("any")
def _any(b: Builder, self: Value, dim: Dims = None, keepdim: bool = False) -> str:
    return _of_truths(b, "ReduceMax", self, dim, keepdim)


@rule("all")
def _all(b: Builder, self: Value, dim: Dims = None, keepdim: bool = False) -> str:
    return _of_truths(b, "ReduceMin", self, dim, keepdim)


def _of_truths(b: Builder, kind: str, self: Value, dim: Dims, keepdim: bool) -> str:
    numbers = b.cast(b.cast(self, candelabra.bool), candelabra.int32, candelabra.bool)
    return b.cast(_reduced(b, kind, numbers, dim, keepdim), b.result.dtype, candelabra.int32)


@rule("count_nonzero")
def _count_nonzero(b: Builder, self: Value, dim: Dims = None) -> str:
    return _reduced(b, "ReduceSum", b.cast(b.cast(self, candelabra.bool), INT64, candelabra.bool), dim, False)


@rule("_aminmax")
def _aminmax(b: Builder, self: Value, dim: Dims = (), keepdim: bool = False) -> list[str]:
    inner = computed_in(self.dtype)
    found = (_reduced(b, kind, b.cast(self, inner), dim, keepdim) for kind in ("ReduceMin", "ReduceMax"))
    return [b.cast(one, self.dtype, inner) for one in found]


# ---- variance and norms


def _variance(b: Builder, self: Value, dim: Dims, correction: float | None, keepdim: bool) -> str:
    dims = _dims(dim) or list(range(self.rank))
    count = b.cast(b.number(b.times([self.shape[d] for d in dims])), self.dtype, INT64)
    difference = b.op("Sub", self, _reduced(b, "ReduceMean", self, dim, True))
    total = _reduced(b, "ReduceSumSquare", difference, dim, keepdim)
    return b.op("Div", total, b.op("Sub", count, b.constant(1 if correction is None else correction, self.dtype)))


@rule("var")
def _var(b: Builder, self: Value, dim: Dims = None, *, correction: float | None = None, keepdim: bool = False) -> str:
    return _variance(b, self, dim, correction, keepdim)


@rule("std")
def _std(b: Builder, self: Value, dim: Dims = None, *, correction: float | None = None, keepdim: bool = False) -> str:
    return b.op("Sqrt", _variance(b, self, dim, correction, keepdim))


@rule("linalg_vector_norm")
def _linalg_vector_norm(
    b: Builder, self: Value, ord: float = 2, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None
) -> str:
    x = b.cast(self, b.result.dtype)
    if ord in (1, 2):
        return _reduced(b, "ReduceL1" if ord == 1 else "ReduceL2", x, dim, keepdim)
    size = b.op("Abs", x)
    if math.isinf(ord):
        return _reduced(b, "ReduceMax" if ord > 0 else "ReduceMin", size, dim, keepdim)
    if ord == 0:
        return _reduced(b, "ReduceSum", b.op("Sign", size), dim, keepdim)
    total = _reduced(b, "ReduceSum", b.op("Pow", size, b.constant(ord, b.result.dtype)), dim, keepdim)
    return b.op("Pow", total, b.constant(1 / ord, b.result.dtype))


# ---- positions


def _position(b: Builder, kind: str, self: Value, dim: int | None, keepdim: bool) -> str:
    value: Any = b.cast(self, computed_in(self.dtype))
    if dim is None or self.rank == 0:
        found = b.op(kind, b.reshape(value, [-1]), axis=0, keepdims=0)
        return b.reshape(found, [1] * self.rank) if keepdim else found
    return b.op(kind, value, axis=dim, keepdims=int(keepdim))


@rule("argmax")
def _argmax(b: Builder, self: Value, dim: int | None = None, keepdim: bool = False) -> str:
    return _position(b, "ArgMax", self, dim, keepdim)


@rule("argmin")
def _argmin(b: Builder, self: Value, dim: int | None = None, keepdim: bool = False) -> str:
    return _position(b, "ArgMin", self, dim, keepdim)


def _with_indices(b: Builder, which: str, self: Value, dim: int, keepdim: bool) -> list[str]:
    inner = computed_in(self.dtype)
    if self.rank == 0:
        return [b.name(self), b.constant(0)]
    extreme = b.cast(_reduced(b, f"Reduce{which}", b.cast(self, inner), dim, keepdim), self.dtype, inner)
    return [extreme, _position(b, f"Arg{which}", self, dim, keepdim)]


@rule("max_with_indices")
def _max_with_indices(b: Builder, self: Value, dim: int, keepdim: bool = False) -> list[str]:
    return _with_indices(b, "Max", self, dim, keepdim)


@rule("min_with_indices")
def _min_with_indices(b: Builder, self: Value, dim: int, keepdim: bool = False) -> list[str]:
    return _with_indices(b, "Min", self, dim, keepdim)


@rule("cumsum")
def _cumsum(b: Builder, self: Value, dim: int, *, dtype: Any = None) -> str:
    x = b.cast(self, b.result.dtype)
    return b.op("CumSum", x, b.constant(dim)) if self.rank else x
