"""Running sums, products and extrema of inputs that lie in other orders than their results, with
lengths around those of registers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import candelabra

Layout = Callable[[np.ndarray], np.ndarray]

LAYOUTS: dict[str, Layout] = {
    "in order": lambda a: np.ascontiguousarray(a[:, : a.shape[1] // 2]),
    "transposed": lambda a: np.ascontiguousarray(a[:, : a.shape[1] // 2]).T,
    "every second column": lambda a: a[:, ::2],
    "backwards": lambda a: a[::-1, : a.shape[1] // 2].copy(),
    "one row": lambda a: np.broadcast_to(a[:1], a.shape),
    "one column": lambda a: np.broadcast_to(a[:, :1], a.shape),
}


def _same_layout(name: str, x: candelabra.Tensor) -> candelabra.Tensor:
    half = x.shape[1] // 2
    return {
        "in order": lambda: x[:, :half].contiguous(),
        "transposed": lambda: x[:, :half].contiguous().t(),
        "every second column": lambda: x[:, ::2],
        "backwards": lambda: x[:, :half].flip(0),
        "one row": lambda: x[:1].expand(*x.shape),
        "one column": lambda: x[:, :1].expand(*x.shape),
    }[name]()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "uint8", "complex64"])
def test_sums_and_products_of_other_layouts(layout: str, dtype: str) -> None:
    wide = getattr(candelabra, dtype)
    numbers = np.random.default_rng(0).integers(0 if dtype == "uint8" else -2, 3, (70, 94)).astype("float64")
    x = _same_layout(layout, candelabra.tensor(numbers).to(wide))
    expected = LAYOUTS[layout](numbers)
    for dim in (0, 1, -1):
        sums = x.cumsum(dim).to(candelabra.complex128).numpy()
        np.testing.assert_array_equal(sums, np.cumsum(expected, axis=dim).astype("complex128"))
    signs = np.where(numbers > 0, 1.0, -1.0 if dtype != "uint8" else 1.0)
    products = _same_layout(layout, candelabra.tensor(signs).to(wide)).cumprod(1)
    np.testing.assert_array_equal(
        products.to(candelabra.complex128).numpy(), np.cumprod(LAYOUTS[layout](signs), axis=1).astype("complex128")
    )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dim", [0, 1])
def test_extrema_of_other_layouts(layout: str, dim: int) -> None:
    numbers = np.random.default_rng(1).permutation(70 * 94).reshape(70, 94).astype("float32")
    x, expected = _same_layout(layout, candelabra.tensor(numbers)), LAYOUTS[layout](numbers)
    values, indices = x.cummax(dim)
    np.testing.assert_array_equal(values.numpy(), np.maximum.accumulate(expected, axis=dim))
    np.testing.assert_array_equal(np.take_along_axis(expected, indices.numpy(), dim), values.numpy())
    values, _ = x.cummin(dim)
    np.testing.assert_array_equal(values.numpy(), np.minimum.accumulate(expected, axis=dim))


@pytest.mark.parametrize("n", [1, 7, 8, 9, 15, 16, 17, 4223, 4224, 4225, 9001])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_of_any_length(n: int, dtype: str) -> None:
    numbers = np.random.default_rng(n).standard_normal((3, n)).astype(dtype)
    tolerance = {"float32": 1e-6, "float64": 1e-13}[dtype]
    sums = candelabra.tensor(numbers).cumsum(1).numpy()
    np.testing.assert_allclose(sums, np.cumsum(numbers.astype("float64"), axis=1), rtol=tolerance, atol=tolerance * 10)
    near_one = 1 + numbers * numbers.dtype.type(1e-3)
    products = candelabra.tensor(near_one).cumprod(1).numpy()
    np.testing.assert_allclose(products, np.cumprod(near_one.astype("float64"), axis=1), rtol=tolerance * 10)


def test_what_is_no_number_stays_from_where_it_is() -> None:
    numbers = np.ones((2, 40), "float32")
    numbers[0, 13], numbers[1, 21] = np.nan, np.inf
    sums = candelabra.tensor(numbers).cumsum(1).numpy()
    np.testing.assert_array_equal(sums, np.cumsum(numbers, axis=1))
    products = candelabra.tensor(numbers).cumprod(1).numpy()
    np.testing.assert_array_equal(products, np.cumprod(numbers, axis=1))


def test_products_that_leave_the_range_and_come_back() -> None:
    numbers = np.array([[1e200, 1e100, 1e-250, 1e-40, 1e300, 1e-290, 2.0, 3.0, 1e200, 1e-200]])
    np.testing.assert_allclose(candelabra.tensor(numbers).cumprod(1).numpy(), np.cumprod(numbers, axis=1), rtol=1e-14)


def test_in_place_of_a_transposed_tensor() -> None:
    numbers = np.random.default_rng(2).integers(-5, 6, (64, 48)).astype("float32")
    x = candelabra.tensor(numbers).t()
    x.cumsum_(0)
    np.testing.assert_array_equal(x.numpy(), np.cumsum(numbers.T, axis=0))
