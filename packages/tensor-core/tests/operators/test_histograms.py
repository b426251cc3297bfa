"""Histograms, differences on grids and hashes, against NumPy."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra as c

rng = np.random.default_rng(11)

# ---- histograms


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bins", [1, 4, 10, "edges"])
@pytest.mark.parametrize("density", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_histogram(dtype, bins, density, weighted):
    x = np.round(rng.standard_normal((6, 7)) * 4) / 4  # many on edges
    x = x.astype(dtype)
    weights = rng.random((6, 7)).astype(dtype) if weighted else None
    edges = np.array([-1.0, -0.5, 0.0, 0.25, 2.0], dtype=dtype) if bins == "edges" else bins
    given = {} if weights is None else {"weight": c.tensor(weights)}
    result = c.histogram(c.tensor(x), c.tensor(edges) if bins == "edges" else bins, density=density, **given)
    expected, expected_edges = np.histogram(x.astype(np.float64), edges, weights=weights, density=density)
    assert str(result.hist.dtype) == str(result.bin_edges.dtype) == f"candelabra.{np.dtype(dtype).name}"
    np.testing.assert_allclose(result.hist.tolist(), expected, rtol=2e-6)
    np.testing.assert_allclose(result.bin_edges.tolist(), expected_edges, rtol=1e-6, atol=1e-6)


def test_histogram_range_and_method():
    x = c.tensor([0.0, 0.5, 1.0, 5.0, float("nan")])
    assert x.histogram(2, range=(0.0, 1.0)).hist.tolist() == [1, 2]
    assert c.histogram(c.tensor([]), 3).bin_edges.tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert c.histogram(c.tensor(2.0), 3).bin_edges.tolist() == pytest.approx([1.5, 1.5 + 1 / 3, 1.5 + 2 / 3, 2.5])


def test_histogram_out():
    hist, edges = c.zeros(0), c.zeros(0)
    result = c.histogram(c.tensor([1.0, 2.0, 1.0]), 2, out=(hist, edges))
    assert result.hist is hist
    assert result.bin_edges is edges
    assert hist.tolist() == [2, 1]
    with pytest.raises(RuntimeError, match="should have the same dtype"):
        c.histogram(c.tensor([1.0]), 2, out=(c.zeros(2, dtype=c.float64), c.zeros(3)))


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda x: c.histogram(x.to(c.int64), 2), NotImplementedError, "not implemented for candelabra.int64"),
        (lambda x: c.histogram(x, 0), RuntimeError, "bins must be > 0"),
        (lambda x: c.histogram(x, 2, range=(2.0, 1.0)), RuntimeError, "min should not exceed max"),
        (lambda x: c.histogram(x, 2, range=(0.0, float("inf"))), RuntimeError, "is not finite"),
        (lambda x: c.histogram(x, 2, range=(0.0, 1.0, 2.0)), RuntimeError, "range should have 2 elements"),
        (lambda x: c.histogram(x, c.zeros(2, 2)), RuntimeError, "one dimension"),
        (lambda x: c.histogram(x, c.zeros(0)), RuntimeError, "at least 1 element"),
        (lambda x: c.histogram(x, c.zeros(2, dtype=c.float64)), RuntimeError, "same dtype"),
        (lambda x: c.histogram(x, 2, weight=c.ones(2)), RuntimeError, "same shape"),
        (lambda x: c.histogram(x, 2, weight=c.ones(3, dtype=c.float64)), RuntimeError, "same dtype"),
        (lambda x: c.histogramdd(x, 2), RuntimeError, "at least 2 dimensions"),
        (lambda x: c.histogramdd(x.view(1, 3), [2]), RuntimeError, "innermost dimension"),
        (lambda x: c.histogramdd(x.view(1, 3), c.tensor([1, 2, 3])), TypeError, "bins must be"),
    ],
)
def test_histogram_refuses(call, error, message):
    with pytest.raises(error, match=message):
        call(c.tensor([1.0, 2.0, 3.0]))


@pytest.mark.parametrize("density", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_histogramdd(density, weighted):
    points = rng.integers(-8, 9, (4, 5, 3)) / 8
    weights = rng.random((4, 5)) if weighted else None
    given = {} if weights is None else {"weight": c.tensor(weights)}
    flat = None if weights is None else weights.reshape(-1)
    for bins in ([2, 4, 8], [np.array([-1.0, 0.0, 1.0]), np.array([-0.5, 0.5]), np.array([-1.0, -0.25, 0.25, 1.0])]):
        ours = [c.tensor(b) for b in bins] if isinstance(bins[0], np.ndarray) else bins
        ends = {} if isinstance(bins[0], np.ndarray) else {"range": [-1, 1] * 3}
        result = c.histogramdd(c.tensor(points), ours, density=density, **given, **ends)
        expected, edges = np.histogramdd(
            points.reshape(-1, 3), bins, range=[(-1, 1)] * 3, weights=flat, density=density
        )
        np.testing.assert_allclose(result.hist.tolist(), expected, rtol=1e-12)
        for one, other in zip(result.bin_edges, edges, strict=True):
            np.testing.assert_allclose(one.tolist(), other)


# ---- gradient


@pytest.mark.parametrize("edge_order", [1, 2])
@pytest.mark.parametrize("spacing", ["none", "number", "numbers", "coordinates"])
def test_gradient(edge_order, spacing):
    values = rng.standard_normal((4, 5))
    places = [np.sort(rng.random(n) * 5) for n in values.shape]
    ours = {"none": None, "number": 0.5, "numbers": [0.5, 2.0], "coordinates": [c.tensor(p) for p in places]}[spacing]
    theirs = {"none": [], "number": [0.5], "numbers": [0.5, 2.0], "coordinates": places}[spacing]
    result = c.gradient(c.tensor(values), spacing=ours, edge_order=edge_order)
    for one, other in zip(result, np.gradient(values, *theirs, edge_order=edge_order), strict=True):
        np.testing.assert_allclose(one.tolist(), other, rtol=1e-9, atol=1e-12)


def test_gradient_dims_and_dtypes():
    values = rng.standard_normal((3, 4, 3)) + 1j * rng.standard_normal((3, 4, 3))
    found = c.gradient(c.tensor(values), dim=(2, 0), spacing=[1.0, 2.0])
    np.testing.assert_allclose(found[0].tolist(), np.gradient(values, axis=2))
    np.testing.assert_allclose(found[1].tolist(), np.gradient(values, 2.0, axis=0))
    assert c.gradient(c.tensor([1, 2, 4]))[0].tolist() == [1, 1.5, 2]
    assert c.gradient(c.tensor(3.0)) == ()
    assert c.gradient(c.ones(3, 3), dim=()) == ()


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: c.gradient(c.ones(3), edge_order=3), RuntimeError, "edge_order=1 and edge_order=2"),
        (lambda: c.gradient(c.ones(2), edge_order=2), RuntimeError, r"at least edge_order\+1"),
        (lambda: c.gradient(c.ones(3, 3), spacing=[1.0]), RuntimeError, "a list of length 1"),
        (lambda: c.gradient(c.ones(3, 3), dim=(0, 0)), RuntimeError, "appears multiple times"),
        (lambda: c.gradient(c.ones(3), dim=3), IndexError, "Dimension out of range"),
        (lambda: c.gradient(c.ones(3), spacing=[c.tensor(1.0)]), RuntimeError, "one dimension"),
        (lambda: c.gradient(c.ones(3), spacing=[c.ones(4)]), RuntimeError, "3 coordinates"),
        (lambda: c.gradient(c.ones(3), spacing=c.ones(3)), TypeError, "spacing must be"),
        (lambda: c.gradient(c.ones(3).to(c.uint8)), RuntimeError, "uint8"),
    ],
)
def test_gradient_refuses(call, error, message):
    with pytest.raises(error, match=message):
        call()


# ---- hashes


def bits_of(array):
    wide = array.astype(np.float64) if array.dtype.kind == "f" else array.astype(np.int64)
    return wide.view(np.uint64)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.float16, np.float32, np.float64, np.bool_])
def test_hash(dtype):
    array = (rng.integers(-9, 9, (5, 3, 7)) / (1 if np.dtype(dtype).kind in "iub" else 4)).astype(dtype)
    x = c.tensor(array)
    bits = bits_of(array)
    assert c.hash_tensor(x).item() == reduce(np.bitwise_xor, bits.reshape(-1))
    assert x.hash_tensor(1, keepdim=True).tolist() == np.bitwise_xor.reduce(bits, 1, keepdims=True).tolist()
    assert c.hash_tensor(x, (0, -1)).tolist() == np.bitwise_xor.reduce(np.bitwise_xor.reduce(bits, 2), 0).tolist()
    assert c.hash_tensor(x.transpose(0, 2), 0).tolist() == np.bitwise_xor.reduce(bits.swapaxes(0, 2), 0).tolist()
    out = c.empty(0, dtype=c.uint64)
    assert c.hash_tensor(x, 0, out=out) is out
    assert out.tolist() == np.bitwise_xor.reduce(bits, 0).tolist()


def test_hash_refuses():
    with pytest.raises(RuntimeError, match="Unknown hash_tensor mode: 1"):
        c.hash_tensor(c.ones(2), mode=1)
    with pytest.raises(RuntimeError, match="to be of dtype uint64"):
        c.hash_tensor(c.ones(2), 0, out=c.empty(0, dtype=c.int64))
    with pytest.raises(RuntimeError, match="reduction dim to be specified"):
        c.hash_tensor(c.ones(0))
    with pytest.raises(IndexError, match="non-zero size"):
        c.hash_tensor(c.ones(0, 2), 0)
    with pytest.raises(NotImplementedError, match="complex64"):
        c.hash_tensor(c.ones(2, dtype=c.complex64))
