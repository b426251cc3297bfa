"""Pools of memory apart from the ordinary one, for what a program wants to lie together."""

from __future__ import annotations

import sys
from contextlib import contextmanager

from candelabra import _C, accelerator
from candelabra.accelerator.graphs import Pool

from .devices import device_count, is_available, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from candelabra._C import device as _Device
    from candelabra.types import Device


class MemPool:
    """A pool of memory that tensors come from inside of `use_mem_pool`, and that keeps what is
    given back for the next of them.

    Parameters
    ----------
    allocator : None
        Memory comes from the driver: functions of one's own are not taken.
    use_on_oom : bool
        Not taken: the pool's memory is its own.
    no_split : bool
        Not taken: blocks are cut as in the ordinary pool.

    Raises
    ------
    NotImplementedError
        When one of the arguments is given.

    Examples
    --------
    >>> import candelabra
    >>> if candelabra.cuda.is_available():
    ...     pool = candelabra.cuda.MemPool()
    ...     with candelabra.cuda.use_mem_pool(pool):
    ...         x = candelabra.ones(1000, device="cuda")
    """

    def __init__(self, allocator: None = None, use_on_oom: bool = False, no_split: bool = False) -> None:
        for name, given in (("allocator", allocator is not None), ("use_on_oom", use_on_oom), ("no_split", no_split)):
            if given:
                raise NotImplementedError(
                    f"MemPool(): {name} is not supported; memory comes from the backend's own allocator"
                )
        self._parts: dict[int, Pool] = {}
        self._uses = 1

    def part(self, device: _Device) -> Pool:
        """Return what of the pool lies on a GPU."""
        index = device.index or 0
        if index not in self._parts:
            self._parts[index] = Pool(device)
        return self._parts[index]

    @property
    def id(self) -> tuple[int, int]:
        """What graphs and snapshots know the pool by: of its part on the current GPU."""
        return self.part(resolve()).id

    @property
    def allocator(self) -> None:
        """None: memory comes from the driver."""
        return None

    def use_count(self) -> int:
        """Return how many hold the pool: this object, and every `use_mem_pool` that is under
        way.
        """
        return self._uses

    def snapshot(self, include_traces: bool = True) -> list[dict[str, Any]]:
        """Return the segments of the pool on all GPUs; see
        `candelabra.accelerator.memory_snapshot`. There are no traces.
        """
        addresses = {part.address for part in self._parts.values()}
        segments = [
            segment for index in range(device_count()) for segment in accelerator.memory_snapshot(resolve(index))
        ]
        return [segment for segment in segments if segment["segment_pool_id"][0] in addresses]

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_finalizing():
            for part in getattr(self, "_parts", {}).values():
                part.release()


@contextmanager
def use_mem_pool(pool: MemPool, device: Device | int = None) -> Iterator[None]:
    """Have what this thread allocates on a GPU inside of a ``with`` come from a pool, whatever the
    stream.

    Parameters
    ----------
    pool : MemPool
        Which keeps its memory for itself until it goes.
    device : device, str or int, optional
        The current GPU by default.

    Raises
    ------
    BackendError
        When there is no GPU.
    """
    where = resolve(device)
    part = pool.part(where)
    _C.pool_begin(where, part.address)
    pool._uses += 1
    try:
        yield
    finally:
        pool._uses -= 1
        _C.pool_end(where, part.address)


# Memory that caching_allocator_alloc() has handed out, by its address.
_lent: dict[int, Any] = {}


def caching_allocator_alloc(size: int, device: Device | int = None, stream: Any = None) -> int:
    """Take memory from a GPU's allocator, for libraries that know nothing of tensors.

    Parameters
    ----------
    size : int
        Bytes.
    device : device, str or int, optional
        The current GPU by default.
    stream : Stream or int, optional
        Where it is used, or that stream's address; the current one by default.

    Returns
    -------
    int
        Its address, until `caching_allocator_delete` is given it.

    Raises
    ------
    TypeError
        When the stream is neither.
    OutOfMemoryError
        When there is none left.
    """
    import candelabra

    from .streams import ExternalStream, Stream

    where = resolve(device)
    if stream is None or isinstance(stream, Stream):
        chosen = stream
    elif isinstance(stream, int):
        chosen = ExternalStream(stream, where)
    else:
        raise TypeError(
            "Invalid type for stream argument, must be `candelabra.cuda.Stream` or `int` representing a pointer to an existing stream"
        )
    with accelerator.StreamContext(chosen):
        memory = candelabra.empty(max(size, 1), dtype=candelabra.uint8, device=where)
    _lent[memory.data_ptr()] = memory
    return memory.data_ptr()


def caching_allocator_delete(mem_ptr: int) -> None:
    """Give memory of `caching_allocator_alloc` back; another address is none of it, which changes
    nothing.
    """
    _lent.pop(mem_ptr, None)


_is_caching = [True]


def caching_allocator_enable(value: bool = True) -> None:
    """Have memory that is given back kept for later, or not: then what is asked for meanwhile goes
    back to the driver at once.

    For ``compute-sanitizer`` and the like; ``CANDELABRA_CUDA_ALLOC_CONF=caching:False`` says it for
    the whole process. Nothing where there is no GPU.
    """
    if is_available():
        _C.set_caching(resolve(0), bool(value))
        _is_caching[0] = bool(value)


@contextmanager
def caching_allocator_disabled() -> Iterator[None]:
    """Have no memory kept for later inside of a ``with``."""
    before = _is_caching[0]
    caching_allocator_enable(False)
    try:
        yield
    finally:
        caching_allocator_enable(before)


def get_allocator_backend() -> str:
    """Return the name of the allocator: ``"native"``, the backend's own.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cuda.get_allocator_backend()
    'native'
    """
    return "native"
