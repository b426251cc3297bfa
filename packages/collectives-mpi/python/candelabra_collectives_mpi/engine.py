"""The process group engine ``mpi`` of candelabra.distributed."""

from __future__ import annotations

import ctypes
import os
import time

from candelabra import _C, communication
from candelabra_collectives_mpi import library

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from candelabra._C import Tensor, device

__all__ = ["Communicator", "Engine", "Request"]

#: A wait in C returns to Python this often, for Ctrl-C.
_SLICE_MILLISECONDS = 100
#: Tags of new communicators: MPI has at least this many.
_TAGS = 32768

_run = _C.communicator_run
_REDUCTIONS = communication.REDUCTIONS

#: Requests that were dropped before they were done, with their tensors.
_dropped: list[tuple[ctypes.c_void_p, list[Tensor | None]]] = []
#: Tensors of requests that have failed. Data of slower ranks may still arrive in them.
_abandoned: list[list[Tensor | None]] = []


def _failure_of(error: RuntimeError) -> Exception:
    """Return what to raise for an error of a collective: the reason alone, without the
    operation.
    """
    reason, timed_out = library.failure()
    if isinstance(error, NotImplementedError) or not reason or not str(error).endswith(reason):
        return error
    return TimeoutError(reason) if timed_out else RuntimeError(reason)


class Request:
    """Operations that have been started, and that the engine's thread carries forward."""

    def __init__(self, address: ctypes.c_void_p, tensors: list[Tensor | None]) -> None:
        self._address: ctypes.c_void_p | None = address
        self._tensors = tensors
        self._error: Exception | None = None
        #: The rank that the first receive got its data from, once it is done.
        self.source = -1

    def done(self) -> bool:
        """Return whether all have ended, with or without success."""
        return self._address is None or bool(library.functions().candelabra_mpi_is_done(self._address))

    def wait(self, timeout: float | None = None) -> None:
        """Wait until all have ended.

        Parameters
        ----------
        timeout : float, optional
            Seconds, after which the communicator ends; its own time limit otherwise.

        Raises
        ------
        TimeoutError
            Other ranks did not take part in time.
        RuntimeError
            The engine, the communicator or an operation has failed.
        """
        if self._address is None:
            if self._error is not None:
                raise self._error
            return
        end = None if timeout is None else time.monotonic() + timeout
        limit = library.milliseconds(timeout)
        is_done, source = ctypes.c_int32(), ctypes.c_int32()
        while not is_done.value:
            left = -1 if end is None else max(0, round((end - time.monotonic()) * 1000))
            status = library.functions().candelabra_mpi_wait(
                self._address, _SLICE_MILLISECONDS, left, limit, ctypes.byref(is_done), ctypes.byref(source)
            )
            try:
                library.check(status)
            except (RuntimeError, TimeoutError) as error:
                self._error = error
                _abandoned.append(self._tensors)
                self._release()
                raise
        self.source = source.value
        self._release()

    def _release(self) -> None:
        address, self._address, self._tensors = self._address, None, []
        if address is not None:
            library.functions().candelabra_mpi_release(address)

    def __del__(self) -> None:
        if self._address is None:
            return
        _dropped.append((self._address, self._tensors))
        _forget_dropped()


def _forget_dropped() -> None:
    """Free the dropped requests that are done by now."""
    pending = []
    for address, tensors in _dropped:
        if library.functions().candelabra_mpi_is_done(address):
            library.functions().candelabra_mpi_release(address)
        else:
            pending.append((address, tensors))
    _dropped[:] = pending


