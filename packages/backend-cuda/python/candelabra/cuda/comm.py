"""Tensors on several GPUs of one process: copies, sums, parts of them. Between processes:
`candelabra.communication`.
"""

from __future__ import annotations

from candelabra import _C
from candelabra.accelerator import StreamContext

from .devices import resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from candelabra._C import Tensor
    from candelabra.types import Device

__all__ = ["broadcast", "broadcast_coalesced", "gather", "reduce_add", "reduce_add_coalesced", "scatter"]


def broadcast(
    tensor: Tensor, devices: Sequence[Device | int] | None = None, *, out: Sequence[Tensor] | None = None
) -> Any:
    """Copy a tensor to several GPUs.

    Parameters
    ----------
    tensor : Tensor
        Of the host or of a GPU.
    devices : sequence of device, str or int, optional
        Where to; the first is the tensor's own where it is on a GPU.
    out : sequence of Tensor, optional
        What is written instead; either this or `devices`.

    Returns
    -------
    tuple of Tensor or sequence of Tensor
        A copy on each of the devices (the tensor itself where it is there already), or `out`.

    Raises
    ------
    RuntimeError
        When both or neither of `devices` and `out` are given, or one of `out` has other sizes or is
        on no GPU.
    """
    if (devices is None) == (out is None):
        raise RuntimeError(
            f"Exactly one of 'devices' and 'out' must be specified, but got devices={devices} and out={out}"
        )
    if devices is not None:
        return tuple(tensor.to(resolve(device), non_blocking=True) for device in devices)
    assert out is not None
    for i, each in enumerate(out):
        if not each.is_cuda:
            raise RuntimeError(
                f"Expected all output tensors to be CUDA tensors, but output tensor at index {i} is on {each.device}"
            )
        if each.shape != tensor.shape:
            raise RuntimeError(
                f"Expected all output tensors to have same shape as the source tensor {list(tensor.shape)}, but output tensor at "
                f"index {i} has shape {list(each.shape)}"
            )
    for each in out:
        if each is not tensor:
            each.copy_(tensor, non_blocking=True)
    return out


def broadcast_coalesced(
    tensors: Sequence[Tensor], devices: Sequence[Device | int], buffer_size: int = 10485760
) -> list[tuple[Tensor, ...]]:
    """Copy tensors to several GPUs.

    Parameters
    ----------
    tensors : sequence of Tensor
        All on the first of the devices.
    devices : sequence of device, str or int
        Where to.
    buffer_size : int
        Without a meaning: copies are queued one after the other, and nothing waits for them.

    Returns
    -------
    list of tuple of Tensor
        For each device its copies.
    """
    where = [resolve(device) for device in devices]
    for tensor in tensors:
        if tensor.device != where[0]:
            raise RuntimeError(f"all tensors must be on devices[0]: {where[0]}, but one is on {tensor.device}")
    return [tuple(tensor.to(device, non_blocking=True) for tensor in tensors) for device in where]


def reduce_add(inputs: Sequence[Tensor], destination: Device | int = None) -> Tensor:
    """Add tensors of several GPUs up on one of them, in their order.

    Parameters
    ----------
    inputs : sequence of Tensor
        Of one size and dtype, each on a GPU.
    destination : device, str or int, optional
        The GPU of one of them; the current one by default.

    Raises
    ------
    ValueError
        When the sizes differ.
    RuntimeError
        When none of them is on that GPU, or one is on the host.
    """
    where = resolve(destination)
    root = None
    for i, each in enumerate(inputs):
        if not each.is_cuda:
            raise RuntimeError(f"reduce_add expects all inputs to be on GPUs, but input {i} is on {each.device}")
        if each.device == where:
            root = i
        if each.shape != inputs[0].shape:
            got, expected = ("x".join(map(str, shape)) for shape in (each.shape, inputs[0].shape))
            raise ValueError(f"input {i} has invalid size: got {got}, but expected {expected}")
    if root is None:
        raise RuntimeError("reduce_add expects destination to be on the same GPU with one of the tensors")
    if len(inputs) == 1:
        return inputs[0]
    others = [each.to(where, non_blocking=True) for i, each in enumerate(inputs) if i != root]
    result = inputs[root] + others[0]
    for other in others[1:]:
        result.add_(other)
    return result


