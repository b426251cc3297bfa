"""Tensors of pixels: from Pillow's images and back, and conversions as torchvision does them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import candelabra
from candelabra import Tensor

from .files import bytes_tensor, tensor_bytes

if TYPE_CHECKING:
    from PIL import Image

#: The weights of red, green and blue in gray, in units of 1/32768. libpng truncates 8 bits and
#: rounds 16 bits.
_GRAY = (9794, 19235, 3739)


def import_pillow() -> Any:
    """Import Pillow, which is not needed to define the operators."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("the operators for images need Pillow: pip install pillow") from error
    return Image


def from_image(image: Image.Image) -> Tensor:
    """Return the pixels of an image of 8 bits as a tensor (height, width, channels)."""
    shape = (image.height, image.width, len(image.getbands()))
    return bytes_tensor(image.tobytes()).reshape(shape)


def to_image(pixels: Tensor) -> Image.Image:
    """Return a tensor (channels, height, width) of 1 or 3 channels as an image."""
    channels, height, width = pixels.shape
    data = tensor_bytes(pixels.permute(1, 2, 0))
    made: Image.Image = import_pillow().frombytes("L" if channels == 1 else "RGB", (width, height), data)
    return made


def to_gray(pixels: Tensor) -> Tensor:
    """Return the gray of red, green and blue, the last dimension; pixels without color keep
    theirs.
    """
    red, green, blue = (pixels[..., c].to(candelabra.int64) for c in range(3))
    half = 0 if pixels.dtype == candelabra.uint8 else 1 << 14
    sums = (red * _GRAY[0] + green * _GRAY[1] + blue * _GRAY[2] + half) >> 15
    colorless = (red == green) & (red == blue)
    return candelabra.where(colorless, red, sums).to(pixels.dtype).unsqueeze(-1)


def to_color(pixels: Tensor) -> Tensor:
    """Return gray as red, green and blue."""
    return pixels.expand(*pixels.shape[:-1], 3)


def with_alpha(colors: Tensor, alpha: Tensor | None) -> Tensor:
    """Append an opaque alpha channel, or this one."""
    if alpha is None:
        most = 255 if colors.dtype == candelabra.uint8 else 65535
        alpha = candelabra.full((*colors.shape[:-1], 1), most, dtype=candelabra.int64).to(colors.dtype)
    return candelabra.cat((colors, alpha), -1)


def cmyk_to_rgb(pixels: Tensor) -> Tensor:
    """Return inverted cyan, magenta, yellow and black, as JPEG files have them, as colors."""
    wide = pixels.to(candelabra.int64)
    black = wide[..., 3:]
    products = black * (255 - wide[..., :3]) + 128
    return (black - (((products >> 8) + products) >> 8)).clamp(0, 255).to(candelabra.uint8)


def rgb_to_gray_of_cmyk(pixels: Tensor) -> Tensor:
    """Return the gray of colors that `cmyk_to_rgb` made, rounded to nearest."""
    red, green, blue = (pixels[..., c].to(candelabra.int64) for c in range(3))
    return ((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16).to(candelabra.uint8).unsqueeze(-1)
