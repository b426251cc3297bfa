"""Test _upsample, grid_sampler, padding, embedding_bag, searchsorted, scatter_reduce and cummax
beyond the conformance suite: threads, empty tensors, extreme values, rejected arguments.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from values import FLOATS, random_tensor, tensor, wide

import candelabra
from candelabra import ops
from candelabra.testing import conformance


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    before = candelabra.get_num_threads()
    yield candelabra.set_num_threads
    candelabra.set_num_threads(before)


OPERATORS = (
    "_upsample", "_upsample_backward", "grid_sampler", "grid_sampler_backward", "_reflection_replication_pad", "_reflection_replication_pad_backward", "_searchsorted", "scatter_reduce",
    "_embedding_bag", "_embedding_bag_backward", "_cummax_cummin",
)  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_conformance(name: str) -> None:
    (outcome,) = conformance.run("cpu", [name])
    assert outcome.kernel
    assert outcome.failures == []
    assert outcome.passed > 0


def large_calls(dtype: str) -> dict[str, Callable[[], Any]]:
    image = random_tensor((2, 5, 60, 70), dtype, "contiguous", 0)
    last = image.contiguous(memory_format=candelabra.channels_last)
    volume = random_tensor((2, 2, 12, 20, 30), dtype, "contiguous", 1)
    grid = random_tensor((2, 90, 80, 2), dtype, "contiguous", 2)
    slopes = random_tensor((2, 5, 90, 80), dtype, "contiguous", 3)
    table = random_tensor((300, 40), dtype, "contiguous", 4)
    generator = np.random.default_rng(5)
    indices = tensor(generator.integers(0, 300, 5000))
    offsets = tensor(np.arange(0, 5000, 7))
    bags = {
        mode: ops._embedding_bag(table, indices, offsets, mode, None, False, False, -1)
        for mode in ("sum", "mean", "max")
    }
    places = tensor(generator.integers(0, 50, (400, 40)))
    rows = random_tensor((400, 40), dtype, "contiguous", 6)
    calls: dict[str, Callable[[], Any]] = {
        "bilinear": lambda: ops._upsample(image, (95, 130), (), "linear", False, False),
        "channels last": lambda: ops._upsample(last, (95, 130), (), "linear", False, False),
        "cubic": lambda: ops._upsample(image, (95, 33), (), "cubic", False, False),
        "antialias": lambda: ops._upsample(image, (21, 33), (), "cubic", False, True),
        "trilinear": lambda: ops._upsample(volume, (20, 33, 41), (), "linear", False, False),
        "nearest": lambda: ops._upsample(image, (95, 130), (), "nearest", False, False),
        "bilinear backward": lambda: ops._upsample_backward(slopes, (2, 5, 60, 70), (), "linear", False, False),
        "grid": lambda: ops.grid_sampler(image, grid, "bilinear", "reflection", False),
        "grid backward": lambda: ops.grid_sampler_backward(
            slopes, image, grid, "bicubic", "zeros", False, (True, True)
        ),
        "pad": lambda: ops._reflection_replication_pad(image, (5, 4, 3, 2), "reflect"),
        "pad backward": lambda: ops._reflection_replication_pad_backward(
            slopes, (2, 5, 80, 70), (5, 5, 4, 6), "reflect"
        ),
    }
    for mode, made in bags.items():
        calls[f"bags {mode}"] = lambda mode=mode: ops._embedding_bag(
            table, indices, offsets, mode, None, False, False, -1
        )
        calls[f"bags {mode} backward"] = lambda mode=mode, made=made: ops._embedding_bag_backward(
            made[0], indices, *made[1:], 300, mode, None, mode == "sum", -1
        )
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        calls[f"reduce {reduce}"] = lambda reduce=reduce: ops.scatter_reduce(table, 0, places, rows, reduce)
    calls["cummax"] = lambda: ops._cummax_cummin(table, 0, True)
    calls["_searchsorted"] = lambda: ops._searchsorted(table.flatten().sort()[0], rows, True, False, None)
    return calls


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_threads_change_nothing(dtype: str, threads: Callable[[int], None]) -> None:
    for name, call in large_calls(dtype).items():
        results = []
        for count in (1, 2, 3):
            threads(count)
            made = call()
            results.append([wide(one) for one in (made if isinstance(made, tuple) else (made,))])
        for other in results[1:]:
            assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(results[0], other, strict=True)), name


@pytest.mark.parametrize("dtype", FLOATS)
def test_channels_last_is_the_same(dtype: str) -> None:
    for channels, (mode, antialias) in itertools.product(
        (1, 3, 8, 20), (("nearest", False), ("linear", False), ("cubic", True))
    ):
        image = random_tensor((2, channels, 6, 7), dtype, "contiguous", channels)
        for size in ((9, 5), (1, 1)):
            expected = ops._upsample(image, size, (), mode, False, antialias)
            made = ops._upsample(
                image.contiguous(memory_format=candelabra.channels_last), size, (), mode, False, antialias
            )
            assert channels == 1 or made.is_contiguous(memory_format=candelabra.channels_last)
            np.testing.assert_allclose(
                wide(made), wide(expected), rtol=1e-5 if dtype in ("float32", "float64") else 1e-2, atol=1e-2
            )
        back = ops._upsample_backward(image, (2, channels, 4, 9), (), mode, False, antialias)
        made = ops._upsample_backward(
            image.contiguous(memory_format=candelabra.channels_last), (2, channels, 4, 9), (), mode, False, antialias
        )
        np.testing.assert_allclose(
            wide(made), wide(back), rtol=1e-5 if dtype in ("float32", "float64") else 1e-2, atol=2e-2
        )


def test_the_stride_of_a_batch_of_one_tells_its_format() -> None:
    """As ATen's suggest_memory_format(): a view of one channels-last image is row-major."""
    image = random_tensor((1, 3, 6, 7), "float32", "contiguous", 0)
    last = image.contiguous(memory_format=candelabra.channels_last)
    kept = ops._upsample(last, (9, 5), (), "linear", False, False)
    lost = ops._upsample(last[0][None], (9, 5), (), "linear", False, False)
    assert kept.is_contiguous(memory_format=candelabra.channels_last)
    assert lost.is_contiguous()
    np.testing.assert_allclose(wide(lost), wide(kept), rtol=1e-6)


