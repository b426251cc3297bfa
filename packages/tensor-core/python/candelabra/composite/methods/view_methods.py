"""Views of other tensors that are made as a view of its own was."""

from __future__ import annotations

import candelabra
from candelabra import _C

from ..registration import function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

Tensor = _C.Tensor


def _viewed(self: Tensor, base: Tensor, new_base: Tensor) -> Tensor:
    offset = self.storage_offset()
    if self.dtype is base.dtype:
        return new_base.as_strided(
            self.shape, self.stride(), new_base.storage_offset() + offset - base.storage_offset()
        )
    if base.is_complex() and not self.is_complex():
        numbers = candelabra.view_as_real(new_base)
        return numbers.as_strided(
            self.shape, self.stride(), numbers.storage_offset() + offset - 2 * base.storage_offset()
        )
    if self.is_complex() and not base.is_complex():
        pairs = candelabra.view_as_complex(new_base)
        return pairs.as_strided(self.shape, self.stride(), pairs.storage_offset() + offset - base.storage_offset() // 2)
    return new_base.view(self.dtype)


@function(name="_view_func", package=False, aliases=("_view_func_unsafe",))
def view_func(
    self: Tensor,
    new_base: Tensor,
    symint_visitor_fn: Callable[[int], int] | None = None,
    tensor_visitor_fn: Callable[[Tensor], Any] | None = None,
) -> Tensor:
    """Return the view of another base that this tensor is of its own.

    Parameters
    ----------
    new_base : Tensor
        A tensor with the sizes, strides and dtype of the base.
    symint_visitor_fn, tensor_visitor_fn : callable, optional
        Not called: a view keeps neither symbolic sizes nor tensors.

    Raises
    ------
    RuntimeError
        If the tensor is no view, or the sizes, strides or dtypes of the bases differ.
    """
    base = self._base
    if base is None:
        raise RuntimeError("_view_func(): the tensor is no view of another")
    wanted, given = ((b.shape, b.stride(), b.dtype) for b in (base, new_base))
    if wanted != given:
        raise RuntimeError(f"_view_func(): expected a base of sizes, strides and dtype {wanted}, but got {given}")
    return _viewed(self, base, new_base)
