"""Private functions of ``torch`` that programs and PyTorch's own tests call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import candelabra
import candelabra.amp
from candelabra.amp.unscaling import _amp_foreach_non_finite_check_and_unscale_, _amp_update_scale_

__all__ = [
    "_amp_foreach_non_finite_check_and_unscale_",
    "_amp_update_scale_",
    "_assert_async",
    "_assert_tensor_metadata",
    "_debug_has_internal_overlap",
    "_disable_dynamo",
    "_is_functional_tensor",
    "_segment_reduce",
]


def _assert_async(input: candelabra.Tensor, assert_msg: str | None = None) -> None:
    """Raise RuntimeError if the one element of a tensor is zero; accelerators are waited for."""
    if input.numel() != 1:
        many = "more than one value" if input.numel() else "no values"
        raise RuntimeError(f"Boolean value of Tensor with {many} is ambiguous")
    if not bool(input):
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


def _debug_has_internal_overlap(self: candelabra.Tensor) -> int:
    """Return 0 if no two elements of a tensor have one address, 1 if some have, and 2 where strides
    do not tell at once.
    """
    expected = 1
    for size, stride in sorted(zip(self.shape, self.stride(), strict=True), key=lambda entry: entry[1]):
        if size == 1:
            continue
        if stride != expected:
            break
        expected *= size
    else:
        return 0
    return 1 if any(size > 1 and not stride for size, stride in zip(self.shape, self.stride(), strict=True)) else 2


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
    from ..compilers.compiler import disable

    return disable(fn, recursive)


def _is_functional_tensor(t: candelabra.Tensor) -> bool:
    """Return False: programs are not made functional by wrapping their tensors."""
    return False


def _segment_reduce(data: candelabra.Tensor, reduce: str, **options: Any) -> candelabra.Tensor:
    """Reduce segments of a dimension, as :func:`candelabra.segment_reduce` does."""
    return candelabra.segment_reduce(data, reduce, **options)
