"""References of the random operators: Philox 4x32-10 (J. K. Salmon et al., "Parallel random
numbers: as easy as 1, 2, 3", SC'11) in plain Python integers, with each element's counter and words
as in docs/random-numbers.md. The suite seeds the generator with SEED, offset 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

import candelabra
from candelabra.testing.sampling import Input, Reference, Sample

Array = np.ndarray
SEED = 0x0123456789ABCDEF
_MASK = 0xFFFFFFFF


def block(number: int) -> tuple[int, int, int, int]:
    """Return the four 32-bit words of a counter."""
    c, key = [number & _MASK, number >> 32 & _MASK, 0, 0], [SEED & _MASK, SEED >> 32]
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ key[0], p1 & _MASK, (p0 >> 32) ^ c[3] ^ key[1], p0 & _MASK]
        key = [(key[0] + 0x9E3779B9) & _MASK, (key[1] + 0xBB67AE85) & _MASK]
    return c[0], c[1], c[2], c[3]


def word32(i: int) -> int:
    return block(i // 4)[i % 4]


def word64(i: int) -> int:
    words = block(i // 2)
    return words[2 * (i % 2)] | words[2 * (i % 2) + 1] << 32


def unit(i: int, wide: bool) -> float:
    return (word64(i) >> 11) * 2.0**-53 if wide else (word32(i) >> 8) * 2.0**-24


def _each(shape: tuple[int, ...], value: Any) -> Array:
    count = int(np.prod(shape))
    return np.array([value(i) for i in range(count)], np.float64).reshape(shape)


def _is_wide(a: Array) -> bool:
    return bool(
        a.dtype == np.float64 and a.size and float(a.flat[0]) == 2.0
    )  # the samples mark float64 by their content


def uniform(a: Array, low: float = 0, high: float = 1) -> Array:
    wide = _is_wide(a)
    return _each(a.shape, lambda i: low + unit(i, wide) * (high - low))


def normal(a: Array, mean: float = 0, std: float = 1) -> Array:
    wide = _is_wide(a)

    def value(i: int) -> float:
        u1, u2 = 1 - unit(i - i % 2, wide), unit(i - i % 2 + 1, wide)
        turn = math.sin(2 * math.pi * u2) if i % 2 else math.cos(2 * math.pi * u2)
        return mean + std * math.sqrt(-2 * math.log(u1)) * turn

    return _each(a.shape, value)


def exponential(a: Array, lambd: float = 1) -> Array:
    wide = _is_wide(a)
    return _each(a.shape, lambda i: -math.log(1 - unit(i, wide)) / lambd)


def permutation(n: int, dtype: Any) -> Array:
    order = list(range(n))
    for i in range(n - 1, 0, -1):
        j = word64(i) % (i + 1)
        order[i], order[j] = order[j], order[i]
    return np.array(order, np.int64)


def dropout(a: Array, p: float) -> tuple[Array, Array]:
    kept = _each(a.shape, lambda i: unit(i, False) >= p).astype(bool)
    return np.where(kept, a / (1 - p), 0), kept


def _fills(*arguments: Any) -> Any:
    def samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
        content = 2.0 if dtype == "float64" else 0.0
        for shape, layout in (
            ((1,), "contiguous"),
            ((7,), "contiguous"),
            ((4, 5), "transposed"),
            ((3, 6), "strided"),
            ((0,), "contiguous"),
        ):
            yield Sample((Input(np.full(shape, content), dtype, layout), *arguments))

    return samples


def _chances(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    yield Sample((Input(rng.uniform(0, 1, (5, 7)), dtype),))
    yield Sample((Input(np.array([0.0, 1.0]), dtype),))


def _permutations(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for n in (0, 1, 2, 17):
        yield Sample((n,), {"dtype": getattr(candelabra, dtype)})


def _dropouts(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for p in (0.0, 0.3):
        yield Sample((Input(rng.uniform(1, 2, (5, 9)), dtype), p))


_DTYPES = ("float32", "float64")
REFERENCES: dict[str, Reference] = {
    "uniform_": Reference(uniform, _fills(-1.0, 3.0), _DTYPES, 5),
    "normal_": Reference(normal, _fills(1.0, 2.0), _DTYPES, 20),
    "exponential_": Reference(exponential, _fills(1.5), _DTYPES, 20),
    "bernoulli_": Reference(
        lambda a, p: _each(a.shape, lambda i: unit(i, False) < p), _fills(0.25), (*_DTYPES, "int64", "bool")
    ),
    "bernoulli": Reference(lambda a: _each(a.shape, lambda i: unit(i, False) < a.flat[i]), _chances, _DTYPES),
    "random_range_": Reference(
        lambda a, low, high: _each(a.shape, lambda i: low + word64(i) % (high - low)),
        _fills(-3, 14),
        ("int64", "int32", "float32"),
    ),
    "randperm": Reference(permutation, _permutations, ("int64", "int32")),
    "native_dropout": Reference(dropout, _dropouts, _DTYPES, 5),
}
