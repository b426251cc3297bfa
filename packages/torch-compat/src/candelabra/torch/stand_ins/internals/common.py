"""``torch._utils``: helpers that libraries import."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import candelabra
from candelabra import Tensor, accelerator

from ...files import rebuilding as _rebuilding
from ...files.rebuilding import *  # noqa: F403

__all__ = [
    "_element_size", "_flatten_dense_tensors", "_get_available_device_type", "_get_device_index", "_get_device_module",
    "_is_privateuse1_backend_available", "_unflatten_dense_tensors", *(name for name in _rebuilding.__all__),
]  # fmt: skip


def _element_size(dtype: Any) -> int:
    """Return the size of an element in bytes.

    Raises
    ------
    RuntimeError
        If `dtype` is no dtype.
    """
    if not isinstance(dtype, candelabra.dtype):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    return dtype.itemsize


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """Return the elements of all tensors in one tensor of one dimension."""
    return candelabra.cat([tensor.reshape(-1) for tensor in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return views of a tensor of one dimension with the sizes of the given tensors, in order."""
    sizes = [tensor.numel() for tensor in tensors]
    if sum(sizes) > flat.numel():
        raise RuntimeError(f"the tensors have {sum(sizes)} elements, but there are {flat.numel()}")
    parts = flat[: sum(sizes)].split(sizes)
    return tuple(part.view(tensor.shape) for part, tensor in zip(parts, tensors, strict=True))


def _is_privateuse1_backend_available() -> bool:
    """Return False: backends here name their own device types."""
    return False


def _get_available_device_type() -> str | None:
    """Return the type of the accelerator, or None without one."""
    found = accelerator.current_accelerator(check_available=True)
    return None if found is None else found.type


def _get_device_module(device_type: str) -> Any:
    """Return the module of a device type, such as ``torch.cuda``.

    Raises
    ------
    RuntimeError
        If there is none.
    """
    try:
        return importlib.import_module(f"torch.{device_type}")
    except ModuleNotFoundError:
        raise RuntimeError(
            f"Device '{device_type}' does not have a corresponding module registered as 'torch.{device_type}'."
        ) from None


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """Return the number of a device.

    Raises
    ------
    ValueError
        If it has no number, or is the CPU and `allow_cpu` is not set.
    """
    if isinstance(device, int):
        return device
    if isinstance(device, str | candelabra.device):
        known = candelabra.device(device)
        if known.type == "cpu":
            if not allow_cpu:
                raise ValueError(f"Expected a non cpu device, but got: {device}")
            return -1
        if known.index is not None:
            return known.index
    elif device is not None:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got: {device}")
    if not optional:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got: {device}")
    return accelerator.current_device_index()
