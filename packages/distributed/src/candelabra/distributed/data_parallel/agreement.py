"""Whether all ranks have the same module, and the copy of rank 0's values."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import candelabra
from candelabra import Tensor

from ..collectives.objects import all_gather_object
from ..collectives.reductions import broadcast
from ..process_group import ProcessGroup

#: The bytes of tensors that are broadcast together.
_PIECE_BYTES = 250 * 1024 * 1024


def _description(name: str, tensor: Tensor) -> str:
    grad = "" if tensor.requires_grad else " without grad"
    return f"{name}: {str(tensor.dtype).rpartition('.')[2]} {list(tensor.shape)}{grad}"


def verify(named: Sequence[tuple[str, Tensor]], group: ProcessGroup) -> None:
    """Raise an error on all ranks if names, shapes or dtypes of parameters differ.

    Raises
    ------
    RuntimeError
        Names the first parameter that differs, and the ranks.
    """
    own = [_description(name, tensor) for name, tensor in named]
    digest = hashlib.sha256("\n".join(own).encode()).hexdigest()
    digests: list[str] = [""] * group.size()
    all_gather_object(digests, digest, group)
    if len(set(digests)) == 1:
        return
    everyone: list[list[str]] = [[] for _ in range(group.size())]
    all_gather_object(everyone, own, group)
    expected = everyone[0]
    for rank, descriptions in enumerate(everyone):
        if descriptions == expected:
            continue
        for number in range(max(len(descriptions), len(expected))):
            here = descriptions[number] if number < len(descriptions) else "no parameter"
            there = expected[number] if number < len(expected) else "no parameter"
            if here != there:
                raise RuntimeError(
                    f"DDP expects the same model across all ranks, but parameter {number} of rank {group.ranks[rank]} is "
                    f"{here}, of rank {group.ranks[0]} {there}"
                )


def copy_from(source: int, tensors: Iterable[Tensor], group: ProcessGroup) -> None:
    """Copy the values of one rank to all others, tensors of one dtype together."""
    kinds: dict[tuple[object, object], list[Tensor]] = {}
    for tensor in tensors:
        kinds.setdefault((tensor.dtype, tensor.device), []).append(tensor.detach())
    for same in kinds.values():
        piece: list[Tensor] = []
        size = 0
        for tensor in same:
            piece.append(tensor)
            size += tensor.numel() * tensor.element_size()
            if size >= _PIECE_BYTES:
                _copy(source, piece, group)
                piece, size = [], 0
        if piece:
            _copy(source, piece, group)


def _copy(source: int, tensors: list[Tensor], group: ProcessGroup) -> None:
    with candelabra.no_grad():
        if len(tensors) == 1:
            broadcast(tensors[0], group=group, group_src=source)
            return
        joined = candelabra.cat([tensor.reshape(-1) for tensor in tensors])
        broadcast(joined, group=group, group_src=source)
        if group.rank() != source:
            for tensor, part in zip(tensors, joined.split([tensor.numel() for tensor in tensors]), strict=True):
                tensor.copy_(part.view(tensor.shape))
