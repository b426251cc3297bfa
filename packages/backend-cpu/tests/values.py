"""Make tensors of every dtype and layout, and convert them to NumPy's widest dtypes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

import candelabra

BOOL = ["bool"]
INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]
HALVES = ["float16", "bfloat16"]
FLOATS = [*HALVES, "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
REALS = [*INTEGERS, *FLOATS]
NUMBERS = [*REALS, *COMPLEX]
ALL = [*BOOL, *NUMBERS]

#: Machine epsilon, the unit of errors.
EPSILON = {
    "float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52, "complex64": 2.0**-23, "complex128": 2.0**-52,
}  # fmt: skip

LAYOUTS = ["contiguous", "transposed", "sliced", "offset", "expanded"]


def tensor(array: Any, dtype: str | None = None) -> Any:
    """Return the array as a tensor of this dtype."""
    result = candelabra.from_numpy(np.ascontiguousarray(array).reshape(np.shape(array)).copy())
    return result if dtype is None else result.to(getattr(candelabra, dtype))


def wide(value: Any) -> np.ndarray:
    """Return a tensor's values as float64, complex128, int64 or bool."""
    if value.dtype.is_complex:
        return np.array(value.to(candelabra.complex128).numpy())
    if value.dtype.is_floating_point:
        return np.array(value.to(candelabra.float64).numpy())
    if value.dtype == candelabra.bool:
        return np.array(value.numpy())
    return np.array(value.to(candelabra.int64).numpy())


def random_array(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    """Return numbers of moderate size. Integer dtypes have duplicates."""
    generator = np.random.default_rng([seed, *shape])
    if dtype == "bool":
        return generator.integers(0, 2, shape).astype(bool)
    if dtype in COMPLEX:
        return generator.standard_normal(shape) + 1j * generator.standard_normal(shape)
    if dtype in FLOATS:
        return generator.standard_normal(shape)
    return generator.integers(0 if dtype == "uint8" else -9, 10, shape)


def random_tensor(shape: tuple[int, ...], dtype: str, layout: str = "contiguous", seed: int = 0) -> Any:
    """Return a tensor of this shape whose memory layout is `layout`."""
    ndim = len(shape)
    if layout == "transposed" and ndim > 1:
        return tensor(random_array(shape[::-1], dtype, seed), dtype).permute(*range(ndim - 1, -1, -1))
    if layout == "sliced" and ndim:
        doubled = tensor(random_array(tuple(2 * size for size in shape), dtype, seed), dtype)
        return doubled[tuple(slice(None, None, 2) for _ in shape)]
    if layout == "offset" and ndim:
        larger = tensor(random_array(tuple(size + 3 for size in shape), dtype, seed), dtype)
        return larger[tuple(slice(1, 1 + size) for size in shape)]
    if layout == "expanded" and ndim:
        at = ndim // 2
        return tensor(random_array((*shape[:at], 1, *shape[at + 1 :]), dtype, seed), dtype).expand(*shape)
    return tensor(random_array(shape, dtype, seed), dtype)


def cases(shapes: list[tuple[int, ...]], dtype: str) -> Iterator[Any]:
    """Yield tensors of all shapes in all layouts."""
    for seed, shape in enumerate(shapes):
        for layout in LAYOUTS if shape else LAYOUTS[:1]:
            yield random_tensor(shape, dtype, layout, seed)


def assert_values(result: Any, expected: Any, *, scale: Any = None, units: float = 4.0) -> None:
    """Compare values: integers exactly, others within `units` ULP of `scale`, by default the
    expected values.
    """
    expected = np.asarray(expected)
    assert tuple(result.shape) == expected.shape
    values = wide(result)
    dtype = str(result.dtype).removeprefix("candelabra.")
    if dtype not in EPSILON:
        np.testing.assert_array_equal(values, expected)
        return
    if dtype == "float16":
        expected = np.where(np.abs(expected) >= 65520, np.copysign(np.inf, expected), expected)
    if dtype in ("float64", "complex128"):  # the expected values have rounding errors of the same size
        units *= 16
    if "CANDELABRA_SANITIZED" in os.environ:  # scalar code sums in longer chains than vector lanes do
        units *= 4
    scale = np.abs(expected) if scale is None else np.broadcast_to(np.asarray(scale, dtype=np.float64), expected.shape)
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(values[~finite], expected[~finite])
    tiny = 2.0**-24 if dtype == "float16" else 2.0**-126
    with np.errstate(invalid="ignore"):
        error = np.abs(values - expected)
    allowed = units * EPSILON[dtype] * np.where(finite, scale, 0) + tiny
    worst = np.max((error / allowed)[finite], initial=0.0)
    assert worst <= 1, f"{worst:.3g} times the allowed error"
