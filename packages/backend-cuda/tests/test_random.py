"""Test that random numbers on a GPU equal the CPU's: bitwise for integers and uniform numbers, up
to rounding for others.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import candelabra

FLOATS = ["float32", "float64", "float16", "bfloat16"]
# Lengths around the draws of a Philox block, the threads of a block, and several blocks.
LENGTHS = [1, 2, 3, 4, 5, 255, 1023, 4099, 70001]


def numbers(tensor: candelabra.Tensor) -> np.ndarray:
    tensor = tensor.cpu()
    return (tensor.float() if tensor.dtype == candelabra.bfloat16 else tensor).numpy()


def both(
    cuda: candelabra.device,
    sizes: tuple[int, ...],
    dtype: str,
    fill: Callable[[candelabra.Tensor], object],
    seed: int = 5,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers that `fill` draws on the GPU and on the CPU, after another call, so that
    the counter is not 0.
    """
    found = []
    for device in (cuda, candelabra.device("cpu")):
        candelabra.manual_seed(seed)
        candelabra.rand(3, device=device)
        tensor = candelabra.zeros(sizes, dtype=getattr(candelabra, dtype), device=device)
        fill(tensor)
        found.append(numbers(tensor))
    return found[0], found[1]


@pytest.mark.same_as_cpu
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform(cuda, dtype, length):
    got, want = both(cuda, (length,), dtype, lambda t: t.uniform_(-2, 3))
    assert np.array_equal(got, want)


@pytest.mark.same_as_cpu
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_normal_and_exponential(cuda, dtype, length):
    eps = float(candelabra.finfo(getattr(candelabra, dtype)).eps)
    got, want = both(cuda, (length,), dtype, lambda t: t.normal_(0.5, 2))
    np.testing.assert_allclose(got, want, rtol=4 * eps, atol=8 * eps)
    got, want = both(cuda, (length,), dtype, lambda t: t.exponential_(1.5))
    np.testing.assert_allclose(got, want, rtol=4 * eps, atol=4 * eps)


@pytest.mark.parametrize(
    "dtype", [*FLOATS, "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"]
)
@pytest.mark.parametrize("bounds", [(0, 2), (-100, 100), (0, 1), (-(2**62), 2**62), (5, 2**40)], ids=str)
def test_whole_numbers(cuda, dtype, bounds):
    got, want = both(cuda, (1001,), dtype, lambda t: candelabra.ops.random_range_(t, *bounds))
    assert np.array_equal(got, want)


@pytest.mark.parametrize("dtype", [*FLOATS, "bool", "uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_bernoulli(cuda, dtype, p):
    got, want = both(cuda, (1003,), dtype, lambda t: t.bernoulli_(p))
    assert np.array_equal(got, want)


@pytest.mark.parametrize("dtype", FLOATS)
def test_bernoulli_of_probabilities(cuda, dtype):
    chances = candelabra.linspace(0, 1, 5000).reshape(50, 100).to(getattr(candelabra, dtype))
    for view in (chances, chances.t(), chances[::3, 1::2], chances[:1].expand(7, 100)):
        candelabra.manual_seed(2)
        want = candelabra.bernoulli(view)
        candelabra.manual_seed(2)
        got = candelabra.bernoulli(view.to(cuda) if view.is_contiguous() else on_device(view, cuda))
        assert np.array_equal(numbers(got), numbers(want))
    with pytest.raises(RuntimeError, match="p_in >= 0 && p_in <= 1"):
        candelabra.bernoulli(candelabra.tensor([0.5, 1.5], device=cuda)).cpu()


def on_device(view: candelabra.Tensor, cuda: candelabra.device) -> candelabra.Tensor:
    """Return the tensor on the GPU with the same strides."""
    storage = candelabra.zeros(view.untyped_storage().nbytes() // view.element_size(), dtype=view.dtype)
    storage.copy_(view.as_strided(storage.shape, (1,), 0))
    return storage.to(cuda).as_strided(view.shape, view.stride(), view.storage_offset())


@pytest.mark.same_as_cpu
@pytest.mark.parametrize("dtype", FLOATS)
def test_strided_memory_gets_the_numbers_in_row_major_order(cuda, dtype):
    def into(view: Callable[[candelabra.Tensor], candelabra.Tensor]) -> None:
        got, want = both(cuda, (8, 12, 10), dtype, lambda t: view(t).uniform_())
        assert np.array_equal(got, want)

    into(lambda t: t.permute(2, 0, 1))
    into(lambda t: t[1::2, :, 1:9:3])
    into(lambda t: t.reshape(-1)[1:])
    into(lambda t: t.reshape(-1)[3:-2])


@pytest.mark.same_as_cpu
@pytest.mark.parametrize("dtype", [*FLOATS, "complex64", "complex128"])
@pytest.mark.parametrize("p", [0.0, 0.25, 1.0])
def test_dropout(cuda, dtype, p):
    x = candelabra.arange(3000).reshape(30, 100).to(getattr(candelabra, dtype)) / 7
    for view in (x, x.t(), x[1:, 1:], x.reshape(-1)[2:]):
        candelabra.manual_seed(9)
        want = candelabra.ops.native_dropout(view, p)
        candelabra.manual_seed(9)
        got = candelabra.ops.native_dropout(on_device(view, cuda), p)
        for a, b in zip(got, want, strict=True):
            assert a.dtype == b.dtype and a.stride() == b.stride()
            assert np.array_equal(numbers(a), numbers(b))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 17, 256, 1000, 65537])
def test_randperm_is_the_shuffle_of_the_cpu(cuda, n):
    candelabra.manual_seed(11)
    want = candelabra.randperm(n)
    candelabra.manual_seed(11)
    assert candelabra.randperm(n, device=cuda).cpu().tolist() == want.tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "uint8", "int16", "int32", "uint64"])
def test_dtypes_of_randperm(cuda, dtype):
    found = []
    for device in ("cpu", cuda):
        candelabra.manual_seed(3)
        found.append(numbers(candelabra.randperm(200, dtype=getattr(candelabra, dtype), device=device)))
    assert np.array_equal(found[0], found[1])
    assert candelabra.randperm(0, device=cuda).tolist() == []


def test_calls_go_on_in_the_same_stream_of_numbers(cuda):
    found = []
    for device in ("cpu", cuda):
        candelabra.manual_seed(1)
        found.append([candelabra.rand(n, device=device).tolist() for n in (1, 5, 2, 1000, 3)])
    assert found[0] == found[1]


def test_bad_arguments(cuda):
    x = candelabra.zeros(3, device=cuda)
    with pytest.raises(RuntimeError, match="uniform_ expects"):
        x.uniform_(2, 1)
    with pytest.raises(RuntimeError, match="std >= 0"):
        x.normal_(0, -1)
    with pytest.raises(RuntimeError, match="lambda > 0"):
        x.exponential_(0)
    with pytest.raises(RuntimeError, match="p to be in"):
        x.bernoulli_(2)
    with pytest.raises(RuntimeError, match="not implemented"):
        candelabra.zeros(3, dtype=candelabra.int32, device=cuda).uniform_()
    assert x.tolist() == [0, 0, 0]
