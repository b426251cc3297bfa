"""Test the kernels of comparison, logic and selection against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from arrays import ALL, COMPLEX, numbers
from harness import NOT_IMPLEMENTED, KernelError, Number, Scalar, call

import candelabra


@pytest.mark.parametrize("dtype", ALL)
def test_comparison_and_logic(dtype: str) -> None:
    a, b = numbers(700, dtype, 1), numbers(700, dtype, 2)
    a[::3] = b[::3]
    if dtype.startswith("float"):
        a[0] = np.nan
    out = np.empty(a.shape, bool)
    order = {} if dtype in COMPLEX else {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}
    same = {
        "eq": np.equal,
        "ne": np.not_equal,
        "logical_and": np.logical_and,
        "logical_or": np.logical_or,
        "logical_xor": np.logical_xor,
    }
    for name, reference in {**order, **same}.items():
        call(name, [out], a, b)
        assert np.array_equal(out, reference(a, b)), name
    call("logical_not", [out], a)
    assert np.array_equal(out, np.logical_not(a))
    if dtype in COMPLEX:
        with pytest.raises(KernelError) as caught:
            call("lt", [out], a, b)
        assert caught.value.status == NOT_IMPLEMENTED


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "bool", "complex64"])
def test_classification(dtype: str) -> None:
    if dtype in ("int32", "bool"):
        x = np.array([0, 1, -5]).astype(dtype)
    else:
        x = np.array([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, -2.0]).astype(dtype)
    out = np.empty(x.shape, bool)
    names: dict[str, Any] = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}
    if dtype != "complex64":
        names |= {"isposinf": lambda v: v.astype(float) == np.inf, "isneginf": lambda v: v.astype(float) == -np.inf}
        names["signbit"] = lambda v: np.signbit(v.astype(float))
    for name, reference in names.items():
        call(name, [out], x)
        assert np.array_equal(out, reference(x)), name


@pytest.mark.parametrize("dtype", ALL)
def test_where(dtype: str) -> None:
    condition = numbers((30, 17), "bool", 3)
    a, b = numbers((30, 17), dtype, 1), numbers((30, 17), dtype, 2)
    out = np.empty_like(a)
    call("where", [out], condition, a, b)
    assert np.array_equal(out, np.where(condition, a, b))
    call("where", [out], condition, Number(1, dtype, a.shape), b)
    assert np.array_equal(out, np.where(condition, np.array(1, dtype), b))


@pytest.mark.parametrize("dtype", ["int16", "float32", "float64"])
def test_clamp(dtype: str) -> None:
    x = (numbers(500, dtype) * 2).astype(dtype)
    low, high = Number(-1, dtype, x.shape), Number(1, dtype, x.shape)
    out = np.empty_like(x)
    call("clamp", [out], x, low, high)
    assert np.array_equal(out, np.clip(x, -1, 1))
    call("clamp", [out], x, low, None)
    assert np.array_equal(out, np.maximum(x, np.array(-1, dtype)))
    call("clamp", [out], x, None, high)
    assert np.array_equal(out, np.minimum(x, np.array(1, dtype)))
    call("clamp", [out], x, high, low)  # min > max gives max
    assert np.array_equal(out, np.full_like(x, -1))
    if dtype != "int16":
        x[0] = np.nan
        call("clamp", [out], x, low, high)
        assert np.isnan(out[0])


def test_ternary() -> None:
    a, b, c = (numbers(400, "float64", seed) for seed in range(3))
    out = np.empty_like(a)
    call("lerp", [out], a, b, c)
    np.testing.assert_allclose(out, a + c * (b - a), rtol=1e-9, atol=1e-9)
    call("lerp", [out], a, b, Number(1.0, "float64", a.shape))
    assert np.array_equal(out, b)
    call("addcmul", [out], a, b, c, Scalar(0.5))
    np.testing.assert_allclose(out, a + 0.5 * b * c, rtol=1e-12)
    call("addcdiv", [out], a, b, c, Scalar(-2.0))
    np.testing.assert_allclose(out, a - 2 * (b / c), rtol=1e-9)
    whole = np.arange(5, dtype=np.int32)
    result = np.empty_like(whole)
    call("addcmul", [result], whole, whole, whole, Scalar(3))
    assert np.array_equal(result, whole + 3 * whole * whole)
    integers = candelabra.tensor(whole)
    with pytest.raises(RuntimeError, match="Integer division with addcdiv is no longer supported"):
        candelabra.addcdiv(integers, integers, integers)
