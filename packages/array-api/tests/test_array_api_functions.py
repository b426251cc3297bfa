"""Creation, movement, statistics, searches and sets of the array API standard, against NumPy."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

from array_api_arrays import (
    ALL,
    COMPLEX,
    FLOATING,
    INTEGRAL,
    NUMERIC,
    REAL,
    REAL_FLOATING,
    SHAPES,
    SIGNED,
    UNSIGNED,
    check,
    numpy_arrays,
    pairs_of,
    to_numpy,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import candelabra.array_api as xp

fast = settings(derandomize=True, max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
inf, nan = math.inf, math.nan
FINITE = {"allow_nan": False, "allow_infinity": False, "max_magnitude": 100}


def drawn(data: st.DataObject, names: tuple[str, ...], shape: Any = SHAPES, **elements: Any) -> np.ndarray:
    name = data.draw(st.sampled_from(names))
    if name in REAL_FLOATING and "max_magnitude" in elements:
        top = elements.pop("max_magnitude")
        elements |= {"min_value": -top, "max_value": top}
    return data.draw(numpy_arrays(name, shape, **(elements if name in FLOATING else {})))


def axis_of(data: st.DataObject, x: np.ndarray) -> Any:
    """None, an axis, or some axes, counted from either end."""
    if x.ndim == 0:
        return data.draw(st.sampled_from([None, ()]))
    single = st.integers(-x.ndim, x.ndim - 1)
    several = st.lists(single, max_size=x.ndim, unique_by=lambda axis: axis % x.ndim).map(tuple)
    return data.draw(st.none() | single | several)


# ---- creation


@pytest.mark.parametrize("dtype", ALL)
def test_filled(dtype: str) -> None:
    kind = getattr(xp, dtype)
    for shape in ((), (0,), (2, 0, 3), (2, 3), 4):
        check(xp.zeros(shape, dtype=kind), np.zeros(shape, dtype))
        check(xp.ones(shape, dtype=kind), np.ones(shape, dtype))
        check(xp.full(shape, 1, dtype=kind), np.full(shape, 1, dtype))
        like = xp.zeros(shape, dtype=xp.int8)
        check(xp.zeros_like(like, dtype=kind), np.zeros(shape, dtype))
        check(xp.ones_like(like, dtype=kind), np.ones(shape, dtype))
        check(xp.full_like(like, 1, dtype=kind), np.full(shape, 1, dtype))
        assert xp.empty(shape, dtype=kind).dtype is kind
        assert xp.empty_like(xp.zeros(shape, dtype=kind)).dtype is kind
    for rows, columns, k in itertools.product((0, 1, 3), (None, 0, 2, 4), (-9, -1, 0, 1, 9)):
        check(xp.eye(rows, columns, k=k, dtype=kind), np.eye(rows, columns, k, dtype))
    x = np.ones((2, 3, 4), dtype)
    for k in (-9, -1, 0, 2, 9):
        check(xp.tril(xp.asarray(x), k=k), np.tril(x, k))
        check(xp.triu(xp.asarray(x), k=k), np.triu(x, k))


def test_default_dtypes() -> None:
    assert [xp.full(1, value).dtype for value in (True, 1, 1.0, 1j)] == [xp.bool, xp.int64, xp.float32, xp.complex64]
    assert [xp.asarray(value).dtype for value in (True, 1, 1.0, 1j)] == [xp.bool, xp.int64, xp.float32, xp.complex64]
    assert [f(1).dtype for f in (xp.ones, xp.zeros, xp.empty, xp.eye)] == [xp.float32] * 4
    assert (xp.arange(3).dtype, xp.arange(3.0).dtype, xp.linspace(0, 1, 2).dtype) == (xp.int64, xp.float32, xp.float32)
    assert xp.linspace(0, 1j, 2).dtype is xp.complex64


@pytest.mark.parametrize("dtype", INTEGRAL)
def test_arange_of_integers(dtype: str) -> None:
    info = np.iinfo(dtype)
    kind = getattr(xp, dtype)
    ranges = [(0, 5, 1), (5, 0, -2), (3, 3, 1), (3, 0, 1), (info.min, info.min + 3, 1), (info.max - 5, info.max, 2)]
    ranges += [(info.max, info.max - 7, -3)]
    if dtype == "int64":
        ranges.append((info.min, info.max, 2**62))
    for start, stop, step in ranges:
        if dtype.startswith("u") and min(start, stop) < 0:
            continue
        check(xp.arange(start, stop, step, dtype=kind), np.asarray(list(range(start, stop, step)), dtype))
    check(xp.arange(4, dtype=kind), np.arange(4, dtype=dtype))
    with pytest.raises(ValueError, match="step must not be 0"):
        xp.arange(0, 1, 0)


@fast
@given(st.floats(-100, 100), st.floats(-100, 100), st.floats(0.5, 7), st.sampled_from(REAL_FLOATING))
def test_arange_of_floats(start: float, stop: float, step: float, dtype: str) -> None:
    wanted = (start + np.arange(max(math.ceil((stop - start) / step), 0)) * step).astype(dtype)
    check(xp.arange(start, stop, step, dtype=getattr(xp, dtype)), wanted, rtol=1e-6)
    check(
        xp.arange(stop, start, -step, dtype=getattr(xp, dtype)),
        (stop - np.arange(len(wanted)) * step).astype(dtype),
        1e-6,
    )


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("endpoint", [True, False])
def test_linspace(dtype: str, endpoint: bool) -> None:
    for start, stop, num in (
        (0, 1, 5),
        (-3.5, 2, 4),
        (1, 1, 3),
        (0, 5, 1),
        (0, 5, 0),
        (1e300 if dtype in ("float64", "complex128") else 1e30, 0, 7),
    ):
        wanted = np.linspace(start, stop, num, endpoint=endpoint, dtype=dtype)
        check(xp.linspace(start, stop, num, endpoint=endpoint, dtype=getattr(xp, dtype)), wanted, rtol=1e-6, atol=1e-6)
    if dtype in COMPLEX:
        wanted = np.linspace(1j, 2 - 1j, 5, endpoint=endpoint, dtype=dtype)
        check(xp.linspace(1j, 2 - 1j, 5, endpoint=endpoint, dtype=getattr(xp, dtype)), wanted, rtol=1e-6, atol=1e-7)
    with pytest.raises(ValueError, match="num must not be negative"):
        xp.linspace(0, 1, -1)


@pytest.mark.parametrize("dtype", ALL)
def test_asarray(dtype: str) -> None:
    kind = getattr(xp, dtype)
    x = np.asarray([[1, 0], [1, 1]], dtype)
    check(xp.asarray(x.tolist(), dtype=kind), x)
    check(xp.asarray(x), x)
    check(xp.asarray([[xp.asarray(1, dtype=kind), xp.asarray(0, dtype=kind)]] * 2), np.asarray([[1, 0]] * 2, dtype))
    shared = xp.asarray(x, copy=False)
    assert shared.data_ptr() == x.ctypes.data
    assert xp.asarray(x, copy=True).data_ptr() != x.ctypes.data
    assert xp.asarray(shared) is shared
    assert xp.asarray(shared, copy=False).data_ptr() == shared.data_ptr()
    assert xp.asarray(shared, copy=True).data_ptr() != shared.data_ptr()
    other = xp.float64 if dtype != "float64" else xp.float32
    with pytest.raises(ValueError, match="copy"):
        xp.asarray(shared, dtype=other, copy=False)
    with pytest.raises(ValueError, match="alias"):
        xp.asarray([1, 2], copy=False)


def test_asarray_errors() -> None:
    with pytest.raises(OverflowError):
        xp.asarray(2**70)
    with pytest.raises(OverflowError):
        xp.asarray(300, dtype=xp.int8)
    with pytest.raises(ValueError, match="sequence of length"):
        xp.asarray([[1], [1, 2]])


def test_meshgrid() -> None:
    x, y, z = np.arange(3), np.arange(2), np.arange(4)
    for indexing in ("xy", "ij"):
        for arrays in ((x,), (x, y), (x, y, z)):
            got = xp.meshgrid(*map(xp.asarray, arrays), indexing=indexing)  # type: ignore[arg-type]
            for one, wanted in zip(got, np.meshgrid(*arrays, indexing=indexing), strict=True):  # type: ignore[call-overload]
                check(one, wanted)
                one[...] = 0
    assert xp.meshgrid() == []
    with pytest.raises(ValueError, match="indexing"):
        xp.meshgrid(xp.arange(2), indexing="yx")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="one data type"):
        xp.meshgrid(xp.arange(2), xp.ones(2))
    with pytest.raises(ValueError, match="one dimension"):
        xp.meshgrid(xp.ones((2, 2)))


# ---- data types


@pytest.mark.parametrize(("first", "second"), [(a, b) for a in ALL for b in ALL])
def test_astype(first: str, second: str) -> None:
    x = np.asarray([0, 1, 1], first)
    array = xp.asarray(x)
    if first in COMPLEX and second not in (*COMPLEX, "bool"):
        with pytest.raises(TypeError, match="real"):
            xp.astype(array, getattr(xp, second))
        return
    check(xp.astype(array, getattr(xp, second)), x.astype(second))
    assert (xp.astype(array, getattr(xp, second), copy=False).data_ptr() == array.data_ptr()) == (first == second)
    assert xp.astype(array, getattr(xp, second), device="cpu").data_ptr() != array.data_ptr()


@pytest.mark.parametrize(("first", "second"), pairs_of(ALL))
def test_promotion(first: str, second: str) -> None:
    one, other = getattr(xp, first), getattr(xp, second)
    wanted = str(np.result_type(np.dtype(first), np.dtype(second)))
    for arguments in (
        (one, other),
        (xp.ones((), dtype=one), other),
        (xp.ones((), dtype=one), xp.ones((2, 2), dtype=other)),
    ):
        assert str(xp.result_type(*arguments)).rpartition(".")[2] == wanted
    assert xp.can_cast(one, other) == (wanted == second)
    assert xp.can_cast(xp.ones(2, dtype=one), other) == (wanted == second)


def test_promotion_with_numbers_and_errors() -> None:
    assert xp.result_type(xp.ones(1, dtype=xp.int8), 3) is xp.int8
    assert xp.result_type(xp.uint8, 3, True) is xp.uint8
    assert xp.result_type(xp.float64, 1, 2.5) is xp.float64
    assert xp.result_type(xp.complex64, 1j) is xp.complex64
    assert xp.result_type(xp.int8, xp.int16, xp.uint8, xp.uint16) is xp.int32
    with pytest.raises(ValueError, match="at least one"):
        xp.result_type(1, 2.0)
    with pytest.raises((TypeError, RuntimeError)):
        xp.result_type(xp.uint64, xp.int8)
    for pair in ((xp.uint64, xp.int8), (xp.bool, xp.int8), (xp.int8, xp.float64), (xp.complex64, xp.float64)):
        assert not xp.can_cast(*pair)
    assert xp.can_cast(xp.float32, xp.complex64)


@pytest.mark.parametrize("dtype", REAL)
def test_limits(dtype: str) -> None:
    kind = getattr(xp, dtype)
    for argument in (kind, xp.ones(1, dtype=kind)):
        if dtype in INTEGRAL:
            info, wanted = xp.iinfo(argument), np.iinfo(dtype)
            assert (info.bits, info.min, info.max, info.dtype) == (wanted.bits, wanted.min, wanted.max, kind)
            with pytest.raises(TypeError, match="iinfo"):
                xp.finfo(argument)
        else:
            limits, reference = xp.finfo(argument), np.finfo(dtype)
            assert limits.dtype is kind
            assert limits.bits == reference.bits
            for name in ("eps", "max", "min", "smallest_normal"):
                assert type(getattr(limits, name)) is float
                assert getattr(limits, name) == getattr(reference, name)
            with pytest.raises(TypeError, match="finfo"):
                xp.iinfo(argument)
    assert xp.finfo(xp.complex128).dtype is xp.float64
    assert xp.finfo(xp.complex64).eps == xp.finfo(xp.float32).eps


def test_isdtype() -> None:
    kinds = {
        "bool": ("bool",), "signed integer": SIGNED, "unsigned integer": UNSIGNED, "integral": INTEGRAL,
        "real floating": REAL_FLOATING, "complex floating": COMPLEX, "numeric": NUMERIC,
    }  # fmt: skip
    for dtype in ALL:
        one = getattr(xp, dtype)
        for kind, members in kinds.items():
            assert xp.isdtype(one, kind) == (dtype in members)
        assert xp.isdtype(one, ("bool", "numeric"))
        assert xp.isdtype(one, one)
        assert xp.isdtype(one, (xp.int8, xp.float32)) == (dtype in ("int8", "float32"))
    with pytest.raises(ValueError, match="unknown kind"):
        xp.isdtype(xp.int8, "integer")
    with pytest.raises(ValueError, match="unknown kind"):
        xp.isdtype(xp.int8, ("integral", "integer"))
    with pytest.raises(TypeError, match="a kind must be"):
        xp.isdtype(xp.int8, 3)  # type: ignore[arg-type]


# ---- manipulation


@fast
@given(st.data())
def test_manipulation(data: st.DataObject) -> None:
    x = drawn(data, ALL, hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=3))
    array = xp.asarray(x)
    single = data.draw(st.integers(-x.ndim, x.ndim - 1))
    other = data.draw(st.integers(-x.ndim, x.ndim - 1))
    axes = data.draw(st.permutations(range(x.ndim)))
    check(xp.expand_dims(array, single), np.expand_dims(x, single))
    check(xp.flip(array, axis=axis), np.flip(x, axis)) if (axis := axis_of(data, x)) != () else None
    check(xp.moveaxis(array, single, other), np.moveaxis(x, single, other))
    check(xp.moveaxis(array, tuple(axes), tuple(range(x.ndim))), np.moveaxis(x, axes, range(x.ndim)))
    check(xp.permute_dims(array, tuple(axes)), np.transpose(x, axes))
    check(xp.squeeze(xp.expand_dims(array, single), single), x)
    check(xp.stack([array, array], axis=single), np.stack([x, x], axis=single))
    check(xp.concat([array, array, array], axis=single), np.concatenate([x, x, x], axis=single))
    check(xp.concat((array, array), axis=None), np.concatenate([x, x], axis=None))
    for part, wanted in zip(xp.unstack(array, axis=single), np.moveaxis(x, single, 0), strict=True):
        check(part, wanted)
    shift = data.draw(st.integers(-5, 5))
    check(xp.roll(array, shift), np.roll(x, shift))
    check(xp.roll(array, shift, axis=single), np.roll(x, shift, single))
    check(xp.roll(array, (shift, 1), axis=(single, other)), np.roll(x, (shift, 1), (single, other)))
    check(xp.roll(array, shift, axis=(single, other)), np.roll(x, shift, (single, other)))
    repetitions = tuple(data.draw(st.lists(st.integers(0, 2), max_size=4)))
    check(xp.tile(array, repetitions), np.tile(x, repetitions))
    check(xp.repeat(array, 2), np.repeat(x, 2))
    check(xp.repeat(array, 3, axis=single), np.repeat(x, 3, single))
    times = data.draw(hnp.arrays(data.draw(st.sampled_from(INTEGRAL)), x.shape[single], elements=st.integers(0, 3)))
    check(xp.repeat(array, xp.asarray(times), axis=single), np.repeat(x, times.astype("int64"), single))
    check(xp.reshape(array, (-1, 1) if x.size else x.shape), x.reshape((-1, 1) if x.size else x.shape))
    indices = data.draw(
        hnp.arrays(
            data.draw(st.sampled_from(SIGNED)),
            3 if x.shape[single] else 0,
            elements=st.integers(-x.shape[single], max(x.shape[single] - 1, 0)),
        )
    )
    if x.shape[single]:
        check(xp.take(array, xp.asarray(indices), axis=single), np.take(x, indices, single))
        shape = list(x.shape)
        shape[single] = 2
        places = data.draw(
            hnp.arrays("int64", tuple(shape), elements=st.integers(-x.shape[single], x.shape[single] - 1))
        )
        check(xp.take_along_axis(array, xp.asarray(places), axis=single), np.take_along_axis(x, places, single))


def test_take_along_axis_broadcasts() -> None:
    x, places = np.arange(12).reshape(3, 4), np.asarray([[0, 3, -1]])
    check(xp.take_along_axis(xp.asarray(x), xp.asarray(places)), np.take_along_axis(x, places, 1))
    with pytest.raises(ValueError, match="as many"):
        xp.take_along_axis(xp.asarray(x), xp.asarray([0]))
    with pytest.raises(TypeError, match="integers"):
        xp.take_along_axis(xp.asarray(x), xp.ones((3, 1)))
    with pytest.raises(IndexError):
        xp.take_along_axis(xp.asarray(x), xp.asarray(places), axis=2)


def test_reshape_and_copies() -> None:
    x = xp.asarray(np.arange(6).reshape(2, 3))
    assert xp.reshape(x, (3, 2), copy=False).data_ptr() == x.data_ptr()
    assert xp.reshape(x, (3, 2), copy=True).data_ptr() != x.data_ptr()
    assert xp.reshape(x, (2, 3), copy=True).data_ptr() != x.data_ptr()
    with pytest.raises(ValueError, match="without a copy"):
        xp.reshape(x.T, (6,), copy=False)
    check(xp.reshape(x.T, (6,)), np.arange(6).reshape(2, 3).T.reshape(6))
    with pytest.raises((ValueError, RuntimeError)):
        xp.reshape(x, (4, 2))


def test_broadcasting() -> None:
    arrays = [np.ones((2, 1)), np.ones(3), np.ones((1, 1, 1))]
    for got, wanted in zip(xp.broadcast_arrays(*map(xp.asarray, arrays)), np.broadcast_arrays(*arrays), strict=True):
        check(got, wanted)
    check(xp.broadcast_to(xp.asarray([1, 2]), (3, 2)), np.broadcast_to([1, 2], (3, 2)))
    check(xp.broadcast_to(xp.asarray(5), (0, 2)), np.broadcast_to(5, (0, 2)))
    for shape in ((3,), (2, 3), (), (-1, 2)):
        with pytest.raises(ValueError, match="broadcast"):
            xp.broadcast_to(xp.asarray([1, 2]), shape)
    with pytest.raises(ValueError, match="broadcast"):
        xp.broadcast_arrays(xp.ones(2), xp.ones(3))


@pytest.mark.parametrize(("first", "second"), pairs_of(ALL))
def test_joins_promote(first: str, second: str) -> None:
    one, other = np.asarray([1], first), np.asarray([0], second)
    check(xp.concat([xp.asarray(one), xp.asarray(other)]), np.concatenate([one, other]))
    check(xp.stack([xp.asarray(one), xp.asarray(other)]), np.stack([one, other]))
    check(xp.where(xp.asarray([True]), xp.asarray(one), xp.asarray(other)), np.where([True], one, other))
    check(xp.where(xp.asarray([False]), xp.asarray(one[0]), xp.asarray(other)), np.where([False], one, other))


def test_manipulation_errors() -> None:
    with pytest.raises(ValueError, match="not 1"):
        xp.squeeze(xp.ones((2, 1)), (0, 1))
    for axis in (3, -4):
        with pytest.raises(IndexError):
            xp.expand_dims(xp.ones((2, 3)), axis)
    with pytest.raises(ValueError, match="one array at least"):
        xp.concat([])
    with pytest.raises(ValueError, match="number of dimensions"):
        xp.concat([xp.ones((2, 2)), xp.ones(0)])
    with pytest.raises(ValueError, match="axis must be given"):
        xp.take(xp.ones((2, 2)), xp.asarray([0]))
    with pytest.raises(IndexError):
        xp.take(xp.ones(2), xp.asarray([2]))
    with pytest.raises(TypeError, match="integers"):
        xp.take(xp.ones(2), xp.ones(1))


# ---- statistics


REDUCTIONS: dict[str, tuple[str, ...]] = {
    "max": REAL, "min": REAL, "sum": NUMERIC, "prod": NUMERIC, "mean": REAL_FLOATING, "std": REAL_FLOATING, "var": REAL_FLOATING,
    "all": ALL, "any": ALL, "count_nonzero": ALL,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("name", "dtype"), [(name, dtype) for name, dtypes in REDUCTIONS.items() for dtype in dtypes])
def test_reduction(name: str, dtype: str) -> None:
    @fast
    @given(st.data())
    def run(data: st.DataObject) -> None:
        x = drawn(data, (dtype,), SHAPES, **FINITE)
        axis, keepdims = axis_of(data, x), data.draw(st.booleans())
        over = x.shape if axis is None else [x.shape[a] for a in ((axis,) if isinstance(axis, int) else axis)]
        if name in ("max", "min") and 0 in over:
            with pytest.raises((IndexError, RuntimeError, ValueError)):
                getattr(xp, name)(xp.asarray(x), axis=axis, keepdims=keepdims)
            return
        wanted = np.asarray(getattr(np, name)(x, axis=axis, keepdims=keepdims))
        if name == "count_nonzero":
            wanted = wanted.astype("int64")
        tolerance = {"float32": 2e-4, "complex64": 2e-4, "float64": 1e-11, "complex128": 1e-11}.get(dtype, 0)
        check(
            getattr(xp, name)(xp.asarray(x), axis=axis, keepdims=keepdims), wanted, rtol=tolerance, atol=tolerance * 100
        )

    run()


@pytest.mark.parametrize("correction", [0, 1, 0.5, 2])
def test_correction(correction: float) -> None:
    x = np.random.default_rng(1).normal(size=(4, 5))
    check(
        xp.var(xp.asarray(x), axis=0, correction=correction),
        ((x - x.mean(0)) ** 2).sum(0) / (4 - correction),
        rtol=1e-12,
    )
    check(
        xp.std(xp.asarray(x), correction=correction),
        math.sqrt(((x - x.mean()) ** 2).sum() / (20 - correction)),
        rtol=1e-12,
    )


def test_special_values_of_reductions() -> None:
    for name in ("sum", "prod", "mean", "max", "min", "var"):
        assert math.isnan(float(getattr(xp, name)(xp.asarray([1.0, nan, 3.0]))))
    for name in ("mean", "var", "std"):
        assert math.isnan(float(getattr(xp, name)(xp.ones(0))))
    assert float(xp.sum(xp.asarray([inf, -inf]))) != float(xp.sum(xp.asarray([inf, inf])))
    assert bool(xp.all(xp.asarray([nan, inf, -1])))
    assert bool(xp.any(xp.asarray([nan])))


@pytest.mark.parametrize("dtype", NUMERIC)
def test_dtypes_of_sums(dtype: str) -> None:
    x = xp.ones(3, dtype=getattr(xp, dtype))
    widened = "uint64" if dtype in UNSIGNED else "int64" if dtype in SIGNED else dtype
    for function in (xp.sum, xp.prod, xp.cumulative_sum, xp.cumulative_prod):
        assert function(x).dtype is getattr(xp, widened)  # type: ignore[operator]
        assert function(x, dtype=xp.complex128).dtype is xp.complex128  # type: ignore[operator]
    assert xp.linalg.trace(xp.ones((2, 2), dtype=x.dtype)).dtype is getattr(xp, widened)
    top = xp.asarray([2**63, 5], dtype=xp.uint64)
    assert int(xp.sum(top)) == 2**63 + 5
    assert int(xp.cumulative_sum(top)[1]) == 2**63 + 5


@fast
@given(st.data(), st.booleans())
def test_cumulative(data: st.DataObject, include_initial: bool) -> None:
    x = drawn(data, NUMERIC, hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4), **FINITE)
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    for name, reference in (("cumulative_sum", np.cumulative_sum), ("cumulative_prod", np.cumulative_prod)):
        with np.errstate(all="ignore"):
            wanted = reference(x, axis=axis, include_initial=include_initial)
        got = getattr(xp, name)(xp.asarray(x), axis=axis, include_initial=include_initial)
        check(got, wanted, rtol=1e-4 if x.dtype.kind in "fc" else 0, atol=1e-3 if x.dtype.kind in "fc" else 0)


def test_cumulative_errors() -> None:
    for function in (xp.cumulative_sum, xp.cumulative_prod):
        with pytest.raises(ValueError, match="axis must be given"):
            function(xp.ones((2, 2)))
        with pytest.raises(ValueError, match="one dimension at least"):
            function(xp.ones(()))


@fast
@given(st.data())
def test_diff(data: st.DataObject) -> None:
    x = drawn(data, NUMERIC, hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4), **FINITE)
    axis, n = data.draw(st.integers(-x.ndim, x.ndim - 1)), data.draw(st.integers(0, 3))
    with np.errstate(all="ignore"):
        wanted = np.diff(x, n, axis)
        wanted_more = np.diff(x, n, axis, prepend=x, append=x)
    tolerance = 1e-3 if x.dtype.kind in "fc" else 0
    check(xp.diff(xp.asarray(x), n=n, axis=axis), wanted, atol=tolerance)
    check(
        xp.diff(xp.asarray(x), n=n, axis=axis, prepend=xp.asarray(x), append=xp.asarray(x)), wanted_more, atol=tolerance
    )
    with pytest.raises(ValueError, match="negative"):
        xp.diff(xp.asarray(x), n=-1)


# ---- searching, sorting, sets


@fast
@given(st.data())
def test_positions(data: st.DataObject) -> None:
    x = drawn(data, REAL, hnp.array_shapes(min_dims=0, max_dims=3, min_side=1, max_side=4), **FINITE)
    axis = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1)) if x.ndim else None
    keepdims = data.draw(st.booleans())
    for name in ("argmax", "argmin"):
        check(
            getattr(xp, name)(xp.asarray(x), axis=axis, keepdims=keepdims),
            getattr(np, name)(x, axis=axis, keepdims=keepdims),
        )
    if x.ndim:
        for got, wanted in zip(xp.nonzero(xp.asarray(x)), np.nonzero(x), strict=True):
            check(got, wanted)


def test_nonzero_of_a_number() -> None:
    with pytest.raises(ValueError, match="one dimension"):
        xp.nonzero(xp.asarray(1))


@fast
@given(st.data(), st.booleans(), st.booleans())
def test_sorting(data: st.DataObject, descending: bool, stable: bool) -> None:
    x = drawn(data, REAL, hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5), **FINITE)
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    wanted = np.flip(np.sort(x, axis), axis) if descending else np.sort(x, axis)
    got = xp.sort(xp.asarray(x), axis=axis, descending=descending, stable=stable)
    check(got, wanted)
    order = xp.argsort(xp.asarray(x), axis=axis, descending=descending, stable=stable)
    check(xp.take_along_axis(xp.asarray(x), order, axis=axis), wanted)
    if stable:
        rank = -x.astype(object) if descending else x.astype(object)
        check(order, np.argsort(rank, axis, kind="stable"))


@fast
@given(st.data(), st.sampled_from(["left", "right"]), st.booleans())
def test_searchsorted(data: st.DataObject, side: Any, given_order: bool) -> None:
    dtype = data.draw(st.sampled_from(REAL))
    x1 = drawn(data, (dtype,), st.integers(0, 6).map(lambda n: (n,)), **FINITE)
    x2 = drawn(data, (dtype,), SHAPES, **FINITE)
    order = np.argsort(x1)
    if given_order:
        got = xp.searchsorted(xp.asarray(x1), xp.asarray(x2), side=side, sorter=xp.asarray(order))
    else:
        got = xp.searchsorted(xp.asarray(x1[order]), xp.asarray(x2), side=side)
    check(got, np.searchsorted(x1[order], x2, side))
    check(xp.searchsorted(xp.asarray(x1[order]), 3, side=side), np.searchsorted(x1[order], np.asarray(3, dtype), side))


def test_searchsorted_errors() -> None:
    with pytest.raises(ValueError, match="side"):
        xp.searchsorted(xp.arange(3), 1, side="middle")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="one dimension"):
        xp.searchsorted(xp.ones((2, 2)), 1)


def test_where_with_numbers() -> None:
    condition = xp.asarray([True, False])
    check(xp.where(condition, xp.asarray([1, 2], dtype=xp.int8), 7), np.asarray([1, 7], "int8"))
    check(xp.where(condition, 2.5, xp.asarray([1, 2], dtype=xp.float64)), np.asarray([2.5, 2.0]))
    assert type(xp.where(condition, 1, 2)) is xp.Array


@fast
@given(st.data())
def test_unique(data: st.DataObject) -> None:
    x = drawn(data, ALL, SHAPES)
    array = xp.asarray(x)
    wanted = np.unique(x, equal_nan=False)
    found = xp.unique_all(array)
    # Python's own equality tells how many there are; of NaN each counts.
    flat = x.reshape(-1).tolist()
    distinct = len({one for one in flat if one == one}) + sum(one != one for one in flat)
    assert found.values.size == distinct == wanted.size
    if x.dtype.kind not in "fc" or not np.isnan(x).any():
        check(found.values, wanted)
    for result in (xp.unique_values(array), xp.unique_counts(array).values, xp.unique_inverse(array).values):
        assert result.shape == found.values.shape
    values, inverse, counts = to_numpy(found.values), to_numpy(found.inverse_indices), to_numpy(found.counts)
    assert inverse.shape == x.shape
    np.testing.assert_array_equal(values[inverse], x)
    np.testing.assert_array_equal(values, x.reshape(-1)[to_numpy(found.indices)])
    np.testing.assert_array_equal(np.bincount(inverse.reshape(-1), minlength=distinct), counts)
    for place, value in zip(to_numpy(found.indices).tolist(), values.tolist(), strict=True):
        if value == value:
            assert flat.index(value) == place
    np.testing.assert_array_equal(to_numpy(xp.unique_counts(array).counts), counts)
    np.testing.assert_array_equal(to_numpy(xp.unique_inverse(array).inverse_indices), inverse)
    assert found._fields == ("values", "indices", "inverse_indices", "counts")
