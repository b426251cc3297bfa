"""The process groups of this process: the world, and those made of its ranks."""

from __future__ import annotations

import atexit
import itertools
import zlib
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from candelabra import _C, device

from .engines import registry
from .job import Job
from .process_group import ProcessGroup
from .rendezvous import NoAddressError, rendezvous
from .store import HashStore, PrefixStore, Store
from .store.base import seconds

default_pg_timeout = timedelta(minutes=30)


class GroupMember:
    """The world, and what stands for a group to which this process does not belong."""

    WORLD: ProcessGroup | None = None
    NON_GROUP_MEMBER = -100


group = GroupMember

#: The groups of this process by name, the world first.
_groups: dict[str, ProcessGroup] = {}
#: Counts the initializations, so that each has keys of its own in a store that stays.
_initializations = itertools.count()
_numbers = itertools.count(1)
_local_groups: dict[tuple[int, ...], int] = {}
_LOCAL_NUMBERS = 1 << 14


def is_initialized() -> bool:
    """Return whether `init_process_group` was called.

    Examples
    --------
    >>> import candelabra.distributed as dist
    >>> dist.is_initialized()
    False
    """
    return GroupMember.WORLD is not None


def world() -> ProcessGroup:
    """Return the group of all ranks.

    Raises
    ------
    ValueError
        There is none yet.
    """
    if GroupMember.WORLD is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return GroupMember.WORLD


