"""Collectives over lists of tensors, one for each GPU of this process, under the names of PyTorch's
module ``torch.cuda.nccl``.

They are done by copies between the devices. NCCL itself works between processes:
`candelabra.communication.Communicator`.
"""

from __future__ import annotations

from candelabra import communication

from .devices import TYPE, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from candelabra._C import Tensor

__all__ = [
    "all_gather",
    "all_reduce",
    "broadcast",
    "init_rank",
    "is_available",
    "reduce",
    "reduce_scatter",
    "unique_id",
    "version",
]

#: The reductions, as NCCL counts them.
SUM = 0
_REDUCTIONS = {0: "add_", 1: "mul_", 2: "maximum", 3: "minimum", 4: "add_"}
_MEAN = 4


def is_available(tensors: Sequence[Tensor]) -> bool:
    """Tell whether the tensors can take part: contiguous, each on a GPU of its own."""
    devices = [each.device for each in tensors]
    return all(each.is_cuda and each.is_contiguous() for each in tensors) and len(set(devices)) == len(devices)


def version() -> tuple[int, int, int]:
    """Return the version of NCCL, for instance ``(2, 27, 3)``.

    Raises
    ------
    BackendError
        When there is no GPU.
    RuntimeError
        When the library is not installed.
    """
    _, number = communication.version(TYPE)
    return number // 10000, number // 100 % 100, number % 100


def unique_id() -> bytes:
    """Return what the ranks of a communicator find each other by; see
    `candelabra.communication.unique_id`.
    """
    return communication.unique_id(TYPE)


def init_rank(num_ranks: int, uid: bytes, rank: int) -> communication.Communicator:
    """Return the communicator of a rank on the current GPU; waits for the others."""
    return communication.Communicator(resolve(), uid, rank, num_ranks)


def _checked(*lists: Any) -> None:
    for tensors in lists:
        if not isinstance(tensors, (list, tuple)):
            raise TypeError("Inputs should be a collection of tensors")
        if not is_available(tensors):
            raise ValueError("tensors must be contiguous, and each on a GPU of its own")
    if len({len(tensors) for tensors in lists}) > 1:
        raise ValueError("there must be as many inputs as outputs")


def _reduced(inputs: Sequence[Tensor], where: Any, op: int) -> Tensor:
    if op not in _REDUCTIONS:
        raise ValueError(f"op must be 0 (sum), 1 (product), 2 (max), 3 (min) or 4 (mean), but is {op}")
    if len({(each.shape, each.dtype) for each in inputs}) > 1:
        raise ValueError("tensors must have one size and one dtype")
    result = inputs[0].to(where, copy=True)
    for each in inputs[1:]:
        result = getattr(result, _REDUCTIONS[op])(each.to(where))
    return result / len(inputs) if op == _MEAN else result


def all_reduce(
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor] | None = None,
    op: int = SUM,
    streams: None = None,
    comms: None = None,
) -> None:
    """Give each GPU the sum (product, largest, least, mean) of all tensors."""
    outputs = inputs if outputs is None else outputs
    _checked(inputs, outputs)
    result = _reduced(inputs, inputs[0].device, op)
    for each in outputs:
        each.copy_(result)


def reduce(
    inputs: Sequence[Tensor],
    output: Tensor | None = None,
    root: int = 0,
    op: int = SUM,
    streams: None = None,
    comms: None = None,
) -> None:
    """Give one GPU, that of the tensor with the number `root`, what `all_reduce` gives to all."""
    _checked(inputs)
    target = inputs[root] if output is None else output
    target.copy_(_reduced(inputs, target.device, op))


def broadcast(inputs: Sequence[Tensor], root: int = 0, streams: None = None, comms: None = None) -> None:
    """Copy the tensor with the number `root` to all others."""
    _checked(inputs)
    for i, each in enumerate(inputs):
        if i != root:
            each.copy_(inputs[root])


def all_gather(inputs: Sequence[Tensor], outputs: Sequence[Tensor], streams: None = None, comms: None = None) -> None:
    """Give each GPU all tensors, one behind the other."""
    _checked(inputs, outputs)
    for output in outputs:
        rows = output.view(len(inputs), -1)
        for row, each in zip(rows, inputs, strict=True):
            row.copy_(each.view(-1))


def reduce_scatter(
    inputs: Sequence[Tensor], outputs: Sequence[Tensor], op: int = SUM, streams: None = None, comms: None = None
) -> None:
    """Give each GPU its part of what `all_reduce` gives to all."""
    _checked(inputs, outputs)
    parts = _reduced(inputs, inputs[0].device, op).view(len(outputs), -1)
    for output, part in zip(outputs, parts, strict=True):
        output.view(-1).copy_(part)
