"""References of scans: cumulative sums, products and their relatives."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from candelabra.testing.sampling import COMPLEX, FLOATS, NUMBERS, REAL, Input, Reference, Sample, layouts


def _along(low: float, high: float):  # type: ignore[no-untyped-def]
    def samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
        for a in layouts(rng, dtype, low, high):
            for dim in range(-1, min(a.values.ndim, 2)):
                if a.values.ndim:
                    yield Sample((a, dim))

    return samples


def _running_log(a: np.ndarray, dim: int) -> np.ndarray:
    largest = np.max(a.real, axis=dim, keepdims=True, initial=-np.inf)
    with np.errstate(all="ignore"):
        return np.log(np.cumsum(np.exp(a - largest), axis=dim)) + largest


def _cummax_cummin(a: np.ndarray, dim: int, larger: bool) -> np.ndarray:
    accumulate = np.maximum.accumulate if larger else np.minimum.accumulate
    extremum = accumulate(a, axis=dim)
    here = (a == extremum) | ((a != a) & (extremum != extremum))
    shape = [1] * a.ndim
    shape[dim] = -1
    return np.maximum.accumulate(np.where(here, np.arange(a.shape[dim]).reshape(shape), 0), axis=dim)


def _cummax_cummin_samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    inputs = [*layouts(rng, dtype, -2, 2), Input(rng.integers(0, 9, (130, 70)), dtype)]
    if dtype in FLOATS:
        inputs.append(Input(np.array([1.0, np.inf, 0.0, np.nan, 2.0, np.nan, -np.inf]), dtype))
    for a in inputs:
        for dim in range(-1, min(a.values.ndim, 2)):
            if a.values.ndim:
                for larger in (True, False):
                    yield Sample((a, dim, larger))


REFERENCES: dict[str, Reference] = {
    "cumsum": Reference(lambda a, dim: np.cumsum(a, axis=dim), _along(-4, 4), ("bool", *NUMBERS), 30),
    "cumprod": Reference(
        lambda a, dim: np.cumprod(a, axis=dim), _along(0.7, 1.3), ("int64", "float32", "float64", "complex64"), 30
    ),
    "_cummax_cummin": Reference(_cummax_cummin, _cummax_cummin_samples, ("bool", *REAL)),
    # small integers, whose sums are exact; for complex numbers, angles on one side
    "logcumsumexp": Reference(_running_log, _along(0, 1.5), (*FLOATS, *COMPLEX), 30),
}
