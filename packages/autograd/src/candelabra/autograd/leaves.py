"""Gradient accumulation into leaves."""

from __future__ import annotations

from sys import getrefcount
from typing import TYPE_CHECKING, Any

import candelabra

if TYPE_CHECKING:
    from candelabra import Tensor

    from .assembly import PartNode

# Reference count of a gradient inside take_gradient when only the engine holds it: the caller's
# variable, the parameter, and getrefcount's own argument.
HELD_BY_ENGINE = 3

_Tensor = candelabra.Tensor
_PLAIN = candelabra._C._disabled_torch_dispatch_impl


def take_gradient(leaf: Tensor, grad: Tensor, create_graph: bool, held: int) -> None:
    """Accumulate a gradient into ``leaf.grad``.

    The first gradient is stored without a copy if nobody else can see it.

    Parameters
    ----------
    leaf, grad
        The leaf and the gradient that arrived there.
    create_graph
        Whether gradients are recorded; then nothing is changed in place.
    held
        Number of references to `grad` held by the engine; 0 to always copy.
    """
    old = leaf._grad
    if old is not None:
        if create_graph or old.requires_grad:
            leaf.grad = old + grad
        else:
            old.add_(grad)
    elif create_graph:
        leaf.grad = grad.clone()
    elif grad.__class__ is not _Tensor and computes_operators(grad):
        leaf.grad = grad.clone()  # the tensors that it wraps may be shared
    elif getrefcount(grad) <= held and grad._is_exclusive(leaf):
        # As no view of another tensor, so that it can be detached in place.
        leaf.grad = grad if grad._base is None else grad.detach()
    else:
        own = (
            candelabra.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device=leaf.device)
            if _is_dense(leaf)
            else None
        )
        leaf.grad = grad.clone(memory_format=candelabra.contiguous_format) if own is None else own.copy_(grad)


def take_part(leaf: Tensor, node: PartNode, part: Tensor, create_graph: bool) -> None:
    """Accumulate the gradient of a partial view into ``leaf.grad``."""
    old = leaf._grad
    if old is None or create_graph or old.requires_grad:
        whole = node.place(part)
        take_gradient(leaf, whole, create_graph, HELD_BY_ENGINE)
    else:
        node.look(old).add_(part)


def computes_operators(tensor: Tensor) -> bool:
    """Return whether a tensor is of a class that computes operators, by ``__torch_dispatch__``."""
    kind = tensor.__class__
    return kind is not _Tensor and getattr(kind, "__torch_dispatch__", _PLAIN) is not _PLAIN


def zeros_for(grad: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return zeros of a given shape, of the dtype, device and class of a gradient.

    A class that computes operators makes them itself, by its method ``new_zeros``.
    """
    if computes_operators(grad):
        return grad.new_zeros(shape)
    return candelabra.zeros(shape, dtype=grad.dtype, device=grad.device)


def _is_dense(tensor: Tensor) -> bool:
    """Return whether the elements fill a memory block without gaps or overlaps, in any order."""
    expected = 1
    for stride, size in sorted(
        (stride, size) for stride, size in zip(tensor.stride(), tensor.shape, strict=True) if size != 1
    ):
        if stride != expected:
            return False
        expected *= size
    return True


def call_accumulated_hooks(leaf: Tensor, of_leaf: Any) -> None:
    """Call the post-accumulate hooks of a leaf, and then its slots."""
    for hook in tuple(of_leaf.accumulated.values()):
        if hook(leaf) is not None:
            raise RuntimeError("Tensor post accumulate grad hooks should return None.")
    for slot in of_leaf.slots:
        slot.arrive()
