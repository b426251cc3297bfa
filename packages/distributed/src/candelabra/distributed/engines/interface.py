"""What an engine has: the library that carries collectives out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from candelabra import Tensor, device


class Request(Protocol):
    """A collective, or several sends and receives, that may still run."""

    #: The rank in the group from which a receive from any rank got its tensor.
    source: int

    def done(self) -> bool:
        """Return whether it has ended."""

    def wait(self, timeout: float | None) -> None:
        """Wait for its end, at most `timeout` seconds (None: the communicator's time limit).

        Raises
        ------
        TimeoutError
            After the time limit, which ends the communicator.
        RuntimeError
            The engine has failed, or was told that a rank has.
        """


class Communicator(Protocol):
    """The ranks of one group, on one type of device.

    Tensors are contiguous. The arguments `kind` and `op` are the names of
    `candelabra.communication`, `kind` also ``barrier``, `op` also ``band``, ``bor`` and ``bxor``.
    """

    #: The time limit of later calls in seconds, or None.
    timeout: float | None

    def run(self, kind: str, send: Tensor | None, receive: Tensor | None, op: str, peer: int) -> None:
        """Carry a collective out."""

    def start(self, kind: str, send: Tensor | None, receive: Tensor | None, op: str, peer: int) -> Request:
        """Start a collective. Those of one communicator run in the order of their starts."""

    def exchange(self, sends: list[tuple[Tensor, int, int]], receives: list[tuple[Tensor, int, int]]) -> Request:
        """Start sends and receives, each a tensor, a rank in the group and a tag. They do not wait
        for earlier requests. The rank -1 in a single receive stands for any.
        """

    def close(self) -> None:
        """Free the communicator, without waiting for other ranks."""


class Engine(Protocol):
    """A library of collectives for one or several types of device."""

    #: The name of its entry point.
    name: str
    device_types: tuple[str, ...]

    def start(self, rank: int, size: int, environment: dict[str, str] | None, device: device) -> None:
        """Start the library in this process.

        Parameters
        ----------
        rank, size
            This process's number and the number of processes.
        environment : dict or None
            The variables by which PMI finds the job's server; None if a foreign launcher has set
            its own.
        device : device
            This process's device.
        """

    def communicator(
        self, ranks: Sequence[int], number: int, name: str, timeout: float | None, **options: Any
    ) -> Communicator:
        """Return the communicator of these ranks, all of which call this with the same number."""

    def fail(self, message: str) -> None:
        """Make all waiting and later calls, in all threads, raise RuntimeError with a message."""

    def stop(self) -> None:
        """End the use of the library. After `fail`, this waits for no other rank."""
