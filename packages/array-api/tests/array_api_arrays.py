"""What the tests of the array API standard draw: arrays with their NumPy twins, in the standard's
data types.
"""

from __future__ import annotations

from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
from hypothesis import strategies as st

import candelabra.array_api as xp

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGRAL = SIGNED + UNSIGNED
REAL_FLOATING = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
FLOATING = REAL_FLOATING + COMPLEX
REAL = INTEGRAL + REAL_FLOATING
NUMERIC = REAL + COMPLEX
ALL = ("bool", *NUMERIC)
KINDS = {"bool": ("bool",), "integral": INTEGRAL, "real": REAL_FLOATING, "complex": COMPLEX}

SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)


def to_numpy(x: xp.Array) -> np.ndarray:
    """The array's values in NumPy."""
    return np.asarray(x.numpy())


def numpy_arrays(name: str, shape: Any = SHAPES, **elements: Any) -> st.SearchStrategy[np.ndarray]:
    """NumPy arrays of a data type, with NaN and infinities among the floating-point numbers."""
    dtype = np.dtype(name)
    if dtype.kind in "fc":
        elements.setdefault("allow_subnormal", False)
    return hnp.arrays(dtype, shape, elements=hnp.from_dtype(dtype, **elements))


def pairs_of(names: tuple[str, ...]) -> list[tuple[str, str]]:
    """All pairs of data types for which the standard has a promotion: those of one kind, but uint64
    with signed integers.
    """
    kinds = [set(names) & set(kind) for kind in (("bool",), INTEGRAL, REAL_FLOATING + COMPLEX)]
    return [
        (a, b)
        for kind in kinds
        for a in sorted(kind)
        for b in sorted(kind)
        if not ("uint64" in (a, b) and (a in SIGNED or b in SIGNED))
    ]


def check(got: xp.Array, wanted: Any, rtol: float = 0.0, atol: float = 0.0) -> None:
    """Assert that an array is an Array of the shape, data type and values of a NumPy array; zeros
    of either sign are equal.
    """
    wanted = np.asarray(wanted)
    assert type(got) is xp.Array
    assert str(got.dtype).rpartition(".")[2] == str(wanted.dtype)
    assert tuple(got.shape) == wanted.shape
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(to_numpy(got), wanted, rtol=rtol, atol=atol)