def reduce_add_coalesced(
    inputs: Sequence[Sequence[Tensor]], destination: Device | int = None, buffer_size: int = 10485760
) -> tuple[Tensor, ...]:
    """Add up, for several tensors at once, what each GPU has of them.

    Parameters
    ----------
    inputs : sequence of sequence of Tensor
        For each GPU its tensors.
    destination : device, str or int, optional
        See `reduce_add`.
    buffer_size : int
        Without a meaning, see `broadcast_coalesced`.
    """
    return tuple(reduce_add(each, destination) for each in zip(*inputs, strict=True))


def scatter(
    tensor: Tensor,
    devices: Sequence[Device | int] | None = None,
    chunk_sizes: Sequence[int] | None = None,
    dim: int = 0,
    streams: Sequence[Any] | None = None,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]:
    """Cut a tensor into parts, one for each GPU.

    Parameters
    ----------
    tensor : Tensor
        Of the host or of a GPU.
    devices : sequence of device, str or int, optional
        Where the parts go; either this or `out`.
    chunk_sizes : sequence of int, optional
        Sizes of the parts, together that of the dimension; about equal ones by default.
    dim : int
        Along which it is cut.
    streams : sequence of Stream or None, optional
        On which the parts are copied; the current ones by default.
    out : sequence of Tensor, optional
        What is written instead; their sizes along `dim` are those of the parts.

    Raises
    ------
    RuntimeError
        When both of `devices` and `out` are given, or sizes do not add up.
    """
    if out is not None:
        if devices is not None:
            raise RuntimeError(f"'devices' must not be specified when 'out' is specified, but got devices={devices}")
        if chunk_sizes is not None:
            raise RuntimeError(
                f"'chunk_sizes' must not be specified when 'out' is specified, but got chunk_sizes={chunk_sizes}"
            )
        sizes = [each.shape[dim] for each in out]
        if sum(sizes) != tensor.shape[dim]:
            raise RuntimeError(
                f"Total size for output tensors along scatter dim {dim} does not match the source tensor: {sum(sizes)}, "
                f"not {tensor.shape[dim]}"
            )
        count = len(out)
    else:
        if devices is None:
            raise RuntimeError("Expected at least one device to scatter to")
        count = len(devices)
        if count == 0:
            raise RuntimeError("Expected at least one device to scatter to")
        if chunk_sizes is not None and (len(chunk_sizes) != count or sum(chunk_sizes) != tensor.shape[dim]):
            raise RuntimeError(
                f"Given chunk sizes are to be one for each device, and {tensor.shape[dim]} together along dim {dim}, but are {list(chunk_sizes)}"
            )
        sizes = list(chunk_sizes) if chunk_sizes is not None else []
    parts = tensor.split(sizes, dim) if sizes or out is not None else tensor.chunk(count, dim)
    results = []
    for i, part in enumerate(parts):
        with StreamContext(streams[i] if streams is not None else None):
            if out is not None:
                results.append(out[i].copy_(part, non_blocking=True))
            else:
                assert devices is not None
                results.append(part.contiguous().to(resolve(devices[i]), non_blocking=True))
    return tuple(results)


def gather(
    tensors: Sequence[Tensor], dim: int = 0, destination: Device | int = None, *, out: Tensor | None = None
) -> Tensor:
    """Put tensors of several GPUs one behind the other on one device.

    Parameters
    ----------
    tensors : sequence of Tensor
        Whose sizes agree but along `dim`.
    dim : int
        Along which they are joined.
    destination : device, str or int, optional
        A GPU, or ``"cpu"``; the current GPU by default.
    out : Tensor, optional
        What is written instead.

    Raises
    ------
    RuntimeError
        When both of `destination` and `out` are given.
    """
    import candelabra

    if out is not None:
        if destination is not None:
            raise RuntimeError(
                f"'destination' must not be specified when 'out' is specified, but got destination={destination}"
            )
        return candelabra.cat([each.to(out.device, non_blocking=True) for each in tensors], dim, out=out)
    on_host = destination == -1 or (isinstance(destination, (str, _C.device)) and _C.device(destination).type == "cpu")
    where = _C.device("cpu") if on_host else resolve(destination)
    return candelabra.cat([each.to(where) for each in tensors], dim)
