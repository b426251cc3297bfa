"""Collectives that move tensors without combining them."""

from __future__ import annotations

from collections.abc import Sequence

import candelabra
from candelabra import Tensor

from ..groups import member, warn_outside
from ..process_group import ProcessGroup
from ..work import Work
from .arguments import check_dtypes, check_list, check_tensor, flat, overridable, root, write_back

#: The tag of the parts of collectives that consist of sends and receives.
_TAG = 0x7FFE


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Concatenate the tensors of all ranks in one; each rank gets it.

    Parameters
    ----------
    output_tensor : Tensor
        For the tensors of all ranks, concatenated or stacked along dimension 0.
    input_tensor : Tensor
        This rank's.
    group, async_op
        As for `all_reduce`.
    """
    check_tensor(input_tensor, "input_tensor")
    check_tensor(output_tensor, "output_tensor")
    found = member(group)
    if found is None:
        warn_outside("all_gather_into_tensor")
        return None
    check_dtypes([output_tensor, input_tensor])
    if output_tensor.numel() != input_tensor.numel() * found.size():
        raise ValueError(
            f"output tensor size must be equal to world_size times input tensor size: {output_tensor.numel()} elements "
            f"are not {found.size()} times {input_tensor.numel()}"
        )
    used, result = flat(input_tensor), flat(output_tensor)
    finish = write_back([(output_tensor, result)])
    return found.collective("all_gather", used, result, "sum", 0, async_op, output_tensor, finish)


@overridable
def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Copy the tensors of all ranks to the list of each rank.

    Parameters
    ----------
    tensor_list : list of Tensor
        One for each rank. The shapes of different ranks may differ.
    tensor : Tensor
        This rank's.
    group, async_op
        As for `all_reduce`.
    """
    check_list(tensor_list, "tensor_list")
    check_tensor(tensor, "tensor")
    found = member(group)
    if found is None:
        warn_outside("all_gather")
        return None
    _check_parts("all_gather", tensor_list, found.size())
    check_dtypes([*tensor_list, tensor])
    own = tensor_list[found.rank()]
    if own.numel() != tensor.numel():
        raise ValueError(
            f"all_gather: this rank's tensor has {tensor.numel()} elements, its place in the list {own.numel()}"
        )
    used = flat(tensor)
    if any(each.numel() != tensor.numel() for each in tensor_list):
        return _exchange(found, "all_gather", [used] * found.size(), tensor_list, async_op)
    joined = candelabra.empty((found.size(), *used.shape), dtype=used.dtype, device=used.device)
    finish = write_back([(each, joined[i]) for i, each in enumerate(tensor_list)])
    return found.collective("all_gather", used, joined, "sum", 0, async_op, tensor_list, finish)


