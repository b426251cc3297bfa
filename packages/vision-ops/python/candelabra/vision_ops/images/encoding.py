"""Encoding of images: JPEG and PNG."""

from __future__ import annotations

import io
from typing import Any

import candelabra
from candelabra import Tensor

from . import pixels
from .files import bytes_tensor


def _check(data: Tensor) -> None:
    if data.device.type != "cpu":
        raise RuntimeError("Input tensor should be on CPU")
    if data.dtype != candelabra.uint8:
        raise RuntimeError("Input tensor dtype should be uint8")
    if data.dim() != 3:
        raise RuntimeError("Input data should be a 3-dimensional tensor")
    if data.size(0) not in (1, 3):
        raise RuntimeError(f"The number of channels should be 1 or 3, got: {data.size(0)}")


def _encoded(data: Tensor, file_format: str, **options: Any) -> Tensor:
    if data.numel() == 0:
        raise RuntimeError(f"Empty {file_format} image: the sizes are {list(data.shape)}")
    buffer = io.BytesIO()
    try:
        pixels.to_image(data).save(buffer, file_format, **options)
    except (OSError, ValueError) as error:
        raise RuntimeError(f"encode_{file_format.lower()}: {error}") from error
    return bytes_tensor(bytearray(buffer.getbuffer()))


def encode_jpeg(data: Tensor, quality: int) -> Tensor:
    """Compute ``image::encode_jpeg``."""
    _check(data)
    # libjpeg clamps the quality.
    return _encoded(data, "JPEG", quality=min(max(quality, 1), 100))


def encode_png(data: Tensor, compression_level: int) -> Tensor:
    """Compute ``image::encode_png``."""
    if not 0 <= compression_level <= 9:
        raise RuntimeError("Compression level should be between 0 and 9")
    _check(data)
    return _encoded(data, "PNG", compress_level=compression_level)
