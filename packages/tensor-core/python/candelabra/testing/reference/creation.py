"""References of constants and ranges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import candelabra
from candelabra.testing.sampling import ALL, FLOATS, REAL, Reference, Sample, layouts

REFERENCES: dict[str, Reference] = {}


def _fills(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for a in layouts(rng, dtype):
        if a.layout != "expanded":
            yield Sample((a, 1))


def _ranges(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    kind = {"dtype": getattr(candelabra, dtype)}
    for start, end, step in ((0, 5, 1), (2, 11, 3), (5, 0, -1), (3, 3, 1)):
        if dtype != "uint8" or step > 0:
            yield Sample((start, end, step), kind)
    if dtype in FLOATS:
        yield Sample((0.5, 3, 0.5), kind)


def _linspaces(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for start, end, steps in ((0, 1, 5), (-2, 2, 9), (3, 3, 1), (0, 8, 0)):
        yield Sample((start, end, steps), {"dtype": getattr(candelabra, dtype)})


REFERENCES["fill_"] = Reference(lambda a, value: np.full_like(a, value), _fills, ALL)
REFERENCES["arange"] = Reference(lambda start, end, step, dtype: np.arange(start, end, step), _ranges, REAL)


def linspace(start: Any, end: Any, steps: int, dtype: Any) -> np.ndarray:
    return np.linspace(start, end, steps)


REFERENCES["linspace"] = Reference(linspace, _linspaces, ("float32", "float64"), 2)


def _triangles(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    kind = {"dtype": getattr(candelabra, dtype)}
    for rows, columns in ((3, 3), (2, 7), (7, 2), (1, 1), (0, 3), (3, 0), (70, 50)):
        for offset in (-80, -3, -1, 0, 1, 4, 80):
            for upper in (False, True):
                yield Sample((rows, columns, offset, upper), kind)


def _tril_triu_indices(rows: int, columns: int, offset: int, upper: bool, dtype: Any) -> np.ndarray:
    places = np.triu_indices(rows, offset, columns) if upper else np.tril_indices(rows, offset, columns)
    return np.stack(places)


REFERENCES["_tril_triu_indices"] = Reference(_tril_triu_indices, _triangles, ("int32", "int64"))
