"""An engine that moves no data: for simulating the schedules of many ranks in one process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..hookspec import hookimpl

if TYPE_CHECKING:
    from candelabra import Tensor, device


class FakeRequest:
    """A request that is done."""

    source = 0

    def done(self) -> bool:
        """Return True."""
        return True

    def wait(self, timeout: float | None) -> None:
        """Return at once."""


class FakeCommunicator:
    """Ranks that get what they sent, where the shapes allow it."""

    def __init__(self, timeout: float | None) -> None:
        self.timeout = timeout

    def run(self, kind: str, send: Tensor | None, receive: Tensor | None, op: str, peer: int) -> None:
        """Do nothing, or fill a rank's results with its own tensor."""
        if send is None or receive is None or send.numel() == receive.numel():
            return
        parts = receive.view(-1)
        count = send.numel()
        if kind == "all_gather":
            for start in range(0, parts.numel(), max(count, 1)):
                parts[start : start + count].copy_(send.view(-1))
        else:
            parts.copy_(send.view(-1)[: parts.numel()])

    def start(self, kind: str, send: Tensor | None, receive: Tensor | None, op: str, peer: int) -> FakeRequest:
        """Do the same."""
        self.run(kind, send, receive, op, peer)
        return FakeRequest()

    def exchange(self, sends: list[Any], receives: list[Any]) -> FakeRequest:
        """Do nothing."""
        return FakeRequest()

    def close(self) -> None:
        """Do nothing."""


class FakeEngine:
    """An engine for any number of ranks, of which only this process exists."""

    name = "fake"
    device_types = ("cpu", "cuda")
    #: No other process exists, so none is met.
    is_alone = True

    def start(self, rank: int, size: int, environment: dict[str, str] | None, device: device) -> None:
        """Do nothing."""

    def communicator(
        self, ranks: Sequence[int], number: int, name: str, timeout: float | None, **options: Any
    ) -> FakeCommunicator:
        """Return a communicator without other ranks."""
        return FakeCommunicator(timeout)

    def fail(self, message: str) -> None:
        """Do nothing: there is nobody to wait for."""

    def stop(self) -> None:
        """Do nothing."""


@hookimpl
def candelabra_process_group_engine() -> FakeEngine:
    """Return the engine."""
    return FakeEngine()