def test_infinity_stays_where_it_is() -> None:
    row = tensor(np.array([[[0.0, np.inf, 1.0, 2.0, 3.0]]]))
    back = ops._upsample_backward(row, (1, 1, 9), (), "nearest", False, False)
    assert np.isfinite(wide(back)).sum() == 8
    drawn = wide(ops._upsample(row, (3,), (), "linear", False, True))
    assert np.isinf(drawn[0, 0, 0])
    assert np.isfinite(drawn[0, 0, 2])


def test_bytes_are_rounded_and_clamped() -> None:
    image = tensor(np.array([[[[0, 255, 0, 255]]]], dtype=np.uint8))
    made = ops._upsample(image, (1, 8), (), "cubic", False, False)
    assert made.dtype is candelabra.uint8
    assert {0, 255} <= set(made.flatten().tolist())


def test_extreme_places() -> None:
    image = random_tensor((1, 2, 3, 3), "float32", "contiguous", 0)
    grid = tensor(np.array([[[[1e30, 0.0], [-1e30, 0.0], [np.inf, 0.0], [np.nan, 0.0]]]], dtype=np.float32))
    for mode, padding in itertools.product(("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")):
        made = wide(ops.grid_sampler(image, grid, mode, padding, False))
        assert made.shape == (1, 2, 1, 4)
        if padding == "border" and mode != "bicubic":
            np.testing.assert_allclose(made[0, :, 0, 0], wide(image)[0, :, 1, 2], rtol=1e-6)
            np.testing.assert_allclose(made[0, :, 0, 3], wide(image)[0, :, 1, 0], rtol=1e-6)
        slopes = ops.grid_sampler_backward(candelabra.ones(1, 2, 1, 4), image, grid, mode, padding, False, (True, True))
        assert slopes[0].shape == image.shape


