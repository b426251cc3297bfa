"""References of copies: from every dtype to every other, in every layout."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from candelabra.testing.sampling import ALL, COMPLEX, Input, Reference, Sample, layouts, numbers


def _copies(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for source in layouts(rng, dtype, 0, 4):
        yield Sample((Input(np.zeros_like(source.values), dtype), source))
    target = numbers(rng, dtype, (4, 6))
    for layout in ("transposed", "strided"):
        yield Sample((Input(target, dtype, layout), Input(numbers(rng, dtype, (4, 6)), dtype)))
        yield Sample((Input(target, dtype, layout), Input(numbers(rng, dtype, (6,)), dtype)))
    for other in ALL:
        if other in COMPLEX and dtype not in COMPLEX:
            continue
        whole = rng.integers(0, 2 if "bool" in (dtype, other) else 5, (3, 4))
        yield Sample((Input(numbers(rng, dtype, (3, 4)), dtype), Input(whole, other)))


def copied(target: Any, source: Any, non_blocking: bool = False) -> Any:
    return np.broadcast_to(source, target.shape).astype(target.dtype)


REFERENCES: dict[str, Reference] = {"copy_": Reference(copied, _copies, ALL)}
