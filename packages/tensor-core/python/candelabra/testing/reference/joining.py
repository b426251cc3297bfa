"""References of joining and rearranging."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from candelabra.testing.sampling import ALL, Input, Reference, Sample, layouts, numbers


def _cats(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    def tensor(*shape: int, layout: str = "contiguous") -> Input:
        return Input(numbers(rng, dtype, shape), dtype, layout)

    yield Sample(([tensor(3), tensor(5), tensor(0)], 0))
    yield Sample(([tensor(2, 3), tensor(4, 3)], 0))
    yield Sample(([tensor(2, 3), tensor(2, 1), tensor(2, 4, layout="transposed")], 1))
    yield Sample(([tensor(2, 3, 4, layout="strided"), tensor(2, 3, 4)], -1))
    yield Sample(([tensor(2, 0), tensor(2, 2)], 1))


def _stacks(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for dim in (0, 1, -1):
        yield Sample(
            ([Input(numbers(rng, dtype, (3, 4)), dtype), Input(numbers(rng, dtype, (3, 4)), dtype, "transposed")], dim)
        )


def _flips(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for a in layouts(rng, dtype):
        if a.values.ndim:
            yield Sample((a, [0]))
            yield Sample((a, list(range(a.values.ndim))))


def _triangles(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for layout in ("contiguous", "transposed", "strided"):
        for diagonal in (-2, 0, 1, 9):
            yield Sample((Input(numbers(rng, dtype, (5, 4)), dtype, layout), diagonal))
    yield Sample((Input(numbers(rng, dtype, (2, 3, 3)), dtype), 0))


REFERENCES: dict[str, Reference] = {
    "cat": Reference(lambda tensors, dim: np.concatenate(tensors, axis=dim), _cats, ALL),
    "stack": Reference(lambda tensors, dim: np.stack(tensors, axis=dim), _stacks, ALL),
    "flip": Reference(lambda a, dims: np.flip(a, tuple(dims)), _flips, ALL),
    "tril": Reference(lambda a, diagonal: np.tril(a, diagonal), _triangles, ALL),
    "triu": Reference(lambda a, diagonal: np.triu(a, diagonal), _triangles, ALL),
}


def _images(rng: np.random.Generator, dtype: str, shapes: tuple[tuple[tuple[int, ...], int], ...]) -> Iterator[Sample]:
    for shape, count in shapes:
        for layout in ("contiguous", "transposed", "strided"):
            yield Sample((Input(numbers(rng, dtype, shape), dtype, layout), count))


def pixel_shuffle(a: np.ndarray, r: int) -> np.ndarray:
    *batch, channels, height, width = a.shape
    split = a.reshape((*batch, channels // (r * r), r, r, height, width))
    blocks = np.moveaxis(split, (-4, -3), (-3, -1))  # block sizes with other numbers of rows and columns
    return blocks.reshape((*batch, channels // (r * r), height * r, width * r))


def pixel_unshuffle(a: np.ndarray, r: int) -> np.ndarray:
    *batch, channels, height, width = a.shape
    blocks = a.reshape((*batch, channels, height // r, r, width // r, r))
    return np.moveaxis(blocks, (-3, -1), (-4, -3)).reshape((*batch, channels * r * r, height // r, width // r))


def channel_shuffle(a: np.ndarray, groups: int) -> np.ndarray:
    return np.concatenate([a[:, k :: a.shape[1] // groups] for k in range(a.shape[1] // groups)], 1)


SHUFFLED = (
    ((4, 3, 5), 2),
    ((2, 9, 2, 3), 3),
    ((2, 8, 4, 9), 2),
    ((3, 2, 5, 2, 2), 1),
    ((1, 16, 2, 9), 4),
    ((2, 0, 3, 3), 2),
)
UNSHUFFLED = (
    ((3, 4, 6), 2),
    ((2, 3, 6, 3), 3),
    ((2, 2, 8, 18), 2),
    ((3, 2, 5, 2, 2), 1),
    ((1, 1, 8, 36), 4),
    ((2, 3, 0, 4), 2),
)
GROUPED = (((2, 6, 4), 3), ((2, 12, 3, 5), 4), ((1, 4, 40), 4), ((1, 5, 2, 2, 2), 1), ((2, 8, 0), 2))
REFERENCES |= {
    "pixel_shuffle": Reference(pixel_shuffle, lambda rng, dtype: _images(rng, dtype, SHUFFLED), ALL),
    "pixel_unshuffle": Reference(pixel_unshuffle, lambda rng, dtype: _images(rng, dtype, UNSHUFFLED), ALL),
    "channel_shuffle": Reference(channel_shuffle, lambda rng, dtype: _images(rng, dtype, GROUPED), ALL),
}