def test_empty() -> None:
    assert ops._upsample(candelabra.empty(0, 3, 4), (8,), (), "linear", False, False).shape == (0, 3, 8)
    assert ops.grid_sampler(
        candelabra.empty(2, 0, 4, 4), candelabra.zeros(2, 3, 3, 2), "bilinear", "zeros", False
    ).shape == (
        2,
        0,
        3,
        3,
    )
    assert ops.grid_sampler(
        candelabra.ones(2, 1, 4, 4), candelabra.zeros(2, 0, 3, 2), "bilinear", "zeros", False
    ).shape == (
        2,
        1,
        0,
        3,
    )
    of_grid = ops.grid_sampler_backward(
        candelabra.empty(2, 0, 3, 3),
        candelabra.empty(2, 0, 4, 4),
        candelabra.zeros(2, 3, 3, 2),
        "bilinear",
        "zeros",
        False,
        (True, True),
    )[1]
    assert not of_grid.any()
    none = candelabra.zeros(0, dtype=candelabra.int64)
    assert ops._embedding_bag(candelabra.ones(3, 2), none, none, "max", None, False, False, -1)[0].shape == (0, 2)
    zero = candelabra.zeros(1, dtype=candelabra.int64)
    for mode in ("sum", "mean", "max"):
        assert ops._embedding_bag(candelabra.ones(3, 2), none, zero, mode, None, False, False, -1)[0].tolist() == [
            [0, 0]
        ]
    assert ops._searchsorted(candelabra.ones(0), candelabra.ones(2), False, False, None).tolist() == [0, 0]
    x = candelabra.ones(3)
    assert ops.scatter_reduce(x, 0, none, candelabra.ones(0), "prod").tolist() == [1, 1, 1]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("columns", [64, 128, 200])
def test_wide_bags(columns: int, dtype: str) -> None:
    """Whole blocks of columns are summed in registers, the rest in memory."""
    table = random_tensor((90, columns), dtype, "contiguous", 0)
    generator = np.random.default_rng(1)
    chosen = generator.integers(0, 90, 150)
    weights = random_tensor((150,), dtype, "contiguous", 2)
    exact = wide(table).astype(np.float64)
    factors = wide(weights).astype(np.float64)
    for padding in (-1, 3):
        made = ops._embedding_bag(
            table, tensor(chosen), tensor(np.arange(0, 150, 10)), "sum", weights, False, False, padding
        )[0]
        terms = exact[chosen] * np.where(chosen == padding, 0, factors)[:, None]
        np.testing.assert_allclose(
            wide(made),
            terms.reshape(15, 10, columns).sum(1),
            rtol=0,
            atol={"float64": 1e-13, "float32": 1e-5, "float16": 2e-2, "bfloat16": 1e-1}[dtype] * np.abs(terms).max(),
        )


def test_largest_of_nan() -> None:
    table = tensor(np.array([[1.0, np.nan], [np.nan, 2.0], [5.0, 5.0]]))
    out, _, _, rows = ops._embedding_bag(
        table, tensor(np.array([2, 0, 1])), tensor(np.array([0])), "max", None, False, False, -1
    )
    assert np.isnan(wide(out)).all()
    assert rows.tolist() == [[1, 0]]
    made = ops.scatter_reduce(
        candelabra.zeros(1), 0, tensor(np.array([0, 0])), tensor(np.array([np.nan, 3.0], dtype=np.float32)), "amax"
    )
    assert np.isnan(made.item())


def test_nan_belongs_at_the_end() -> None:
    rows = tensor(np.array([1.0, 2.0, np.nan]))
    assert ops._searchsorted(rows, tensor(np.array([np.nan, 5.0])), True, False, None).tolist() == [3, 3]


