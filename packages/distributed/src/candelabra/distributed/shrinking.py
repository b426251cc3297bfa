"""`shrink_group`: a group without some of its ranks."""

from __future__ import annotations

from typing import Any

from .errors import DistBackendError
from .groups import add_group, destroy_process_group, member, number_of_members, replace_world, world
from .process_group import ProcessGroup
from .store import PrefixStore

SHRINK_DEFAULT = 0
SHRINK_ABORT = 1


def shrink_group(
    ranks_to_exclude: list[int],
    group: ProcessGroup | None = None,
    shrink_flags: int = SHRINK_DEFAULT,
    pg_options: Any = None,
) -> ProcessGroup:
    """Make a group without some ranks of another one, which is destroyed. The ranks that stay call
    it, and no other.

    If the world is shrunk, the new group is the world, whose ranks are numbered again, and all
    other groups are destroyed. The excluded ranks can end.

    Parameters
    ----------
    ranks_to_exclude : list of int
        Ranks in the group.
    group : ProcessGroup, optional
        The world by default.
    shrink_flags : int
        SHRINK_DEFAULT, or SHRINK_ABORT, which does the same here: collectives that run must have
        ended.
    pg_options
        Has no effect.

    Raises
    ------
    TypeError, ValueError, RuntimeError
        The ranks are not some of the group's, or this rank is among them.
    DistBackendError
        A rank has failed: the launcher restarts such jobs.

    Examples
    --------
    >>> import candelabra.distributed as dist
    >>> dist.init_process_group("fake", rank=2, world_size=4)
    >>> shrunk = dist.shrink_group([1])
    >>> dist.get_rank(), dist.get_world_size()
    (1, 3)
    >>> dist.destroy_process_group()
    """
    parent = _checked_group(ranks_to_exclude, shrink_flags, group)
    excluded = _checked_ranks(ranks_to_exclude, parent)
    if parent.job.failure is not None:
        raise DistBackendError(
            f"shrink_group on rank {parent.job.rank}: {parent.job.failure}. A job whose rank has failed starts again: "
            "python -m candelabra.distributed.run --max-restarts"
        )
    is_world = parent is world()
    left = [rank for rank in range(parent.size()) if rank not in excluded]
    members = [parent.members[rank] for rank in left]
    number = number_of_members(("shrunk", parent.group_name, members))
    made = ProcessGroup(
        parent.job,
        range(len(left)) if is_world else [parent.ranks[rank] for rank in left],
        number,
        str(number),
        "default:shrunken" if is_world else f"{parent.group_name}:shrunk",
        parent.backends,
        parent.timeout,
        PrefixStore(f"group/{number}", parent.job.store),
        members,
    )
    made.bound_device_id = parent.bound_device_id
    used = list(parent.used_device_types())
    if is_world:
        replace_world(made)
    else:
        destroy_process_group(parent)
        add_group(made)
    for kind in used:
        made.communicator(kind)
    return made


def _checked_group(ranks_to_exclude: Any, flags: Any, group: ProcessGroup | None) -> ProcessGroup:
    if not isinstance(ranks_to_exclude, list):
        raise TypeError(
            f"ranks_to_exclude must be a list, but got {type(ranks_to_exclude).__name__}. "
            "Example: [1, 3, 5] to exclude ranks 1, 3, and 5."
        )
    if not ranks_to_exclude:
        raise ValueError(
            "ranks_to_exclude cannot be empty. To shrink a group, you must specify at least one rank to exclude. "
            "Example: [failed_rank_id]"
        )
    if not isinstance(flags, int) or flags not in (SHRINK_DEFAULT, SHRINK_ABORT):
        raise ValueError(
            f"Invalid shrink_flags value: {flags}. Must be one of: SHRINK_DEFAULT ({SHRINK_DEFAULT}) or SHRINK_ABORT "
            f"({SHRINK_ABORT}). Use SHRINK_ABORT to abort ongoing operations before shrinking."
        )
    parent = member(group)
    if parent is None:
        raise ValueError("shrink_group: this rank does not belong to the process group")
    if parent.size() <= 1:
        raise ValueError(
            f"Cannot shrink a process group with size {parent.size()}. Group must have at least 2 ranks to support shrinking."
        )
    return parent


def _checked_ranks(ranks: list[Any], parent: ProcessGroup) -> set[int]:
    size = parent.size()
    found: set[int] = set()
    for place, rank in enumerate(ranks):
        if not isinstance(rank, int):
            raise TypeError(
                f"All elements in ranks_to_exclude must be integers. Element at index {place} is {type(rank).__name__}: {rank}"
            )
        if not 0 <= rank < size:
            raise ValueError(
                f"Rank {rank} at index {place} is out of bounds for group size {size}. Valid ranks are in range [0, {size - 1}]."
            )
        if rank in found:
            raise ValueError(
                f"Duplicate rank {rank} found in ranks_to_exclude at index {place}. Each rank can only be excluded once."
            )
        found.add(rank)
    if len(found) >= size:
        raise ValueError(
            f"Cannot exclude all {size} ranks from process group. At least one rank must remain. Excluding {len(found)} ranks."
        )
    if parent.rank() in found:
        raise RuntimeError(
            f"Current rank {parent.rank()} is in the exclusion list and should not call shrink_group(). Only non-excluded ranks "
            "should participate in the shrinking operation. Excluded ranks should terminate their processes instead."
        )
    return found
