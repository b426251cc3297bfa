"""Bytes and pickled objects as tensors."""

from __future__ import annotations

import ctypes
import io
import pickle
from typing import Any

import candelabra
from candelabra import Tensor, device


def tensor_of_bytes(data: bytes, where: device) -> Tensor:
    """Return a tensor of uint8 with these bytes."""
    if not data:
        return candelabra.empty(0, dtype=candelabra.uint8, device=where)
    made = candelabra.frombuffer(bytearray(data), dtype=candelabra.uint8)
    return made if where.type == "cpu" else made.to(where)


def bytes_of_tensor(tensor: Tensor) -> bytes:
    """Return the bytes of a tensor of uint8."""
    on_host = tensor.to("cpu").contiguous()
    return ctypes.string_at(on_host.data_ptr(), on_host.numel()) if on_host.numel() else b""


def text_of_tensor(tensor: Tensor) -> str:
    """Return the text in a tensor of uint8."""
    return bytes_of_tensor(tensor).decode(errors="replace")


def tensor_of_object(value: Any, where: device) -> Tensor:
    """Return a tensor with a pickled object."""
    buffer = io.BytesIO()
    pickle.Pickler(buffer).dump(value)
    return tensor_of_bytes(buffer.getvalue(), where)


def object_of_tensor(tensor: Tensor, count: int) -> Any:
    """Return the object whose pickle the first `count` bytes of a tensor are.

    The tensor comes from another rank of the job, which runs the same program.
    """
    return pickle.loads(bytes_of_tensor(tensor[:count]))
