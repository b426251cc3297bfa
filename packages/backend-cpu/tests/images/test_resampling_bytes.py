"""Resize uint8 images bitwise exactly, with 15-bit weights and rounding after each dimension."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

import candelabra
from candelabra import ops

SIZES = [
    ((8, 9), (17, 13)),
    ((16, 20), (7, 5)),
    ((5, 5), (5, 5)),
    ((33, 7), (8, 7)),
    ((6, 8), (6, 16)),
    ((2, 3), (7, 2)),
]


def keys(x: float, a: float) -> float:
    x = abs(x)
    if x < 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a if x < 2 else 0.0


def weights(size: int, to: int, cubic: bool, align_corners: bool, antialias: bool) -> tuple[np.ndarray, int]:
    """Return the matrix of fixed-point weights, and the number of their fractional bits."""
    ratio = ((size - 1) / (to - 1) if to > 1 else 0.0) if align_corners else size / to
    matrix = np.zeros((to, size))
    for i in range(to):
        if antialias:
            wide = max(ratio, 1.0)
            centre, reach = ratio * (i + 0.5), (2 if cubic else 1) * wide
            for j in range(max(int(centre - reach + 0.5), 0), min(int(centre + reach + 0.5), size)):
                x = (j - centre + 0.5) / wide
                matrix[i, j] = keys(x, -0.5) if cubic else max(0.0, 1 - abs(x))
            matrix[i] /= matrix[i].sum()
            continue
        place = ratio * i if align_corners else ratio * (i + 0.5) - 0.5
        place = place if cubic else max(place, 0.0)
        first = min(math.floor(place), size - 1)
        part = place - first
        taps = [keys(part + 1 - k, -0.75) for k in range(4)] if cubic else [1 - part, part]
        for k, weight in enumerate(taps):
            matrix[i, min(max(first + k - cubic, 0), size - 1)] += weight
    bits = 0
    while bits < 22 and int(0.5 + matrix.max() * 2 ** (bits + 1)) < 2**15:
        bits += 1
    scaled = matrix * 2**bits
    return np.trunc(scaled + np.where(scaled < 0, -0.5, 0.5)).astype(np.int64), bits


def resampled(image: np.ndarray, to: tuple[int, ...], cubic: bool, align_corners: bool, antialias: bool) -> np.ndarray:
    for axis in (3, 2):
        matrix, bits = weights(image.shape[axis], to[axis - 2], cubic, align_corners, antialias)
        sums = np.moveaxis(image.astype(np.int64), axis, -1) @ matrix.T
        image = np.moveaxis(np.clip((sums + 2 ** (bits - 1)) >> bits, 0, 255), -1, axis)
    return image


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("channels_last", [False, True])
def test_images(mode: str, align_corners: bool, antialias: bool, channels_last: bool) -> None:
    rng = np.random.default_rng(5)
    for (size, to), channels in product(SIZES, (1, 3, 9)):
        image = rng.integers(0, 256, (2, channels, *size), dtype=np.uint8)
        given = candelabra.from_numpy(image)
        if channels_last:
            given = given.contiguous(memory_format=candelabra.channels_last)
        made = ops._upsample(given, to, (), mode, align_corners, antialias)
        assert made.dtype is candelabra.uint8
        np.testing.assert_array_equal(made.tolist(), resampled(image, to, mode == "cubic", align_corners, antialias))


def test_the_number_of_threads_does_not_matter() -> None:
    image = candelabra.from_numpy(np.random.default_rng(6).integers(0, 256, (1, 3, 200, 190), dtype=np.uint8))
    before = candelabra.get_num_threads()
    try:
        results = []
        for threads in (1, 2, 3):
            candelabra.set_num_threads(threads)
            results.append(ops._upsample(image, (97, 311), (), "cubic", False, True).tolist())
    finally:
        candelabra.set_num_threads(before)
    assert results[0] == results[1] == results[2]


def test_signals_and_volumes() -> None:
    signal = candelabra.tensor([[[0, 10, 20, 255]]], dtype=candelabra.uint8)
    assert ops._upsample(signal, (2,), (), "linear", True, False).tolist() == [[[0, 255]]]
    volume = candelabra.full((1, 2, 3, 4, 5), 77, dtype=candelabra.uint8)
    assert ops._upsample(volume, (5, 3, 7), (), "linear", False, False).unique().tolist() == [77]
