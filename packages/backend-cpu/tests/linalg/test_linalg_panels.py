"""Test the backend's own loops for products that fit the caches, around each block size."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from harness import Scalar, call
from test_linalg import empty, random, wide

#: Sizes around those of registers, row blocks, panels and parts of k, and around the limit of what
#: goes to a library.
SIZES = [
    (1, 1, 1), (1, 64, 64), (2, 3, 5), (3, 16, 16), (4, 5, 7), (5, 17, 33), (6, 64, 40), (7, 65, 64), (8, 8, 8), (9, 15, 300), (13, 31, 32),
    (14, 128, 33), (32, 32, 32), (33, 47, 64), (60, 48, 257), (63, 96, 31), (64, 100, 256), (65, 112, 512), (70, 250, 260), (130, 256, 64),
    (300, 70, 48), (31, 20, 70), (40, 64, 1024), (40, 64, 1025), (5, 300, 50),
]  # fmt: skip


def matrix(rows: int, columns: int, dtype: str, seed: int, layout: str) -> np.ndarray:
    """Return a random matrix: row-major, column-major, or with gaps between rows."""
    if layout == "turned":
        return random((columns, rows), dtype, seed).T
    if layout == "apart":
        return random((rows, columns + 3), dtype, seed)[:, 1 : columns + 1]
    return random((rows, columns), dtype, seed)


def check(out: np.ndarray, expected: np.ndarray, magnitude: np.ndarray, k: int) -> None:
    """Compare with float64, within the error bound of a sum of k rounded products (Higham, Accuracy
    and Stability of Numerical Algorithms, 3.1).
    """
    unit = {"float32": 2.0**-24, "float64": 2.0**-53}[str(out.dtype)]
    assert np.all(np.abs(wide(out) - expected) <= (k + 3) * unit * magnitude + np.finfo(out.dtype).tiny)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("left", ["plain", "turned", "apart"])
@pytest.mark.parametrize("right", ["plain", "turned", "apart"])
def test_products(dtype: str, left: str, right: str) -> None:
    for m, n, k in SIZES:
        a, b = matrix(m, k, dtype, 1, left), matrix(k, n, dtype, 2, right)
        around = random((m, n + 5), dtype, 3)
        out, untouched = around[:, 2 : n + 2], around.copy()
        call("mm", [out], a, b)
        check(out, wide(a) @ wide(b), np.abs(wide(a)) @ np.abs(wide(b)), k)
        assert np.array_equal(around[:, :2], untouched[:, :2]) and np.array_equal(
            around[:, n + 2 :], untouched[:, n + 2 :]
        )


@pytest.mark.parametrize("beta", [0.0, 1.0, -0.5])
@pytest.mark.parametrize("alpha", [1.0, 2.5])
def test_scaled_and_added(alpha: float, beta: float) -> None:
    for m, n, k in SIZES:
        a, b, added = random((m, k), "float32", 1), random((k, n), "float32", 2), random((m, n), "float32", 3)
        expected = alpha * (wide(a) @ wide(b)) + beta * wide(added)
        magnitude = abs(alpha) * (np.abs(wide(a)) @ np.abs(wide(b))) + np.abs(beta * wide(added))
        for self in (added, added[:1]):
            out = added.copy() if self is added else empty((m, n), "float32")
            here = expected if self is added else expected - beta * wide(added) + beta * wide(self)
            call(
                "addmm",
                [out],
                out if self is added else np.broadcast_to(self, (m, n)),
                a,
                b,
                Scalar(beta),
                Scalar(alpha),
            )
            check(out, here, magnitude + np.abs(beta * wide(self)), k)


def test_what_is_in_the_result_is_not_read() -> None:
    for m, n, k in SIZES:
        a, b = random((m, k), "float32", 1), random((k, n), "float32", 2)
        out = np.full((m, n), np.nan, np.float32)
        call("mm", [out], a, b)
        assert np.isfinite(out).all()


def test_infinities_and_nans_stay_where_they_belong() -> None:
    for m, n, k in SIZES:
        a, b = random((m, k), "float32", 1), random((k, n), "float32", 2)
        a[m // 2, k // 2], b[k // 3, n // 2] = np.inf, np.nan
        out = empty((m, n), "float32")
        call("mm", [out], a, b)
        with np.errstate(invalid="ignore"):
            expected = a @ b
        assert np.array_equal(np.isnan(out), np.isnan(expected)) and np.array_equal(np.isinf(out), np.isinf(expected))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("right", ["plain", "turned"])
def test_batches_are_as_products_alone(dtype: str, right: str) -> None:
    for count, m, n, k in (
        (1, 8, 8, 8),
        (100, 8, 8, 8),
        (513, 8, 16, 4),
        (7, 33, 20, 21),
        (3, 70, 64, 50),
        (0, 8, 8, 8),
        (9, 5, 1, 90),
    ):
        a = random((count, m, k), dtype, 1)
        b = random((count, k, n), dtype, 2) if right == "plain" else random((count, n, k), dtype, 2).transpose(0, 2, 1)
        out, alone = empty((count, m, n), dtype), empty((m, n), dtype)
        call("bmm", [out], a, b)
        for i in range(count):
            call("mm", [alone], a[i], b[i])
            check(out[i], wide(a[i]) @ wide(b[i]), np.abs(wide(a[i])) @ np.abs(wide(b[i])), k)
            if n > 1:
                assert np.array_equal(out[i], alone)


def test_rows_do_not_depend_on_their_number() -> None:
    a, b = random((200, 300), "float32", 1), random((300, 100), "float32", 2)
    whole = empty((200, 100), "float32")
    call("mm", [whole], a, b)
    for rows in (128, 131, 199):
        out = empty((rows, 100), "float32")
        call("mm", [out], a[:rows], b)
        assert np.array_equal(out, whole[:rows])


def test_the_loops_for_avx2() -> None:
    environment = {**os.environ, "CANDELABRA_CPU_ISA": "avx2"}
    files = [
        f"{Path(__file__)}::{name}"
        for name in ("test_products", "test_scaled_and_added", "test_batches_are_as_products_alone")
    ]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *files],
        env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout
