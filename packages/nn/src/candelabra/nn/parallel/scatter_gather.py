"""Split arguments over several devices and gather the results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import candelabra
from candelabra import Tensor

from .replicate import as_device


def _is_namedtuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """Split all tensors in `inputs` along `dim` into one chunk per device.

    Other values are passed to all devices.

    Returns
    -------
    list
        One structure like `inputs` per device; fewer if there are not enough rows.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.parallel.scatter({"x": candelabra.arange(3), "factor": 2}, ["cpu", "cpu"])
    [{'x': tensor([0, 1]), 'factor': 2}, {'x': tensor([2]), 'factor': 2}]
    """
    if isinstance(inputs, Tensor):
        pieces = inputs.chunk(len(target_gpus), dim)
        return tuple(piece.to(as_device(device)) for piece, device in zip(pieces, target_gpus, strict=False))
    if _is_namedtuple(inputs):
        return [
            type(inputs)(*parts) for parts in zip(*(scatter(part, target_gpus, dim) for part in inputs), strict=False)
        ]
    if isinstance(inputs, tuple | list) and inputs:
        rows = zip(*(scatter(part, target_gpus, dim) for part in inputs), strict=False)
        return [tuple(row) if isinstance(inputs, tuple) else list(row) for row in rows]
    if isinstance(inputs, dict) and inputs:
        rows = zip(*(scatter(part, target_gpus, dim) for part in inputs.values()), strict=False)
        return [type(inputs)(zip(inputs, row, strict=True)) for row in rows]
    return [inputs for _ in target_gpus]


def scatter_kwargs(
    inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_gpus: Sequence[Any], dim: int = 0
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Split positional and keyword arguments, and pad both to the same length."""
    positional = list(scatter(inputs, target_gpus, dim)) if inputs else []
    named = list(scatter(kwargs, target_gpus, dim)) if kwargs else []
    positional += [()] * (len(named) - len(positional))
    named += [{} for _ in range(len(positional) - len(named))]
    return tuple(positional), tuple(named)


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """Concatenate the tensors of results of equal structure, along `dim`, on one device.

    Scalars become vectors.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.parallel.gather([candelabra.ones(2), candelabra.zeros(1)], "cpu")
    tensor([1., 1., 0.])
    """
    first = outputs[0]
    if isinstance(first, Tensor):
        device = as_device(target_device)
        parts = [output.to(device) for output in outputs]
        return candelabra.cat(
            [part.unsqueeze(0) if part.ndim == 0 else part for part in parts], dim if first.ndim else 0
        )
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(output) != len(first) for output in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((key, gather([output[key] for output in outputs], target_device, dim)) for key in first)
    joined = [gather(parts, target_device, dim) for parts in zip(*outputs, strict=True)]
    return type(first)._make(joined) if _is_namedtuple(first) else type(first)(joined)


__all__ = ["gather", "scatter", "scatter_kwargs"]
