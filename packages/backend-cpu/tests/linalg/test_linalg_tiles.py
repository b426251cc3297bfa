"""Test float32 products on AMX, in a process that selects it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import numpy as np
from harness import Scalar, backend, call

rng = np.random.default_rng(0)


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def matrix(rows, columns, turned):
    return normal(columns, rows).T if turned else normal(rows, columns)


def product(a, b):
    out = np.empty((a.shape[0], b.shape[1]), np.float32)
    call("mm", [out], a, b)
    return out


def check(result, exact, magnitude, k):
    # Much less than what k roundings one after another may lose.
    error = np.abs(result - exact)
    assert (error <= 2.0**-24 * (2 + k**0.5) * magnitude).all(), (error / magnitude).max() * 2**24


def wide(x):
    return x.astype(np.float64)


# Shapes that fill tiles and that do not, transposed factors, sums into the result, rows with gaps.
for m, n, k in [(256, 256, 256), (300, 257, 333), (49, 2100, 513), (2100, 50, 200), (513, 1030, 48), (256, 1100, 129), (64, 600, 1000), (250, 130, 1500)]:
    for left in (False, True):
        for right in (False, True):
            a, b = matrix(m, k, left), matrix(k, n, right)
            exact, magnitude = wide(a) @ wide(b), np.abs(wide(a)) @ np.abs(wide(b))
            check(product(a, b), exact, magnitude, k)
    c, out = normal(m, n), np.empty((m, n), np.float32)
    call("addmm", [out], c, a, b, Scalar(0.5), Scalar(-2.0))
    check(out, 0.5 * wide(c) - 2 * exact, np.abs(wide(c)) + 2 * magnitude, k)
    out = np.full((m, n + 3), np.nan, np.float32)
    out[:, :n] = c
    call("addmm", [out[:, :n]], out[:, :n], a, b, Scalar(3.0), Scalar(1.0))
    check(out[:, :n], 3 * wide(c) + exact, 3 * np.abs(wide(c)) + magnitude, k)
    assert np.isnan(out[:, n:]).all()
    bias = normal(n)
    call("linear", [c], a, b.T, bias)
    check(c, exact + wide(bias), magnitude + np.abs(wide(bias)), k)

# Of any number of threads.
for a, b in [(normal(700, 300), normal(900, 300).T), (normal(200, 900), normal(400, 900).T), (normal(256, 600), normal(600, 300))]:
    backend().table.set_thread_count(1)
    one = product(a, b)
    for threads in (2, 3, 4):
        backend().table.set_thread_count(threads)
        assert np.array_equal(product(a, b), one), (a.shape, threads)

# Integers whose products and sums float32 holds are exact, up to 24 bits.
a, b = (rng.integers(-limit, limit + 1, shape).astype(np.float32) for limit, shape in ((1000, (260, 300)), (16, (300, 270))))
assert np.array_equal(product(a, b), wide(a) @ wide(b))
a = np.diag(2.0**24 - 1 - np.arange(256)).astype(np.float32)
b = np.eye(256, 300, 5, dtype=np.float32)
assert np.array_equal(product(a, b), wide(a) @ wide(b))

# What bfloat16 parts do not hold: infinities, NaN, the largest numbers, denormal numbers.
for rows, turned in [(320, False), (240, True)]:
    a, b = normal(rows, 288), matrix(288, 352, turned)
    a[3, 5], a[40, 7], b[200, 100], a[rows - 20, 3] = np.inf, np.nan, -np.inf, 3.4e38
    with np.errstate(all="ignore"):
        exact = (wide(a) @ wide(b)).astype(np.float32)
    result = product(a, b)
    for kind in (np.isnan, np.isposinf, np.isneginf):
        assert np.array_equal(kind(result), kind(exact)), (rows, kind)
for left, right in [(1e-20, 1e-18), (1e-36, 1e6), (1e-38, 1e20), (1e-42, 1e10), (1e30, 1e-34)]:
    a, b = ((normal(256, 256) * size).astype(np.float32) for size in (left, right))
    error = np.abs(product(a, b) - wide(a) @ wide(b))
    assert (error <= 2.0**-24 * 18 * (np.abs(wide(a)) @ np.abs(wide(b))) + 300 * 2.0**-149).all(), (left, right)
print("done")
"""


def has_amx() -> bool:
    flags = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags")), "")
    return {"amx_bf16", "amx_tile", "avx512bw"} <= set(flags.split()) and os.environ.get("CANDELABRA_CPU_ISA") != "avx2"


def test_products_on_amx() -> None:
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=Path(__file__).parents[1], env={**os.environ, "CANDELABRA_CPU_GEMM": "amx"},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    if has_amx():
        assert result.returncode == 0, result.stderr
        assert result.stdout.strip() == "done"
    else:
        assert "no AMX units" in result.stderr


def test_shapes_that_leave_tiles_empty_have_another_choice() -> None:
    program = (
        "import candelabra\n"
        "a = candelabra.ones(1000, 3)\n"
        "assert (a @ a.T == 3).all()\n"
        "print(candelabra._C.backend_info('cpu')['description'])\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "CANDELABRA_CPU_GEMM"}
    environment["CANDELABRA_CPU_GEMM_CACHE"] = "0"
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    ).stdout
    line = next(line for line in told.splitlines() if line.startswith("float32 matmul, large:"))
    assert "measured on" in line and "AMX" not in line
