"""References of Fourier transforms, by NumPy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from candelabra.testing.sampling import COMPLEX, Input, Reference, Sample, numbers

Array = np.ndarray
_SHAPES = (((7,), (0,)), ((8,), (0,)), ((1,), (0,)), ((3, 4), (0,)), ((3, 4), (1,)), ((2, 3, 5), (1, 2)), ((2, 3, 5), (2, 0)), ((0, 4), (1,)),
           ((20, 3), (0,)))  # fmt: skip
_LAYOUTS = ("contiguous", "transposed", "strided")


def _complex(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape, dims in _SHAPES:
        for layout in _LAYOUTS:
            for forward in (True, False):
                yield Sample(
                    (
                        Input(numbers(rng, dtype, shape), dtype, layout if 0 not in shape else "contiguous"),
                        list(dims),
                        forward,
                        0.5,
                    )
                )


def _c2c(x: Array, dim: list[int], forward: bool, scale: float) -> Array:
    made = np.fft.fftn(x, axes=dim) if forward else np.fft.ifftn(x, axes=dim) * np.prod([x.shape[d] for d in dim])
    return made * scale


def _real(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape, dims in _SHAPES:
        for layout in _LAYOUTS:
            yield Sample(
                (Input(numbers(rng, dtype, shape), dtype, layout if 0 not in shape else "contiguous"), dims[0], 2.0)
            )


def _several(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape, dims in (
        *_SHAPES,
        ((3, 5, 6), (0, 1, 2)),
        ((40, 2, 6, 8), (2, 3)),
        ((33, 4, 3, 7), (3, 2)),
        ((6, 5, 4), (1, 0)),
    ):
        for layout in _LAYOUTS:
            yield Sample(
                (Input(numbers(rng, dtype, shape), dtype, layout if 0 not in shape else "contiguous"), list(dims), 2.0)
            )


def _half(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape, dims in _SHAPES:
        for n in (2 * shape[dims[0]] - 2, 2 * shape[dims[0]] - 1):
            if n > 0:
                yield Sample((Input(numbers(rng, dtype, shape), dtype), dims[0], n, 0.5))


REFERENCES: dict[str, Reference] = {
    "_fft_c2c": Reference(_c2c, _complex, COMPLEX, 20),
    "_fft_r2c": Reference(lambda x, dim, scale: np.fft.rfft(x, axis=dim) * scale, _real, ("float32", "float64"), 20),
    "_fft_r2c_nd": Reference(
        lambda x, dim, scale: np.fft.rfftn(x, axes=dim) * scale, _several, ("float32", "float64"), 20
    ),
    "_fft_c2r": Reference(lambda x, dim, n, scale: np.fft.irfft(x, n, axis=dim) * n * scale, _half, COMPLEX, 20),
}
