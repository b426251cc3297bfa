"""Decoding of images: JPEG, PNG, GIF and WebP."""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING, Any

import candelabra
from candelabra import _C, Tensor

from . import pixels
from .files import bytes_tensor, tensor_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

#: torchvision's ImageReadMode.
UNCHANGED, GRAY, GRAY_ALPHA, RGB, RGB_ALPHA = range(5)
_ORIENTATION = 0x0112


def _check_encoded(data: Tensor) -> None:
    if not data.is_contiguous():
        raise RuntimeError("Input tensor must be contiguous.")
    if data.dtype != candelabra.uint8:
        raise RuntimeError(f"Input tensor must have uint8 data type, got {data.dtype}")
    if data.dim() != 1 or data.numel() == 0:
        raise RuntimeError(
            f"Input tensor must be 1-dimensional and non-empty, got {data.dim()} dims  and {data.numel()} numels."
        )


@contextlib.contextmanager
def _opened(data: Tensor, file_format: str) -> Iterator[Any]:
    """Open encoded bytes as an image. Pillow's errors become RuntimeError, as in torchvision."""
    _check_encoded(data)
    image_module = pixels.import_pillow()
    try:
        with image_module.open(io.BytesIO(tensor_bytes(data)), formats=[file_format]) as image:
            yield image
    except image_module.UnidentifiedImageError as error:
        raise RuntimeError(f"Content is not {file_format.lower()}!") from error
    except image_module.DecompressionBombError as error:
        raise RuntimeError(f"decode_{file_format.lower()}: {error}") from error
    except (OSError, SyntaxError, EOFError, ValueError, IndexError, OverflowError) as error:
        raise RuntimeError(f"decode_{file_format.lower()}: the image is incomplete or corrupted: {error}") from error


def _oriented(decoded: Tensor, orientation: int) -> Tensor:
    """Return pixels (height, width, channels) turned and mirrored as EXIF says."""
    if orientation in (5, 6, 7, 8):
        decoded = decoded.transpose(0, 1)
    dims = {2: (1,), 3: (0, 1), 4: (0,), 6: (1,), 7: (0, 1), 8: (0,)}.get(orientation)
    return decoded if dims is None else decoded.flip(dims)


def _result(decoded: Tensor, image: Any, apply_exif_orientation: bool) -> Tensor:
    """Return pixels (height, width, channels) as a tensor (channels, height, width)."""
    if apply_exif_orientation:
        decoded = _oriented(decoded, image.getexif().get(_ORIENTATION, 1))
    return decoded.permute(2, 0, 1)


