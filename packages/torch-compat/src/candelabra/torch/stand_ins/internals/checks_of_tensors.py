"""Private functions of ``torch`` that programs and PyTorch's own tests call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import candelabra

__all__ = ["_assert_tensor_metadata", "_disable_dynamo", "_is_functional_tensor", "_segment_reduce"]


def _assert_tensor_metadata(
    a: candelabra.Tensor,
    size: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
    dtype: candelabra.dtype | None = None,
    *,
    device: Any = None,
    layout: candelabra.layout | None = None,
) -> None:
    """Raise RuntimeError if sizes, strides, dtype, device or layout of a tensor differ."""
    for what, expected, found in (
        ("sizes", None if size is None else list(size), list(a.shape)),
        ("strides", None if stride is None else list(stride), list(a.stride())),
        ("dtype", dtype, a.dtype),
        ("device", None if device is None else candelabra.device(device), a.device),
        ("layout", layout, a.layout),
    ):
        if expected is not None and expected != found:
            raise RuntimeError(f"Tensor {what} mismatch! Expected: {expected}, Got: {found}")


def _disable_dynamo(fn: Callable[..., Any] | None = None, recursive: bool = True) -> Any:
    """Return a function that `torch.compile` does not compile; without arguments, a decorator."""
    from ..compiler import disable

    return disable(fn, recursive)


def _is_functional_tensor(t: candelabra.Tensor) -> bool:
    """Return False: programs are not made functional by wrapping their tensors."""
    return False


def _segment_reduce(data: candelabra.Tensor, reduce: str, **options: Any) -> candelabra.Tensor:
    """Reduce segments of a dimension, as :func:`candelabra.segment_reduce` does."""
    return candelabra.segment_reduce(data, reduce, **options)
