"""The ends of the tape: leaves take their gradients."""

from __future__ import annotations

from sys import getrefcount
from typing import TYPE_CHECKING, Any

import candelabra

if TYPE_CHECKING:
    from candelabra import Tensor

    from .assembly import PartNode

# References that a gradient has inside take_gradient when nobody outside of the engine holds it:
# the caller's variable, the parameter, and getrefcount's own argument.
HELD_BY_ENGINE = 3


def take_gradient(leaf: Tensor, grad: Tensor, create_graph: bool, held: int) -> None:
    """Add a gradient to ``leaf.grad``; the first one becomes it, without a copy where nobody else
    can see it.

    Parameters
    ----------
    leaf, grad
        The tensor, and what arrived there.
    create_graph
        Whether the gradient itself is on the tape: then nothing is done in place.
    held
        References to `grad` that the engine itself accounts for; 0 to always copy.
    """
    old = leaf._grad
    if old is not None:
        if create_graph or old.requires_grad:
            leaf.grad = old + grad
        else:
            old.add_(grad)
    elif create_graph:
        leaf.grad = grad.clone()
    elif getrefcount(grad) <= held and grad._is_exclusive(leaf):
        leaf.grad = grad
    else:
        own = (
            candelabra.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device=leaf.device)
            if _is_dense(leaf)
            else None
        )
        leaf.grad = grad.clone(memory_format=candelabra.contiguous_format) if own is None else own.copy_(grad)


def take_part(leaf: Tensor, node: PartNode, part: Tensor, create_graph: bool) -> None:
    """Add a gradient of the part of a leaf that a view shows to ``leaf.grad``."""
    old = leaf._grad
    if old is None or create_graph or old.requires_grad:
        whole = node.place(part)
        take_gradient(leaf, whole, create_graph, HELD_BY_ENGINE)
    else:
        node.look(old).add_(part)


def _is_dense(tensor: Tensor) -> bool:
    """Whether the elements fill a block of memory without gaps and overlaps, in any order of
    dimensions.
    """
    expected = 1
    for stride, size in sorted(
        (stride, size) for stride, size in zip(tensor.stride(), tensor.shape, strict=True) if size != 1
    ):
        if stride != expected:
            return False
        expected *= size
    return True


def call_accumulated_hooks(leaf: Tensor, of_leaf: Any) -> None:
    """Call the hooks of a leaf that took its gradient."""
    for hook in tuple(of_leaf.accumulated.values()):
        if hook(leaf) is not None:
            raise RuntimeError("Tensor post accumulate grad hooks should return None.")
