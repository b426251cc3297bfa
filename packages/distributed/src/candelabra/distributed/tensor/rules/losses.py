"""Classification losses."""

from __future__ import annotations

from typing import Any

from ...collectives.reductions import all_reduce
from ..placements import Replicate, Shard
from .table import Call, Labels, Row, rule

_NONE, _MEAN, _SUM = 0, 1, 2
_CODES = {"none": _NONE, "mean": _MEAN, "sum": _SUM}


def _reduction(call: Call) -> int:
    given = call.get("reduction", "mean")
    return _CODES[given] if isinstance(given, str) else given


def _forward(call: Call) -> list[Row]:
    """Return the rows: samples and places may be in parts, classes may not.

    The total weight is needed as a whole by the gradient: `_local_forward` sums it.
    """
    rank = len(call.layouts[0].shape)
    samples = [0, *range(2, rank)] if rank > 1 else []
    logits = [None if at == 1 or rank == 1 else at for at in range(rank)]
    inputs = [logits, samples, *[[None]] * (len(call.layouts) - 2)]
    by_sample = _reduction(call) == _NONE
    more = call.func.result_count - 2
    if more:
        statistics = list(call.on_whole()[2].shape)
        shape = call.layouts[0].shape
        matches = rank > 1 and statistics == [shape[at] for at in samples]
        if not matches:
            return Labels([[None] * len(each) for each in inputs], [[]] * (2 + more)).rows(call)
    rows = Labels(inputs, [samples if by_sample else [], samples, *[samples] * more],
                  dict.fromkeys(samples, "sum")).rows(call)  # fmt: skip
    return [Row((row.outputs[0], Replicate(), *row.outputs[2:]), row.inputs) for row in rows]


def _local_forward(call: Call, rows: list[Row], arguments: dict[str, Any], outs: Any) -> Any:
    """Sum the losses of the samples of this part, and divide by the weight of all."""
    split = [i for i, row in enumerate(rows) if isinstance(row.inputs[0], Shard)]
    if not split:
        return call.func(**arguments)
    reduction = _reduction(call)
    if reduction == _MEAN:
        arguments["reduction"] = "sum" if isinstance(arguments.get("reduction", "mean"), str) else _SUM
    output, total, *rest = call.func(**arguments)
    total = total.clone()
    for i in split:
        all_reduce(total, group=call.mesh.get_group(i))
    return (output / total if reduction == _MEAN else output, total, *rest)


def _backward(call: Call) -> Labels:
    rank = len(call.layouts[1].shape)
    samples = [0, *range(2, rank)] if rank > 1 else []
    logits = [None if at == 1 or rank == 1 else at for at in range(rank)]
    by_sample = _reduction(call) == _NONE
    inputs: list[Any] = [samples if by_sample else [], logits, samples]
    if call.name == "cross_entropy_backward":
        weights, statistics = len(call.layouts) - 5, call.layouts[-1].shape
        matches = rank > 1 and list(statistics) == [call.layouts[1].shape[at] for at in samples]
        inputs += [*[[None]] * weights, [], samples if matches else [None] * len(statistics)]
        if not matches:
            inputs = [[None] * len(each) for each in inputs]
            logits = inputs[1]
    else:
        inputs += [*[[None]] * (len(call.layouts) - 4), []]
    return Labels(inputs, [logits])


rule("nll_loss_forward cross_entropy_forward", rows=_forward, local=_local_forward)
rule("nll_loss_backward cross_entropy_backward", _backward)
