"""Batch normalisation: the statistics are those of the whole batch.

Channels can be in parts as they are. Where samples are in parts, the ranks add what they have of
each channel.
"""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Tensor

from ...collectives.reductions import all_reduce
from ..layout import Layout
from ..placements import Partial, Placement, Replicate, Shard
from .table import Call, Row, call_with, rule

#: Arguments with one value for each channel.
_BY_CHANNEL = ("weight", "bias", "running_mean", "running_var", "mean", "rstd")
_UPDATED = ("running_mean", "running_var")


def _names(call: Call) -> list[str]:
    """Return the names of the arguments that are tensors, in order."""
    return [name for name in call.func.parameters if isinstance(call.arguments.get(name), Layout)]


def _rows(call: Call, outputs: int) -> list[Row]:
    """Return the rows: nothing in parts, channels, or any other dimension.

    Outputs with a value for each channel are whole where samples are in parts: `_forward` and
    `_backward` add them up.
    """
    names = _names(call)
    rank = len(call.get("input").shape)

    def row(whole: Placement, by_channel: Placement) -> Row:
        ins = tuple(by_channel if name in _BY_CHANNEL else whole for name in names)
        return Row((whole, *[by_channel] * (outputs - 1)), ins)

    made = [row(Replicate(), Replicate()), row(Shard(1), Shard(0))]
    made += [row(Shard(dim), Replicate()) for dim in range(rank) if dim != 1]
    # Running statistics are updated in place, and so used where they are.
    kept = [
        each
        for each in made
        if all(each.inputs[k] == call.placed(k) for k, name in enumerate(names) if name in _UPDATED)
    ]
    if not kept or any(isinstance(call.placed(k), Partial) for k, name in enumerate(names) if name in _UPDATED):
        raise RuntimeError(
            "native_batch_norm: running statistics must be replicated or sharded along the channels, and both alike"
        )
    return kept


def _split(call: Call, rows: list[Row]) -> list[int]:
    """Return the dimensions of the mesh along which samples are in parts."""
    at = _names(call).index("input")
    return [i for i, row in enumerate(rows) if isinstance(row.inputs[at], Shard) and not row.inputs[at].is_shard(1)]


def _sums(call: Call, split: list[int], *values: Tensor) -> list[Tensor]:
    """Return the sums over samples of values with channels in dimension 1."""
    dims = [dim for dim in range(values[0].ndim) if dim != 1]
    made = candelabra.stack([value.sum(dims) for value in values])
    for i in split:
        all_reduce(made, group=call.mesh.get_group(i))
    return list(made.unbind(0))


def _count(call: Call) -> int:
    """Return the number of values of a channel of the whole batch."""
    count = 1
    for dim, size in enumerate(call.get("input").shape):
        count *= size if dim != 1 else 1
    return count


def _shaped(value: Tensor, like: Tensor) -> Tensor:
    return value.view(1, -1, *[1] * (like.ndim - 2))


def _forward(call: Call, rows: list[Row], arguments: dict[str, Any], outs: Any) -> Any:
    split = _split(call, rows)
    if not split or not call.get("training"):
        return call_with(call.func, arguments)
    given = arguments["input"]
    x = given.float() if given.dtype in (candelabra.float16, candelabra.bfloat16) else given
    count = _count(call)
    mean = _sums(call, split, x)[0] / count
    centered = x - _shaped(mean, x)
    variance = _sums(call, split, centered * centered)[0] / count
    rstd = (variance + arguments["eps"]).rsqrt()
    made = centered * _shaped(rstd, x)
    for name, combine in (("weight", candelabra.mul), ("bias", candelabra.add)):
        if arguments.get(name) is not None:
            made = combine(made, _shaped(arguments[name].to(x.dtype), x))
    momentum = arguments["momentum"]
    for name, value in (("running_mean", mean), ("running_var", variance * (count / max(count - 1, 1)))):
        running = arguments.get(name)
        if running is not None:
            running.mul_(1 - momentum).add_(value.to(running.dtype), alpha=momentum)
    return made.to(given.dtype), mean.to(outs[1].dtype), rstd.to(outs[2].dtype)


def _backward(call: Call, rows: list[Row], arguments: dict[str, Any], outs: Any) -> Any:
    split = _split(call, rows)
    if not split:
        return call_with(call.func, arguments)
    given = arguments["input"]
    is_half = given.dtype in (candelabra.float16, candelabra.bfloat16)
    x, grad = (each.float() if is_half else each for each in (given, arguments["grad"]))
    mean, rstd = (_shaped(arguments[name].to(x.dtype), x) for name in ("mean", "rstd"))
    normalized = (x - mean) * rstd
    of_weight, of_bias = _sums(call, split, grad * normalized, grad)
    scale = rstd if arguments.get("weight") is None else rstd * _shaped(arguments["weight"].to(x.dtype), x)
    made = grad
    if call.get("training"):
        count = _count(call)
        made = grad - _shaped(of_bias / count, x) - normalized * _shaped(of_weight / count, x)
    by_channel = of_weight.to(outs[1].dtype), of_bias.to(outs[2].dtype)
    if arguments.get("weight") is None:
        by_channel = of_weight.new_empty(0), of_bias.new_empty(0)  # as the operator returns
    return (made * scale).to(given.dtype), *by_channel


rule("native_batch_norm", rows=lambda call: _rows(call, 3), local=_forward)
rule("native_batch_norm_backward", rows=lambda call: _rows(call, 3), local=_backward)
