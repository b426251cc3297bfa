"""The operators of the namespace ``image``: image files in memory and on disk, by Pillow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from candelabra.library import CustomOpDef

from . import decoding, encoding, files

if TYPE_CHECKING:
    from collections.abc import Callable

_OPERATORS: dict[str, Callable[..., Any]] = {
    "read_file(str filename) -> Tensor": files.read_file,
    "write_file(str filename, Tensor data) -> ()": files.write_file,
    "decode_image(Tensor data, int mode, bool apply_exif_orientation=False) -> Tensor": decoding.decode_image,
    "decode_jpeg(Tensor data, int mode, bool apply_exif_orientation=False) -> Tensor": decoding.decode_jpeg,
    "decode_png(Tensor data, int mode, bool apply_exif_orientation=False) -> Tensor": decoding.decode_png,
    "decode_gif(Tensor encoded_data) -> Tensor": decoding.decode_gif,
    "decode_webp(Tensor encoded_data, int mode) -> Tensor": decoding.decode_webp,
    "encode_jpeg(Tensor data, int quality) -> Tensor": encoding.encode_jpeg,
    "encode_png(Tensor data, int compression_level) -> Tensor": encoding.encode_png,
}


def define() -> None:
    """Define the operators."""
    for schema, function in _OPERATORS.items():
        name = schema.partition("(")[0]
        CustomOpDef(f"image::{name}", schema).register_kernel(None, function)
