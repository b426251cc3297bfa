"""Test products of matrices and vectors against NumPy in a wider dtype."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import BLAS, NOT_IMPLEMENTED, BFloat16, KernelError, Scalar, backend, call

DTYPES = [
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
# Relative to the sum of absolute products.
TOLERANCE = {
    "float16": 1e-3,
    "bfloat16": 8e-3,
    "float32": 2e-6,
    "float64": 1e-14,
    "complex64": 4e-6,
    "complex128": 1e-14,
}


def random(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    generator = np.random.default_rng([seed, *shape])
    if dtype == "bfloat16":
        return BFloat16.of(generator.standard_normal(shape))
    if dtype.startswith("complex"):
        return (generator.standard_normal(shape) + 1j * generator.standard_normal(shape)).astype(dtype)
    if dtype.startswith("float"):
        return generator.standard_normal(shape).astype(dtype)
    return generator.integers(0 if dtype == "uint8" else -100, 100, shape).astype(dtype)


def empty(shape: tuple[int, ...], dtype: str) -> Any:
    """Return an uninitialized output that must not be read: NaN if the dtype has one."""
    if dtype == "bfloat16":
        return BFloat16.of(np.full(shape, np.nan))
    return np.full(shape, np.nan if dtype.startswith(("float", "complex")) else 77).astype(dtype)


def wide(value: Any) -> np.ndarray:
    array = value.values() if isinstance(value, BFloat16) else value
    if np.iscomplexobj(array):
        return array.astype(np.complex128)
    return array.astype(np.float64) if array.dtype.kind == "f" else array.astype(np.int64)


def check(result: Any, expected: np.ndarray, magnitude: np.ndarray) -> None:
    dtype = "bfloat16" if isinstance(result, BFloat16) else result.dtype.name
    if dtype in TOLERANCE:
        error = np.abs(wide(result) - expected)
        assert np.all(error <= TOLERANCE[dtype] * (magnitude + 1e-30)), float(np.max(error / (magnitude + 1e-30)))
    else:
        np.testing.assert_array_equal(result, expected.astype(dtype))


def view(value: Any, index: Any) -> Any:
    return BFloat16(value.bits[index]) if isinstance(value, BFloat16) else value[index]


def transpose(value: Any) -> Any:
    return BFloat16(np.swapaxes(value.bits, -1, -2)) if isinstance(value, BFloat16) else np.swapaxes(value, -1, -2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("m", "k", "n"), [(1, 1, 1), (2, 3, 4), (8, 8, 8), (1, 70, 33), (37, 65, 1), (33, 129, 47), (130, 140, 150)]
)
def test_mm(dtype: str, m: int, k: int, n: int) -> None:
    a, b, out = random((m, k), dtype), random((k, n), dtype, 1), empty((m, n), dtype)
    call("mm", [out], a, b)
    check(out, wide(a) @ wide(b), np.abs(wide(a)) @ np.abs(wide(b)))


LAYOUTS = {
    "rows": lambda shape, dtype, seed: random(shape, dtype, seed),
    "transposed": lambda shape, dtype, seed: transpose(random(shape[::-1], dtype, seed)),
    "padded": lambda shape, dtype, seed: view(
        random((shape[0], shape[1] + 3), dtype, seed), np.s_[:, 1 : shape[1] + 1]
    ),
    "padded transposed": lambda shape, dtype, seed: transpose(
        view(random((shape[1], shape[0] + 3), dtype, seed), np.s_[:, 1 : shape[0] + 1])
    ),
    "stepped": lambda shape, dtype, seed: view(random((2 * shape[0], 3 * shape[1]), dtype, seed), np.s_[::2, ::3]),
    "stepped transposed": lambda shape, dtype, seed: transpose(
        view(random((3 * shape[1], 2 * shape[0]), dtype, seed), np.s_[::3, ::2])
    ),
}


@pytest.mark.parametrize("dtype", ["int32", "int64", "bfloat16", "float32", "complex128"])
@pytest.mark.parametrize("left", LAYOUTS)
@pytest.mark.parametrize("right", LAYOUTS)
@pytest.mark.parametrize("result", LAYOUTS)
def test_mm_of_any_strides(dtype: str, left: str, right: str, result: str) -> None:
    a, b = LAYOUTS[left]((19, 23), dtype, 0), LAYOUTS[right]((23, 18), dtype, 1)
    out = LAYOUTS[result]((19, 18), dtype, 2)
    call("mm", [out], a, b)
    check(out, wide(a) @ wide(b), np.abs(wide(a)) @ np.abs(wide(b)))


@pytest.mark.parametrize("largest", [2**31 - 1, 2**31, 2**62])
@pytest.mark.parametrize(("m", "k", "n"), [(8, 5, 8), (19, 70, 37), (64, 33, 48)])
def test_mm_of_int64_wraps(m: int, k: int, n: int, largest: int) -> None:
    """Factors that fit in 32 bits have a loop of their own."""
    generator = np.random.default_rng([m, k, n])
    a, b = generator.integers(-largest - 1, largest, (m, k)), generator.integers(-largest - 1, largest, (k, n))
    a[0, 0], b[0, 0], a[-1, -1] = -largest - 1, largest, largest
    out, added = np.empty((m, n), dtype=np.int64), generator.integers(-100, 100, (m, n))
    call("mm", [out], a, b)
    np.testing.assert_array_equal(out, a @ b)
    call("mm", [out], np.asfortranarray(a), np.asfortranarray(b))
    np.testing.assert_array_equal(out, a @ b)
    call("addmm", [out], added, a, b, Scalar(3), Scalar(-2))
    np.testing.assert_array_equal(out, 3 * added - 2 * (a @ b))


def test_mm_of_expanded_factors() -> None:
    row, column = random((1, 20), "float32"), random((30, 1), "float32", 1)
    a, b, out = np.broadcast_to(row, (10, 20)), np.broadcast_to(column[:20], (20, 15)), empty((10, 15), "float32")
    call("mm", [out], a, b)
    check(out, wide(a) @ wide(b), np.abs(wide(a)) @ np.abs(wide(b)))


@pytest.mark.parametrize("dtype", ["int16", "bfloat16", "float32", "complex64"])
@pytest.mark.parametrize(("m", "k", "n"), [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)])
def test_mm_of_empty_matrices(dtype: str, m: int, k: int, n: int) -> None:
    out = empty((m, n), dtype)
    call("mm", [out], random((m, k), dtype), random((k, n), dtype))
    np.testing.assert_array_equal(wide(out), np.zeros((m, n)))


def test_mm_of_bool_is_refused() -> None:
    a = np.ones((2, 2), dtype=bool)
    with pytest.raises(KernelError) as caught:
        call("mm", [np.zeros((2, 2), dtype=bool)], a, a)
    assert caught.value.status == NOT_IMPLEMENTED


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_mm_carries_nan_and_infinity(dtype: str) -> None:
    a, b = np.ones((5, 6), dtype=np.float32), np.ones((6, 7), dtype=np.float32)
    a[1, 2], a[3, 1] = np.nan, np.inf
    b[0, 4] = -np.inf
    make = BFloat16.of if dtype == "bfloat16" else (lambda values: values.astype(dtype))
    out = empty((5, 7), dtype)
    call("mm", [out], make(a), make(b))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(wide(out), a.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("beta", "alpha"), [(1, 1), (0, 1), (2, 3), (0, 2), (1, 0)])
def test_addmm(dtype: str, beta: int, alpha: int) -> None:
    a, b = random((17, 21), dtype), random((21, 19), dtype, 1)
    self = random((19,), dtype, 2)
    expanded = (
        BFloat16(np.broadcast_to(self.bits, (17, 19))) if dtype == "bfloat16" else np.broadcast_to(self, (17, 19))
    )
    out = empty((17, 19), dtype)
    call("addmm", [out], expanded, a, b, Scalar(beta), Scalar(alpha))
    expected = beta * wide(expanded) + alpha * (wide(a) @ wide(b))
    check(out, expected, beta * np.abs(wide(expanded)) + alpha * (np.abs(wide(a)) @ np.abs(wide(b))) + np.abs(expected))


@pytest.mark.parametrize("dtype", ["int32", "bfloat16", "float32", "complex64"])
@pytest.mark.parametrize("k", [0, 6])
def test_addmm_in_place_on_a_strided_matrix(dtype: str, k: int) -> None:
    a, b = random((5, k), dtype), random((k, 7), dtype, 1)
    whole = random((10, 21), dtype, 2)
    self = view(whole, np.s_[::2, ::3])
    before = wide(self).copy()
    untouched = wide(whole)[1::2].copy()
    call("addmm", [self], self, a, b, Scalar(3), Scalar(2))
    expected = 3 * before + 2 * (wide(a) @ wide(b))
    check(self, expected, np.abs(expected) + 3 * np.abs(before) + 2 * np.abs(wide(a)) @ np.abs(wide(b)))
    np.testing.assert_array_equal(wide(whole)[1::2], untouched)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("k", [0, 5])
def test_addmm_with_beta_zero_does_not_read_self(dtype: str, k: int) -> None:
    a, b, self, out = random((4, k), dtype), random((k, 6), dtype, 1), empty((4, 6), dtype), empty((4, 6), dtype)
    call("addmm", [out], self, a, b, Scalar(0), Scalar(1))
    check(out, wide(a) @ wide(b), np.abs(wide(a)) @ np.abs(wide(b)))


def test_addmm_takes_complex_factors() -> None:
    a, b, self, out = (
        random((4, 5), "complex64"),
        random((5, 6), "complex64", 1),
        random((4, 6), "complex64", 2),
        empty((4, 6), "complex64"),
    )
    call("addmm", [out], self, a, b, Scalar(1 + 2j), Scalar(0.5j))
    expected = (1 + 2j) * wide(self) + 0.5j * (wide(a) @ wide(b))
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("operator", ["addmm", "baddbmm"])
@pytest.mark.parametrize(("beta", "alpha", "expected"), [(0.5, 1, 2), (1, 0.5, 1), (2.9, 3.9, 8)])
def test_factors_of_integers_are_cut_down(operator: str, beta: float, alpha: float, expected: int) -> None:
    a = np.ones((2, 2) if operator == "addmm" else (1, 2, 2), dtype=np.int64)
    out = np.zeros_like(a)
    call(operator, [out], a, a, a, Scalar(beta), Scalar(alpha))
    assert np.array_equal(out, np.full_like(a, expected))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("batches", "m", "k", "n"),
    [(1, 3, 4, 5), (7, 3, 4, 5), (40, 16, 17, 18), (3, 1, 64, 1), (0, 2, 3, 4), (4, 2, 0, 3)],
)
def test_bmm(dtype: str, batches: int, m: int, k: int, n: int) -> None:
    a, b, out = random((batches, m, k), dtype), random((batches, k, n), dtype, 1), empty((batches, m, n), dtype)
    call("bmm", [out], a, b)
    check(out, wide(a) @ wide(b), np.abs(wide(a)) @ np.abs(wide(b)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("m", "k", "n"), [(1, 1, 1), (2, 2, 2), (3, 3, 3), (4, 4, 4), (3, 5, 7), (2, 3, 19), (5, 1, 13), (9, 2, 8)]
)
def test_bmm_of_tiny_matrices(dtype: str, m: int, k: int, n: int) -> None:
    a, b, out = random((11, m, k), dtype), random((11, k, n), dtype, 1), empty((11, m, n), dtype)
    for left, right, to in (
        (a, b, out),
        (transpose(random((11, k, m), dtype, 2)), b, out),
        (a, b, transpose(empty((11, n, m), dtype))),
    ):
        call("bmm", [to], left, right)
        check(to, wide(left) @ wide(right), np.abs(wide(left)) @ np.abs(wide(right)))
    right = transpose(random((11, n, k), dtype, 3))
    call("bmm", [out], a, right)
    check(out, wide(a) @ wide(right), np.abs(wide(a)) @ np.abs(wide(right)))


@pytest.mark.parametrize("dtype", ["int64", "bfloat16", "float32"])
def test_bmm_of_any_strides(dtype: str) -> None:
    a = transpose(random((6, 9, 8), dtype))
    b = view(random((12, 18, 21), dtype, 1), np.s_[::2, ::2, ::3])
    out = transpose(random((6, 7, 8), dtype, 2))
    call("bmm", [out], a, b)
    check(out, wide(a) @ wide(b), np.abs(wide(a)) @ np.abs(wide(b)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("m", "k", "n"), [(16, 1027, 128), (64, 4099, 40), (128, 9000, 33)])
def test_addmm_of_long_sums_for_any_number_of_threads(dtype: str, m: int, k: int, n: int) -> None:
    """A small result with a large k is summed in parts along k, whose bounds depend only on the
    shape.
    """
    added = random((m, n), dtype, 2)
    left, right = random((m, k), dtype), random((k, n), dtype, 1)
    threads = backend().table.thread_count()
    results = []
    try:
        for count in (1, 2, 5):
            backend().table.set_thread_count(count)
            for a, b in (
                (left, right),
                (transpose(np.ascontiguousarray(left.T)), transpose(np.ascontiguousarray(right.T))),
            ):
                results.append(empty((m, n), dtype))
                call("addmm", [results[-1]], added, a, b, Scalar(0.5), Scalar(2.0))
    finally:
        backend().table.set_thread_count(threads)
    magnitude = 0.5 * np.abs(wide(added)) + 2 * (np.abs(wide(left)) @ np.abs(wide(right)))
    for result in results:
        check(result, 0.5 * wide(added) + 2 * (wide(left) @ wide(right)), magnitude)
    assert (
        len({result.tobytes() for result in results[::2]}) == len({result.tobytes() for result in results[1::2]}) == 1
    )


def test_bmm_of_large_matrices() -> None:
    a, b, out = random((2, 300, 260), "float32"), random((2, 260, 280), "float32", 1), empty((2, 300, 280), "float32")
    call("bmm", [out], a, b)
    check(out, wide(a) @ wide(b), np.abs(wide(a)) @ np.abs(wide(b)))


@pytest.mark.parametrize("dtype", ["int32", "bfloat16", "float32", "complex128"])
def test_baddbmm(dtype: str) -> None:
    a, b, self = random((5, 6, 7), dtype), random((5, 7, 8), dtype, 1), random((5, 6, 8), dtype, 2)
    out = empty((5, 6, 8), dtype)
    call("baddbmm", [out], self, a, b, Scalar(2), Scalar(3))
    expected = 2 * wide(self) + 3 * (wide(a) @ wide(b))
    check(out, expected, 2 * np.abs(wide(self)) + 3 * (np.abs(wide(a)) @ np.abs(wide(b))))
    call("baddbmm", [self], self, a, b, Scalar(2), Scalar(3))
    np.testing.assert_array_equal(wide(self), wide(out))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "k"), [(1, 1), (5, 7), (200, 300), (4, 0), (0, 3)])
def test_mv(dtype: str, m: int, k: int) -> None:
    a, x, out = random((m, k), dtype), random((k,), dtype, 1), empty((m,), dtype)
    call("mv", [out], a, x)
    check(out, wide(a) @ wide(x), np.abs(wide(a)) @ np.abs(wide(x)))
    stepped, result = random((3 * k,), dtype, 2), random((2 * m,), dtype)
    call("mv", [view(result, np.s_[::2])], transpose(random((k, m), dtype)), view(stepped, np.s_[::3]))
    matrix, vector = wide(random((k, m), dtype)).T, wide(stepped)[::3]
    check(view(result, np.s_[::2]), matrix @ vector, np.abs(matrix) @ np.abs(vector))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 31, 4096, 4097, 100_003])
def test_dot(dtype: str, n: int) -> None:
    a, b, out = random((n,), dtype), random((n,), dtype, 1), empty((), dtype)
    call("dot", [out], a, b)
    check(out, wide(a) @ wide(b), np.abs(wide(a)) @ np.abs(wide(b)))
    stepped = random((3 * n,), dtype, 2)
    call("dot", [out], view(stepped, np.s_[::3]), b)
    check(out, wide(stepped)[::3] @ wide(b), np.abs(wide(stepped)[::3]) @ np.abs(wide(b)))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("n", [1, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 4095, 4096, 4097, 20_003])
def test_dot_of_complex_numbers(dtype: str, n: int) -> None:
    a, b, out = random((n + 1,), dtype), random((n + 1,), dtype, 1), empty((), dtype)
    for left, right in ((a[:n], b[:n]), (a[1:], b[:n]), (a[:n][::-1], b[1:])):
        call("dot", [out], left, right)
        check(out, np.sum(wide(left) * wide(right)), np.abs(wide(left)) @ np.abs(wide(right)))


def test_dot_does_not_depend_on_threads() -> None:
    a, b = random((1_000_001,), "float32"), random((1_000_001,), "float32", 1)
    one, many = empty((), "float32"), empty((), "float32")
    threads = backend().table.thread_count()
    try:
        backend().table.set_thread_count(1)
        call("dot", [one], a, b)
        backend().table.set_thread_count(3)
        call("dot", [many], a, b)
    finally:
        backend().table.set_thread_count(threads)
    assert one.tobytes() == many.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("shape", "features"), [((8, 8), 8), ((1, 64), 10), ((32, 64), 128), ((2, 3, 4, 5), 6), ((0, 4), 3), ((3, 0), 2)]
)
def test_linear(dtype: str, bias: bool, shape: tuple[int, ...], features: int) -> None:
    x, weight = random(shape, dtype), random((features, shape[-1]), dtype, 1)
    b = random((features,), dtype, 2) if bias else None
    out = empty((*shape[:-1], features), dtype)
    call("linear", [out], x, weight, b)
    expected, magnitude = wide(x) @ wide(weight).T, np.abs(wide(x)) @ np.abs(wide(weight)).T
    if b is not None:
        expected, magnitude = expected + wide(b), magnitude + np.abs(wide(b))
    check(out, expected, magnitude)


@pytest.mark.parametrize("dtype", ["int32", "float16", "float32"])
def test_linear_of_any_strides(dtype: str) -> None:
    x = np.moveaxis(random((5, 4, 6, 7), dtype), 0, 2)[:, ::2]
    weight = random((7, 9), dtype, 1).T
    bias = random((18,), dtype, 2)[::2]
    out = empty((*x.shape[:-1], 9), dtype)
    call("linear", [out], x, weight, bias)
    check(out, wide(x) @ wide(weight).T + wide(bias), np.abs(wide(x)) @ np.abs(wide(weight)).T + np.abs(wide(bias)))


PROGRAM = """
import os, sys
import numpy as np
from harness import backend, call
def product(n):
    a = np.arange(n * n, dtype=np.float32).reshape(n, n) % 7
    b = np.arange(n * n, dtype=np.float32).reshape(n, n) % 5
    out = np.empty((n, n), dtype=np.float32)
    call("mm", [out], a, b)
    assert np.array_equal(out, a @ b), n
