"""Tensors inside of a transformation of functions (``candelabra.func``) may stand for more than
their memory shows.

Composites that look at values, to refuse some or to choose their way, ask here, and so do the right
thing for all entries of a batch.
"""

from __future__ import annotations

from candelabra import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from candelabra import Tensor


def all_values(tensor: Tensor) -> Tensor:
    """Give all values that a tensor stands for: itself, but inside of vmap what has all entries of
    the batch.
    """
    return tensor if type(tensor) is _C.Tensor else getattr(tensor, "_all_values", tensor)


def is_differentiated(tensor: Tensor) -> bool:
    """Return whether the derivative of what is computed from a tensor is wanted, in whatever mode."""
    return tensor.requires_grad or (type(tensor) is not _C.Tensor and getattr(tensor, "_is_differentiated", False))


def is_differentiated_outside(tensor: Tensor) -> bool:
    """Return whether a transformation further out wants the derivative, whether or not the tape
    records here.
    """
    return type(tensor) is not _C.Tensor and getattr(tensor, "_is_differentiated", False)
