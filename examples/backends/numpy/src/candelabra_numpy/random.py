"""Random numbers: Philox 4x32-10 (J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2,
3", SC'11), with counters as in docs/random-numbers.md, so that a seed gives the same numbers as on
every other backend.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_numpy.kernels import KERNELS, kernel, store

Array = Any

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)


def blocks(seed: int, first: int, count: int) -> Array:
    """Return `count` blocks of four 32-bit words from counter `first` on, of shape (count, 4) and
    dtype uint64.
    """
    counter = np.uint64(first & (2**64 - 1)) + np.arange(count, dtype=np.uint64)
    c0, c1 = counter & _LOW, counter >> _32
    c2, c3 = np.zeros_like(c0), np.zeros_like(c0)
    key0, key1 = seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF
    for _ in range(10):
        p0, p1 = _MULTIPLIERS[0] * c0, _MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = (p1 >> _32) ^ c1 ^ np.uint64(key0), p1 & _LOW, (p0 >> _32) ^ c3 ^ np.uint64(key1), p0 & _LOW
        key0, key1 = (key0 + _KEY_STEPS[0]) & 0xFFFFFFFF, (key1 + _KEY_STEPS[1]) & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3], axis=1)


def words32(seed: int, offset: int, count: int) -> Array:
    return blocks(seed, offset, (count + 3) // 4).reshape(-1)[:count]


def words64(seed: int, offset: int, count: int) -> Array:
    pairs = blocks(seed, offset, (count + 1) // 2).reshape(-1, 2)[:count]
    return pairs[:, 0] | pairs[:, 1] << _32


def unit(dtype: Any, seed: int, offset: int, count: int) -> Array:
    """Return numbers in [0, 1) for results of this dtype. Half precision uses 32-bit draws."""
    if dtype == np.float64:
        return (words64(seed, offset, count) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return (words32(seed, offset, count) >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)


@kernel("uniform_")
def uniform(a: Array, low: float, high: float, *, seed: int, offset: int) -> Array:
    if a.dtype == np.float16:
        draws = (words32(seed, offset, a.size) >> np.uint64(21)).astype(np.float32) * np.float32(2.0**-11)
    else:
        draws = unit(a.dtype, seed, offset, a.size)
    return (draws.dtype.type(low) + draws * draws.dtype.type(high - low)).reshape(a.shape)


@kernel("normal_")
def normal(a: Array, mean: float, std: float, *, seed: int, offset: int) -> Array:
    draws = unit(a.dtype, seed, offset, a.size + a.size % 2).reshape(-1, 2)
    kind = draws.dtype.type
    radius = np.sqrt(kind(-2) * np.log(kind(1) - draws[:, 0]))
    angle = kind(2 * np.pi) * draws[:, 1]
    numbers = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).reshape(-1)[: a.size]
    return (kind(mean) + numbers * kind(std)).reshape(a.shape)


@kernel("bernoulli_")
def bernoulli_fill(a: Array, p: float, *, seed: int, offset: int) -> Array:
    return (unit(np.float32, seed, offset, a.size) < np.float32(p)).reshape(a.shape)


@kernel("bernoulli")
def bernoulli(a: Array, *, seed: int, offset: int) -> Array:
    return unit(np.float32, seed, offset, a.size).reshape(a.shape) < a


@kernel("exponential_")
def exponential(a: Array, lambd: float, *, seed: int, offset: int) -> Array:
    draws = unit(a.dtype, seed, offset, a.size).reshape(a.shape)
    return -np.log(1 - draws) / draws.dtype.type(lambd)


@kernel("random_range_")
def random_range(a: Array, low: int, high: int, *, seed: int, offset: int) -> Array:
    return (low + (words64(seed, offset, a.size) % np.uint64(high - low)).astype(np.int64)).reshape(a.shape)


def _randperm(out: Any, n: int, dtype: Any, device: Any, *, seed: int, offset: int) -> None:
    order, draws = np.arange(n), words64(seed, offset, n)
    for i in range(n - 1, 0, -1):
        j = int(draws[i] % np.uint64(i + 1))
        order[i], order[j] = order[j], order[i]
    store(out, order)


KERNELS["randperm"] = _randperm
