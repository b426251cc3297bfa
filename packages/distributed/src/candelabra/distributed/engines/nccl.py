"""The engine of accelerators: the collectives of `candelabra.communication`, which are NCCL's
on CUDA.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from candelabra import communication

from ..hookspec import hookimpl

if TYPE_CHECKING:
    from candelabra import Tensor, device

    from ..store import Store

_DEVICE_TYPE = "cuda"


class QueuedRequest:
    """Collectives that are queued on the current stream."""

    source = -1

    def __init__(self, event: Any, ranks: communication.Communicator) -> None:
        self._event = event
        self._ranks = ranks

    def done(self) -> bool:
        """Return whether the device has carried them out."""
        return bool(self._event.query())

    def wait(self, timeout: float | None) -> None:
        """Let the stream wait, on which they are queued; with a time limit, also the host."""
        if timeout is not None:
            self._ranks.wait(timeout)
        self._ranks.query()


class QueuedCommunicator:
    """The ranks of one group, with a device each. Collectives are queued on the current stream."""

    def __init__(self, ranks: communication.Communicator, timeout: float | None) -> None:
        self.ranks = ranks
        self.timeout = timeout

    def run(self, kind: str, send: Tensor | None, receive: Tensor | None, op: str, peer: int) -> None:
        """Queue a collective."""
        if op in ("band", "bor", "bxor"):
            raise RuntimeError(f"NCCL does not reduce by {op}")
        if kind == "barrier":
            self.ranks.barrier()
        elif kind == "all_reduce":
            self.ranks.all_reduce(_needed(send), op, out=receive)
        elif kind == "broadcast":
            self.ranks.broadcast(_needed(receive), peer)
        elif kind == "reduce":
            self.ranks.reduce(_needed(send), peer, op, out=receive)
        elif kind == "all_gather":
            self.ranks.all_gather(_needed(receive), _needed(send))
        elif kind == "reduce_scatter":
            self.ranks.reduce_scatter(_needed(receive), _needed(send), op)
        elif kind == "all_to_all":
            self.ranks.all_to_all(_needed(receive), _needed(send))
        else:
            raise ValueError(f"there is no collective {kind!r}")

    def start(self, kind: str, send: Tensor | None, receive: Tensor | None, op: str, peer: int) -> QueuedRequest:
        """Queue a collective."""
        self.run(kind, send, receive, op, peer)
        return self._request()

    def exchange(self, sends: list[tuple[Tensor, int, int]], receives: list[tuple[Tensor, int, int]]) -> QueuedRequest:
        """Queue sends and receives. NCCL has no tags: the order decides."""
        if any(peer < 0 for _, peer, _ in receives):
            raise ValueError("NCCL receives from a given rank only: recv() needs src")
        with communication.group(self.ranks.device):
            for tensor, peer, _ in sends:
                self.ranks.send(tensor, peer)
            for tensor, peer, _ in receives:
                self.ranks.receive(tensor, peer)
        return self._request()

    def _request(self) -> QueuedRequest:
        from candelabra import accelerator

        event = accelerator.Event(self.ranks.device)
        event.record()
        return QueuedRequest(event, self.ranks)

    def close(self) -> None:
        """Free the communicator without waiting for other ranks."""
        self.ranks.abort()
        self.ranks.close()


def _needed(tensor: Tensor | None) -> Tensor:
    if tensor is None:
        raise ValueError("the collective needs a tensor")
    return tensor


class NcclEngine:
    """NCCL, by way of the CUDA backend."""

    name = "nccl"
    device_types = (_DEVICE_TYPE,)
    #: `communicator` gets a store by which the ranks exchange the id.
    needs_store = True

    def __init__(self) -> None:
        self._device: device | None = None
        self._made: list[QueuedCommunicator] = []
        self._lock = threading.Lock()
        self._rank = 0

    def start(self, rank: int, size: int, environment: dict[str, str] | None, device: device) -> None:
        """Take this process's device."""
        if not communication.is_available(_DEVICE_TYPE):
            raise RuntimeError("the backend 'nccl' needs a CUDA device and candelabra-backend-cuda with NCCL")
        self._device = device
        self._rank = rank

    def communicator(
        self, ranks: Sequence[int], number: int, name: str, timeout: float | None, **options: Any
    ) -> QueuedCommunicator:
        """Return the communicator of these ranks."""
        store: Store = options["store"]
        place = list(ranks).index(self._rank)
        if place == 0:
            store.set("id", communication.unique_id(_DEVICE_TYPE))
        assert self._device is not None
        made = communication.Communicator(self._device, store.get("id"), place, len(ranks), timeout=timeout, name=name)
        queued = QueuedCommunicator(made, timeout)
        with self._lock:
            self._made.append(queued)
        return queued

    def fail(self, message: str) -> None:
        """Abort what is queued."""
        with self._lock:
            made = list(self._made)
        for queued in made:
            queued.ranks.abort()

    def stop(self) -> None:
        """Forget the communicators."""
        self._made.clear()


@hookimpl
def candelabra_process_group_engine() -> NcclEngine:
    """Return the engine."""
    return NcclEngine()
