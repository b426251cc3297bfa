"""Device selection, and transfer of batches."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import candelabra
from candelabra import accelerator


def choose_device(device: Any = "auto") -> Any:
    """Return a device; ``"auto"`` selects the accelerator if there is one, and the CPU otherwise.

    Parameters
    ----------
    device : str, int or device
        ``"auto"``, or an argument of `candelabra.device`.

    Examples
    --------
    >>> from candelabra.utils.trainer import choose_device
    >>> choose_device("cpu")
    device(type='cpu')
    """
    if device == "auto":
        return accelerator.current_accelerator() or candelabra.device("cpu")
    return candelabra.device(device)


def to_device(batch: Any, device: Any, non_blocking: bool = False) -> Any:
    """Return a batch with all its tensors on a device, in containers of the same types.

    Parameters
    ----------
    batch
        Tensors nested in dicts and other mappings, lists, tuples, named tuples and data classes.
        Objects with a method ``to``, such as packed sequences, are moved with it. Everything else
        is unchanged.
    device : str or device
        Target device.
    non_blocking : bool
        Whether copies from page-locked memory may be asynchronous.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.utils.trainer import to_device
    >>> to_device({"x": (candelabra.ones(1), "name")}, "cpu")
    {'x': (tensor([1.]), 'name')}
    """
    if isinstance(batch, candelabra.Tensor):
        return batch.to(device, non_blocking=non_blocking)
    if isinstance(batch, str | bytes | int | float | complex) or batch is None:
        return batch
    if isinstance(batch, Mapping):
        moved = {key: to_device(value, device, non_blocking) for key, value in batch.items()}
        if type(batch) is dict:
            return moved
        try:
            return type(batch)(moved)  # type: ignore[call-arg]
        except TypeError:
            return moved
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(to_device(value, device, non_blocking) for value in batch))
    if isinstance(batch, list | tuple):
        return type(batch)([to_device(value, device, non_blocking) for value in batch])
    if callable(getattr(batch, "to", None)):
        return batch.to(device)
    if dataclasses.is_dataclass(batch) and not isinstance(batch, type):
        fields = [field.name for field in dataclasses.fields(batch) if field.init]
        return dataclasses.replace(
            batch, **{name: to_device(getattr(batch, name), device, non_blocking) for name in fields}
        )
    return batch