backend().table.set_thread_count(4)
for n in (4, 90, 300):
    product(n)
if "fork" in sys.argv:
    child = os.fork()
    if child == 0:
        for n in (4, 90, 300):
            product(n)
        os._exit(17)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17
print(backend().library.candelabra_backend and "done")
"""


def run(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], cwd=Path(__file__).parents[1], env={**os.environ, **environment},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("library", [BLAS.lower(), "onednn", "panels"])
def test_each_library_gives_the_product(library: str) -> None:
    result = run({"CANDELABRA_CPU_GEMM": library})
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "done"


def test_an_unknown_library_is_an_error() -> None:
    result = run({"CANDELABRA_CPU_GEMM": "cublas"})
    assert result.returncode != 0
    assert f'must be "{BLAS.lower()}", "onednn", "amx" or "panels", but is "cublas"' in result.stderr


@pytest.mark.parametrize("library", [BLAS.lower(), "onednn"])
def test_a_forked_child_multiplies(library: str) -> None:
    result = run({"CANDELABRA_CPU_GEMM": library}, "fork")
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("few", [1, 7, 8, 33])
def test_bfloat16_products_of_few_rows_or_columns(few: int) -> None:
    """Processors without bfloat16 instructions multiply in float32 from a certain size. Test both
    sides of it.
    """
    for m, n in ((few, 70), (70, few)):
        a, b, out = random((m, 130), "bfloat16"), random((130, n), "bfloat16", 1), empty((m, n), "bfloat16")
        call("mm", [out], a, b)
        check(out, wide(a) @ wide(b), np.abs(wide(a)) @ np.abs(wide(b)))
