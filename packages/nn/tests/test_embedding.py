"""Test embeddings, embedding bags and segment reductions against NumPy."""

import numpy as np
import pytest
from nn_numerics import assert_close, tensor

import candelabra
from candelabra.nn import functional as F

INDICES = np.array([0, 1, 2, 2, 5, 6, 1])
OFFSETS = np.array([0, 2, 2, 6])

NAN = float("nan")


def bags(table, mode, padding=None, weights=None, offsets=OFFSETS):
    result = []
    for start, end in zip(offsets, [*offsets[1:], len(INDICES)], strict=True):
        kept = [i for i in range(start, end) if INDICES[i] != padding]
        rows = table[INDICES[kept]] * (1 if weights is None else weights[kept, None])
        result.append(
            {"sum": rows.sum, "mean": rows.mean, "max": rows.max}[mode](0) if kept else np.zeros(table.shape[1])
        )
    return np.array(result)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags(rng, mode):
    table = rng.standard_normal((7, 3))
    indices, offsets = tensor(INDICES), tensor(OFFSETS)
    for padding in (None, 2):
        expected = bags(table, mode, padding)
        assert_close(F.embedding_bag(indices, tensor(table), offsets, mode=mode, padding_idx=padding), expected)
        last = candelabra.cat([offsets, candelabra.tensor([7])])
        assert_close(
            F.embedding_bag(indices, tensor(table), last, mode=mode, padding_idx=padding, include_last_offset=True),
            expected,
        )
    rows = F.embedding_bag(indices[:6].reshape(2, 3), tensor(table), mode=mode)
    assert_close(rows, bags(table, mode, offsets=np.array([0, 3, 6]))[:2])
    assert F.embedding_bag(indices[:0].reshape(2, 0), tensor(table), mode=mode).tolist() == [[0.0] * 3] * 2
    assert F.embedding_bag(indices.int(), tensor(table).half(), offsets.int(), mode=mode).dtype == candelabra.float16


def test_weights_of_samples(rng):
    table, weights = rng.standard_normal((7, 3)), rng.standard_normal(7)
    made = F.embedding_bag(
        tensor(INDICES), tensor(table), tensor(OFFSETS), mode="sum", per_sample_weights=tensor(weights)
    )
    assert_close(made, bags(table, "sum", weights=weights))


def test_norms(rng):
    table = rng.standard_normal((7, 3)) * 4
    for norm in (1.0, 2.0):
        norms = np.linalg.norm(table, norm, 1)
        scaled = table * np.where((norms > 1) & np.isin(np.arange(7), INDICES), 1 / (norms + 1e-7), 1)[:, None]
        changed = tensor(table)
        assert candelabra.embedding_renorm_(changed, tensor(INDICES), 1.0, norm) is changed
        assert_close(changed, scaled)
        changed = tensor(table)
        result = F.embedding_bag(tensor(INDICES), changed, tensor(OFFSETS), max_norm=1.0, norm_type=norm)
        assert_close(changed, scaled)
        assert_close(result, bags(scaled, "mean"))


def test_bag_errors(rng):
    table, indices, offsets = tensor(rng.standard_normal((7, 3))), tensor(INDICES), tensor(OFFSETS)
    for error, match, arguments, options in (
        (ValueError, "mode has to be", (indices, table, offsets), {"mode": "min"}),
        (ValueError, "offsets has to be a 1D Tensor but got None", (indices, table), {}),
        (ValueError, "offsets has to be None", (indices.reshape(1, 7), table, offsets), {}),
        (ValueError, "1D or 2D", (indices.reshape(1, 1, 7), table), {}),
        (ValueError, "same shape", (indices, table, offsets), {"per_sample_weights": table[0]}),
        (ValueError, "max mode", (indices, table, offsets), {"mode": "max", "scale_grad_by_freq": True}),
        (ValueError, "2D Tensor", (indices, table[0], offsets), {}),
        (
            NotImplementedError,
            "only supported for mode='sum'",
            (indices, table, offsets),
            {"per_sample_weights": table[:, 0]},
        ),
        (
            RuntimeError,
            "same type as tensor for argument #1 'per_sample_weights'",
            (indices, table, offsets),
            {"mode": "sum", "per_sample_weights": indices},
        ),
        (NotImplementedError, "sparse", (indices, table, offsets), {"sparse": True}),
        (RuntimeError, "has to be 0", (indices, table, offsets + 1), {}),
        (RuntimeError, "can not be greater", (indices, table, offsets * 2), {}),
        (RuntimeError, "idx to be [89], for 7 rows|index [89] is out of bounds", (indices + 3, table, offsets), {}),
        (RuntimeError, "padding_idx must be within", (indices, table, offsets), {"padding_idx": 7}),
        (RuntimeError, "Long, Int", (indices, table, offsets.double()), {}),
    ):
        with pytest.raises(error, match=match):
            F.embedding_bag(*arguments, **options)
    with pytest.raises(NotImplementedError, match="sparse"):
        F.embedding(indices, table, sparse=True)


