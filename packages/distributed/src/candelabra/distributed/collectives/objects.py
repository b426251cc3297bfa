"""Collectives of Python objects, which are pickled.

Ranks of one job run the same program and trust each other: an object that arrives is unpickled.
"""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Tensor, device

from ..bytes_tensors import object_of_tensor, tensor_of_object
from ..groups import member, warn_outside
from ..process_group import ProcessGroup
from .arguments import root
from .gathers import all_gather_into_tensor, gather, scatter
from .point_to_point import recv, send
from .reductions import broadcast


def all_gather_object(object_list: list[Any], obj: Any, group: ProcessGroup | None = None) -> None:
    """Put the objects of all ranks into the list of each rank.

    Parameters
    ----------
    object_list : list
        One place for each rank.
    obj
        This rank's object, which can be pickled.
    group : ProcessGroup, optional
        The world by default.

    Examples
    --------
    >>> import candelabra.distributed as dist
    >>> dist.init_process_group("fake", rank=0, world_size=1)
    >>> found = [None]
    >>> dist.all_gather_object(found, {"word": 7})
    >>> found
    [{'word': 7}]
    >>> dist.destroy_process_group()
    """
    found = member(group)
    if found is None:
        warn_outside("all_gather_object")
        return
    if len(object_list) != found.size():
        raise ValueError(f"all_gather_object: the list has {len(object_list)} places for {found.size()} ranks")
    if found.size() == 1:
        object_list[0] = obj
        return
    own, sizes, longest = _sized(obj, found, group)
    everyone = candelabra.empty((found.size(), longest), dtype=candelabra.uint8, device=own.device)
    all_gather_into_tensor(everyone, own, group)
    for rank, size in enumerate(sizes):
        object_list[rank] = object_of_tensor(everyone[rank], size)


def _sized(obj: Any, found: ProcessGroup, group: ProcessGroup | None) -> tuple[Tensor, list[int], int]:
    """Return an object's tensor, padded to the longest of all ranks, and all lengths."""
    where = found.host_or_only_device()
    own = tensor_of_object(obj, where)
    sizes = candelabra.empty(found.size(), dtype=candelabra.int64, device=where)
    all_gather_into_tensor(sizes, candelabra.tensor([own.numel()], device=where), group)
    lengths = [int(size) for size in sizes.tolist()]
    longest = max(lengths)
    padded = candelabra.zeros(longest, dtype=candelabra.uint8, device=where)
    padded[: own.numel()].copy_(own)
    return padded, lengths, longest


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    group_dst: int | None = None,
) -> None:
    """Put the objects of all ranks into the list of the rank `dst`; see `gather`."""
    found = member(group)
    if found is None:
        warn_outside("gather_object")
        return
    place = root(group, 0 if dst is None and group_dst is None else dst, group_dst, "dst")
    is_root = found.rank() == place
    if is_root and not object_gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if not is_root and object_gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    own, sizes, longest = _sized(obj, found, group)
    everyone = None
    if is_root:
        everyone = list(candelabra.empty((found.size(), longest), dtype=candelabra.uint8, device=own.device).unbind(0))
    gather(own, everyone, group=group, group_dst=place)
    if everyone is not None and object_gather_list is not None:
        for rank, size in enumerate(sizes):
            object_gather_list[rank] = object_of_tensor(everyone[rank], size)


def _pack(objects: list[Any], where: device) -> tuple[Tensor, Tensor]:
    tensors = [tensor_of_object(each, where) for each in objects]
    sizes = candelabra.tensor([each.numel() for each in tensors], dtype=candelabra.int64, device=where)
    return candelabra.cat(tensors), sizes


def _unpack(objects: list[Any], joined: Tensor, sizes: Tensor) -> None:
    start = 0
    for place, size in enumerate(sizes.tolist()):
        objects[place] = object_of_tensor(joined[start : start + int(size)], int(size))
        start += int(size)


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: device | None = None,
    group_src: int | None = None,
) -> None:
    """Copy the objects of the rank `src` to the lists of all others.

    Parameters
    ----------
    object_list : list
        The objects, or as many places for them.
    src, group_src : int, optional
        The rank that has them, in the world or in the group; 0 of the world by default.
    group : ProcessGroup, optional
        The world by default.
    device : device, optional
        By which the pickles travel.
    """
    found = member(group)
    if found is None:
        warn_outside("broadcast_object_list")
        return
    place = root(group, 0 if src is None and group_src is None else src, group_src, "src")
    where = device or found.host_or_only_device()
    if found.rank() == place:
        joined, sizes = _pack(object_list, where)
    else:
        sizes = candelabra.empty(len(object_list), dtype=candelabra.int64, device=where)
    broadcast(sizes, group=group, group_src=place)
    if found.rank() != place:
        joined = candelabra.empty(int(sizes.sum()), dtype=candelabra.uint8, device=where)
    broadcast(joined, group=group, group_src=place)
    if found.rank() != place:
        _unpack(object_list, joined, sizes)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    group_src: int | None = None,
) -> None:
    """Give each rank one object of the list of the rank `src`.

    Parameters
    ----------
    scatter_object_output_list : list
        Its first place gets this rank's object.
    scatter_object_input_list : list, optional
        The objects, on the rank `src` only.
    src, group_src, group
        As for `scatter`.
    """
    found = member(group)
    if found is None:
        warn_outside("scatter_object_list")
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    place = root(group, 0 if src is None and group_src is None else src, group_src, "src")
    where = found.host_or_only_device()
    sizes = candelabra.zeros(found.size(), dtype=candelabra.int64, device=where)
    pieces: list[Tensor] | None = None
    if found.rank() == place:
        if scatter_object_input_list is None or len(scatter_object_input_list) != found.size():
            raise ValueError("scatter_object_list: the rank src needs a list with one object for each rank")
        pieces = [tensor_of_object(each, where) for each in scatter_object_input_list]
        sizes = candelabra.tensor([each.numel() for each in pieces], dtype=candelabra.int64, device=where)
    broadcast(sizes, group=group, group_src=place)
    own = int(sizes[found.rank()])
    result = candelabra.empty(own, dtype=candelabra.uint8, device=where)
    scatter(result, pieces, group=group, group_src=place)
    scatter_object_output_list[0] = object_of_tensor(result, own)


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: ProcessGroup | None = None,
    device: device | None = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Send objects to a rank, which receives them by `recv_object_list`."""
    found = member(group)
    if found is None:
        warn_outside("send_object_list")
        return
    joined, sizes = _pack(object_list, device or found.host_or_only_device())
    send(sizes, dst, group, group_dst=group_dst)
    send(joined, dst, group, group_dst=group_dst)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: device | None = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receive objects from a rank into a list of as many places.

    Returns
    -------
    int
        The sender's rank in the world, or -1 if this rank is not in the group.
    """
    found = member(group)
    if found is None:
        warn_outside("recv_object_list")
        return -1
    where = device or found.host_or_only_device()
    sizes = candelabra.empty(len(object_list), dtype=candelabra.int64, device=where)
    source = recv(sizes, src, group, group_src=group_src)
    joined = candelabra.empty(int(sizes.sum()), dtype=candelabra.uint8, device=where)
    recv(joined, source, group)
    _unpack(object_list, joined, sizes)
    return source
