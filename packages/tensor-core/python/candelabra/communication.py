"""Collectives between processes, with one device each: the basis of distributed training.

A communicator joins the ranks of a group of processes. Its collectives are queued on the current
stream of its device, like operators. All ranks must call them in the same order. The backend
implements them: by NCCL for ``cuda``. `load_library` adds those of another library: MPI for
``cpu``, of the package candelabra-collectives-mpi.

>>> import candelabra
>>> candelabra.communication.is_available("cpu")
False
"""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager

from candelabra import _C, backends
from candelabra._C import device

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta
    from types import TracebackType
    from typing import Any

    from candelabra._C import Tensor
    from candelabra.types import Device

__all__ = ["Communicator", "group", "is_available", "load_library", "unique_id", "version"]


class _Groups(threading.local):
    """The tensors of this thread's groups. They are kept alive until the end of the group, when its
    collectives are queued.
    """

    def __init__(self) -> None:
        self.held: list[list[Tensor | None]] = []


_groups = _Groups()
REDUCTIONS = {"sum": 0, "product": 1, "min": 2, "max": 3, "mean": 4, "band": 5, "bor": 6, "bxor": 7}


def _device(given: Device) -> device:
    if isinstance(given, int):
        from candelabra import accelerator

        return accelerator.resolve(given)
    found = device(given)  # type: ignore[arg-type]
    if found.index is None:
        found = device(found.type, _C.current_index(found.type))
    return found


def is_available(device_type: str) -> bool:
    """Return whether a device type supports collectives.

    Parameters
    ----------
    device_type : str
        For example ``"cuda"``.

    Returns
    -------
    bool
        Also False if there is no such device.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.communication.is_available("cpu")
    False
    """
    return backends.is_available(device_type) and _C.communicator_available(_device(device_type))


def load_library(device_type: str, path: str | os.PathLike[str]) -> None:
    """Load the collectives of a device type whose backend has none.

    Parameters
    ----------
    device_type : str
        For example ``"cpu"``.
    path : str or os.PathLike
        A shared library with the interface of ``candelabra/collectives.h``.

    Raises
    ------
    ValueError
        The backend of the device type has collectives.
    OSError
        The file is no such library.
    candelabra.backends.BackendError
        Its tables are malformed.
    """
    _C.communicator_library(device_type, os.fspath(path))


def version(device_type: str) -> tuple[str, int]:
    """Return the library that implements the collectives of a device type, and its version.

    Raises
    ------
    NotImplementedError
        The device type has no collectives.

    Examples
    --------
    >>> import candelabra
    >>> if candelabra.communication.is_available("cuda"):
    ...     library, number = candelabra.communication.version("cuda")
    """
    name, number = _C.communicator_version(_device(device_type))
    return name, number


def unique_id(device_type: str) -> bytes:
    """Return an id for a new communicator. Rank 0 creates it, and sends it to the others by other
    means.

    Raises
    ------
    NotImplementedError
        The device type has no collectives.

    Examples
    --------
    >>> import candelabra
    >>> if candelabra.communication.is_available("cuda"):
    ...     assert len(candelabra.communication.unique_id("cuda")) == 128
    """
    return _C.communicator_id(_device(device_type))


def _milliseconds(timeout: float | timedelta | None) -> int:
    if timeout is None:
        return 0
    seconds = timeout if isinstance(timeout, (int, float)) else timeout.total_seconds()
    if not seconds > 0:
        raise ValueError(f"a communicator's timeout must be positive, or None for no end, not {timeout!r}")
    return max(1, round(seconds * 1000))


def _reduction(op: str) -> int:
    try:
        return REDUCTIONS[op]
    except KeyError:
        raise ValueError(f"op must be one of {', '.join(REDUCTIONS)}, but got {op!r}") from None


