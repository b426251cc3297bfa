"""Whole and sharded tensors in nested states: gathered, offloaded, broadcast and set in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import candelabra
from candelabra import Tensor

from ...collectives.objects import broadcast_object_list
from ...collectives.reductions import broadcast
from ...groups import is_initialized, world
from ..flattening import is_tensor
from ..regions import intersection, narrowed
from ..sharded import Sharded
from .options import StateDictOptions


@dataclass(frozen=True)
class _Hole:
    """Stands for a tensor that rank 0 sends."""

    shape: tuple[int, ...]
    dtype: candelabra.dtype


def mapped(value: Any, function: Callable[[tuple[Any, ...], Any], Any], path: tuple[Any, ...] = ()) -> Any:
    """Return a copy of nested dicts, lists and tuples, each value replaced by ``function(path,
    value)``.
    """
    if isinstance(value, Mapping):
        return {key: mapped(item, function, (*path, key)) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(mapped(item, function, (*path, at)) for at, item in enumerate(value))
    return function(path, value)


def taken(state: dict[str, Any], options: StateDictOptions) -> dict[str, Any]:
    """Return a state as the options want it: whole, on the host, or only on rank 0."""
    if not options.full_state_dict and not options.cpu_offload:
        return state
    is_kept = not (options.full_state_dict and options.cpu_offload and is_initialized() and world().rank())

    def take(path: tuple[Any, ...], value: Any) -> Any:
        if not is_tensor(value):
            return value
        if options.full_state_dict and isinstance(value, Sharded):
            value = value.full_tensor()  # type: ignore[attr-defined]
        # One tensor after another, so that a rank that keeps none holds one at most.
        return (value.detach().cpu() if options.cpu_offload else value) if is_kept else None

    found = mapped(state, take)
    return found if is_kept else {}


def received(state: dict[str, Any], consume: Callable[[tuple[Any, ...], Any], Any]) -> dict[str, Any]:
    """Return the state of rank 0 with ``consume(path, value)`` for each value, tensor by tensor."""
    is_source = world().rank() == 0
    where = world().host_or_only_device()
    tensors: list[Tensor] = []

    def hole(path: tuple[Any, ...], value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        tensors.append(value.detach())
        return _Hole(tuple(value.shape), value.dtype)

    skeleton = [mapped(state, hole) if is_source else None]
    broadcast_object_list(skeleton, src=0)
    waiting = iter(tensors)

    def fill(path: tuple[Any, ...], value: Any) -> Any:
        if not isinstance(value, _Hole):
            return consume(path, value)
        if is_source:
            tensor = next(waiting).to(where).contiguous()
        else:
            tensor = candelabra.empty(value.shape, dtype=value.dtype, device=where)
        broadcast(tensor, src=0)
        return consume(path, tensor)

    result: dict[str, Any] = mapped(skeleton[0], fill)
    return result


def set_in_place(target: Sharded, value: Any, name: str) -> None:
    """Copy a tensor, whole or sharded, into the parts of a sharded tensor that this rank has.

    Raises
    ------
    RuntimeError
        The shapes differ, or the value lacks elements that this rank has.
    """
    wanted = target.__sharded__()
    if isinstance(value, Sharded):
        given = value.__sharded__()
        shape, pieces = given.shape, given.pieces
    else:
        shape, pieces = value.shape, [([0] * value.dim(), value.detach())]
    if list(shape) != list(wanted.shape):
        raise RuntimeError(f"size mismatch for {name}: {list(shape)} is given, and {list(wanted.shape)} is expected")
    for offsets, local in wanted.pieces:
        there = 0
        for other_offsets, other in pieces:
            common = intersection(offsets, local.shape, other_offsets, other.shape)
            if common is None:
                continue
            start, sizes = common
            source = narrowed(other, [a - b for a, b in zip(start, other_offsets, strict=True)], sizes)
            place = narrowed(local.detach(), [a - b for a, b in zip(start, offsets, strict=True)], sizes)
            place.copy_(source)
            there += source.numel()
        if there < local.numel():
            raise RuntimeError(f"{name}: {local.numel() - there} elements that this rank holds are not given")
