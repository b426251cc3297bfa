"""Sums of ten million numbers in single precision, half precisions added in single precision, and
results by number of threads.
"""

import numpy
import pytest

import candelabra

COUNT = 10_000_000
TENTH = float(numpy.float32(0.1))
CASES = {
    "sum of ones": (1.0, lambda x: x.sum(), COUNT),
    "sum": (0.1, lambda x: x.sum(), COUNT * TENTH),
    "nansum": (0.1, lambda x: x.nansum(), COUNT * TENTH),
    "mean": (0.1, lambda x: x.mean(), TENTH),
    "norm": (0.1, lambda x: candelabra.linalg.vector_norm(x), TENTH * COUNT**0.5),
    "dot": (0.1, lambda x: candelabra.dot(x, x), COUNT * TENTH**2),
    "cumsum": (0.1, lambda x: x.cumsum(0)[-1], COUNT * TENTH),
}


@pytest.mark.parametrize("name", CASES)
def test_ten_million(name):
    value, compute, expected = CASES[name]
    x = candelabra.full((COUNT,), value)
    before = candelabra.get_num_threads()
    made = []
    try:
        for threads in (1, 2):
            candelabra.set_num_threads(threads)
            made.append(compute(x).item())
    finally:
        candelabra.set_num_threads(before)
    assert made[0] == made[1]
    assert abs(made[0] - expected) <= 1e-6 * expected


@pytest.mark.parametrize("dtype", [candelabra.float16, candelabra.bfloat16])
@pytest.mark.parametrize("name", ["sum", "mean", "cumsum", "vector_norm", "dot", "mm"])
def test_half_precisions_add_in_single_precision(name, dtype):
    count = 4096
    x = candelabra.full((count,), 0.1, dtype=dtype)
    tenth = x[0].item()
    made = {
        "sum": lambda: x.sum(), "mean": lambda: x.mean(), "cumsum": lambda: x.cumsum(0)[-1],
        "vector_norm": lambda: candelabra.linalg.vector_norm(x), "dot": lambda: candelabra.dot(x, x),
        "mm": lambda: (x[None] @ x[:, None])[0, 0],
    }[name]()  # fmt: skip
    expected = {"mean": tenth, "vector_norm": tenth * count**0.5, "dot": count * tenth**2, "mm": count * tenth**2}.get(
        name, count * tenth
    )
    assert made.dtype is dtype
    assert abs(made.item() - expected) <= candelabra.finfo(dtype).eps * expected
