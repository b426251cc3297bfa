"""Operators that step many parameters: each list has a tensor for each parameter."""

from __future__ import annotations

from typing import Any

from candelabra import Tensor, ops

from ..layout import has_partial
from ..redistribution import redistribute
from .table import RULES, refuse, rule


def _stepped(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Step the local parts. Gradients and states are moved to where their parameters are.

    Parameters of different meshes may be stepped together, since no data moves between them.
    """
    owners = args[0]
    lists = [each for each in args if isinstance(each, (list, tuple))]
    if any(has_partial(each.placements) for each in owners if hasattr(each, "placements")):
        raise RuntimeError(f"{func.name}: a parameter with Partial placements cannot be stepped")
    made = []
    for each in args:
        if isinstance(each, (list, tuple)) and len(each) == len(owners):
            made.append(
                [_at(tensor, owner, lists[0] is each, func) for tensor, owner in zip(each, owners, strict=True)]
            )
        else:
            made.append(each)
    return func(*made, **kwargs)


def _at(tensor: Any, owner: Any, is_owner: bool, func: Any) -> Any:
    """Return the local part of a tensor, where its parameter is."""
    if not isinstance(tensor, Tensor) or not hasattr(owner, "placements"):
        return tensor
    if not hasattr(tensor, "placements"):
        if tensor.ndim == 0:
            return tensor
        raise RuntimeError(f"{func.name}: got mixed torch.Tensor and DTensor: a gradient or state of a DTensor is none")
    if is_owner or tensor.placements == owner.placements:
        return tensor._local_tensor
    return redistribute(tensor._local_tensor, tensor.shape, tensor.device_mesh, tensor.placements, owner.placements)


rule(sorted(name for name in dir(ops) if name.startswith("_fused_") and name.endswith("_") and name not in RULES),
     rows=refuse, whole=_stepped)  # fmt: skip
