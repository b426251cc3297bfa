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
        yield Sample(([Input(numbers(rng, dtype, (3, 4)), dtype), Input(numbers(rng, dtype, (3, 4)), dtype, "transposed")], dim))


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
