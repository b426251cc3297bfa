"""Test reductions on a GPU against NumPy: rows and columns, several blocks per result, partial
packets, indices.
"""

from __future__ import annotations

import numpy as np
import pytest

import candelabra

DTYPES = ["float32", "float64", "float16", "int8", "int32", "int64", "complex64"]
# Lengths around packets, warps, blocks, and those that several blocks share.
ROWS = [(1, 1), (3, 7), (5, 10), (130, 33), (7, 1023), (2, 4097), (1, 70001), (3, 40000)]


def made(sizes: tuple[int, ...], dtype: str) -> np.ndarray:
    values = np.random.default_rng(sum(sizes)).integers(-3, 4, size=sizes)
    return values.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", ROWS, ids=str)
def test_rows_and_columns(cuda, sizes, dtype):
    values = made(sizes, dtype)
    x = candelabra.tensor(values).to(cuda)
    wide = candelabra.tensor(made((sizes[0], sizes[1] + 5), dtype)).to(cuda)
    kind = "int64" if dtype.startswith("int") else dtype
    for array, tensor in (
        (values, x),
        (values.T, x.t()),
        (wide.cpu().numpy()[:, 2:-3], wide[:, 2:-3]),
        (wide.cpu().numpy()[:, :-5], wide[:, :-5]),
    ):
        for dim in (0, 1, None):
            want = array.astype("complex128" if dtype == "complex64" else "float64").sum(axis=dim)
            got = tensor.sum() if dim is None else tensor.sum(dim)
            assert str(got.dtype) == f"candelabra.{kind}"
            if np.abs(want).max() < 2000:  # integers that float16 represents
                assert np.array_equal(got.cpu().numpy().astype(want.dtype), want)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64"])
@pytest.mark.parametrize("sizes", ROWS, ids=str)
def test_the_first_of_equal_extremes(cuda, sizes, dtype):
    values = made(sizes, dtype)
    x = candelabra.tensor(values).to(cuda)
    for array, tensor in ((values, x), (values.T, x.t())):
        for dim in (0, 1):
            largest = tensor.max(dim)
            assert np.array_equal(largest.values.cpu().numpy(), array.max(axis=dim))
            assert np.array_equal(largest.indices.cpu().numpy(), array.argmax(axis=dim))
            assert np.array_equal(tensor.argmin(dim).cpu().numpy(), array.argmin(axis=dim))
        assert int(tensor.argmax()) == array.argmax()


def test_the_same_bits_every_time(cuda):
    x = candelabra.randn(300, 777, device=cuda)
    for view in (x, x.t(), x[:, 1:]):
        for dim in (0, 1, None):
            runs = [view.mean() if dim is None else view.mean(dim) for _ in range(3)]
            assert all(run.cpu().numpy().tobytes() == runs[0].cpu().numpy().tobytes() for run in runs)
