"""References of the running sums and products."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from candelabra.testing.sampling import NUMBERS, Reference, Sample, layouts


def _along(low: float, high: float):  # type: ignore[no-untyped-def]
    def samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
        for a in layouts(rng, dtype, low, high):
            for dim in range(-1, min(a.values.ndim, 2)):
                if a.values.ndim:
                    yield Sample((a, dim))

    return samples


REFERENCES: dict[str, Reference] = {
    "cumsum": Reference(lambda a, dim: np.cumsum(a, axis=dim), _along(-4, 4), ("bool", *NUMBERS), 30),
    "cumprod": Reference(
        lambda a, dim: np.cumprod(a, axis=dim), _along(0.7, 1.3), ("int64", "float32", "float64", "complex64"), 30
    ),
}