def all_gather_coalesced(
    output_tensor_lists: list[list[Tensor]],
    input_tensor_list: list[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Gather several tensors; see `all_gather`.

    Parameters
    ----------
    output_tensor_lists : list of lists of Tensor
        For each rank its tensors.
    input_tensor_list : list of Tensor
        This rank's.
    group, async_op
        As for `all_reduce`.
    """
    check_list(input_tensor_list, "input_tensor_list")
    for each in output_tensor_lists:
        check_list(each, "output_tensor_lists")
    found = member(group)
    if found is None:
        warn_outside("all_gather_coalesced")
        return None
    _check_parts("all_gather_coalesced", output_tensor_lists, found.size())
    check_dtypes(input_tensor_list)
    used = [flat(each) for each in input_tensor_list]
    joined = candelabra.cat([each.view(-1) for each in used])
    everyone = candelabra.empty((found.size(), joined.numel()), dtype=joined.dtype, device=joined.device)
    copies: list[tuple[Tensor, Tensor]] = []
    for rank, outputs in enumerate(output_tensor_lists):
        pieces = everyone[rank].split([each.numel() for each in used])
        copies.extend((own, piece.view(each.shape)) for own, piece, each in zip(outputs, pieces, used, strict=True))
    return found.collective("all_gather", joined, everyone, "sum", 0, async_op, output_tensor_lists, write_back(copies))


@overridable
def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Copy the tensors of all ranks to the list of the rank `dst`.

    Parameters
    ----------
    tensor : Tensor
        This rank's.
    gather_list : list of Tensor, optional
        One for each rank, on the rank `dst` only.
    dst, group_dst : int, optional
        The rank that gets them, in the world or in the group; 0 of the world by default.
    group, async_op
        As for `all_reduce`.
    """
    check_tensor(tensor, "tensor")
    found = member(group)
    if found is None:
        warn_outside("gather")
        return None
    place = root(group, 0 if dst is None and group_dst is None else dst, group_dst, "dst")
    used = flat(tensor)
    if found.rank() != place:
        if gather_list:
            raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
        return _done(found.exchange("gather", [(used, place, _TAG)], [], tensor), async_op)
    if not gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    check_list(gather_list, "gather_list")
    _check_parts("gather", gather_list, found.size())
    check_dtypes([*gather_list, tensor])
    with candelabra.no_grad():
        gather_list[place].copy_(tensor.detach().view(gather_list[place].shape))
    results = [(each, flat(each)) for each in gather_list]
    receives = [(made, rank, _TAG) for rank, (_, made) in enumerate(results) if rank != place]
    results.pop(place)
    return _done(found.exchange("gather", [], receives, gather_list, write_back(results)), async_op)


@overridable
def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Give each rank one tensor of the list of the rank `src`.

    Parameters
    ----------
    tensor : Tensor
        For this rank's.
    scatter_list : list of Tensor, optional
        One for each rank, on the rank `src` only.
    src, group_src : int, optional
        The rank that has them, in the world or in the group; 0 of the world by default.
    group, async_op
        As for `all_reduce`.
    """
    check_tensor(tensor, "tensor")
    found = member(group)
    if found is None:
        warn_outside("scatter")
        return None
    place = root(group, 0 if src is None and group_src is None else src, group_src, "src")
    if found.rank() != place:
        if scatter_list:
            raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
        used = flat(tensor)
        work = found.exchange("scatter", [], [(used, place, _TAG)], tensor, write_back([(tensor, used)]))
        return _done(work, async_op)
    if not scatter_list:
        raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    check_list(scatter_list, "scatter_list")
    _check_parts("scatter", scatter_list, found.size())
    check_dtypes([*scatter_list, tensor])
    sends = [(flat(each), rank, _TAG) for rank, each in enumerate(scatter_list) if rank != place]
    with candelabra.no_grad():
        tensor.detach().copy_(scatter_list[place].detach().view(tensor.shape))
    return _done(found.exchange("scatter", sends, [], tensor), async_op)


@overridable
def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Send each rank one part of a tensor, and concatenate the parts that arrive.

    Parameters
    ----------
    output : Tensor
        For the parts that arrive, along dimension 0.
    input : Tensor
        The parts, along dimension 0.
    output_split_sizes, input_split_sizes : list of int, optional
        The length of each part; equal ones by default.
    group, async_op
        As for `all_reduce`.
    """
    check_tensor(output, "output")
    check_tensor(input, "input")
    found = member(group)
    if found is None:
        warn_outside("all_to_all_single")
        return None
    check_dtypes([output, input])
    size = found.size()
    used, result = flat(input), flat(output)
    finish = write_back([(output, result)])
    if not output_split_sizes and not input_split_sizes and used.numel() == result.numel():
        if input.dim() and input.shape[0] % size:
            raise ValueError(f"Tensor's dim 0 does not divide equally across group size: {input.shape[0]} by {size}")
        return found.collective("all_to_all", used, result, "sum", 0, async_op, output, finish)
    sends = _parts(used, input_split_sizes, size, "input")
    receives = _parts(result, output_split_sizes, size, "output")
    return _exchange(found, "all_to_all_single", sends, receives, async_op, output, finish)


def _parts(tensor: Tensor, sizes: Sequence[int] | None, count: int, name: str) -> list[Tensor]:
    length = tensor.shape[0] if tensor.dim() else 0
    if not sizes:
        if length % count:
            raise ValueError(f"Tensor's dim 0 does not divide equally across group size: {length} by {count}")
        sizes = [length // count] * count
    if len(sizes) != count:
        raise ValueError(
            f"Number of tensor splits not equal to group size: {len(sizes)} {name} sizes for {count} ranks"
        )
    if sum(sizes) != length:
        raise ValueError(f"Split sizes doesn't match total dim 0 size: the {name} sizes {list(sizes)} of {length}")
    return list(tensor.split(list(sizes)))


@overridable
def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Send each rank one tensor of a list.

    Parameters
    ----------
    output_tensor_list : list of Tensor
        For what each rank has sent to this one.
    input_tensor_list : list of Tensor
        What each rank gets from this one.
    group, async_op
        As for `all_reduce`.
    """
    check_list(output_tensor_list, "output_tensor_list")
    check_list(input_tensor_list, "input_tensor_list")
    found = member(group)
    if found is None:
        warn_outside("all_to_all")
        return None
    _check_parts("all_to_all", output_tensor_list, found.size())
    _check_parts("all_to_all", input_tensor_list, found.size())
    check_dtypes([*output_tensor_list, *input_tensor_list])
    return _exchange(found, "all_to_all", [flat(each) for each in input_tensor_list], output_tensor_list, async_op)


def _check_parts(name: str, parts: Sequence[object], size: int) -> None:
    if len(parts) != size:
        raise ValueError(f"{name}: the list has {len(parts)} tensors for a group of {size} ranks")


def _exchange(
    group: ProcessGroup,
    kind: str,
    sends: Sequence[Tensor],
    outputs: Sequence[Tensor],
    is_async: bool,
    results: object = None,
    finish: object = None,
) -> Work | None:
    """Send the i-th tensor to rank i and receive from it into the i-th output."""
    own = group.rank()
    made = [flat(each) for each in outputs]
    if sends[own].numel() != made[own].numel():
        raise ValueError(
            f"{kind}: rank {own} sends {sends[own].numel()} elements to itself and expects {made[own].numel()}"
        )
    with candelabra.no_grad():
        made[own].copy_(sends[own].view(made[own].shape))
    copy = write_back(list(zip(outputs, made, strict=True)))

    def copy_all() -> None:
        if copy is not None:
            copy()
        if callable(finish):
            finish()

    others = [rank for rank in range(group.size()) if rank != own]
    work = group.exchange(
        kind,
        [(sends[rank], rank, _TAG) for rank in others if sends[rank].numel()],
        [(made[rank], rank, _TAG) for rank in others if made[rank].numel()],
        list(outputs) if results is None else results,
        copy_all,
    )
    return _done(work, is_async)


def _done(work: Work, is_async: bool) -> Work | None:
    if is_async:
        return work
    work.wait()
    return None
