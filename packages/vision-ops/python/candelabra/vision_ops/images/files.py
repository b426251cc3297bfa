"""Files as tensors of bytes."""

from __future__ import annotations

import os
from pathlib import Path

import candelabra
from candelabra import Tensor


def bytes_tensor(data: bytes | bytearray) -> Tensor:
    """Return bytes as a tensor of its own memory."""
    if not data:
        return candelabra.empty(0, dtype=candelabra.uint8, device="cpu")
    return candelabra.frombuffer(data if isinstance(data, bytearray) else bytearray(data), dtype=candelabra.uint8)


def tensor_bytes(data: Tensor) -> bytes:
    """Return the elements of a tensor of bytes in row-major order."""
    return bytes(memoryview(data.detach().contiguous())) if data.numel() else b""  # type: ignore[arg-type]


def read_file(filename: str) -> Tensor:
    """Compute ``image::read_file``: the bytes of a file."""
    try:
        size = os.stat(filename).st_size
        data = Path(filename).read_bytes() if size > 0 else b""
    except OSError as error:
        raise RuntimeError(f"[Errno {error.errno}] {error.strerror}: '{filename}'") from error
    if not data:
        raise RuntimeError("Expected a non empty file")
    return bytes_tensor(data)


def write_file(filename: str, data: Tensor) -> None:
    """Compute ``image::write_file``."""
    if data.device.type != "cpu":
        raise RuntimeError("Input tensor should be on CPU")
    if data.dtype != candelabra.uint8:
        raise RuntimeError("Input tensor dtype should be uint8")
    if data.dim() != 1:
        raise RuntimeError("Input data should be a 1-dimensional tensor")
    try:
        Path(filename).write_bytes(tensor_bytes(data))
    except OSError as error:
        raise RuntimeError("Error opening output file") from error
