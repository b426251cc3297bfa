"""Dtypes of the arguments of elementwise operators and reductions."""

from __future__ import annotations

from typing import Any

import candelabra

from ..builder import Builder, Value

#: ONNX Runtime computes few operators in these; `int32` has all of their numbers.
_SMALL = frozenset({candelabra.bool, candelabra.int8, candelabra.int16, candelabra.uint8, candelabra.uint16})


def computed_in(dtype: candelabra.dtype) -> candelabra.dtype:
    """Return the dtype in which arithmetic of a dtype is done."""
    return candelabra.int32 if dtype in _SMALL else dtype


def promoted(*arguments: Any) -> candelabra.dtype:
    """Return the dtype that values and numbers have together."""
    with_meta = [
        candelabra.empty((1,) * one.rank, dtype=one.dtype, device="meta") if isinstance(one, Value) else one
        for one in arguments
    ]
    if len(with_meta) == 1:
        return with_meta[0].dtype  # type: ignore[no-any-return]
    found = candelabra.result_type(*with_meta[:2])
    for one in with_meta[2:]:
        found = candelabra.promote_types(found, candelabra.result_type(with_meta[0], one))
    return found


def apply(b: Builder, kind: str, *arguments: Any, **attributes: Any) -> str:
    """Return an operator of arguments that are converted to the dtype of the result."""
    dtype = b.result.dtype
    inner = computed_in(dtype)
    result = b.op(kind, *(b.as_dtype(one, inner) for one in arguments), **attributes)
    return b.cast(result, dtype, inner)
