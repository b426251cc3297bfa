"""References of sorting and selection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from candelabra.testing.sampling import FLOATS, REAL, Input, Reference, Sample, layouts

Array = np.ndarray


def _inputs(rng: np.random.Generator, dtype: str) -> Iterator[Input]:
    yield from layouts(rng, dtype)
    yield Input(rng.integers(0, 5, (3, 70)), dtype)
    if dtype in FLOATS:
        yield Input(np.array([1.0, np.nan, -np.inf, 0.0, np.inf, -1.0, np.nan]), dtype)


def _sorts(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for a in _inputs(rng, dtype):
        if a.values.ndim == 0:
            continue
        for descending in (False, True):
            yield Sample((a, -1), {"descending": descending, "stable": True})
        yield Sample((a, 0), {"stable": True})


def _order(a: Array, dim: int, descending: bool) -> Array:
    if not descending:
        return np.argsort(a, axis=dim, kind="stable")
    return a.shape[dim] - 1 - np.flip(np.argsort(np.flip(a, dim), axis=dim, kind="stable"), dim)


def sort(a: Array, dim: int, descending: bool = False, stable: bool = False) -> tuple[Array, Array]:
    order = _order(a, dim, descending)
    return np.take_along_axis(a, order, dim), order


def _selections(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for a in _inputs(rng, dtype):
        if a.values.ndim == 0 or a.values.shape[-1] == 0:
            continue
        for k in {0, 1, a.values.shape[-1] // 2, a.values.shape[-1]}:
            for largest in (True, False):
                yield Sample((a, k, -1, largest))


def check_topk(results: tuple[Array, Array], a: Array, k: int, dim: int, largest: bool) -> str | None:
    """Check topk: among equal elements any may be selected, but values and indices must agree."""
    values, indices = results
    expected = np.take(sort(a, dim, largest)[0], np.arange(k), axis=dim)
    if not np.array_equal(values, expected, equal_nan=True):
        return f"values {values} instead of {expected}"
    if not np.array_equal(np.take_along_axis(a, indices, dim), values, equal_nan=True):
        return f"indices {indices} do not point at the values {values}"
    if k and any(len(set(row)) != k for row in np.moveaxis(indices, dim, -1).reshape(-1, k)):
        return f"an index stands twice in {indices}"
    return None


def _nothing(*arguments: Any, **keywords: Any) -> None:
    return None


def _searches(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape, wanted in (((9,), (2, 3)), ((3, 8), (3, 5)), ((0,), (4,)), ((1,), (2, 0))):
        rows = rng.integers(0, 12, shape)
        for right, out_int32, layout in (
            (False, False, "contiguous"),
            (True, True, "transposed"),
            (True, False, "strided"),
        ):
            values = Input(
                rng.integers(0, 13, wanted), dtype, layout if len(wanted) > 1 and 0 not in wanted else "contiguous"
            )
            yield Sample((Input(np.sort(rows, -1), dtype), values, right, out_int32, None))
            sorter = Input(np.argsort(rows, -1), "int64")
            yield Sample((Input(rows, dtype), values, right, out_int32, sorter))


def searchsorted(sequence: Array, values: Array, right: bool, out_int32: bool, sorter: Array | None) -> Array:
    rows = sequence if sorter is None else np.take_along_axis(sequence, sorter, -1)
    side: Any = "right" if right else "left"
    if rows.ndim == 1:
        return np.searchsorted(rows, values, side)
    return np.stack([np.searchsorted(row, wanted, side) for row, wanted in zip(rows, values, strict=True)])


REFERENCES: dict[str, Reference] = {
    "sort": Reference(sort, _sorts, ("bool", *REAL)),
    "_searchsorted": Reference(searchsorted, _searches, REAL),
    "topk": Reference(_nothing, _selections, REAL, compare=check_topk),
}


def _ranks(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for a in _inputs(rng, dtype):
        if a.values.ndim == 0 or a.values.size == 0:
            continue
        for dim in (0, -1):
            for rank in {0, a.values.shape[dim] // 2, a.values.shape[dim] - 1}:
                yield Sample((a, dim, rank, "all"))
            for among in ("median", "nanmedian"):
                yield Sample((a, dim, 0, among))
    for length in (300, 5000, 150_000):
        plain = length < 1000 or dtype not in FLOATS
        a = Input(rng.integers(0, 100, (length,)) if plain else rng.standard_normal(length) * 50, dtype)
        yield Sample((a, 0, length // 3, "all"))
        yield Sample((a, 0, 0, "median"))


def _kthvalue_index(a: Array, dim: int, rank: int, among: str) -> Array:
    order = np.argsort(a, axis=dim, kind="stable")
    length = a.shape[dim]
    if among == "all":
        return np.take(order, [rank], axis=dim)
    numbers = np.sum(~np.isnan(a.astype(np.float64)), axis=dim, keepdims=True)
    middle = np.maximum((numbers - 1) // 2, 0)
    if among == "median":
        middle = np.where(numbers < length, numbers, (length - 1) // 2)
    return np.take_along_axis(order, middle, dim)


REFERENCES["_kthvalue_index"] = Reference(_kthvalue_index, _ranks, REAL)


def _bins(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for length in (0, 7, 300_000):
        values = rng.integers(-64, 64, (length,)) / 8  # values that are exactly on bin edges
        yield Sample((Input(values, dtype), 16, -4.0, 4.0))
        yield Sample((Input(values.reshape(-1, 1), dtype), 3, -9.0, 0.0))
    yield Sample((Input(np.array([np.nan, np.inf, -np.inf, 0.0, 1.0]), dtype), 2, 0.0, 1.0))


def _histc(a: Array, bins: int, low: float, high: float) -> Array:
    return np.histogram(a[np.isfinite(a)], bins, (low, high))[0].astype(np.float64)


REFERENCES["_histc"] = Reference(_histc, _bins, ("float32", "float64"))


def _frequencies(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for a in _inputs(rng, dtype):
        if a.values.ndim and a.values.size:
            for dim in (0, -1):
                yield Sample((a, dim))
    for length, distinct in ((300, 7), (300, 250), (5000, 120), (70_000, 100), (70_000, 90_000)):
        values = (
            rng.integers(0, min(distinct, 120), (length,))
            if dtype not in FLOATS
            else rng.integers(0, distinct, (length,)) / 8 - 3
        )
        yield Sample((Input(values, dtype), 0))
    if dtype in FLOATS:
        yield Sample(
            (Input(np.array([[np.nan, np.nan, 1.0], [np.nan, np.nan, np.nan], [0.0, -0.0, np.inf]]), dtype), 1)
        )


def _mode_index(a: Array, dim: int) -> Array:
    def position(line: Array) -> int:
        numbers = line[line == line]
        if numbers.size == 0:
            return 0
        values, counts = np.unique(numbers, return_counts=True)
        return int(np.flatnonzero(line == values[np.argmax(counts)])[-1])

    lines = np.moveaxis(a, dim, -1)
    found = np.array([position(line) for line in lines.reshape(-1, a.shape[dim])])
    return np.moveaxis(found.reshape((*lines.shape[:-1], 1)), -1, dim)


REFERENCES["_mode_index"] = Reference(_mode_index, _frequencies, ("bool", *REAL))
