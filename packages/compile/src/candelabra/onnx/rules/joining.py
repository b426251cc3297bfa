"""Rules of joining tensors."""

from __future__ import annotations

from collections.abc import Sequence

from ..builder import Builder, Value
from .table import rule


@rule("cat")
def _cat(b: Builder, tensors: Sequence[Value], dim: int = 0) -> str:
    # Tensors of shape (0,) go with any others.
    parts = [one for one in tensors if one.shape != (0,)] or list(tensors[:1])
    names = [b.cast(one, b.result.dtype) for one in parts]
    return names[0] if len(names) == 1 else b.op("Concat", *names, axis=dim)


@rule("stack")
def _stack(b: Builder, tensors: Sequence[Value], dim: int = 0) -> str:
    at = dim + tensors[0].rank + 1 if dim < 0 else dim
    names = [b.unsqueeze(b.cast(one, b.result.dtype), at) for one in tensors]
    return names[0] if len(names) == 1 else b.op("Concat", *names, axis=at)