def member(given: ProcessGroup | int | None) -> ProcessGroup | None:
    """Return the group of a call: the world by default, None where this rank is not in it."""
    if given is None:
        return world()
    if given == GroupMember.NON_GROUP_MEMBER:
        return None
    if not isinstance(given, ProcessGroup):
        raise TypeError(f"group must be a ProcessGroup or None, not {type(given).__name__}")
    return given


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: device | int | None = None,
) -> None:
    """Join the job's processes, which then can call collectives.

    Parameters
    ----------
    backend : str, optional
        ``mpi`` for tensors in host memory, ``nccl`` for CUDA, or pairs like
        ``"cpu:mpi,cuda:nccl"``, which is the default. ``gloo`` is carried out by ``mpi``. ``fake``
        simulates any number of ranks.
    init_method : str, optional
        How the processes meet: ``env://`` (default), ``tcp://HOST:PORT`` or ``file:///PATH``.
    timeout : timedelta, optional
        The time limit of each collective; 30 minutes by default.
    world_size, rank : int
        The number of processes, and the number of this one, where the environment does not say it.
    store : Store, optional
        By which the processes meet, instead of an init method.
    group_name : str
        Has no effect.
    pg_options
        Has no effect.
    device_id : device, optional
        This process's device.

    Raises
    ------
    ValueError
        The process group exists already, or an argument is missing or wrong.
    DistBackendError
        Another process has failed meanwhile.

    Examples
    --------
    >>> import candelabra.distributed as dist
    >>> dist.init_process_group("fake", rank=0, world_size=8, store=dist.HashStore())
    >>> dist.get_world_size()
    8
    >>> dist.destroy_process_group()
    """
    if GroupMember.WORLD is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    limit = default_pg_timeout if timeout is None else timeout
    if not isinstance(limit, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {limit}")
    backends = registry.parse(backend)
    is_alone = set(backends.values()) == {"fake"}
    if store is not None:
        if not world_size > 0:
            raise AssertionError("world_size must be positive if using store")
        if not rank >= 0:
            raise AssertionError("rank must be non-negative if using store")
    elif is_alone and init_method is None and rank >= 0 and world_size > 0:
        store = HashStore()
    has_foreign_manager = False
    if store is None:
        try:
            store, rank, world_size = rendezvous(init_method or "env://", rank, world_size, limit)
        except NoAddressError as found:
            from .foreign import start_by_engine

            rank, world_size = found.rank, found.world_size
            store = start_by_engine(backends, rank, world_size, limit)
            has_foreign_manager = True
        store.set_timeout(limit)
    if not 0 <= rank < world_size:
        raise ValueError(f"rank must be between 0 and {world_size - 1}, but got {rank}")
    global _numbers
    _numbers = itertools.count(1)
    prefixed = PrefixStore(f"default_pg/{next(_initializations)}", store)
    job = Job(prefixed, rank, world_size, limit, is_alone)
    job.has_foreign_manager = has_foreign_manager
    made = ProcessGroup(job, range(world_size), 0, "0", "default_pg", backends, limit, PrefixStore("group/0", prefixed))
    made.bound_device_id = _device(device_id)
    GroupMember.WORLD = made
    _groups[made.group_name] = made
    try:
        if backend is not None and backends.get("cpu") is not None:
            made.communicator("cpu")
    except BaseException:
        destroy_process_group()
        raise


def _device(given: device | int | str | None) -> device | None:
    if given is None or isinstance(given, device):
        return given
    return device("cuda", given) if isinstance(given, int) else device(given)


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Leave a group, or the job if no group or the world is given.

    Examples
    --------
    >>> import candelabra.distributed as dist
    >>> dist.init_process_group("fake", rank=1, world_size=2)
    >>> dist.destroy_process_group()
    >>> dist.is_initialized()
    False
    """
    if group == GroupMember.NON_GROUP_MEMBER:
        return
    if group is None or group is GroupMember.WORLD:
        made = world()
        for each in reversed(list(_groups.values())):
            each.close()
        _groups.clear()
        _local_groups.clear()
        GroupMember.WORLD = None
        made.job.close()
        return
    if _groups.pop(group.group_name, None) is None:
        raise ValueError("Invalid process group specified")
    group.close()


def _leave() -> None:
    if GroupMember.WORLD is not None:
        destroy_process_group()


atexit.register(_leave)


# ---- new groups


def _make(
    ranks: Sequence[int], number: int, backend: str | None, timeout: timedelta | None, description: str | None
) -> ProcessGroup:
    parent = world()
    limit = parent.timeout if timeout is None else timedelta(seconds=seconds(timeout))
    name = str(number)
    made = ProcessGroup(
        parent.job,
        ranks,
        number,
        name,
        description or "undefined",
        parent.backends if backend is None else registry.parse(backend),
        limit,
        PrefixStore(f"group/{name}", parent.job.store),
        [parent.members[rank] for rank in ranks],
    )
    made.bound_device_id = parent.bound_device_id
    _groups[name] = made
    if (backend is not None or "cpu" in parent._communicators) and "cpu" in made.backends:
        made.communicator("cpu")
    return made


def _checked_ranks(ranks: Sequence[int] | None, is_sorted: bool = True) -> list[int]:
    size = world().size()
    if ranks is None:
        return list(range(size))
    found = sorted(ranks) if is_sorted else list(ranks)
    if len(found) > size:
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by init_process_group"
        )
    if len(set(found)) != len(found):
        raise ValueError(f"the new group's ranks must be different, but got {ranks}")
    for rank in found:
        if rank < 0 or rank >= size:
            raise ValueError("The new group's rank should be within the world_size set by init_process_group")
    return found


def number_of_members(known: object) -> int:
    """Return the number of a group that only its members make: it follows from what they know."""
    return _LOCAL_NUMBERS + zlib.crc32(repr(known).encode()) % _LOCAL_NUMBERS


def replace_world(made: ProcessGroup) -> None:
    """Forget all groups, and make this one the world."""
    for each in reversed(list(_groups.values())):
        each.close()
    _groups.clear()
    _local_groups.clear()
    GroupMember.WORLD = made
    _groups[made.group_name] = made


def add_group(made: ProcessGroup) -> None:
    """Register a group."""
    _groups[made.group_name] = made


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: device | None = None,
    sort_ranks: bool = True,
) -> Any:
    """Make a group of some ranks. All ranks of the world must call it, also those outside of it.

    Parameters
    ----------
    ranks : list of int, optional
        All ranks by default.
    timeout : timedelta, optional
        The time limit of each collective; that of the world by default.
    backend : str, optional
        As for `init_process_group`; that of the world by default.
    pg_options
        Has no effect.
    use_local_synchronization : bool
        Only the ranks of the group call this.
    group_desc : str, optional
        What the program calls the group.
    device_id : device, optional
        This process's device.
    sort_ranks : bool
        Whether the ranks are sorted, or numbered as they are given.

    Returns
    -------
    ProcessGroup or int
        ``GroupMember.NON_GROUP_MEMBER`` on a rank outside of the group.

    Examples
    --------
    >>> import candelabra.distributed as dist
    >>> dist.init_process_group("fake", rank=1, world_size=4)
    >>> dist.get_rank(dist.new_group([1, 3]))
    0
    >>> dist.destroy_process_group()
    """
    wanted = _checked_ranks(ranks, sort_ranks)
    parent = world()
    if use_local_synchronization:
        if parent.rank() not in wanted:
            return GroupMember.NON_GROUP_MEMBER
        key = tuple(wanted)
        count = _local_groups[key] = _local_groups.get(key, 0) + 1
        number = number_of_members((key, count))
    else:
        number = next(_numbers)
        if parent.rank() not in wanted:
            return GroupMember.NON_GROUP_MEMBER
    made = _make(wanted, number, backend, timeout, group_desc)
    if device_id is not None:
        made.bound_device_id = device_id
    return made


def split_group(
    parent_pg: ProcessGroup | None = None,
    split_ranks: list[list[int]] | None = None,
    timeout: timedelta | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
    backend: str | None = None,
) -> ProcessGroup | None:
    """Split a group into several; all its ranks must call it.

    Parameters
    ----------
    parent_pg : ProcessGroup, optional
        The world by default.
    split_ranks : list of lists of int
        The ranks in the parent of each new group.
    timeout, pg_options, group_desc, backend
        As for `new_group`.

    Returns
    -------
    ProcessGroup or None
        The new group to which this rank belongs.

    Examples
    --------
    >>> import candelabra.distributed as dist
    >>> dist.init_process_group("fake", rank=1, world_size=4)
    >>> dist.split_group(split_ranks=[[0, 1], [2, 3]]).ranks
    [0, 1]
    >>> dist.destroy_process_group()
    """
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    parent = member(parent_pg)
    if parent is None:
        return None
    numbers = [next(_numbers) for _ in split_ranks]
    mine = None
    seen: set[int] = set()
    for part, number in zip(split_ranks, numbers, strict=True):
        if seen.intersection(part) or len(set(part)) != len(part):
            raise ValueError("the split group cannot have duplicate ranks")
        seen.update(part)
        if any(not 0 <= rank < parent.size() for rank in part):
            raise ValueError(
                f"the parts {split_ranks} have ranks that the parent of {parent.size()} ranks does not have"
            )
        if parent.rank() in part:
            mine = (part, number)
    if mine is None:
        return None
    ranks = [parent.ranks[rank] for rank in sorted(mine[0])]
    return _make(ranks, mine[1], backend, timeout or parent.timeout, group_desc)


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Divide a group into parts of one size.

    Parameters
    ----------
    group_size : int
        The number of ranks of each part, which divides the size of the group.
    group : ProcessGroup, optional
        The world by default.
    timeout, backend, pg_options, group_desc
        As for `new_group`.

    Returns
    -------
    tuple
        The part of this rank, and the list of all parts.

    Raises
    ------
    ValueError
        The size does not fit.
    """
    if group_size is None:
        raise ValueError("group_size is needed: the number of ranks of each subgroup")
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    parent = member(group)
    if parent is None:
        raise ValueError("this rank is not in the group that is divided")
    size = parent.size()
    if size < group_size:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size ({size})")
    if size % group_size:
        raise ValueError(f"The world size ({size}) must be divisible by '{group_size=}'")
    parts = [parent.ranks[start : start + group_size] for start in range(0, size, group_size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: list[list[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Make groups of the given ranks, which must not overlap.

    Returns
    -------
    tuple
        The group of this rank (or None), and the list of all.

    Raises
    ------
    ValueError
        There are no groups, or a rank is in two.
    """
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    seen: dict[int, list[int]] = {}
    for ranks in ranks_per_subgroup_list:
        for rank in ranks:
            if rank in seen:
                raise ValueError(f"Rank {rank} has appeared in both subgroup {seen[rank]} and {ranks}")
            seen[rank] = ranks
    mine = None
    made = []
    for ranks in ranks_per_subgroup_list:
        each = new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
        made.append(each)
        if world().rank() in ranks:
            mine = each
    return mine, made


# ---- questions


def get_rank(group: ProcessGroup | None = None) -> int:
    """Return this process's rank in a group, or -1 if it is not in it."""
    found = member(group)
    return -1 if found is None else found.rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """Return the number of ranks of a group, or -1 if this process is not in it."""
    found = member(group)
    return -1 if found is None else found.size()


def get_backend(group: ProcessGroup | None = None) -> str:
    """Return the name of a group's backend, as it was given."""
    found = member(group)
    if found is None:
        raise ValueError("Invalid process group specified")
    return found.name()


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """Return the backends of a group by device type, like ``"cpu:mpi,cuda:nccl"``."""
    found = member(group)
    if found is None:
        raise ValueError("Invalid process group specified")
    return ",".join(f"{kind}:{name}" for kind, name in found.backends.items())


def get_default_backend_for_device(device: str | device) -> str:  # type: ignore[valid-type]
    """Return the name of the backend for a device, if a program names none.

    Examples
    --------
    >>> import candelabra.distributed as dist
    >>> dist.get_default_backend_for_device("cuda")
    'nccl'
    """
    kind = device if isinstance(device, str) else device.type  # type: ignore[attr-defined]
    kind = kind.partition(":")[0]
    if kind not in registry.DEFAULTS:
        raise ValueError(f"Default backend not registered for device : {device}")
    return registry.DEFAULTS[kind]


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """Return the ranks of the world that a group has, in the group's order."""
    found = member(group)
    return [] if found is None else list(found.ranks)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """Return the rank of the world of a rank of a group.

    Raises
    ------
    ValueError
        The group has no such rank.
    """
    found = member(group)
    if found is None or not 0 <= group_rank < found.size():
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return found.ranks[group_rank]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """Return the rank in a group of a rank of the world.

    Raises
    ------
    ValueError
        The rank is not in the group.
    """
    found = member(group)
    if found is None:
        raise ValueError(f"Group {group} is not registered, please create group with torch.distributed.new_group API")
    return found.place(global_rank)


def get_pg_count() -> int:
    """Return the number of groups of this process."""
    return len(_groups)


def warn_outside(name: str) -> None:
    """Warn that a rank calls a collective of a group to which it does not belong."""
    _C.warn(f"Running {name} on global rank {world().rank()} which does not belong to the given group.")