def test_all_results_of_bags(rng):
    table = rng.standard_normal((7, 3))
    arguments = (tensor(table), tensor(INDICES), tensor(OFFSETS), False)
    for mode, name in enumerate(("sum", "mean", "max")):
        output, bag, sizes, largest = candelabra.embedding_bag(*arguments, mode)
        assert_close(output, bags(table, name))
        assert bag.tolist() == [0, 0, 2, 2, 2, 2, 3]
        assert sizes.tolist() == ([0] * 4 if mode == 0 else [2, 0, 4, 1])
    rows = [
        [int(INDICES[a:b][np.argmax(table[INDICES[a:b], c])]) for c in range(3)] for a, b in ((0, 2), (2, 6), (6, 7))
    ]
    assert largest.tolist() == [rows[0], [0, 0, 0], *rows[1:]]
    with pytest.raises(RuntimeError, match="mode must be"):
        candelabra.embedding_bag(*arguments, 3)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value")
def test_segments(rng, reduce):
    data = rng.standard_normal((6, 3))
    lengths = [2, 0, 4]
    functions = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod}
    empty = {"sum": 0, "mean": np.nan, "max": -np.inf, "min": np.inf, "prod": 1}[reduce]
    expected = np.array(
        [functions[reduce](part, 0) if len(part) else np.full(3, empty) for part in np.split(data, [2, 2])]
    )
    assert_close(candelabra.segment_reduce(tensor(data), reduce, lengths=candelabra.tensor(lengths)), expected)
    assert_close(candelabra.segment_reduce(tensor(data), reduce, offsets=candelabra.tensor([0, 2, 2, 6])), expected)
    inner = candelabra.segment_reduce(tensor(data.T.copy()), reduce, lengths=candelabra.tensor([lengths] * 3), axis=1)
    assert_close(inner, expected.T)
    begun = candelabra.segment_reduce(tensor(data), reduce, lengths=candelabra.tensor(lengths), initial=2.0)
    assert_close(begun[1], np.full(3, 2.0))


def test_segment_errors():
    data = candelabra.ones(6, 3)
    for match, options in (
        ("Either lengths or offsets", {}),
        ("to sum to", {"lengths": candelabra.tensor([2, 1])}),
        ("negative", {"lengths": candelabra.tensor([-1, 7])}),
        ("last dimension", {"lengths": candelabra.tensor([6]), "axis": 1}),
        ("in front of axis", {"lengths": candelabra.tensor([[3]]), "axis": 1}),
        ("dtype int64 or int32", {"lengths": candelabra.tensor([6.0])}),
        ("not supported yet", {"indices": candelabra.tensor([6])}),
    ):
        with pytest.raises(RuntimeError, match=match):
            candelabra.segment_reduce(data, "sum", **options)
    with pytest.raises(RuntimeError, match="unsupported reduction"):
        candelabra.segment_reduce(data, "median", lengths=candelabra.tensor([6]))
    assert candelabra.segment_reduce(data, "sum", lengths=candelabra.tensor([2]), unsafe=True).tolist() == [[2.0] * 3]


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag_refuses_integer_weights(mode):
    weight = candelabra.ones(3, 2, dtype=candelabra.int64)
    with pytest.raises(
        RuntimeError, match="^Expected tensor for argument #1 'weight' to have one of the following scalar"
    ):
        F.embedding_bag(candelabra.tensor([0, 1]), weight, candelabra.tensor([0]), mode=mode)
