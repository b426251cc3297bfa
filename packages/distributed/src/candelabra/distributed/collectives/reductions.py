"""Collectives that combine tensors, and broadcast."""

from __future__ import annotations

from candelabra import Tensor

from ..groups import member, warn_outside
from ..process_group import ProcessGroup
from ..reduce_op import ReduceOp
from ..work import Work
from .arguments import check_dtypes, check_list, check_tensor, flat, overridable, reduction, root, write_back


@overridable
def all_reduce(
    tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Combine the tensors of all ranks; each gets the result in its tensor.

    Parameters
    ----------
    tensor : Tensor
        Of the same shape and dtype on all ranks; changed in place.
    op : ReduceOp
        How they are combined.
    group : ProcessGroup, optional
        The world by default.
    async_op : bool
        Return at once.

    Returns
    -------
    Work or None
        The Work if `async_op`.

    Raises
    ------
    DistBackendError
        A rank has failed, or did not take part within the group's time limit.

    Examples
    --------
    >>> import candelabra, candelabra.distributed as dist
    >>> dist.init_process_group("fake", rank=0, world_size=1)
    >>> x = candelabra.ones(2)
    >>> dist.all_reduce(x)
    >>> dist.destroy_process_group()
    """
    check_tensor(tensor, "tensor")
    found = member(group)
    if found is None:
        warn_outside("all_reduce")
        return None
    if tensor.is_contiguous() and not tensor.requires_grad and not tensor.is_complex():
        name = reduction(op, tensor, "all_reduce")
        return found.collective("all_reduce", tensor, tensor, name, 0, async_op, tensor)
    used = flat(tensor)
    finish = write_back([(tensor, used)])
    return found.collective("all_reduce", used, used, reduction(op, tensor, "all_reduce"), 0, async_op, tensor, finish)


def all_reduce_coalesced(
    tensors: list[Tensor], op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Combine several tensors of one dtype in one collective; see `all_reduce`."""
    import candelabra

    check_list(tensors, "tensors")
    check_dtypes(tensors)
    found = member(group)
    if found is None:
        warn_outside("all_reduce_coalesced")
        return None
    used = [flat(each) for each in tensors]
    joined = candelabra.cat([each.view(-1) for each in used])
    pieces = joined.split([each.numel() for each in used])
    finish = write_back([(own, piece.view(each.shape)) for own, each, piece in zip(tensors, used, pieces, strict=True)])
    name = reduction(op, tensors[0], "all_reduce_coalesced")
    return found.collective("all_reduce", joined, joined, name, 0, async_op, tensors, finish)


@overridable
def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Combine the tensors of all ranks; the rank `dst` gets the result in its tensor."""
    check_tensor(tensor, "tensor")
    found = member(group)
    if found is None:
        warn_outside("reduce")
        return None
    place = root(group, dst, group_dst, "dst")
    used = flat(tensor)
    # The other ranks' tensors stay as they are, where an engine might use them for partial results.
    receive = used if found.rank() == place else used.clone()
    finish = write_back([(tensor, receive)]) if found.rank() == place else None
    return found.collective("reduce", used, receive, reduction(op, tensor, "reduce"), place, async_op, tensor, finish)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Combine the tensors of all ranks; each gets one part of the result.

    Parameters
    ----------
    output : Tensor
        For this rank's part.
    input : Tensor
        All parts: as many elements as `output` for each rank.
    op, group, async_op
        As for `all_reduce`.
    """
    check_tensor(output, "output")
    check_tensor(input, "input")
    found = member(group)
    if found is None:
        warn_outside("reduce_scatter_tensor")
        return None
    check_dtypes([output, input])
    if input.numel() != output.numel() * found.size():
        raise ValueError(
            f"input tensor must be the same size as output size times world size: {input.numel()} elements are not "
            f"{found.size()} times {output.numel()}"
        )
    name = reduction(op, input, "reduce_scatter_tensor")
    used, result = flat(input), flat(output)
    finish = write_back([(output, result)])
    return found.collective("reduce_scatter", used, result, name, 0, async_op, output, finish)


@overridable
def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Combine lists of tensors; the rank i gets the result for the i-th ones.

    Parameters
    ----------
    output : Tensor
        For this rank's result.
    input_list : list of Tensor
        One for each rank, all of one shape.
    op, group, async_op
        As for `all_reduce`.
    """
    import candelabra

    check_tensor(output, "output")
    check_list(input_list, "input_list")
    found = member(group)
    if found is None:
        warn_outside("reduce_scatter")
        return None
    check_dtypes([output, *input_list])
    if len(input_list) != found.size():
        raise ValueError(f"reduce_scatter: {len(input_list)} tensors for {found.size()} ranks")
    if any(each.shape != output.shape for each in input_list):
        raise ValueError("reduce_scatter: all tensors must have the shape of the output")
    joined = candelabra.stack([each.detach() for each in input_list])
    return reduce_scatter_tensor(output, joined, op, group, async_op)


@overridable
def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Copy the tensor of the rank `src` to those of all others."""
    check_tensor(tensor, "tensor")
    found = member(group)
    if found is None:
        warn_outside("broadcast")
        return None
    place = root(group, src, group_src, "src")
    used = flat(tensor)
    finish = None if found.rank() == place else write_back([(tensor, used)])
    return found.collective("broadcast", used, used, "sum", place, async_op, tensor, finish)
