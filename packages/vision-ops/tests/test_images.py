"""Decoding and encoding of images, by Pillow."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

import candelabra
from candelabra import vision_ops

UNCHANGED, GRAY, GRAY_ALPHA, RGB, RGB_ALPHA = range(5)


@pytest.fixture
def pixels(random):
    smooth = np.add.outer(np.arange(13) * 9, np.arange(17) * 7)[..., None]
    return np.clip(smooth + random.integers(0, 40, (13, 17, 4)), 0, 255).astype(np.uint8)


def encoded(image, file_format, **options):
    buffer = io.BytesIO()
    image.save(buffer, file_format, **options)
    return candelabra.frombuffer(bytearray(buffer.getvalue()), dtype=candelabra.uint8)


def png_of_16_bits(pixels, color_type):
    """A PNG file: (height, width, channels) in uint16."""
    height, width = pixels.shape[:2]
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in pixels)

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 16, color_type, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return candelabra.frombuffer(bytearray(data), dtype=candelabra.uint8)


def channels_last(decoded):
    return decoded.permute(1, 2, 0).numpy()


# ---- PNG


@pytest.mark.parametrize(("mode", "channels"), [("L", 1), ("LA", 2), ("RGB", 3), ("RGBA", 4)])
def test_png(pixels, mode, channels):
    data = encoded(Image.fromarray(pixels[..., :channels].squeeze(), mode), "PNG")
    decoded = vision_ops.decode_png(data, UNCHANGED)
    assert decoded.dtype == candelabra.uint8
    np.testing.assert_array_equal(channels_last(decoded), pixels[..., :channels])
    assert candelabra.equal(vision_ops.decode_image(data, UNCHANGED), decoded)
    has_alpha, has_color = channels in (2, 4), channels > 2
    for wanted in (GRAY, GRAY_ALPHA, RGB, RGB_ALPHA):
        made = channels_last(vision_ops.decode_png(data, wanted))
        colors = made[..., :-1] if wanted in (GRAY_ALPHA, RGB_ALPHA) else made
        if wanted in (RGB, RGB_ALPHA):
            expected = np.broadcast_to(pixels[..., :3] if has_color else pixels[..., :1], colors.shape)
            np.testing.assert_array_equal(colors, expected)
        elif has_color:
            gray = pixels[..., :3] @ [0.2989, 0.587, 0.1141]
            assert abs(colors[..., 0] - gray).max() <= 1
        else:
            np.testing.assert_array_equal(colors, pixels[..., :1])
        if wanted in (GRAY_ALPHA, RGB_ALPHA):
            np.testing.assert_array_equal(
                made[..., -1], pixels[..., channels - 1] if has_alpha else np.full((13, 17), 255)
            )


@pytest.mark.parametrize(("channels", "color_type"), [(1, 0), (3, 2), (4, 6)])
def test_png_of_16_bits(random, channels, color_type):
    wide = random.integers(0, 65536, (9, 7, channels)).astype(np.uint16)
    decoded = vision_ops.decode_png(png_of_16_bits(wide, color_type), UNCHANGED)
    assert decoded.dtype == candelabra.uint16
    np.testing.assert_array_equal(channels_last(decoded), wide)
    with_alpha = channels_last(vision_ops.decode_png(png_of_16_bits(wide, color_type), RGB_ALPHA))
    np.testing.assert_array_equal(with_alpha[..., 3], wide[..., 3] if channels == 4 else np.full((9, 7), 65535))


def test_png_of_16_bits_with_gray_and_alpha():
    with pytest.raises(RuntimeError, match="gray with alpha of 16 bits is not supported"):
        vision_ops.decode_png(png_of_16_bits(np.zeros((2, 2, 2)), 4), UNCHANGED)


def test_png_with_a_palette(pixels):
    image = Image.fromarray(pixels[..., :3]).quantize(20)
    data = encoded(image, "PNG")
    np.testing.assert_array_equal(channels_last(vision_ops.decode_png(data, RGB)), np.asarray(image.convert("RGB")))
    np.testing.assert_array_equal(vision_ops.decode_png(data, UNCHANGED)[0].numpy(), np.asarray(image))
    transparent = vision_ops.decode_png(encoded(image, "PNG", transparency=3), RGB_ALPHA)
    np.testing.assert_array_equal(transparent[3].numpy() == 0, np.asarray(image) == 3)
    black_and_white = Image.fromarray(pixels[..., 0]).convert("1")
    decoded = vision_ops.decode_png(encoded(black_and_white, "PNG"), UNCHANGED)
    np.testing.assert_array_equal(decoded[0].numpy(), np.asarray(black_and_white) * 255)


# ---- JPEG


def test_jpeg(pixels):
    data = encoded(Image.fromarray(pixels[..., :3]), "JPEG")
    with Image.open(io.BytesIO(bytes(memoryview(data)))) as image:
        expected = np.asarray(image)
    decoded = vision_ops.decode_jpeg(data, UNCHANGED)
    np.testing.assert_array_equal(channels_last(decoded), expected)
    assert candelabra.equal(vision_ops.decode_jpeg(data, RGB), decoded)
    gray = vision_ops.decode_jpeg(data, GRAY)
    assert gray.shape == (1, 13, 17)
    assert abs(gray[0].double().numpy() - expected @ [0.299, 0.587, 0.114]).max() < 6
    from_gray = vision_ops.decode_jpeg(encoded(Image.fromarray(pixels[..., 0]), "JPEG"), RGB)
    assert candelabra.equal(from_gray[0], from_gray[2])
    for mode in (GRAY_ALPHA, RGB_ALPHA, 17):
        with pytest.raises(RuntimeError, match="The provided mode is not supported for JPEG files"):
            vision_ops.decode_jpeg(data, mode)


def test_jpeg_of_cmyk():
    """The numbers are torchvision's."""
    ramp = np.arange(16 * 16 * 4, dtype=np.uint8).reshape(16, 16, 4) // 8 * 8
    data = encoded(Image.fromarray(np.full_like(ramp, [10, 90, 200, 30]), "CMYK"), "JPEG", quality=100)
    assert vision_ops.decode_jpeg(data, UNCHANGED)[:, 0, 0].tolist() == [245, 165, 55, 225]
    assert vision_ops.decode_jpeg(data, RGB)[:, 0, 0].tolist() == [216, 146, 49]
    assert vision_ops.decode_jpeg(data, GRAY)[:, 0, 0].tolist() == [156]


