"""Test random numbers: known answers of Philox, docs/random-numbers.md, and distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from harness import RUNTIME_ERROR, BFloat16, KernelError, backend, call

import candelabra
from candelabra import ops

SEED, OFFSET = 0x0123456789ABCDEF, 0xFFFFFFFE  # the counter carries into its high word


def philox(seed: int, blocks: np.ndarray) -> np.ndarray:
    """Return the four words of each block, computed with Python's integers."""
    mask = np.uint64(0xFFFFFFFF)
    blocks = blocks.astype(np.uint64)
    c = [blocks & mask, blocks >> np.uint64(32), np.zeros_like(blocks), np.zeros_like(blocks)]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        first, second = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [
            (second >> np.uint64(32)) ^ c[1] ^ np.uint64(key[0]), second & mask,
            (first >> np.uint64(32)) ^ c[3] ^ np.uint64(key[1]), first & mask,
        ]  # fmt: skip
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(c, axis=-1)


def words32(n: int, seed: int = SEED, offset: int = OFFSET) -> np.ndarray:
    return philox(seed, offset + np.arange((n + 3) // 4)).ravel()[:n]


def words64(n: int, seed: int = SEED, offset: int = OFFSET) -> np.ndarray:
    words = philox(seed, offset + np.arange((n + 1) // 2)).reshape(-1, 2)
    return (words[:, 0] | words[:, 1] << np.uint64(32))[:n]


def uniform32(n: int) -> np.ndarray:
    return (words32(n) >> np.uint64(8)) * 2.0**-24


def uniform64(n: int) -> np.ndarray:
    return (words64(n) >> np.uint64(11)) * 2.0**-53


def draw(name: str, shape: tuple[int, ...], dtype: str, *arguments: float) -> np.ndarray:
    out = np.zeros(shape, dtype)
    call(name, [out], out, *arguments, seed=SEED, offset=OFFSET)
    return out


def test_known_answers_of_random123() -> None:
    """Test the vectors of the Random123 distribution whose upper counter words are zero."""
    assert philox(0, np.array([0]))[0].tolist() == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    out = np.zeros(4, np.float32)
    call("uniform_", [out], out, 0.0, 1.0, seed=0, offset=0)
    assert out.tolist() == [(word >> 8) * 2.0**-24 for word in (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)]


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 64, 1023, 1025, 20_001])
def test_uniform(n: int) -> None:
    np.testing.assert_array_equal(draw("uniform_", (n,), "float32", 0.0, 1.0), uniform32(n).astype(np.float32))
    np.testing.assert_array_equal(draw("uniform_", (n,), "float64", 0.0, 1.0), uniform64(n))
    np.testing.assert_array_equal(
        draw("uniform_", (n,), "float16", 0.0, 1.0), ((words32(n) >> np.uint64(21)) * 2.0**-11).astype(np.float16)
    )
    out = BFloat16(np.zeros(n, np.uint16))
    call("uniform_", [out], out, 0.0, 1.0, seed=SEED, offset=OFFSET)
    np.testing.assert_array_equal(out.values(), ((words32(n) >> np.uint64(24)) * 2.0**-8).astype(np.float32))
    np.testing.assert_allclose(
        draw("uniform_", (n,), "float64", -3.0, 5.0), -3 + uniform64(n) * 8, rtol=1e-15, atol=1e-15
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal_is_box_and_muller(dtype: str) -> None:
    n = 5001
    u = uniform32(n + 1) if dtype == "float32" else uniform64(n + 1)
    radius = np.sqrt(-2 * np.log(1 - u[0::2]))
    wanted = np.stack([radius * np.cos(2 * np.pi * u[1::2]), radius * np.sin(2 * np.pi * u[1::2])], axis=1).ravel()[:n]
    np.testing.assert_allclose(
        draw("normal_", (n,), dtype, 0.0, 1.0), wanted, rtol=2e-5 if dtype == "float32" else 1e-12, atol=2e-6
    )
    np.testing.assert_allclose(draw("normal_", (n,), dtype, 2.0, 3.0), 2 + 3 * wanted, rtol=2e-5, atol=1e-5)


def test_bernoulli_exponential_and_ranges() -> None:
    n = 3001
    for dtype in ("bool", "uint8", "int64", "float32", "float64"):
        np.testing.assert_array_equal(draw("bernoulli_", (n,), dtype, 0.3), (uniform32(n) < 0.3).astype(dtype))
    assert not draw("bernoulli_", (n,), "bool", 0.0).any()
    assert draw("bernoulli_", (n,), "bool", 1.0).all()
    np.testing.assert_allclose(draw("exponential_", (n,), "float64", 2.0), -np.log1p(-uniform64(n)) / 2, rtol=1e-13)
    np.testing.assert_allclose(draw("exponential_", (n,), "float32", 2.0), -np.log1p(-uniform32(n)) / 2, rtol=1e-6)
    for dtype, low, high in [("int64", -(2**62), 2**62), ("int32", -7, 12), ("uint8", 0, 256), ("float32", 0, 10)]:
        out = np.zeros(n, dtype)
        call("random_range_", [out], out, low, high, seed=SEED, offset=OFFSET)
        wanted = [low + int(word) % (high - low) for word in words64(n)]
        assert out.tolist() == wanted


def test_bernoulli_of_probabilities() -> None:
    p = np.random.default_rng(0).uniform(0, 1, (50, 61))
    out = np.zeros(p.shape, np.float64)
    call("bernoulli", [out], p, seed=SEED, offset=OFFSET)
    np.testing.assert_array_equal(out.ravel(), (uniform32(p.size) < p.ravel()).astype(float))
    p[3, 4] = 1.5
    with pytest.raises(KernelError, match="Expected p_in >= 0 && p_in <= 1 to be true, but got false.") as caught:
        call("bernoulli", [out], p)
    assert caught.value.status == RUNTIME_ERROR


def test_dropout() -> None:
    x = np.random.default_rng(0).standard_normal((37, 55)).astype(np.float32)
    keep = (uniform32(x.size) >= 0.25).reshape(x.shape)
    for layout in (lambda a: a, lambda a: a.T.copy().T):
        out, mask = layout(np.empty_like(x)), layout(np.empty(x.shape, bool))
        call("native_dropout", [out, mask], layout(x), 0.25, seed=SEED, offset=OFFSET)
        np.testing.assert_array_equal(mask, keep)
        np.testing.assert_allclose(out, np.where(keep, x / 0.75, 0), rtol=1e-6)
    call("native_dropout", [out, mask], x, 1.0, seed=SEED, offset=OFFSET)
    assert not out.any()
    assert not mask.any()


def test_randperm() -> None:
    n = 2500
    wanted = list(range(n))
    words = words64(n)
    for i in range(n - 1, 0, -1):
        j = int(words[i]) % (i + 1)
        wanted[i], wanted[j] = wanted[j], wanted[i]
    for dtype in ("int64", "int32", "float64"):
        out = np.zeros(n, dtype)
        call("randperm", [out], n, 0, None, seed=SEED, offset=OFFSET)
        assert out.tolist() == wanted
    for n in (0, 1, 2):
        out = np.zeros(n, np.int64)
        call("randperm", [out], n, 0, None, seed=SEED, offset=OFFSET)
        assert sorted(out.tolist()) == list(range(n))


@pytest.mark.parametrize("name", ["uniform_", "normal_"])
def test_neither_strides_nor_threads_matter(name: str) -> None:
    plain = draw(name, (300, 401), "float32", 0.0, 1.0)
    strided = np.zeros((401, 300), np.float32).T
    call(name, [strided], strided, 0.0, 1.0, seed=SEED, offset=OFFSET)
    np.testing.assert_array_equal(strided, plain)
    threads = backend().table.thread_count()
    try:
        for count in (1, 2, 3):
            backend().table.set_thread_count(count)
            np.testing.assert_array_equal(draw(name, (300, 401), "float32", 0.0, 1.0), plain)
    finally:
        backend().table.set_thread_count(threads)


def test_distributions() -> None:
    n = 200_000
    assert scipy.stats.kstest(draw("uniform_", (n,), "float32", 0.0, 1.0), "uniform").pvalue > 1e-3
    assert scipy.stats.kstest(draw("normal_", (n,), "float32", 0.0, 1.0), "norm").pvalue > 1e-3
    assert scipy.stats.kstest(draw("exponential_", (n,), "float64", 1.0), "expon").pvalue > 1e-3
    assert abs(draw("bernoulli_", (n,), "float32", 0.3).mean() - 0.3) < 5 * math.sqrt(0.21 / n)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("uniform_", (1.0, 0.0), r"uniform_ expects to return a \[from, to\) range, but found from=1 > to=0"),
        ("normal_", (0.0, -1.0), "normal expects std >= 0.0, but found std -1"),
        ("random_range_", (3, 3), "random_ expects 'from' to be less than 'to', but got from=3 >= to=3"),
        ("exponential_", (0.0,), "exponential_ expects lambda > 0.0, but found lambda=0"),
        ("bernoulli_", (1.5,), r"bernoulli_ expects p to be in \[0, 1\], but got p=1.5"),
    ],
)
def test_bad_parameters(name: str, arguments: tuple[float, ...], message: str) -> None:
    out = candelabra.zeros(3)
    with pytest.raises(RuntimeError, match=message):
        getattr(ops, name)(out, *arguments)
    assert out.tolist() == [0.0, 0.0, 0.0]
