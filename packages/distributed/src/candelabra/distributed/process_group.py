"""Process groups: ranks that call collectives together."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from candelabra import _C, Tensor, device

from .debugging import DebugLevel, get_debug_level
from .errors import DistBackendError
from .status_memory import Operation, described
from .store import PrefixStore, Store
from .work import Work

if TYPE_CHECKING:
    from .engines.interface import Communicator
    from .job import Job


class ProcessGroup:
    """Ranks that call collectives together; made by `init_process_group` and `new_group`.

    Parameters
    ----------
    job : Job
        This process's part in the job.
    ranks : sequence of int
        The ranks of the world that belong to it, this one among them.
    number : int
        Its number, the same on all ranks.
    name : str
        Its name in messages.
    description : str
        What the program calls it.
    backends : dict
        The backends' names by device type.
    timeout : timedelta
        The time limit of each collective.
    members : sequence of int, optional
        The same ranks as the job numbers them: `shrink_group` numbers those of the world again.
    """

    def __init__(
        self,
        job: Job,
        ranks: Sequence[int],
        number: int,
        name: str,
        description: str,
        backends: dict[str, str],
        timeout: timedelta,
        store: Store,
        members: Sequence[int] | None = None,
    ) -> None:
        self.job = job
        self.ranks = list(ranks)
        self.members = self.ranks if members is None else list(members)
        self.number = number
        self.backends = backends
        self.group_name = name
        self.group_desc = description
        self._timeout = timeout
        self._store = store
        self._rank = self.members.index(job.rank)
        self._places = {rank: place for place, rank in enumerate(self.ranks)}
        self._communicators: dict[str, Communicator] = {}
        self._numbers = itertools.count(1)
        self._messages = itertools.count(1)
        self._monitored = itertools.count(1)
        self._is_closed = False
        self._is_checked = get_debug_level() is DebugLevel.DETAIL
        self.bound_device_id: device | None = None

    # ---- what it is

    def rank(self) -> int:
        """Return this process's number in the group."""
        return self._rank

    def size(self) -> int:
        """Return the number of ranks."""
        return len(self.ranks)

    def name(self) -> str:
        """Return the backend's name."""
        return next(iter(self.backends.values()), "undefined")

    @property
    def timeout(self) -> timedelta:
        """The time limit of each collective."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set the time limit of each later collective."""
        self._timeout = timeout
        for communicator in self._communicators.values():
            communicator.timeout = timeout.total_seconds()

    def get_group_store(self) -> Store:
        """Return a store of the group's own."""
        return self._store

    def next_monitored(self) -> int:
        """Return the number of the next `monitored_barrier`."""
        return next(self._monitored)

    def place(self, rank: int) -> int:
        """Return the number in the group of a rank of the world."""
        try:
            return self._places[rank]
        except KeyError:
            raise ValueError(f"Global rank {rank} is not part of group {self.group_name}") from None

    def __repr__(self) -> str:
        return f"<candelabra.distributed.ProcessGroup {self.group_name!r}: rank {self._rank} of {self.size()}>"

    # ---- engines

    def communicator(self, device_type: str) -> Communicator:
        """Return the communicator for a type of device, made on first use by all ranks."""
        found = self._communicators.get(device_type)
        if found is not None:
            return found
        if self._is_closed:
            raise RuntimeError(f"the process group {self.group_name} was destroyed")
        name = self.backends.get(device_type)
        if name is None:
            pairs = ",".join(f"{kind}:{backend}" for kind, backend in self.backends.items())
            raise RuntimeError(f"No backend type associated with device type {device_type}; the group has {pairs}")
        engine = self.job.engine(name, self._device(device_type))
        options: dict[str, Any] = {}
        if getattr(engine, "needs_store", False):
            options["store"] = PrefixStore(f"{device_type} engine", self._store)
        try:
            made = engine.communicator(
                self.members, self.number, self.group_name, self._timeout.total_seconds() or None, **options
            )
        except (RuntimeError, TimeoutError) as error:
            raise self.job.explained(error, f"the start of group {self.group_name}") from self.job.cause(error)
        self._communicators[device_type] = made
        return made

    def used_device_types(self) -> list[str]:
        """Return the types of devices for which there are communicators."""
        return list(self._communicators)

    def _device(self, device_type: str) -> device:
        if self.bound_device_id is not None and self.bound_device_id.type == device_type:
            return self.bound_device_id
        return device(device_type) if device_type == "cpu" else device(device_type, _C.current_index(device_type))

    def host_or_only_device(self) -> device:
        """Return the device for values that are no tensors: the host if it has a backend."""
        return self._device("cpu" if "cpu" in self.backends else next(iter(self.backends)))

    # ---- collectives

    def collective(
        self,
        kind: str,
        send: Tensor | None,
        receive: Tensor | None,
        op: str = "sum",
        peer: int = 0,
        is_async: bool = False,
        results: Any = None,
        finish: Callable[[], object] | None = None,
    ) -> Work | None:
        """Carry a collective out, or start it and return a `Work`.

        Parameters
        ----------
        kind, send, receive, op, peer
            See `engines.interface.Communicator`; `peer` is a rank in the group.
        is_async : bool
            Return a Work.
        results
            The tensors that the program gets from the Work.
        finish : callable, optional
            Called when the collective has ended, to copy the results to where they belong.
        """
        tensor = send if send is not None else receive
        if tensor is None:
            operation: Operation = (self.number, self.group_name, next(self._numbers), kind, None, 0)
            place = self.host_or_only_device().type
        else:
            operation = (self.number, self.group_name, next(self._numbers), kind, tensor.dtype, tensor.numel())
            place = tensor.device.type
        current = self.job.current
        current.begin(operation)
        if self.job.failure is not None:
            raise self.failed(operation)
        communicator = self._communicators.get(place) or self.communicator(place)
        try:
            if self._is_checked:
                self._check_agreement(communicator, operation, op, peer)
            if is_async:
                request = communicator.start(kind, send, receive, op, peer)
                kept = (send, receive) if results is None else results
                return Work(self, operation, request, kept, finish)
            communicator.run(kind, send, receive, op, peer)
        except (RuntimeError, TimeoutError) as error:
            if isinstance(error, DistBackendError):
                raise
            raise self.explained(error, operation) from self.job.cause(error)
        current.end(operation)
        if finish is not None:
            finish()
        return None

    def exchange(
        self,
        kind: str,
        sends: list[tuple[Tensor, int, int]],
        receives: list[tuple[Tensor, int, int]],
        results: Any = None,
        finish: Callable[[], object] | None = None,
        is_collective: bool = True,
    ) -> Work:
        """Start sends and receives: tensors, ranks in the group and tags.

        Those of a collective are counted with the collectives.
        """
        numbers = self._numbers if is_collective else self._messages
        tensor = (sends or receives)[0][0] if sends or receives else None
        place = self.host_or_only_device().type if tensor is None else tensor.device.type
        dtype, count = (None, 0) if tensor is None else (tensor.dtype, sum(t.numel() for t, *_ in sends or receives))
        operation: Operation = (self.number, self.group_name, next(numbers), kind, dtype, count)
        self.job.current.begin(operation)
        if self.job.failure is not None:
            raise self.failed(operation)
        communicator = self._communicators.get(place) or self.communicator(place)
        try:
            request = communicator.exchange(sends, receives)
        except (RuntimeError, TimeoutError) as error:
            raise self.explained(error, operation) from self.job.cause(error)
        return Work(self, operation, request, results if results is not None else [t for t, *_ in receives], finish)

    def has_finished(self, operation: Operation) -> None:
        """Note that an operation has ended."""
        self.job.current.end(operation)

    def failed(self, operation: Operation) -> DistBackendError:
        """Return the error of an operation after a rank has failed."""
        return DistBackendError(f"{described(operation)} on rank {self.job.rank}: {self.job.failure}")

    def explained(self, error: Exception, operation: Operation) -> RuntimeError:
        """Return the error that a program gets for one of an engine."""
        return self.job.explained(error, described(operation))

    def _check_agreement(self, communicator: Communicator, operation: Operation, op: str, peer: int) -> None:
        """Compare the collective with those of the other ranks before any data moves."""
        from .agreement import check_agreement

        check_agreement(self, communicator, operation, op, peer)

    def close(self) -> None:
        """Free the communicators."""
        self._is_closed = True
        communicators, self._communicators = self._communicators, {}
        for communicator in communicators.values():
            communicator.close()