def test_refused() -> None:
    image = candelabra.ones(1, 1, 3, 3)
    with pytest.raises(RuntimeError, match="greater than 0"):
        ops._upsample(image, (0, 2), (), "linear", False, False)
    with pytest.raises(ValueError, match="mode"):
        ops._upsample(image, (2, 2), (), "round", False, False)
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        ops._upsample(image.long(), (2, 2), (), "linear", False, False)
    with pytest.raises(RuntimeError, match="scales"):
        ops._upsample(image, (2, 2), (float("nan"), 1.0), "linear", False, False)
    with pytest.raises(RuntimeError, match="batch size"):
        ops.grid_sampler(image, candelabra.zeros(2, 1, 1, 2), "bilinear", "zeros", False)
    with pytest.raises(RuntimeError, match="Padding size"):
        ops._reflection_replication_pad(image, (3, 0), "reflect")
    with pytest.raises(RuntimeError, match="more than once"):
        ops._reflection_replication_pad(image, (4, 0), "circular")
    with pytest.raises(RuntimeError, match="negative output size"):
        ops._reflection_replication_pad(image, (-2, -2), "replicate")
    table, zero = candelabra.ones(3, 2), candelabra.zeros(1, dtype=candelabra.int64)
    for bad in (3, -1, 2**62):
        with pytest.raises(RuntimeError, match="num_embeddings"):
            ops._embedding_bag(table, tensor(np.array([bad])), zero, "sum", None, False, False, -1)
    with pytest.raises(RuntimeError, match="has to be 0"):
        ops._embedding_bag(table, zero, tensor(np.array([1])), "sum", None, False, False, -1)
    with pytest.raises(RuntimeError, match="greater than input's length"):
        ops._embedding_bag(table, zero, tensor(np.array([0, 9])), "sum", None, False, False, -1)
    with pytest.raises(IndexError, match="bag 5"):
        ops._embedding_bag_backward(
            candelabra.ones(1, 2), zero, tensor(np.array([5])), zero, zero, 3, "sum", None, False, -1
        )
    with pytest.raises(RuntimeError, match="sorter"):
        ops._searchsorted(candelabra.ones(2), candelabra.ones(1), False, False, tensor(np.array([0, 7])))
    before = candelabra.zeros(3)
    with pytest.raises(RuntimeError, match="out of bounds"):
        before.scatter_reduce_(0, tensor(np.array([0, 3])), candelabra.ones(2), "amax")
    assert before.tolist() == [0, 0, 0]
    with pytest.raises(RuntimeError, match="reduce"):
        candelabra.scatter_reduce(before, 0, zero, candelabra.ones(1), "median")


def test_reduced_halves_are_rounded_once() -> None:
    small = candelabra.full((1000,), 0.001, dtype=candelabra.bfloat16)
    index = candelabra.zeros(1000, dtype=candelabra.int64)
    total = candelabra.zeros(1, dtype=candelabra.bfloat16).scatter_reduce(0, index, small, "sum")
    assert total.item() == pytest.approx(1.0, rel=1e-2)


def _confined(place: np.ndarray, size: int, padding: str) -> np.ndarray:
    if padding == "reflection":
        place = np.abs(place + 0.5) % (2 * size)
        place = np.where(place > size, 2 * size - place, place) - 0.5
    return place if padding == "zeros" else np.clip(place, 0, size - 1)


def _bilinear(x: np.ndarray, grid: np.ndarray, padding: str) -> np.ndarray:
    """Interpolate bilinearly between the up to four neighbours that are inside."""
    batch, channels, height, width = x.shape
    exact = grid.astype(np.float64)
    column = _confined(((exact[..., 0] + 1) * width - 1) / 2, width, padding)
    row = _confined(((exact[..., 1] + 1) * height - 1) / 2, height, padding)
    left, top = np.floor(column), np.floor(row)
    total = np.zeros((batch, channels, *grid.shape[1:3]))
    for up, along in itertools.product((0, 1), (0, 1)):
        r, c = (top + up).astype(int), (left + along).astype(int)
        weight = np.abs(1 - up - (row - top)) * np.abs(1 - along - (column - left))
        inside = (r >= 0) & (r < height) & (c >= 0) & (c < width)
        for n in range(batch):
            taken = x[n][:, np.clip(r[n], 0, height - 1), np.clip(c[n], 0, width - 1)].astype(np.float64)
            with np.errstate(invalid="ignore"):
                total[n] += np.where(inside[n], taken * weight[n], 0)
    return total


@pytest.mark.parametrize("width", [1, 2, 3, 37])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_what_is_not_taken_does_not_count(width: int, padding: str) -> None:
    """A NaN pixel affects only the samples that have it as a neighbour. At an edge there is one
    neighbour instead of two.
    """
    generator = np.random.default_rng(width)
    x = generator.standard_normal((2, 3, 4, width)).astype(np.float32)
    x[:, :, 1, 0] = np.nan
    x[:, :, 2, -1] = np.inf
    grid = generator.uniform(-1.3, 1.3, (2, 5, 61, 2)).astype(np.float32)
    for layout in (tensor(x), tensor(np.ascontiguousarray(x.transpose(0, 1, 3, 2))).transpose(2, 3)):
        made = ops.grid_sampler(layout, tensor(grid), "bilinear", padding, False)
        exact = _bilinear(x, grid, padding)
        near = np.isfinite(exact)
        np.testing.assert_allclose(made.numpy()[near], exact[near], rtol=2e-4, atol=2e-5)
        assert (np.isfinite(made.numpy()) == near).mean() > 0.99  # rounding may move a sample onto or off a pixel
