"""Tensors inside of a transformation of functions (``candelabra.func``) may stand for more values
than their memory holds.

Composites that check values or branch on them use this module, so that they consider all entries of
a batch.
"""

from __future__ import annotations

from candelabra import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from candelabra import Tensor


def all_values(tensor: Tensor) -> Tensor:
    """Return all values that a tensor stands for: within vmap a tensor with all entries of the
    batch, else the tensor itself.
    """
    return tensor if type(tensor) is _C.Tensor else getattr(tensor, "_all_values", tensor)


def any_holds(condition: Tensor) -> bool:
    """Return whether a condition holds for any value. False for a tensor on the device ``meta``,
    whose values nothing can be said about.
    """
    return not condition.is_meta and bool(all_values(condition).any())


def is_differentiated(tensor: Tensor) -> bool:
    """Return whether a derivative with respect to a tensor is required, in any mode."""
    return tensor.requires_grad or (type(tensor) is not _C.Tensor and getattr(tensor, "_is_differentiated", False))


def is_differentiated_outside(tensor: Tensor) -> bool:
    """Return whether an outer transform requires the derivative, whether or not autograd records
    here.
    """
    return type(tensor) is not _C.Tensor and getattr(tensor, "_is_differentiated", False)
