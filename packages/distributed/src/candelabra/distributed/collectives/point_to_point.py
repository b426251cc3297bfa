"""Sends and receives between two ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from candelabra import Tensor

from ..groups import get_process_group_ranks, member, warn_outside
from ..process_group import ProcessGroup
from ..work import Work
from .arguments import check_tensor, flat, overridable, root, write_back


@overridable
def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Start to send a tensor to a rank. It must not change before the Work's `wait` returns."""
    check_tensor(tensor, "tensor")
    found = member(group)
    if found is None:
        warn_outside("isend")
        return None
    place = _peer(found, group, dst, group_dst, "dst")
    used = flat(tensor)
    return found.exchange("send", [(used, place, tag)], [], tensor, is_collective=False)


@overridable
def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Start to receive a tensor from a rank, or from any if none is given."""
    check_tensor(tensor, "tensor")
    found = member(group)
    if found is None:
        warn_outside("irecv")
        return None
    place = -1 if src is None and group_src is None else _peer(found, group, src, group_src, "src")
    used = flat(tensor)
    return found.exchange("recv", [], [(used, place, tag)], tensor, write_back([(tensor, used)]), is_collective=False)


def _peer(found: ProcessGroup, group: ProcessGroup | None, rank: int | None, group_rank: int | None, name: str) -> int:
    place = root(group, rank, group_rank, name)
    if place == found.rank():
        where = "destination" if name == "dst" else "source"
        raise ValueError(
            f"Invalid {where} rank: {where} rank should not be the same as the rank of the current process."
        )
    return place


@overridable
def send(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Send a tensor to a rank, which receives it by `recv`.

    Parameters
    ----------
    tensor : Tensor
        What is sent.
    dst, group_dst : int, optional
        The rank in the world, or in the group.
    group : ProcessGroup, optional
        The world by default.
    tag : int
        Only a receive with the same tag gets it (not on CUDA).
    """
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


@overridable
def recv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receive a tensor of this shape and dtype from a rank.

    Parameters
    ----------
    tensor : Tensor
        For the result.
    src, group_src : int, optional
        The rank in the world, or in the group; any if neither is given.
    group : ProcessGroup, optional
        The world by default.
    tag : int
        Only a tensor sent with the same tag is received (not on CUDA).

    Returns
    -------
    int
        The sender's rank in the world, or -1 if this rank is not in the group.
    """
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    if src is not None:
        return src
    found = member(group)
    assert found is not None
    return work.source_rank() if group_src is None else found.ranks[group_src]


class P2POp:
    """A send or a receive for `batch_isend_irecv`.

    Parameters
    ----------
    op : callable
        `isend` or `irecv`.
    tensor : Tensor
        What is sent or received.
    peer : int, optional
        The other rank, in the world.
    group : ProcessGroup, optional
        The world by default.
    tag : int
        As for `send`.
    group_peer : int, optional
        The other rank, in the group.
    """

    def __init__(
        self,
        op: Callable[..., Any],
        tensor: Tensor,
        peer: int | None = None,
        group: ProcessGroup | None = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or ``torch.distributed.irecv``."
            )
        check_tensor(tensor, "tensor")
        found = member(group)
        if found is None:
            raise ValueError("P2POp: this rank does not belong to the group")
        self.op = op
        self.tensor = tensor
        self.group = found
        self.tag = tag
        self.group_peer = _peer(found, group, peer, group_peer, "dst" if op is isend else "src")
        self.peer = get_process_group_ranks(found)[self.group_peer]


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Start several sends and receives of one group together.

    Returns
    -------
    list of Work
        One Work for all of them.

    Raises
    ------
    RuntimeError
        The list is empty, or has something else.
    ValueError
        They are of different groups.
    """
    if not isinstance(p2p_op_list, list) or not all(isinstance(each, P2POp) for each in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.")
    if not p2p_op_list:
        raise ValueError("Invalid ``p2p_op_list``: it is empty")
    group = p2p_op_list[0].group
    if any(each.group is not group for each in p2p_op_list):
        raise ValueError("All ops need to use the same group.")
    sends, receives, results = [], [], []
    for each in p2p_op_list:
        used = flat(each.tensor)
        if each.op is isend:
            sends.append((used, each.group_peer, each.tag))
        else:
            receives.append((used, each.group_peer, each.tag))
            results.append((each.tensor, used))
    work = group.exchange(
        "batch_isend_irecv", sends, receives, [own for own, _ in results], write_back(results), is_collective=False
    )
    return [work]