def decode_jpeg(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
    """Compute ``image::decode_jpeg``."""
    with _opened(data, "JPEG") as image:
        if mode not in (UNCHANGED, GRAY, RGB):
            raise RuntimeError("The provided mode is not supported for JPEG files")
        if image.mode == "CMYK":
            decoded = 255 - pixels.from_image(image)
            if mode != UNCHANGED:
                decoded = pixels.cmyk_to_rgb(decoded)
            if mode == GRAY:
                decoded = pixels.rgb_to_gray_of_cmyk(decoded)
            return _result(decoded, image, apply_exif_orientation)
        if mode == GRAY and image.mode != "L":
            image.draft("L", None)  # the decoder leaves out the colors
        decoded = pixels.from_image(image)
        if mode == RGB and decoded.size(2) == 1:
            decoded = pixels.to_color(decoded)
        elif mode == GRAY and decoded.size(2) == 3:
            decoded = pixels.to_gray(decoded)
        return _result(decoded, image, apply_exif_orientation)


# ---- PNG


def _sixteen_bits(image: Any, data: Tensor) -> Tensor | None:
    """Return the pixels of a PNG image of 16 bits, or None if it has fewer.

    Pillow reads the upper bytes of colors only. It is told to take the lower ones for the upper
    ones the second time.
    """
    rawmode = image.tile[0].args if image.tile else ""
    if not isinstance(rawmode, str) or not rawmode.endswith(";16B"):
        return None
    if rawmode == "I;16B":
        halves = bytes_tensor(image.tobytes()).reshape(image.height, image.width, 1, 2).to(candelabra.int64)
        return (halves[..., 0] + (halves[..., 1] << 8)).to(candelabra.uint16)
    if rawmode.startswith("LA"):
        raise RuntimeError("decode_png: gray with alpha of 16 bits is not supported")
    upper = pixels.from_image(image).to(candelabra.int64)
    with _opened(data, "PNG") as again:
        again.tile = [tile._replace(args=rawmode.replace("B", "L").replace("RGL", "RGB")) for tile in again.tile]
        lower = pixels.from_image(again).to(candelabra.int64)
    return ((upper << 8) + lower).to(candelabra.uint16)


def _png_pixels(image: Any, data: Tensor, mode: int) -> Tensor:
    """Return the pixels as the file has them. Palettes are applied unless the mode is UNCHANGED."""
    decoded = _sixteen_bits(image, data)
    if decoded is not None:
        return decoded
    if image.mode == "1":
        image = image.convert("L")
    elif image.mode == "P" and mode != UNCHANGED:
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    return pixels.from_image(image)


def _png_in_mode(decoded: Tensor, mode: int) -> Tensor:
    channels = decoded.size(2)
    has_alpha = channels in (2, 4)
    colors, alpha = decoded[..., : channels - has_alpha], decoded[..., -1:] if has_alpha else None
    if mode in (GRAY, GRAY_ALPHA) and colors.size(2) == 3:
        colors = pixels.to_gray(colors)
    elif mode in (RGB, RGB_ALPHA) and colors.size(2) == 1:
        colors = pixels.to_color(colors)
    return pixels.with_alpha(colors, alpha) if mode in (GRAY_ALPHA, RGB_ALPHA) else colors


def decode_png(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
    """Compute ``image::decode_png``."""
    with _opened(data, "PNG") as image:
        if mode not in range(5):
            raise RuntimeError("The provided mode is not supported for PNG files")
        decoded = _png_pixels(image, data, mode)
        if mode != UNCHANGED:
            decoded = _png_in_mode(decoded, mode)
        return _result(decoded, image, apply_exif_orientation)


# ---- GIF and WebP


def decode_gif(encoded_data: Tensor) -> Tensor:
    """Compute ``image::decode_gif``: (channels, height, width), or with a dimension of images
    before it if there are several.
    """
    with _opened(encoded_data, "GIF") as image:
        frames = []
        for frame in range(getattr(image, "n_frames", 1)):
            image.seek(frame)
            frames.append(pixels.from_image(image.convert("RGB")).permute(2, 0, 1))
        return frames[0] if len(frames) == 1 else candelabra.stack(frames)


def decode_webp(encoded_data: Tensor, mode: int) -> Tensor:
    """Compute ``image::decode_webp``."""
    with _opened(encoded_data, "WEBP") as image:
        if getattr(image, "n_frames", 1) > 1:
            raise RuntimeError("Animated webp files are not supported.")
        if mode in (GRAY, GRAY_ALPHA):
            _C.warn(
                "Webp does not support grayscale conversions. The returned tensor will be in the colorspace of the "
                "original image.",
            )
        wanted = {RGB: "RGB", RGB_ALPHA: "RGBA"}.get(mode, "RGBA" if image.mode == "RGBA" else "RGB")
        decoded = pixels.from_image(image.convert("RGBA") if wanted == "RGBA" else _without_alpha(image))
        return decoded.permute(2, 0, 1)


def _without_alpha(image: Any) -> Any:
    return image.convert("RGB")


# ---- by the first bytes


def decode_image(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
    """Compute ``image::decode_image``: the format is that of the first bytes."""
    if data.device.type != "cpu":
        raise RuntimeError("Expected a CPU tensor")
    if data.dtype != candelabra.uint8:
        raise RuntimeError("Expected a torch.uint8 tensor")
    if data.dim() != 1 or data.numel() == 0:
        raise RuntimeError("Expected a non empty 1-dimensional tensor")
    start = tensor_bytes(data[:15])
    if start.startswith(b"\xff\xd8\xff"):
        return decode_jpeg(data, mode, apply_exif_orientation)
    if start.startswith(b"\x89PNG"):
        return decode_png(data, mode, apply_exif_orientation)
    if start.startswith((b"GIF89a", b"GIF87a")):
        return decode_gif(data)
    if start.startswith(b"RIFF") and start[8:] == b"WEBPVP8":
        return decode_webp(data, mode)
    raise RuntimeError(
        "Unsupported image file. Only jpeg, png, webp and gif are currently supported. For avif and heic format, please rely on `decode_avif` and `decode_heic` directly."
    )
