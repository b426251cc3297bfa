"""Test copy_, fill_, arange and linspace against NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from harness import BFloat16, Scalar, call

DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


def values(shape: Any, dtype: str) -> np.ndarray:
    """Return small integers and halves, which every floating-point dtype represents exactly."""
    generator = np.random.default_rng(3)
    whole = generator.integers(0, 100, shape)
    if dtype == "bool":
        return whole % 2 == 0
    if dtype.startswith("float"):
        return (whole / 2 - 20).astype(dtype)
    if dtype.startswith("complex"):
        return (whole / 2 - 20 + 1j * generator.integers(-9, 9, shape)).astype(dtype)
    return whole.astype(dtype)


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("layout", ["contiguous", "strided", "transposed"])
@pytest.mark.parametrize(("source", "target"), list(itertools.product(DTYPES, DTYPES)))
def test_every_pair_of_dtypes(source: str, target: str, layout: str) -> None:
    a = values((33, 40), source)
    out = np.zeros((33, 40), target)
    if layout == "strided":
        a = np.repeat(a, 2, axis=1)[:, ::2]
        out = np.zeros((33, 80), target)[:, ::2]
    if layout == "transposed":
        a = a.T.copy().T
    call("copy_", [out], out, a, False)
    if target in ("uint8",) and source.startswith(("float", "complex")):
        wanted = a.real.astype(np.int64).astype(np.uint8)  # negative numbers wrap around
    else:
        wanted = (
            a.real if source.startswith("complex") and not target.startswith("complex") and target != "bool" else a
        ).astype(target)
    assert np.array_equal(out, wanted)


@pytest.mark.parametrize("dtype", DTYPES)
def test_bfloat16_both_ways(dtype: str) -> None:
    a = values(777, dtype)
    out = BFloat16(np.empty(a.shape, np.uint16))
    call("copy_", [out], out, a, False)
    wide = a.real.astype(np.float32)
    assert np.array_equal(out.bits, BFloat16.of(wide).bits)
    back = np.empty(a.shape, dtype)
    call("copy_", [back], back, out, False)
    wanted = out.values().astype(np.int64).astype(dtype) if dtype == "uint8" else out.values().astype(dtype)
    assert np.array_equal(back, wanted)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("shape", [(5, 9), (64, 64), (100, 33), (8, 1000), (257, 129), (48, 80), (31, 47)])
def test_transposed(shape: tuple[int, int], dtype: str) -> None:
    a = values(shape, dtype)
    out = np.zeros(shape[::-1], dtype)
    call("copy_", [out], out, a.T, False)
    assert np.array_equal(out, a.T)


@pytest.mark.parametrize("axes", list(itertools.permutations(range(4))))
def test_permuted(axes: tuple[int, ...]) -> None:
    a = np.arange(3 * 16 * 10 * 12, dtype=np.float32).reshape(3, 16, 10, 12)
    out = np.zeros(tuple(a.shape[axis] for axis in axes), np.float32)
    call("copy_", [out], out, a.transpose(axes), False)
    assert np.array_equal(out, a.transpose(axes))
    back = np.zeros(a.shape, np.float32)
    view = back.transpose(axes)
    call("copy_", [view], view, out, False)
    assert np.array_equal(back, a)


def test_broadcast_and_large() -> None:
    out = np.zeros((1500, 1024), np.float32)
    row = np.arange(1024, dtype=np.float32)
    call("copy_", [out], out, np.broadcast_to(row, out.shape), False)
    assert np.array_equal(out, np.broadcast_to(row, out.shape))
    for start in range(3):  # the non-temporal copy at every alignment
        target = np.zeros(out.size + 3, np.float32)[start : start + out.size].reshape(out.shape)
        call("copy_", [target], target, out, False)
        assert np.array_equal(target, out)


def test_float_to_bool_and_nan() -> None:
    a = np.array([0.0, -0.0, np.nan, 1e-40, -3.0], np.float32)
    out = np.zeros(a.shape, bool)
    call("copy_", [out], out, a, False)
    assert out.tolist() == [False, False, True, True, True]


@pytest.mark.parametrize("dtype", DTYPES)
def test_fill(dtype: str) -> None:
    storage = np.zeros((20, 31), dtype)
    for out in (storage, storage[::2, ::3], storage.T, storage[:0]):
        call("fill_", [out], out, Scalar(1))
        assert np.all(out == 1)
    large = np.zeros(5_000_001, "uint8")[1:]
    call("fill_", [large], large, Scalar(7))
    assert np.all(large == 7)


def test_fill_keeps_whole_numbers_exact() -> None:
    out = np.zeros(3, np.int64)
    call("fill_", [out], out, Scalar(2**62 + 1))
    assert out.tolist() == [2**62 + 1] * 3
    z = np.zeros(2, np.complex64)
    call("fill_", [z], z, Scalar(1 - 2j))
    assert z.tolist() == [1 - 2j] * 2


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64", "float32", "float64"])
def test_arange(dtype: str) -> None:
    out = np.zeros(20, dtype)
    call("arange", [out], Scalar(3), Scalar(43), Scalar(2), 0, None)
    assert np.array_equal(out, np.arange(3, 43, 2, dtype=dtype))
    if dtype.startswith("float"):
        call("arange", [out], Scalar(0.5), Scalar(6.5), Scalar(0.3), 0, None)
        np.testing.assert_allclose(out, np.arange(20) * 0.3 + 0.5, rtol=1e-6)


@pytest.mark.parametrize("steps", [0, 1, 2, 5, 1001])
@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "complex64"])
def test_linspace(dtype: str, steps: int) -> None:
    out = np.zeros(steps, dtype)
    call("linspace", [out], Scalar(-2.0), Scalar(5.0), steps, 0, None)
    wanted = np.linspace(-2, 5, steps)
    np.testing.assert_allclose(
        out, np.trunc(wanted + np.copysign(1e-9, wanted)) if dtype == "int32" else wanted.astype(dtype), atol=1e-5
    )
    if steps > 1:
        assert out[0] == -2
        assert out[-1] == 5
