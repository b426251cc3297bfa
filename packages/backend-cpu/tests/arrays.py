"""NumPy arrays as kernel arguments (see harness.py), and the errors of kernel results."""

from __future__ import annotations

from typing import Any

import numpy as np

INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]
FLOATS = ["float32", "float64"]
COMPLEX = ["complex64", "complex128"]
ALL = ["bool", *INTEGERS, "float16", *FLOATS, *COMPLEX]

# The largest error, in ULP, that the functions of math.hpp are designed for.
ULP = {"float32": 8.0, "float64": 8.0}


def uniform(low: float, high: float, shape: Any, dtype: str, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, shape).astype(dtype)


def numbers(shape: Any, dtype: str, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    if dtype == "bool":
        return generator.integers(0, 2, shape).astype(bool)
    if dtype in INTEGERS:
        return generator.integers(0 if dtype == "uint8" else -9, 10, shape).astype(dtype)
    if dtype in COMPLEX:
        return (generator.standard_normal(shape) + 1j * generator.standard_normal(shape)).astype(dtype)
    return generator.standard_normal(shape).astype(dtype)


def assert_ulp(got: np.ndarray, wanted: np.ndarray, limit: float) -> None:
    expected = np.asarray(wanted, np.float64)
    size = np.clip(np.abs(expected), np.finfo(got.dtype).tiny, np.finfo(got.dtype).max).astype(got.dtype)
    unit = np.spacing(size).astype(np.float64)
    error = np.abs(got.astype(np.float64) - expected) / unit
    assert np.all(np.isfinite(expected)), "the test's own reference is not finite"
    assert error.max() <= limit, f"{error.max()} units in the last place at element {error.argmax()}"
