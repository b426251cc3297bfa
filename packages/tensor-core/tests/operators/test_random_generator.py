"""Generators: Philox 4x32-10 as published, its words in the order that docs/random-numbers.md says,
states and seeds.
"""

from __future__ import annotations

import numpy as np
import pytest

import candelabra

MASK = 0xFFFFFFFF


def philox(seed: int, block: int) -> list[int]:
    """Philox 4x32-10 (Salmon et al. 2011) in plain Python."""
    counter = [block & MASK, block >> 32, 0, 0]
    key = [seed & MASK, seed >> 32]
    for _ in range(10):
        first, second = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [
            (second >> 32) ^ counter[1] ^ key[0],
            second & MASK,
            (first >> 32) ^ counter[3] ^ key[1],
            first & MASK,
        ]
        key = [(key[0] + 0x9E3779B9) & MASK, (key[1] + 0xBB67AE85) & MASK]
    return counter


def words32(seed: int, offset: int, count: int) -> np.ndarray:
    return np.array([philox(seed, offset + i // 4)[i % 4] for i in range(count)], np.uint64)


def words64(seed: int, offset: int, count: int) -> np.ndarray:
    blocks = [philox(seed, offset + i // 2) for i in range(count)]
    return np.array([b[2 * (i % 2)] | b[2 * (i % 2) + 1] << 32 for i, b in enumerate(blocks)], np.uint64)


def test_the_reference_gives_the_published_words() -> None:
    assert philox(0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


def generator(seed: int) -> candelabra.Generator:
    return candelabra.Generator().manual_seed(seed)


@pytest.mark.parametrize("seed", [0, 1, 2**40 + 12345, 2**64 - 1])
def test_uniform_numbers(seed: int) -> None:
    g = generator(seed)
    single = candelabra.empty(11).uniform_(generator=g)
    expected = (words32(seed, 0, 11) >> np.uint64(8)).astype(np.float32) * np.float32(2**-24)
    np.testing.assert_array_equal(single.numpy(), expected)
    # 11 elements took 6 blocks
    double = candelabra.empty(7, dtype=candelabra.float64).uniform_(-1, 3, generator=g)
    np.testing.assert_allclose(
        double.numpy(), -1 + 4 * (words64(seed, 6, 7) >> np.uint64(11)).astype(np.float64) * 2**-53, rtol=1e-15
    )


def test_normal_numbers() -> None:
    numbers = candelabra.empty(9, dtype=candelabra.float64).normal_(generator=generator(5))
    u = (words64(5, 0, 10) >> np.uint64(11)).astype(np.float64) * 2**-53
    radius, angle = np.sqrt(-2 * np.log(1 - u[0::2])), 2 * np.pi * u[1::2]
    expected = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).reshape(-1)[:9]
    np.testing.assert_allclose(numbers.numpy(), expected, rtol=1e-12)


def test_a_seed_gives_the_same_numbers_again() -> None:
    candelabra.manual_seed(7)
    first = candelabra.rand(100)
    second = candelabra.rand(100)
    candelabra.manual_seed(7)
    assert candelabra.equal(candelabra.rand(100), first)
    assert candelabra.equal(candelabra.rand(100), second)
    assert not candelabra.equal(first, second)
    assert candelabra.equal(candelabra.rand(100, generator=generator(7)), first)


def test_strided_tensors_get_the_numbers_in_row_major_order() -> None:
    plain = candelabra.empty(3, 4).uniform_(generator=generator(3))
    strided = candelabra.empty(4, 3).t().uniform_(generator=generator(3))
    assert candelabra.equal(plain, strided)


def test_state_can_be_kept_and_restored() -> None:
    g = generator(11)
    candelabra.rand(5, generator=g)
    state = g.get_state()
    assert state.dtype == candelabra.uint8
    words = state.numpy().view(np.uint64)
    assert words.tolist() == [11, 3]
    ahead = candelabra.rand(5, generator=g)
    copy = generator(0)
    assert copy.set_state(state) is copy
    assert copy.initial_seed() == 11
    assert candelabra.equal(candelabra.rand(5, generator=copy), ahead)
    g.set_state(state)
    branch = g.clone_state()
    assert candelabra.equal(candelabra.rand(5, generator=g), candelabra.rand(5, generator=branch))


def test_seeds() -> None:
    g = candelabra.Generator()
    assert g.manual_seed(5) is g
    assert g.initial_seed() == 5
    assert g.manual_seed(-1).initial_seed() == 2**64 - 1
    assert g.manual_seed(2**64 - 1).initial_seed() == 2**64 - 1
    assert g.manual_seed(np.int64(4)).initial_seed() == 4
    drawn = g.seed()
    assert g.initial_seed() == drawn
    assert g.seed() != drawn
    assert candelabra.Generator().initial_seed() == candelabra.Generator().initial_seed()
    for bad in (2**64, -(2**63) - 1):
        with pytest.raises(ValueError, match="Overflow"):
            g.manual_seed(bad)
    with pytest.raises((ValueError, TypeError)):
        g.manual_seed("a")


def test_device_and_repr() -> None:
    g = candelabra.Generator(device="cpu").manual_seed(3)
    assert g.device == candelabra.device("cpu")
    assert repr(g) == "<candelabra.Generator device='cpu' seed=3>"


def test_errors() -> None:
    g = candelabra.Generator()
    with pytest.raises(TypeError, match="expected a candelabra.Tensor"):
        g.set_state([1])
    with pytest.raises(TypeError, match="RNG state must be a uint8 tensor"):
        g.set_state(candelabra.ones(16))
    with pytest.raises(RuntimeError, match="RNG state is wrong size"):
        g.set_state(candelabra.ones(3, dtype=candelabra.uint8))
    with pytest.raises(TypeError):
        candelabra.empty(3).uniform_(generator=3)


def test_normal_moments() -> None:
    numbers = candelabra.randn(100_000, generator=generator(1)).numpy()
    assert abs(numbers.mean()) < 0.02
    assert abs(numbers.std() - 1) < 0.02
    assert abs((numbers**3).mean()) < 0.05


def test_offset() -> None:
    g = generator(5)
    assert g.get_offset() == 0
    candelabra.rand(10, generator=g)
    place = g.get_offset()
    assert place > 0
    expected = candelabra.rand(10, generator=g).tolist()
    g.set_offset(place)
    assert candelabra.rand(10, generator=g).tolist() == expected
    with pytest.raises(TypeError, match="set_offset expected an int, but got float"):
        g.set_offset(1.0)
    with pytest.raises(RuntimeError, match="between 0 and"):
        g.set_offset(-1)
