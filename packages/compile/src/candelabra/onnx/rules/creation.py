"""Rules of making tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import candelabra
import candelabra.export
from candelabra.export.interface import Size

from ..builder import INT64, Builder, Value
from .table import rule

Sizes = Sequence[int | Size]


def _filled(b: Builder, size: Sizes, value: Any) -> str:
    return b.expand(b.as_dtype(value, b.result.dtype), size)


@rule("zeros", "empty", "allocate", sizes="size")
def _zeros(b: Builder, size: Sizes, *, dtype: Any = None) -> str:
    return _filled(b, size, 0)


@rule("empty_strided", sizes="size stride")
def _empty_strided(b: Builder, size: Sizes, stride: Sizes, *, dtype: Any = None) -> str:
    return _filled(b, size, 0)


@rule("ones", sizes="size")
def _ones(b: Builder, size: Sizes, *, dtype: Any = None) -> str:
    return _filled(b, size, 1)


@rule("full", sizes="size fill_value")
def _full(b: Builder, size: Sizes, fill_value: Any, *, dtype: Any = None) -> str:
    return _filled(b, size, fill_value)


@rule("zeros_like", "empty_like")
def _zeros_like(b: Builder, self: Value, *, dtype: Any = None) -> str:
    return _filled(b, self.shape, 0)


@rule("ones_like")
def _ones_like(b: Builder, self: Value, *, dtype: Any = None) -> str:
    return _filled(b, self.shape, 1)


@rule("full_like", sizes="fill_value")
def _full_like(b: Builder, self: Value, fill_value: Any, *, dtype: Any = None) -> str:
    return _filled(b, self.shape, fill_value)


@rule("arange", sizes="start end step")
def _arange(b: Builder, start: Any, end: Any = math.nan, step: Any = 1, *, dtype: Any = None) -> str:
    if isinstance(end, float) and math.isnan(end):
        start, end = 0, start
    is_float = b.result.dtype.is_floating_point or any(isinstance(one, float) for one in (start, end, step))
    inner = candelabra.float32 if is_float else INT64
    limits = [b.as_dtype(one, inner) for one in (start, end, step)]
    return b.cast(b.op("Range", *limits), b.result.dtype, inner)