@pytest.mark.parametrize("file_format", ["JPEG", "PNG"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation(pixels, file_format, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encoded(Image.fromarray(pixels[..., :3]), file_format, exif=exif)
    plain = channels_last(vision_ops.decode_image(data, UNCHANGED))
    turned = channels_last(vision_ops.decode_image(data, UNCHANGED, True))
    transposed = plain.transpose(1, 0, 2)
    expected = [
        plain, plain[:, ::-1], plain[::-1, ::-1], plain[::-1], transposed, transposed[:, ::-1], transposed[::-1, ::-1],
        transposed[::-1],
    ][orientation - 1]  # fmt: skip
    np.testing.assert_array_equal(turned, expected)


# ---- GIF and WebP


def test_gif(random):
    frames = [Image.fromarray(random.integers(0, 255, (6, 5, 3), dtype=np.uint8)).quantize(16) for _ in range(3)]
    one = vision_ops.decode_gif(encoded(frames[0], "GIF"))
    np.testing.assert_array_equal(channels_last(one), np.asarray(frames[0].convert("RGB")))
    several = vision_ops.decode_gif(encoded(frames[0], "GIF", save_all=True, append_images=frames[1:]))
    assert several.shape == (3, 3, 6, 5)
    np.testing.assert_array_equal(channels_last(several[2]), np.asarray(frames[2].convert("RGB")))


def test_webp(pixels):
    opaque, clear = (encoded(Image.fromarray(pixels[..., :c]), "WEBP", lossless=True) for c in (3, 4))
    np.testing.assert_array_equal(channels_last(vision_ops.decode_webp(opaque, UNCHANGED)), pixels[..., :3])
    assert vision_ops.decode_image(opaque, RGB_ALPHA)[3].tolist() == np.full((13, 17), 255).tolist()
    assert vision_ops.decode_webp(clear, UNCHANGED).shape == (4, 13, 17)
    assert vision_ops.decode_webp(clear, RGB).shape == (3, 13, 17)
    with pytest.warns(UserWarning, match="does not support grayscale"):
        assert vision_ops.decode_webp(opaque, GRAY).shape == (3, 13, 17)
    animated = encoded(Image.fromarray(pixels), "WEBP", save_all=True, append_images=[Image.fromarray(255 - pixels)])
    with pytest.raises(RuntimeError, match="Animated webp files are not supported"):
        vision_ops.decode_webp(animated, UNCHANGED)


# ---- what is no image


DECODERS = {
    "JPEG": lambda data: vision_ops.decode_jpeg(data, UNCHANGED), "PNG": lambda data: vision_ops.decode_png(data, UNCHANGED),
    "GIF": vision_ops.decode_gif, "WEBP": lambda data: vision_ops.decode_webp(data, UNCHANGED),
}  # fmt: skip


@pytest.mark.parametrize("file_format", DECODERS)
def test_what_is_no_image(pixels, file_format):
    decode, zeros = DECODERS[file_format], candelabra.zeros(50, dtype=candelabra.uint8)
    for data, match in [
        (candelabra.zeros(5), "must have uint8 data type, got"),
        (zeros[None], "must be 1-dimensional and non-empty, got 2 dims"),
        (zeros[:0], "must be 1-dimensional and non-empty"),
        (zeros[::2], "must be contiguous"),
        (zeros, "Content is not"),
    ]:
        with pytest.raises(RuntimeError, match=match):
            decode(data)
    whole = encoded(Image.fromarray(pixels[..., :3]), file_format)
    for end in (20, len(whole) // 2):
        with pytest.raises(RuntimeError):
            decode(whole[:end].clone())


@pytest.mark.parametrize("file_format", DECODERS)
def test_damaged_images_raise_or_decode(pixels, random, file_format):
    whole = bytes(memoryview(encoded(Image.fromarray(pixels[..., :3]), file_format)))
    for _ in range(60):
        damaged = bytearray(whole)
        for at in random.integers(0, len(whole), 3):
            damaged[at] = int(random.integers(0, 256))
        try:
            decoded = DECODERS[file_format](candelabra.frombuffer(damaged, dtype=candelabra.uint8))
        except RuntimeError:
            continue
        assert decoded.dtype in (candelabra.uint8, candelabra.uint16)


def test_unknown_formats():
    data = candelabra.tensor(list(b"BM" + bytes(60)), dtype=candelabra.uint8)
    with pytest.raises(RuntimeError, match="Unsupported image file"):
        vision_ops.decode_image(data, UNCHANGED)
    with pytest.raises(RuntimeError, match=r"Expected a torch.uint8 tensor"):
        vision_ops.decode_image(candelabra.zeros(3), UNCHANGED)
    with pytest.raises(RuntimeError, match="Expected a non empty 1-dimensional tensor"):
        vision_ops.decode_image(data[None], UNCHANGED)
    assert isinstance(data[:2], candelabra.Tensor)
    with pytest.raises(RuntimeError, match="Unsupported image file"):
        vision_ops.decode_image(data[:2], UNCHANGED)


# ---- encoding and files


def test_encoding(pixels):
    x = candelabra.tensor(pixels[..., :3].tolist(), dtype=candelabra.uint8).permute(2, 0, 1)
    assert not x.is_contiguous()
    for level in (0, 6, 9):
        assert candelabra.equal(vision_ops.decode_image(vision_ops.encode_png(x, level), UNCHANGED), x)
    assert candelabra.equal(vision_ops.decode_png(vision_ops.encode_png(x[:1], 6), UNCHANGED), x[:1])
    fine, coarse = vision_ops.encode_jpeg(x, 95), vision_ops.encode_jpeg(x, 10)
    assert len(fine) > len(coarse)
    assert (vision_ops.decode_jpeg(vision_ops.encode_jpeg(x[:1], 100), UNCHANGED).int() - x[:1].int()).abs().max() <= 3


@pytest.mark.parametrize("encode", [vision_ops.encode_jpeg, vision_ops.encode_png])
def test_encoding_errors(encode):
    x = candelabra.zeros(3, 4, 4, dtype=candelabra.uint8)
    with pytest.raises(RuntimeError, match="Input tensor dtype should be uint8"):
        encode(x.float(), 6)
    with pytest.raises(RuntimeError, match="Input data should be a 3-dimensional tensor"):
        encode(x[0], 6)
    with pytest.raises(RuntimeError, match="number of channels should be 1 or 3, got: 2"):
        encode(x[:2], 6)
    with pytest.raises(RuntimeError, match="Empty"):
        encode(x[:, :0], 6)
    if encode is vision_ops.encode_png:
        with pytest.raises(RuntimeError, match="Compression level should be between 0 and 9"):
            encode(x, 10)


def test_files(tmp_path):
    data, path = candelabra.arange(9, dtype=candelabra.uint8), tmp_path / "bytes.bin"
    assert vision_ops.write_file(str(path), data[::2]) is None
    assert path.read_bytes() == bytes([0, 2, 4, 6, 8])
    assert vision_ops.read_file(str(path)).tolist() == [0, 2, 4, 6, 8]
    with pytest.raises(RuntimeError, match=r"\[Errno 2\] No such file or directory: '.*absent'"):
        vision_ops.read_file(str(tmp_path / "absent"))
    with pytest.raises(RuntimeError, match="Is a directory"):
        vision_ops.read_file(str(tmp_path))
    path.write_bytes(b"")
    with pytest.raises(RuntimeError, match="Expected a non empty file"):
        vision_ops.read_file(str(path))
    with pytest.raises(RuntimeError, match="Error opening output file"):
        vision_ops.write_file(str(tmp_path / "absent" / "file"), data)
    with pytest.raises(RuntimeError, match="dtype should be uint8"):
        vision_ops.write_file(str(path), data.float())
    with pytest.raises(RuntimeError, match="1-dimensional"):
        vision_ops.write_file(str(path), data[None])