class Communicator:
    """A group of ranks. Its collectives run in the order in which they were called, which must be
    the same on all ranks.
    """

    def __init__(self, where: device, address: int, timeout: float | None) -> None:
        self._device = where
        self._address: int | None = address
        self._timeout = timeout
        self.rank, self.size = _C.communicator_rank(where, address)

    @property
    def timeout(self) -> float | None:
        """The time limit in seconds of operations that start from now on; None for no limit."""
        return self._timeout

    @timeout.setter
    def timeout(self, timeout: float | None) -> None:
        self._timeout = timeout
        library.check(library.functions().candelabra_mpi_set_timeout(self._open(), library.milliseconds(timeout)))

    def _open(self) -> int:
        if self._address is None:
            raise RuntimeError("the communicator was closed")
        return self._address

    def run(
        self, kind: str, send: Tensor | None = None, receive: Tensor | None = None, op: str = "sum", peer: int = 0
    ) -> None:
        """Run a collective; its result is there on return.

        Parameters
        ----------
        kind : str
            ``all_reduce``, ``broadcast``, ``reduce``, ``all_gather``, ``reduce_scatter``,
            ``all_to_all``, ``barrier``, ``send`` or ``receive``.
        send, receive : Tensor, optional
            Contiguous tensors on the CPU; the same one for a result in place.
        op : str
            ``sum``, ``product``, ``min``, ``max``, ``mean``, ``band``, ``bor`` or ``bxor``.
        peer : int
            The root, or the other rank.

        Raises
        ------
        TimeoutError
            Other ranks did not take part in time. The communicator cannot be used any more.
        NotImplementedError
            The dtype does not have the reduction.
        RuntimeError
            The engine, the communicator or the collective has failed.
        """
        if kind == "barrier":
            self.start(kind).wait()
            return
        try:
            _run(self._device, self._open(), kind, send, receive, self.size, _REDUCTIONS[op], peer)
        except RuntimeError as error:
            raised = _failure_of(error)
            if raised is error:
                raise
            raise raised from None

    def start(
        self, kind: str, send: Tensor | None = None, receive: Tensor | None = None, op: str = "sum", peer: int = 0
    ) -> Request:
        """Start a collective, as `run`, and return at once."""
        if kind == "barrier":
            address = ctypes.c_void_p()
            library.check(library.functions().candelabra_mpi_barrier(self._open(), ctypes.byref(address)))
            return Request(address, [])
        return self._start([(kind, send, receive, op, peer, 0)])

    def exchange(
        self, sends: Sequence[tuple[Tensor, int, int]], receives: Sequence[tuple[Tensor, int, int]]
    ) -> Request:
        """Start sends and receives, each a tensor, a rank and a tag. They wait for no collective,
        and not for one another. A receive takes data from any rank with the rank -1.
        """
        calls = [("receive", None, tensor, "sum", peer, tag) for tensor, peer, tag in receives]
        return self._start([*calls, *(("send", tensor, None, "sum", peer, tag) for tensor, peer, tag in sends)])

    def _start(self, calls: Sequence[tuple[str, Tensor | None, Tensor | None, str, int, int]]) -> Request:
        functions = library.functions()
        if _dropped:
            _forget_dropped()
        address, communicator = ctypes.c_void_p(), self._open()
        library.check(functions.candelabra_mpi_request_begin())
        try:
            for kind, send, receive, op, peer, tag in calls:
                functions.candelabra_mpi_set_tag(tag)
                _run(self._device, communicator, kind, send, receive, self.size, _REDUCTIONS[op], peer)
        except RuntimeError as error:
            raised = _failure_of(error)
            if raised is error:
                raise
            raise raised from None
        finally:
            library.check(functions.candelabra_mpi_request_end(ctypes.byref(address)))
            request = Request(address, [each for call in calls for each in call[1:3]])
        return request

    def close(self) -> None:
        """Free the communicator. Waits for no other rank: what runs is abandoned."""
        address, self._address = self._address, None
        if address is not None:
            _C.communicator_abort(self._device, address)
            _C.communicator_destroy(self._device, address)


class Engine:
    """MPI for the device ``cpu``, as candelabra.distributed calls it."""

    name = "mpi"
    device_types = ("cpu",)

    def __init__(self) -> None:
        self._device: device | None = None
        self._rank, self._size = 0, 1

    def start(
        self,
        rank: int,
        size: int,
        environment: dict[str, str] | None,
        device: device,
        timeout: float | None = 600.0,
    ) -> None:
        """Start MPI with these variables in the environment; None for those that are there. Waits
        for the other ranks, at most as long as the time limit in seconds.

        Raises
        ------
        RuntimeError
            There is no MPI, it cannot start, or it runs with another rank or size.
        """
        before = {name: os.environ.get(name) for name in environment or ()}
        os.environ.update(environment or {})
        try:
            self._rank, self._size = library.start(timeout)
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
        if (self._rank, self._size) != (rank, size):
            raise RuntimeError(
                f"MPI runs with rank {self._rank} of {self._size} in this process, not with rank {rank} of {size}"
            )
        self._device = device

    def rank_and_size(self) -> tuple[int, int]:
        """Return this process's rank in MPI, and the number of ranks."""
        return self._rank, self._size

    def communicator(self, ranks: Sequence[int], number: int, name: str, timeout: float | None) -> Communicator:
        """Make a communicator of these ranks; all of them call it, and no other.

        Parameters
        ----------
        ranks : Sequence[int]
            Ranks of MPI; their order is that of the new ranks.
        number : int
            Equal on all of them; tells communicators that are made at the same time from one
            another.
        name : str
            For messages.
        timeout : float, optional
            The time limit in seconds of making it and of each operation; None for no limit.
        """
        if self._device is None:
            raise RuntimeError("the engine was not started")
        made = ctypes.c_void_p()
        numbers = (ctypes.c_int32 * len(ranks))(*ranks)
        library.check(
            library.functions().candelabra_mpi_communicator(
                numbers, len(ranks), number % _TAGS, library.milliseconds(timeout), name.encode(), ctypes.byref(made)
            )
        )
        assert made.value is not None
        return Communicator(self._device, made.value, timeout)

    def fail(self, message: str) -> None:
        """Make every call that waits, and every later one, raise RuntimeError with this message.

        It may be called from any thread, and does not wait. MPI cannot be used any more.
        """
        library.functions().candelabra_mpi_fail(message.encode())

    def describe(self) -> str:
        """Return the operation that runs, such as ``all_reduce(float32 8) (number 3)``, or
        ``""``.
        """
        text = ctypes.create_string_buffer(256)
        library.functions().candelabra_mpi_describe(text, len(text))
        return text.value.decode()

    def version(self) -> str:
        """Return the name and the version of MPI."""
        return library.version()

    def stop(self) -> None:
        """Forget the device. MPI itself runs until the process ends, since it cannot start
        twice.
        """
        self._device = None
