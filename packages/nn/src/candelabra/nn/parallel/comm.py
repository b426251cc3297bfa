"""Copy, split, gather and add tensors between devices, as in ``torch.nn.parallel.comm``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import candelabra
from candelabra import Tensor

from .replicate import as_device

__all__ = ["broadcast", "broadcast_coalesced", "gather", "reduce_add", "reduce_add_coalesced", "scatter"]


def _one_of(name: str, devices: Any, out: Any) -> None:
    if (devices is None) == (out is None):
        raise RuntimeError(
            f"{name}(): Exactly one of 'devices' and 'out' must be specified, but got devices={devices} and out={out}"
        )


def broadcast(tensor: Tensor, devices: Iterable[Any] | None = None, *, out: Sequence[Tensor] | None = None) -> Any:
    """Copy a tensor to several devices.

    Parameters
    ----------
    tensor
        The tensor.
    devices
        Where to; on its own device the tensor itself is taken.
    out
        Tensors to write to, instead of `devices`.

    Returns
    -------
    tuple
        The copies.

    Raises
    ------
    RuntimeError
        If both or none of `devices` and `out` are given.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn.parallel import comm
    >>> comm.broadcast(candelabra.ones(1), ["cpu", "cpu"])
    (tensor([1.]), tensor([1.]))
    """
    _one_of("broadcast", devices, out)
    if devices is not None:
        return tuple(tensor.to(as_device(device)) for device in devices)
    assert out is not None
    for target in out:
        target.copy_(tensor)
    return tuple(out)


def broadcast_coalesced(
    tensors: Sequence[Tensor], devices: Sequence[Any], buffer_size: int = 10485760
) -> list[list[Tensor]]:
    """Copy several tensors to several devices; return one list for each device.

    `buffer_size` is the size of PyTorch's transfers, and has no effect.
    """
    return [[tensor.to(as_device(device)) for tensor in tensors] for device in devices]


def reduce_add(inputs: Sequence[Tensor], destination: Any = None) -> Tensor:
    """Add tensors of different devices.

    Parameters
    ----------
    inputs
        Tensors of one shape.
    destination
        The device of the result, on which one of the tensors is; that of the first by default.

    Raises
    ------
    ValueError
        If the shapes differ.
    RuntimeError
        If no tensor is on that device.
    """
    where = inputs[0].device if destination is None else candelabra.device(as_device(destination))
    for number, tensor in enumerate(inputs):
        if tensor.shape != inputs[0].shape:
            got, expected = ("x".join(map(str, one.shape)) for one in (tensor, inputs[0]))
            raise ValueError(f"input {number} has invalid size: got {got}, but expected {expected}")
    root = next((number for number, tensor in enumerate(inputs) if tensor.device == where), None)
    if root is None:
        raise RuntimeError("reduce_add expects destination to be on the same GPU with one of the tensors")
    if len(inputs) == 1:
        return inputs[0]
    others = [tensor.to(where, non_blocking=True) for number, tensor in enumerate(inputs) if number != root]
    result = inputs[root] + others[0]
    for other in others[1:]:
        result.add_(other)
    return result


def reduce_add_coalesced(
    inputs: Sequence[Sequence[Tensor]], destination: Any = None, buffer_size: int = 10485760
) -> tuple[Tensor, ...]:
    """Add the tensors of several lists, one list for each device; see `reduce_add`."""
    return tuple(reduce_add(tensors, destination) for tensors in zip(*inputs, strict=True))


def scatter(
    tensor: Tensor,
    devices: Sequence[Any] | None = None,
    chunk_sizes: Sequence[int] | None = None,
    dim: int = 0,
    streams: Any = None,
    *,
    out: Sequence[Tensor] | None = None,
) -> Any:
    """Split a tensor over several devices.

    Parameters
    ----------
    tensor
        The tensor.
    devices
        Where the parts go.
    chunk_sizes
        The sizes of the parts along `dim`; equal ones by default.
    dim
        The dimension that is split.
    streams
        Of PyTorch's copies, and without effect.
    out
        Tensors to write to, instead of `devices`, which have the sizes.

    Raises
    ------
    RuntimeError
        If both or none of `devices` and `out` are given, or `out` with `chunk_sizes`.
    """
    _one_of("scatter", devices, out)
    if out is not None:
        if chunk_sizes is not None:
            raise RuntimeError(f"'chunk_sizes' must not be specified when 'out' is specified, but got {chunk_sizes}")
        for target, part in zip(out, tensor.split([target.size(dim) for target in out], dim), strict=True):
            target.copy_(part)
        return tuple(out)
    assert devices is not None
    parts = tensor.chunk(len(devices), dim) if chunk_sizes is None else tensor.split(list(chunk_sizes), dim)
    return tuple(part.to(as_device(device)) for part, device in zip(parts, devices, strict=False))


def gather(tensors: Sequence[Tensor], dim: int = 0, destination: Any = None, *, out: Tensor | None = None) -> Tensor:
    """Join tensors of several devices along a dimension.

    Parameters
    ----------
    tensors
        The tensors.
    dim
        The dimension.
    destination
        The device of the result; that of the first tensor by default.
    out
        The tensor to write to, instead of `destination`.

    Raises
    ------
    RuntimeError
        If both `destination` and `out` are given.
    """
    if out is not None and destination is not None:
        raise RuntimeError(f"'destination' must not be specified when 'out' is specified, but got {destination}")
    device = out.device if out is not None else tensors[0].device if destination is None else as_device(destination)
    joined = candelabra.cat([tensor.to(device) for tensor in tensors], dim)
    return joined if out is None else out.copy_(joined)
