"""Operators with random numbers: a distributed tensor gets those of the same call on the whole
one.
"""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Tensor, ops

from ...collectives.reductions import broadcast
from ...device_mesh import DeviceMesh
from ..layout import Layout, local_part
from ..placements import Replicate, Shard
from .table import Call, Row, rule


def same_generator(mesh: DeviceMesh, generator: Any, device: Any) -> None:
    """Give all ranks of a mesh the generator's state of its first rank."""
    chosen = generator
    if chosen is None:
        chosen = candelabra.default_generator
        if device.type != "cpu":
            chosen = getattr(candelabra, device.type).default_generators[device.index or 0]
    state = chosen.get_state().to(device)
    for mesh_dim in reversed(range(mesh.ndim)):
        broadcast(state, group=mesh.get_group(mesh_dim), group_src=0)
    chosen.set_state(state.cpu())


def _drawn(call: Call, arguments: dict[str, Any], like: Tensor, layout: Layout) -> Tensor:
    """Return this rank's part of the random numbers of a whole tensor."""
    same_generator(call.mesh, arguments.get("generator"), like.device)
    whole = candelabra.empty(layout.shape, dtype=like.dtype, device=like.device)
    options = {key: value for key, value in arguments.items() if key != "self"}
    positional = [options.pop(name) for name in call.func.parameters if name in options]
    return local_part(call.func(whole, *positional, **options), call.mesh, layout.placements)


def _filled(call: Call, rows: list[Row], arguments: dict[str, Any], outs: Any) -> Any:
    own = arguments["self"]
    return own.copy_(_drawn(call, arguments, own, outs[0]))


def _dropout(call: Call, rows: list[Row], arguments: dict[str, Any], outs: Any) -> Any:
    """Drop the elements that dropout of the whole tensor drops."""
    own, p = arguments["input"], arguments["p"]
    same_generator(call.mesh, None, own.device)
    ones = candelabra.ones(call.layouts[0].shape, dtype=own.dtype, device=own.device)
    kept, mask = (local_part(each, call.mesh, outs[0].placements) for each in ops.native_dropout(ones, p))
    # A value that is not finite must become zero where it is dropped, as in the operator.
    return candelabra.where(mask.to(candelabra.bool), own * kept, 0), mask.contiguous()


def _where_it_is(call: Call) -> list[Row]:
    place = call.placed(0)
    place = place if isinstance(place, Shard) else Replicate()
    return [Row((place,) * call.func.result_count, (place,))]


rule("uniform_ normal_ exponential_ random_range_ bernoulli_", rows=_where_it_is, local=_filled)
rule("native_dropout", rows=_where_it_is, local=_dropout)