class Communicator:
    """A group of ranks, and their collectives.

    Parameters
    ----------
    device : device, str or int
        This rank's device. Two ranks must not share one.
    unique_id : bytes
        The result of `unique_id` on one rank; the same for all.
    rank, size : int
        The number of this rank, from 0, and the number of ranks.
    timeout : float or timedelta, optional
        The time limit in seconds of creating the communicator and of each collective; None for no
        limit. After a timeout or the failure of a rank, the communicator is aborted. Kernels that
        wait on the device return with undefined results, and the next operator on the device or
        call of the communicator raises RuntimeError. The process continues.
    name : str, optional
        For messages.

    Raises
    ------
    NotImplementedError
        The device has no collectives.
    RuntimeError
        Ranks are missing after the time, or the library has failed.
    ValueError
        The rank is not below the size, or the id has not 128 bytes.

    Examples
    --------
    >>> import candelabra
    >>> if candelabra.communication.is_available("cuda"):
    ...     made = candelabra.communication.unique_id("cuda")  # on one rank, which sends it to the others
    ...     with candelabra.communication.Communicator("cuda", made, rank=0, size=1) as ranks:
    ...         total = ranks.all_reduce(candelabra.ones(3, device="cuda"))
    """

    def __init__(
        self,
        device: Device,
        unique_id: bytes,
        rank: int,
        size: int,
        *,
        timeout: float | timedelta | None = 600.0,
        name: str | None = None,
    ) -> None:
        where = _device(device)
        address = _C.communicator_create(where, unique_id, rank, size, _milliseconds(timeout), name)
        self._take(where, address, name)

    def _take(self, where: device, address: int, name: str | None) -> None:
        self._device = where
        self._address: int | None = address
        self._name = name
        self._lock = threading.Lock()
        self._rank, self._size = _C.communicator_rank(where, address)

    @property
    def device(self) -> device:
        """This rank's device."""
        return self._device

    @property
    def rank(self) -> int:
        """The number of this rank."""
        return self._rank

    @property
    def size(self) -> int:
        """The number of ranks."""
        return self._size

    @property
    def name(self) -> str | None:
        """The name in messages."""
        return self._name

    def _open(self) -> int:
        if self._address is None:
            raise RuntimeError(f"{self!r} was closed")
        return self._address

    def _run(self, kind: str, send: Tensor | None, receive: Tensor | None, op: str = "sum", peer: int = 0) -> None:
        _C.communicator_run(self._device, self._open(), kind, send, receive, self._size, _reduction(op), peer)
        if _groups.held:
            _groups.held[-1].extend((send, receive))

    def split(
        self, color: int | None, key: int = 0, *, timeout: float | timedelta | None = 600.0, name: str | None = None
    ) -> Communicator | None:
        """Split the communicator into several; all ranks must call it.

        Parameters
        ----------
        color : int, optional
            Ranks with the same color form a communicator; a rank with None joins none.
        key : int
            The order in the new communicator; equal keys are ordered by rank.
        timeout, name
            Timeout and name of the new communicator.

        Returns
        -------
        Communicator or None
        """
        if color is not None and color < 0:
            raise ValueError(f"color must not be negative, but got {color}")
        address = _C.communicator_split(
            self._device, self._open(), -1 if color is None else color, key, _milliseconds(timeout), name
        )
        if address is None:
            return None
        made = Communicator.__new__(Communicator)
        made._take(self._device, address, name)
        return made

    def all_reduce(self, tensor: Tensor, op: str = "sum", *, out: Tensor | None = None) -> Tensor:
        """Reduce the tensors of all ranks; every rank gets the result.

        Parameters
        ----------
        tensor : Tensor
            Contiguous, of the same shape and dtype on all ranks.
        op : str
            ``sum``, ``product``, ``min``, ``max`` or ``mean``, and with MPI ``band``, ``bor`` and
            ``bxor`` of integers and bools. Of bools, the sum is *or* and the product is *and*.
        out : Tensor, optional
            For the result; `tensor` itself otherwise.
        """
        result = tensor if out is None else out
        self._run("all_reduce", tensor, result, op)
        return result

    def broadcast(self, tensor: Tensor, root: int) -> Tensor:
        """Copy the tensor of one rank to those of all others."""
        self._run("broadcast", tensor, tensor, peer=root)
        return tensor

    def reduce(self, tensor: Tensor, root: int, op: str = "sum", *, out: Tensor | None = None) -> Tensor:
        """Reduce the tensors of all ranks; the root gets the result in `out` or `tensor`."""
        result = tensor if out is None else out
        self._run("reduce", tensor, result, op, root)
        return result

    def all_gather(self, out: Tensor, tensor: Tensor) -> Tensor:
        """Concatenate the tensors of all ranks in `out`."""
        self._run("all_gather", tensor, out)
        return out

    def reduce_scatter(self, out: Tensor, tensor: Tensor, op: str = "sum") -> Tensor:
        """Reduce the tensors of all ranks; each rank gets one part of the result in `out`."""
        self._run("reduce_scatter", tensor, out, op)
        return out

    def all_to_all(self, out: Tensor, tensor: Tensor) -> Tensor:
        """Send part i of the tensor to rank i; `out` gets the parts that the ranks have sent to
        this one.
        """
        if out.data_ptr() == tensor.data_ptr() and tensor.numel():
            raise ValueError("all_to_all(): out must not be the tensor that is sent")
        self._run("all_to_all", tensor, out)
        return out

    def send(self, tensor: Tensor, peer: int) -> None:
        """Send a tensor to a rank, which must receive it. The device waits for the receiver."""
        self._run("send", tensor, None, peer=peer)

    def receive(self, tensor: Tensor, peer: int) -> Tensor:
        """Receive a tensor of this shape and dtype from a rank."""
        self._run("receive", None, tensor, peer=peer)
        return tensor

    def barrier(self) -> None:
        """Wait on the host until all ranks have reached this call."""
        from candelabra import zeros

        self.all_reduce(zeros(1, device=self._device))
        self.wait()

    def query(self) -> None:
        """Raise RuntimeError if the communicator has failed."""
        _C.communicator_query(self._device, self._open())

    def wait(self, timeout: float | timedelta | None = None) -> None:
        """Wait on the host until all queued work is done.

        Parameters
        ----------
        timeout : float or timedelta, optional
            Seconds after which the wait counts as a failure, which aborts the communicator.
            Collectives also have their own timeout.

        Raises
        ------
        RuntimeError
            A rank has failed or was not there in time.
        """
        _C.communicator_wait(self._device, self._open(), _milliseconds(timeout))

    def abort(self) -> None:
        """Abort pending work and the communicator, without waiting."""
        if self._address is not None:
            _C.communicator_abort(self._device, self._address)

    def close(self) -> None:
        """Wait for queued work and destroy the communicator; all ranks must call it. A second call
        does nothing.
        """
        with self._lock:
            address, self._address = self._address, None
        if address is not None:
            _C.communicator_destroy(self._device, address)

    def __enter__(self) -> Communicator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # After a failure, other ranks may never call it.
        if kind is not None:
            self.abort()
        self.close()

    def __del__(self) -> None:
        address = getattr(self, "_address", None)
        if address is None:
            return
        self._address = None
        # Does not wait for other ranks.
        _C.communicator_abort(self._device, address)
        _C.communicator_destroy(self._device, address)

    def __reduce__(self) -> Any:
        raise TypeError("a communicator cannot be pickled: each process makes its own")

    def __repr__(self) -> str:
        name = f" {self._name!r}" if self._name else ""
        return f"<candelabra.communication.Communicator{name} of {self._device}: rank {self._rank} of {self._size}>"


@contextmanager
def group(device: Device) -> Iterator[None]:
    """Group all collectives that are called in the block, such as sends and receives that wait for
    each other.

    They are queued at the end of the block, behind the operators called in it.

    Parameters
    ----------
    device : device, str or int
        The device, or its type.

    Examples
    --------
    >>> import candelabra
    >>> def exchange(ranks, there, here, peer):
    ...     with candelabra.communication.group(ranks.device):
    ...         ranks.send(there, peer)
    ...         ranks.receive(here, peer)
    """
    where = _device(device)
    _C.communicator_group(where, True)
    _groups.held.append([])
    try:
        yield
    except BaseException as error:
        try:
            _C.communicator_group(where, False)
        except RuntimeError as second:
            error.add_note(f"ending the group failed, too: {second}")
        raise
    else:
        _C.communicator_group(where, False)
    finally:
        inner = _groups.held.pop()
        if _groups.held:  # only the end of the outermost group counts
            _groups.held[-1].extend(inner)
