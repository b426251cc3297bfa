"""Test reductions against NumPy in the widest dtype of their kind."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from values import ALL, COMPLEX, FLOATS, INTEGERS, LAYOUTS, NUMBERS, REALS, assert_values, random_tensor, tensor, wide

import candelabra
from candelabra import ops

SHAPES = [(), (1,), (4,), (130,), (5000,), (3, 5), (70, 3), (3, 700), (6, 1, 5), (9, 4, 33), (40, 3, 7, 5)]


def dim_sets(ndim: int) -> list[list[int]]:
    sets = [list(range(ndim))]
    if ndim:
        sets += [[0], [ndim - 1]]
    if ndim > 2:
        sets += [[1], [0, ndim - 1], [1, 2]]
    return sets


def cases(dtype: str, shapes: list[tuple[int, ...]] = SHAPES) -> Any:
    for seed, shape in enumerate(shapes):
        for layout in LAYOUTS if shape else LAYOUTS[:1]:
            x = random_tensor(shape, dtype, layout, seed)
            for dims in dim_sets(len(shape)):
                yield x, wide(x), dims


@pytest.mark.parametrize("dtype", ALL)
def test_sum(dtype: str) -> None:
    for x, array, dims in cases(dtype):
        expected = array.astype(np.int64).sum(tuple(dims)) if array.dtype == bool else array.sum(tuple(dims))
        assert_values(ops.sum(x, dims), expected, scale=np.abs(array).sum(tuple(dims)), units=4)
        assert_values(
            ops.sum(x, dims, True),
            array.sum(tuple(dims), keepdims=True),
            scale=np.abs(array).sum(tuple(dims), keepdims=True),
        )


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX])
def test_mean(dtype: str) -> None:
    for x, array, dims in cases(dtype):
        assert_values(ops.mean(x, dims), array.mean(tuple(dims)), scale=np.abs(array).mean(tuple(dims)), units=4)


@pytest.mark.parametrize("dtype", ALL)
def test_prod(dtype: str) -> None:
    for x, array, dims in cases(dtype, [(), (1,), (7,), (3, 5), (6, 1, 5), (3, 4, 33)]):
        for dim in dims:
            expected = array.astype(np.int64).prod(dim) if array.dtype == bool else array.prod(dim)
            result = ops.prod(x, dim)
            assert_values(result, expected, units=4)
    everything = random_tensor((3, 4), dtype, "transposed")
    with np.errstate(over="ignore"):
        assert_values(
            ops.prod(everything),
            np.asarray(wide(everything).astype(object).prod()).astype(wide(ops.prod(everything)).dtype),
        )


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "float16", "float32", "bool"])
def test_sum_into_other_dtypes(dtype: str) -> None:
    x = random_tensor((5, 40), dtype)
    for name in ("int8", "int32", "float64", "complex64", "bool"):
        result = ops.sum(x, 0, dtype=getattr(candelabra, name))
        converted = wide(x.to(getattr(candelabra, name)))
        expected = converted.any(0) if name == "bool" else converted.sum(0)
        if name == "int8":
            expected = expected.astype(np.int8)
        assert_values(result, expected, scale=np.abs(converted).sum(0))


def test_sums_of_many_values_are_accurate() -> None:
    x = candelabra.full((10_000_000,), 0.1)
    exact = float(np.float32(0.1)) * 1e7
    assert abs(float(x.sum()) - exact) <= 1e-7 * exact
    assert abs(float(x.mean()) - np.float32(0.1)) <= 1e-8
    assert abs(float(x.reshape(2500, 4000).sum(0)[7]) - 250.0) <= 1e-4
    doubles = np.random.default_rng(0).standard_normal(1_000_003)
    assert float(tensor(doubles).sum()) == pytest.approx(math.fsum(doubles), abs=1e-12)
    columns = doubles[:1_000_000].reshape(-1, 4)
    np.testing.assert_allclose(
        ops.sum(tensor(columns), 0).numpy(), [math.fsum(columns[:, j]) for j in range(4)], rtol=0, atol=1e-12
    )
    halves = candelabra.full((100_000,), 0.1).to(candelabra.bfloat16)
    assert float(halves.sum()) == pytest.approx(100_000 * float(halves[0]), rel=2**-8)


def test_results_do_not_depend_on_threads() -> None:
    x = tensor(np.random.default_rng(1).standard_normal(3_000_000).astype("f4"))
    before = candelabra.get_num_threads()
    results = []
    try:
        for threads in (1, 2):
            candelabra.set_num_threads(threads)
            results.append(
                [
                    wide(f).tobytes()
                    for f in (x.sum(), x.var(), x.reshape(-1, 6).sum(0), ops.logsumexp(x, [0]), x.cumsum(0))
                ]
            )
    finally:
        candelabra.set_num_threads(before)
    assert results[0] == results[1]


@pytest.mark.parametrize("name", ["amax", "amin"])
@pytest.mark.parametrize("dtype", ["bool", *REALS])
def test_extrema(name: str, dtype: str) -> None:
    for x, array, dims in cases(dtype):
        assert_values(getattr(ops, name)(x, dims), getattr(np, name)(array, tuple(dims)), units=0)


@pytest.mark.parametrize("dtype", REALS)
def test_arg_extrema(dtype: str) -> None:
    for x, array, dims in cases(dtype):
        for dim in dims[:1]:
            for name in ("max", "min"):
                expected = getattr(np, "arg" + name)(array, dim)
                assert_values(getattr(ops, "arg" + name)(x, dim), expected)
                values, indices = getattr(ops, name + "_with_indices")(x, dim)
                assert_values(indices, expected)
                assert_values(values, getattr(np, "a" + name)(array, dim), units=0)
        assert int(ops.argmax(x)) == int(np.argmax(array))
        assert int(ops.argmin(x)) == int(np.argmin(array))


def test_extrema_of_bool() -> None:
    values, indices = ops.max_with_indices(tensor(np.array([[False, True, True], [False, False, False]])), 1)
    assert values.tolist() == [True, False]
    assert indices.tolist() == [1, 0]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(7,), (5000,), (3, 900), (900, 3), (70_000, 2)])
def test_nan_wins(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(5).standard_normal(shape)
    array[3 % shape[0]] = np.nan
    array[5 % shape[0]] = np.inf
    array[6 % shape[0]] = np.nan
    x = tensor(array, dtype)
    for dim in range(len(shape)):
        assert_values(ops.amax(x, [dim]), wide(x).max(dim), units=0)
        assert_values(ops.amin(x, [dim]), wide(x).min(dim), units=0)
        values, indices = ops.max_with_indices(x, dim)
        assert_values(indices, np.argmax(wide(x), dim))
        assert_values(values, wide(x).max(dim), units=0)
        assert_values(ops.argmin(x, dim), np.argmin(wide(x), dim))
    infinite = tensor(np.full(shape, -np.inf), dtype)
    assert int(ops.argmax(infinite)) == 0
    assert np.all(wide(ops.amax(infinite, [0])) == -np.inf)


@pytest.mark.parametrize("dtype", ALL)
def test_all_and_any(dtype: str) -> None:
    for seed in range(4):
        generator = np.random.default_rng(seed)
        for shape in SHAPES[1:]:
            array = generator.random(shape) < (0.5, 0.999, 0.001, 0.0)[seed]
            x = tensor(array.astype(np.int64), dtype)
            for dims in dim_sets(len(shape)):
                assert_values(ops.all(x, dims), array.all(tuple(dims)))
                assert_values(ops.any(x, dims), array.any(tuple(dims)))
            assert_values(ops.any(x.T if len(shape) == 2 else x), array.any())
    if dtype in FLOATS:
        assert ops.all(tensor(np.array([np.nan, np.inf, 1.0]), dtype)).item() is True
        assert ops.any(tensor(np.array([0.0, -0.0]), dtype)).item() is False
    if dtype in COMPLEX:
        assert ops.all(tensor(np.array([1j, 1.0]), dtype)).item() is True


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX])
@pytest.mark.parametrize("correction", [1, 0, 0.5])
def test_var_and_std(dtype: str, correction: float) -> None:
    for x, array, dims in cases(dtype):
        count = math.prod(array.shape[d] for d in dims)
        if count - correction <= 0:
            continue
        mean = array.mean(tuple(dims), keepdims=True)
        expected = (np.abs(array - mean) ** 2).sum(tuple(dims)) / (count - correction)
        scale = expected + 1
        assert_values(ops.var(x, dims, correction=correction), expected, scale=scale, units=2)
        assert_values(ops.std(x, dims, correction=correction), np.sqrt(expected), scale=np.sqrt(scale), units=2)


def test_variance_far_from_zero() -> None:
    array = np.random.default_rng(2).standard_normal((300, 4000)).astype("f4") + np.float32(1000)
    for dim in (0, 1):
        assert_values(ops.var(tensor(array), [dim]), array.astype("f8").var(dim, ddof=1), units=2)
    doubles = np.random.default_rng(2).standard_normal(100_000) + 1e8
    assert float(ops.var(tensor(doubles))) == pytest.approx(doubles.var(ddof=1), rel=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_variance_without_freedom() -> None:
    assert np.isnan(float(ops.var(tensor(np.array([3.0])))))
    assert np.isnan(float(ops.var(tensor(np.zeros(0)))))
    assert np.all(np.isnan(wide(ops.var(tensor(np.ones((2, 2))), [0], correction=3))))
    assert np.isnan(float(ops.var(tensor(np.array([np.inf, 1.0])))))
    assert float(ops.var(tensor(np.array([3.0])), correction=0)) == 0


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX])
@pytest.mark.parametrize("order", [2, 1, 0, math.inf, -math.inf, 3, 0.5, -1, 2.5])
def test_vector_norm(dtype: str, order: float) -> None:
    for x, array, dims in cases(dtype):
        magnitudes = np.abs(array)
        if order == 0:
            expected = (magnitudes != 0).sum(tuple(dims)).astype("f8")
        elif math.isinf(order):
            expected = magnitudes.max(tuple(dims)) if order > 0 else magnitudes.min(tuple(dims))
        else:
            with np.errstate(divide="ignore"):
                expected = (magnitudes**order).sum(tuple(dims)) ** (1 / order)
        assert_values(ops.linalg_vector_norm(x, order, dims), expected, units=8)


def test_vector_norm_of_large_float32() -> None:
    x = tensor(np.array([3e30, 4e30], dtype="f4"))
    assert float(ops.linalg_vector_norm(x)) == pytest.approx(5e30)
    tiny = tensor(np.array([3e-30, 4e-30], dtype="f4"))
    assert float(ops.linalg_vector_norm(tiny)) == pytest.approx(5e-30)
    assert np.isnan(float(ops.linalg_vector_norm(tensor(np.array([np.nan, 1.0])), math.inf)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_logsumexp(dtype: str) -> None:
    for x, array, dims in cases(dtype):
        if dims:
            assert_values(
                ops.logsumexp(x, dims), logsumexp(array, axis=tuple(dims)), scale=1 + np.abs(array).max(tuple(dims))
            )
    special = np.array(
        [[np.inf, 1.0, 2], [-np.inf, -np.inf, -np.inf], [np.nan, 1, 2], [1000, 1000, -np.inf], [-1000, -1001, -1002]]
    )
    x = tensor(special, dtype)
    expected = logsumexp(wide(x), axis=1)
    assert_values(ops.logsumexp(x, [1]), expected)
    assert_values(ops.logsumexp(x.T.contiguous(), [0]), expected)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_logsumexp_of_complex(dtype: str) -> None:
    for x, array, dims in cases(dtype, [(1,), (5,), (3, 50), (4, 5, 6)]):
        expected = np.log(np.exp(array).sum(tuple(dims)))
        assert_values(ops.logsumexp(x, dims), expected, scale=1 + np.abs(array).max(tuple(dims)), units=16)
    large = tensor(np.array([1000 + 1j, 1000 - 1j]), dtype)
    assert complex(ops.logsumexp(large, [0])) == pytest.approx(1000 + np.log(2 * np.cos(1)), rel=1e-6)


@pytest.mark.parametrize("dtype", ["int64", "float16", "float32", "complex64"])
def test_empty_reductions(dtype: str) -> None:
    x = random_tensor((0, 3), dtype)
    assert_values(ops.sum(x), np.zeros(()))
    assert_values(ops.sum(x, 0), np.zeros(3))
    assert tuple(ops.sum(x, 1).shape) == (0,)
    assert_values(ops.prod(x), np.ones(()))
    assert_values(ops.prod(x, 0), np.ones(3))
    assert ops.all(x).item() is True
    assert ops.any(x, 0).tolist() == [False] * 3
    if dtype != "int64":
        assert np.all(np.isnan(wide(ops.mean(x, 0))))
        assert_values(ops.linalg_vector_norm(x, 2, [0]), np.zeros(3))
    if dtype in ("float16", "float32"):
        assert np.all(wide(ops.logsumexp(x, [0])) == -np.inf)
        assert tuple(ops.amax(x, [1]).shape) == (0,)


@pytest.mark.parametrize("order", [math.inf, -math.inf, -1.0])
def test_norms_that_nothing_has(order: float) -> None:
    with pytest.raises((RuntimeError, IndexError)):
        ops.linalg_vector_norm(tensor(np.zeros(0)), order)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_has_no_order(dtype: str) -> None:
    for name in ("amax", "amin"):
        with pytest.raises((RuntimeError, NotImplementedError)):
            getattr(ops, name)(random_tensor((3,), dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_outputs_given(dtype: str) -> None:
    x = random_tensor((6, 50), dtype)
    values = candelabra.empty(12, dtype=x.dtype)[::2]
    indices = candelabra.empty(6, dtype=candelabra.int64)
    ops.max_with_indices(x, 1, out=(values, indices))
    assert_values(values, wide(x).max(1))
    assert_values(indices, wide(x).argmax(1))


@pytest.mark.parametrize("dtype", NUMBERS)
def test_large_reductions_in_parallel(dtype: str) -> None:
    x = random_tensor((300_001,), dtype)
    array = wide(x)
    assert_values(ops.sum(x), array.sum(), scale=np.abs(array).sum(), units=4)
    if dtype in REALS:
        assert_values(ops.amax(x), array.max(), units=0)
        assert int(ops.argmin(x)) == int(array.argmin())
    tall = random_tensor((100_000, 3), dtype, "transposed")
    assert_values(ops.sum(tall, 0), wide(tall).sum(0), scale=np.abs(wide(tall)).sum(0), units=4)
    assert_values(ops.sum(tall.contiguous(), 0), wide(tall).sum(0), scale=np.abs(wide(tall)).sum(0), units=4)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_sums_without_nan_and_counts(dtype: str) -> None:
    rng = np.random.default_rng(0)
    array = rng.standard_normal((37, 300))
    array[rng.random(array.shape) < 0.2] = np.nan
    array[rng.random(array.shape) < 0.2] = 0
    x = candelabra.tensor(array.tolist()).to(getattr(candelabra, dtype))
    exact = x.to(candelabra.float64).numpy()
    for view, seen in ((x, exact), (x.t(), exact.T), (x[::2, ::3], exact[::2, ::3])):
        for dim in (None, 0, 1):
            made = candelabra.nansum(view, dim).to(candelabra.float64).numpy()
            np.testing.assert_allclose(
                made, np.nansum(seen, dim), rtol=1e-2 if dtype in ("bfloat16", "float16") else 1e-5, atol=1e-4
            )
            np.testing.assert_array_equal(candelabra.count_nonzero(view, dim).numpy(), np.count_nonzero(seen, dim))
    assert candelabra.nansum(x.to(candelabra.int64) * 0 + 2).item() == 2 * 37 * 300


def test_results_whose_elements_alternate() -> None:
    """Elements of several results alternate in memory."""
    x = candelabra.randn(40, 33, 70)
    array = x.numpy().astype(np.float64)
    np.testing.assert_allclose(x.sum((0, 2)).numpy(), array.sum((0, 2)), rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(x.amax((0, 2)).numpy(), x.numpy().max((0, 2)))
    np.testing.assert_array_equal(x.amin((0, 2)).numpy(), x.numpy().min((0, 2)))
    np.testing.assert_allclose(x.var((0, 2)).numpy(), array.var((0, 2), ddof=1), rtol=1e-4)
    for size in range(1, 140):
        row = candelabra.randn(3, size)
        np.testing.assert_array_equal(row.amax(1).numpy(), row.numpy().max(1))
        np.testing.assert_allclose(row.sum(1).numpy(), row.numpy().astype(np.float64).sum(1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["bool", *REALS])
def test_both_extrema(dtype: str) -> None:
    for x, array, dims in cases(dtype):
        low, high = ops._aminmax(x, dims)
        assert_values(low, array.min(tuple(dims)), units=0)
        assert_values(high, array.max(tuple(dims)), units=0)
    if dtype in FLOATS:
        for at in (0, 5, 63, 64, 300, 999):
            line = np.arange(1000.0) % 128
            line[at] = np.nan
            for made in ops._aminmax(tensor(line, dtype)):
                assert bool(made.isnan())


@pytest.mark.parametrize("columns", [1, 7, 17, 31, 32, 33, 49, 64, 100, 511, 512, 513])
def test_sums_of_short_rows_do_not_depend_on_their_neighbours(columns: int) -> None:
    array = np.random.default_rng(columns).standard_normal((83, columns)).astype(np.float32)
    array[5, columns // 2] = np.nan
    array[40, 0] = np.inf
    x = tensor(array)
    for name in ("sum", "mean", "_nansum"):
        together = wide(getattr(ops, name)(x, [1]))
        alone = [float(getattr(ops, name)(x[i : i + 1], [1])) for i in range(83)]
        np.testing.assert_array_equal(together, alone)
    exact = array.astype(np.float64)
    assert_values(ops.sum(x, [1]), exact.sum(1), scale=np.abs(exact).sum(1), units=2)
    assert_values(ops._nansum(x, [1]), np.nansum(exact, 1), scale=np.nansum(np.abs(exact), 1), units=2)
