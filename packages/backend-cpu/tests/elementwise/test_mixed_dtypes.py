"""Mixed dtypes: arithmetic and sums convert operands on the fly, with the results of converted
tensors.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import candelabra
from candelabra import Tensor

NAMES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "float16", "bfloat16", "float32", "float64", "complex64",
    "complex128",
]  # fmt: skip
LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "contiguous": lambda x: x,
    "every second column": lambda x: candelabra.cat([x, x], 1)[:, ::2],
    "transposed": lambda x: x.t().contiguous().t(),
    "a row": lambda x: x[:1],
    "a column": lambda x: x[:, :1],
    "one element": lambda x: x[2, 1],
    "short rows": lambda x: candelabra.cat([x, x], 1)[:, : x.shape[1]],
}


def tensor(name: str, shape: tuple[int, ...], seed: int, least: int = 0) -> Tensor:
    generator = np.random.default_rng(seed)
    values = candelabra.from_numpy(generator.integers(least, 12, shape))
    if name in ("float16", "bfloat16", "float32", "float64"):
        values = values + candelabra.from_numpy(generator.integers(0, 8, shape)) / 8
    if name.startswith("complex"):
        values = values + 1j * candelabra.from_numpy(generator.integers(-5, 5, shape))
    return values.to(getattr(candelabra, name))


def promoted(a: Tensor, b: Tensor) -> Any:
    try:
        return candelabra.result_type(a, b)
    except RuntimeError:
        pytest.skip("these two have no common dtype")


def assert_same(got: Tensor, wanted: Tensor) -> None:
    assert got.dtype == wanted.dtype and got.shape == wanted.shape
    assert candelabra.equal(got, wanted), (got, wanted)


PAIRS = [(a, b) for a, b in itertools.product(NAMES, NAMES) if a != b]


@pytest.mark.parametrize("first, second", PAIRS)
def test_arithmetic_is_that_of_converted_tensors(first: str, second: str) -> None:
    a, b = tensor(first, (37, 53), 0), tensor(second, (37, 53), 1, least=1)
    dtype = promoted(a, b)
    for operation in (candelabra.add, candelabra.mul, candelabra.div):
        assert_same(operation(a, b), operation(a.to(dtype), b.to(dtype)))
    if "bool" not in (first, second):
        assert_same(candelabra.sub(a, b, alpha=2), candelabra.sub(a.to(dtype), b.to(dtype), alpha=2))
    if not dtype.is_complex:
        for mode in ("floor", "trunc"):
            assert_same(
                candelabra.div(a, b, rounding_mode=mode), candelabra.div(a.to(dtype), b.to(dtype), rounding_mode=mode)
            )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "first, second", [("float32", "float64"), ("bool", "float32"), ("int64", "bfloat16"), ("float16", "bfloat16")]
)
def test_layouts_of_operands(first: str, second: str, layout: str) -> None:
    for shape in ((37, 53), (5, 7), (300, 700), (40, 3)):
        a, b = tensor(first, shape, 0), LAYOUTS[layout](tensor(second, shape, 1))
        dtype = promoted(a, b)
        assert_same(a * b, a.to(dtype) * b.to(dtype))
        assert_same(b + a, b.to(dtype) + a.to(dtype))


def test_against_numpy() -> None:
    a, b = tensor("float32", (200, 300), 0), tensor("float64", (200, 300), 1)
    np.testing.assert_array_equal((a - b).numpy(), a.numpy() - b.numpy())
    c, d = tensor("int32", (200, 300), 2), tensor("uint8", (200, 300), 3)
    np.testing.assert_array_equal((c * d).numpy(), c.numpy() * d.numpy())
    np.testing.assert_allclose((c / (d + 1)).numpy(), (c.numpy() / (d.numpy() + 1.0)).astype(np.float32), rtol=1e-7)


def test_integers_are_rounded_to_the_half_precision_first() -> None:
    x = candelabra.tensor([257, 4099], dtype=candelabra.int64)
    y = candelabra.ones(2, dtype=candelabra.bfloat16)
    assert_same(x - y, x.to(candelabra.bfloat16) - y)
    assert_same(x.to(candelabra.float32).to(candelabra.bfloat16) * y, x * y)


def test_in_place_and_out() -> None:
    a, mask = tensor("float32", (64, 65), 0), tensor("bool", (64, 65), 1)
    wanted = a * mask.to(candelabra.float32)
    assert_same(a.clone().mul_(mask), wanted)
    assert_same(candelabra.mul(a, mask, out=candelabra.empty(64, 65)), wanted)
    assert_same(
        candelabra.mul(a, mask, out=candelabra.empty(64, 65, dtype=candelabra.float64)), wanted.to(candelabra.float64)
    )
    half = tensor("float16", (64, 65), 2)
    assert_same(half.clone().add_(a), (half.to(candelabra.float32) + a).to(candelabra.float16))
    whole = tensor("int32", (64, 65), 3)
    with pytest.raises(RuntimeError, match="can't be cast"):
        whole.add_(a)


def test_other_views_of_the_memory_that_is_written() -> None:
    x = tensor("float32", (64, 64), 0)
    words = x.view(candelabra.int32)
    with pytest.raises(RuntimeError, match="single memory location"):
        x.add_(words)
    with pytest.raises(RuntimeError, match="single memory location"):
        candelabra.add(x, words, out=x)
    assert_same(x, tensor("float32", (64, 64), 0))
    assert_same(x + words, x + words.clone())


def test_a_zero_divisor_of_another_dtype() -> None:
    x = candelabra.ones(5, dtype=candelabra.int64)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        x.floor_divide_(candelabra.tensor([1, 1, 0, 1, 1], dtype=candelabra.int8))
    assert x.tolist() == [1] * 5


@pytest.mark.parametrize("name", NAMES)
def test_sums_of_any_dtype(name: str) -> None:
    for shape in ((4000, 3), (3, 4000), (130, 257), (0, 4), (1, 1)):
        x = tensor(name, shape, 0)
        for view in (x, x.t(), candelabra.cat([x, x], 1)[:, ::2]):
            for dtype in (
                None,
                candelabra.int64,
                candelabra.float64,
                candelabra.float32,
                candelabra.bfloat16,
                candelabra.complex64,
            ):
                if x.dtype.is_complex and dtype is not None and not dtype.is_complex:
                    continue
                to = dtype or x.sum().dtype
                for dim in (None, 0, 1):
                    assert_same(candelabra.sum(view, dim=dim, dtype=dtype), candelabra.sum(view.to(to), dim=dim))


@pytest.mark.parametrize("name", NAMES)
def test_products_and_means_of_any_dtype(name: str) -> None:
    x = candelabra.cat([tensor(name, (6, 31), 0), tensor(name, (6, 31), 1)], 1)[:, ::2]
    for dtype in (candelabra.float32, candelabra.float16, candelabra.complex128):
        if x.dtype.is_complex and not dtype.is_complex:
            continue
        assert_same(candelabra.mean(x, dim=1, dtype=dtype), candelabra.mean(x.to(dtype), dim=1))
        assert_same(candelabra.prod(x[:, :3], dim=1, dtype=dtype), candelabra.prod(x[:, :3].to(dtype), dim=1))
    if not x.dtype.is_complex and not x.dtype.is_floating_point:
        assert_same(candelabra.prod(x[:, :5], dim=1), candelabra.prod(x[:, :5].to(candelabra.int64), dim=1))
        assert_same(
            candelabra.prod(x, dim=0, dtype=candelabra.int8),
            candelabra.prod(x.to(candelabra.int8), dim=0, dtype=candelabra.int8),
        )


def test_sums_against_numpy() -> None:
    mask = np.random.default_rng(0).random((1000, 999)) < 0.3
    x = candelabra.from_numpy(mask)
    assert x.sum().item() == mask.sum()
    np.testing.assert_array_equal(x.sum(0).numpy(), mask.sum(0))
    np.testing.assert_array_equal(x.sum(1).numpy(), mask.sum(1))
    bytes_ = np.random.default_rng(1).integers(0, 256, 3_000_001).astype(np.uint8)
    assert candelabra.from_numpy(bytes_).sum().item() == bytes_.sum(dtype=np.int64)
    numbers = np.random.default_rng(2).integers(-(2**31), 2**31, 100_001).astype(np.int32)
    assert candelabra.from_numpy(numbers).sum().item() == numbers.sum(dtype=np.int64)


def test_a_complex_sum_as_real_numbers_says_what_is_lost() -> None:
    with pytest.warns(UserWarning, match="imaginary"):
        assert candelabra.tensor([1 + 2j, 3 - 1j]).sum(dtype=candelabra.float32).item() == 4


def test_no_converted_tensor_is_made() -> None:
    a, b = tensor("float32", (300, 400), 0), tensor("float64", (300, 400), 1)
    mask = tensor("bool", (300, 400), 2)

    def allocated(function: Callable[[], Tensor]) -> int:
        before = candelabra.backends.memory_statistics("cpu")["allocation_count"]
        function()
        return candelabra.backends.memory_statistics("cpu")["allocation_count"] - before

    assert allocated(lambda: a + b) == allocated(lambda: a + a)
    assert allocated(lambda: a * mask) == allocated(lambda: a * a)
    assert allocated(mask.sum) == allocated(tensor("int64", (300, 400), 3).sum)
