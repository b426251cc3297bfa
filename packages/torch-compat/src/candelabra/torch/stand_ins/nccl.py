"""``torch.cuda.nccl``: collective operations on tensors of several devices of this process, with
copies between them. `candelabra.communication` has those of several processes.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

import candelabra
from candelabra import Tensor

__all__ = ["SUM", "all_gather", "all_reduce", "broadcast", "reduce", "reduce_scatter"]

SUM = 0
#: By NCCL's numbers of operations: sum, product, maximum, minimum.
_OPERATIONS: dict[int, Callable[[Tensor, Tensor], Tensor]] = {
    0: candelabra.add, 1: candelabra.mul, 2: candelabra.maximum, 3: candelabra.minimum,
}  # fmt: skip


def _check(*collections: Any) -> None:
    if any(not isinstance(tensors, Container) or isinstance(tensors, Tensor) for tensors in collections):
        raise TypeError("Inputs should be a collection of tensors")


def _reduced(inputs: Sequence[Tensor], op: int, device: Any) -> Tensor:
    if op not in _OPERATIONS:
        raise ValueError(f"op={op} is not one of {sorted(_OPERATIONS)}: sum, product, maximum, minimum")
    result, *others = (tensor.to(device) for tensor in inputs)
    for other in others:
        result = _OPERATIONS[op](result, other)
    return result


def all_reduce(
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor] | None = None,
    op: int = SUM,
    streams: Any = None,
    comms: Any = None,
) -> None:
    """Combine the inputs, and write the result to every output; to the inputs by default."""
    outputs = inputs if outputs is None else outputs
    _check(inputs, outputs)
    result = _reduced(inputs, op, inputs[0].device)
    for output in outputs:
        output.copy_(result)


def reduce(
    inputs: Sequence[Tensor],
    output: Tensor | None = None,
    root: int = 0,
    op: int = SUM,
    streams: Any = None,
    comms: Any = None,
) -> None:
    """Combine the inputs, and write the result to `output`; to the input `root` by default."""
    _check(inputs)
    target = inputs[root] if output is None else output
    target.copy_(_reduced(inputs, op, target.device))


def broadcast(inputs: Sequence[Tensor], root: int = 0, streams: Any = None, comms: Any = None) -> None:
    """Copy one of the tensors to the others."""
    _check(inputs)
    for number, tensor in enumerate(inputs):
        if number != root:
            tensor.copy_(inputs[root])


def all_gather(inputs: Sequence[Tensor], outputs: Sequence[Tensor], streams: Any = None, comms: Any = None) -> None:
    """Write all inputs, one after the other, to every output."""
    _check(inputs, outputs)
    for output in outputs:
        parts = output.view(-1).chunk(len(inputs))
        for part, tensor in zip(parts, inputs, strict=True):
            part.copy_(tensor.reshape(-1))


def reduce_scatter(
    inputs: Sequence[Tensor], outputs: Sequence[Tensor], op: int = SUM, streams: Any = None, comms: Any = None
) -> None:
    """Combine the inputs, and write one part of the result to each output."""
    _check(inputs, outputs)
    result = _reduced(inputs, op, inputs[0].device).reshape(-1)
    for output, part in zip(outputs, result.chunk(len(outputs)), strict=True):
        output.view(-1).copy_(part)
