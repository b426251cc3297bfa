"""The check of TORCH_DISTRIBUTED_DEBUG=DETAIL: whether all ranks call the same collective."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .bytes_tensors import tensor_of_bytes, text_of_tensor
from .status_memory import Operation, described

if TYPE_CHECKING:
    from .engines.interface import Communicator
    from .process_group import ProcessGroup

_BYTES = 160


def check_agreement(group: ProcessGroup, communicator: Communicator, operation: Operation, op: str, peer: int) -> None:
    """Raise an error on all ranks if they do not call the same collective.

    Raises
    ------
    RuntimeError
        Names what each rank calls.
    """
    reduces = operation[3] in ("all_reduce", "reduce", "reduce_scatter")
    has_root = operation[3] in ("broadcast", "reduce")
    text = described(operation) + (f" by {op}" if reduces else "") + (f" from or to rank {peer}" if has_root else "")
    own = tensor_of_bytes(text.encode()[:_BYTES].ljust(_BYTES), group.host_or_only_device())
    everyone = tensor_of_bytes(bytes(_BYTES * group.size()), own.device)
    communicator_of_host = communicator if own.device.type == "cpu" else group.communicator(own.device.type)
    communicator_of_host.run("all_gather", own, everyone, "sum", 0)
    texts = [text_of_tensor(everyone[i * _BYTES : (i + 1) * _BYTES]).strip() for i in range(group.size())]
    if any(other != texts[group.rank()] for other in texts):
        ranks: dict[str, list[int]] = {}
        for rank, other in zip(group.ranks, texts, strict=True):
            ranks.setdefault(other, []).append(rank)
        calls = "; ".join(
            f"{'ranks' if len(who) > 1 else 'rank'} {', '.join(map(str, who))}: {what}" for what, who in ranks.items()
        )
        raise RuntimeError(f"Detected mismatch between collectives on ranks: {calls}")
