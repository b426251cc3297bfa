"""Test top-level functions such as candelabra.dropout, pairwise distances, and grouped products."""

import numpy as np
import pytest
from nn_numerics import assert_close, tensor
from scipy.spatial.distance import pdist

import candelabra
from candelabra import nn
from candelabra.nn import functional as F

LOSSES = [
    ("kl_div", lambda x: (x, x.abs())), ("hinge_embedding_loss", lambda x: (x, x.sign())),
    ("margin_ranking_loss", lambda x: (x, x * 2, x.sign())), ("binary_cross_entropy_with_logits", lambda x: (x, x.sigmoid())),
    ("cosine_embedding_loss", lambda x: (x, x + 1, x[:, 0].sign())), ("triplet_margin_loss", lambda x: (x, x * 2, x - 1)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments"), LOSSES)
@pytest.mark.filterwarnings("ignore:reduction")
def test_reductions_are_numbers(rng, name, arguments):
    given = arguments(tensor(rng.standard_normal((3, 4))))
    function = getattr(candelabra, name)
    for number, word in enumerate(("none", "mean", "sum")):
        assert_close(function(*given, reduction=number), getattr(F, name)(*given, reduction=word).numpy())
    assert_close(function(*given), getattr(F, name)(*given).numpy())
    with pytest.raises(ValueError, match="not a valid value for reduction"):
        function(*given, reduction=3)


def test_poisson(rng):
    x = tensor(rng.random((3, 4)))
    assert_close(candelabra.poisson_nll_loss(x, x * 4, False, True, 1e-6, 2),
                 F.poisson_nll_loss(x, x * 4, False, True, eps=1e-6, reduction="sum").numpy())  # fmt: skip


def test_normalization(rng):
    x, w, b = rng.standard_normal((4, 6, 5)), rng.standard_normal(6), rng.standard_normal(6)
    mean, variance = x.mean((0, 2)), x.var((0, 2))
    column = (slice(None), None)
    scaled = (x - mean[column]) / np.sqrt(variance[column] + 1e-5) * w[column] + b[column]
    common = (tensor(x), tensor(w), tensor(b))
    assert_close(candelabra.batch_norm(*common, None, None, True, 0.1, 1e-5, True), scaled)
    output, found, rstd = candelabra.native_batch_norm(*common, None, None, True, 0.1, 1e-5)
    assert_close(output, scaled)
    assert_close(found, mean)
    assert_close(rstd, 1 / np.sqrt(variance + 1e-5))
    still = candelabra.native_batch_norm(*common, tensor(b), tensor(w**2), False, 0.1, 1e-5)
    assert_close(still[0], (x - b[column]) / np.sqrt(w[column] ** 2 + 1e-5) * w[column] + b[column])
    assert still[1].shape == still[2].shape == (0,)
    with pytest.raises(RuntimeError, match="running_mean and running_var"):
        candelabra.native_batch_norm(*common, None, None, False, 0.1, 1e-5)
    each = (x - x.mean(2, keepdims=True)) / np.sqrt(x.var(2, keepdims=True) + 1e-5) * w[column] + b[column]
    assert_close(candelabra.instance_norm(*common, None, None, True, 0.1, 1e-5, False), each)
    groups = x.reshape(4, 2, 15)
    hat = ((groups - groups.mean(2, keepdims=True)) / np.sqrt(groups.var(2, keepdims=True) + 1e-5)).reshape(x.shape)
    assert_close(candelabra.group_norm(tensor(x), 2, tensor(w), tensor(b), 1e-5, False), hat * w[column] + b[column])
    output, found, rstd = candelabra.native_group_norm(*common, 4, 6, 5, 2, 1e-5)
    assert_close(output, hat * w[column] + b[column])
    assert_close(found, groups.mean(2))
    assert_close(rstd, 1 / np.sqrt(groups.var(2) + 1e-5))
    rows = (x - x.mean(2, keepdims=True)) / np.sqrt(x.var(2, keepdims=True) + 1e-5)
    assert_close(candelabra.layer_norm(tensor(x), (5,), None, None, 1e-5, False), rows)
    output, found, rstd = candelabra.native_layer_norm(tensor(x), (5,), None, None, 1e-5)
    assert_close(output, rows)
    assert_close(found, x.mean(2, keepdims=True))
    assert_close(rstd, 1 / np.sqrt(x.var(2, keepdims=True) + 1e-5))
    half = candelabra.native_layer_norm(tensor(x).bfloat16(), (5,), None, None, 1e-5)
    assert [made.dtype for made in half] == [candelabra.bfloat16] * 3


def test_norm_except_dim(rng):
    x = rng.standard_normal((3, 4, 5))
    assert_close(candelabra.norm_except_dim(tensor(x)), np.sqrt((x**2).sum((1, 2), keepdims=True)))
    assert_close(candelabra.norm_except_dim(tensor(x), 1, 2), np.abs(x).sum((0, 1), keepdims=True))
    assert_close(candelabra.norm_except_dim(tensor(x), 2, -1), np.sqrt((x**2).sum()))
    assert_close(candelabra.norm_except_dim(tensor(x[0, 0])), np.abs(x[0, 0]))
    with pytest.raises(RuntimeError, match="dim must be"):
        candelabra.norm_except_dim(tensor(x), 2, 3)


@pytest.mark.parametrize("name", ["dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout"])
def test_dropout(name):
    x = candelabra.ones(50, 40, 3)
    function, in_place = getattr(candelabra, name), getattr(candelabra, name + "_")
    assert function(x, 0.5, False).tolist() == x.tolist()
    dropped = function(x, 0.4, True)
    values, counts = np.unique(dropped.numpy(), return_counts=True)
    assert len(values) == 2
    assert 0.3 < counts[0] / counts.sum() < 0.5  # the lower value marks dropped elements
    if name.startswith("feature"):
        assert (dropped == dropped[..., :1]).all()
    changed = x.clone()
    assert in_place(changed, 0.4, True) is changed
    assert len(np.unique(changed.numpy())) == 2
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        in_place(changed, 1.5, True)


def test_native_dropout():
    x = candelabra.ones(1000)
    output, mask = candelabra.native_dropout(x, 0.5, True)
    assert (output == mask * 2).all()
    output, mask = candelabra.native_dropout(x, 0.5, False)
    assert (output == x).all() and mask.all()


def test_dropout_of_volumes():
    x = candelabra.ones(20, 30, 2, 2, 2)
    dropped = F.dropout3d(x, 0.5)
    assert (dropped == dropped[:, :, :1, :1, :1]).all()
    assert sorted(set(dropped.flatten().tolist())) == [0.0, 2.0]
    assert F.dropout3d(x[0], 0.5).shape == x[0].shape
    with pytest.warns(UserWarning, match="dropout3d: Received a 3-D input"):
        F.dropout3d(x[0, 0])
    assert F.feature_alpha_dropout(candelabra.ones(3), 0.5, False).tolist() == [1.0] * 3


@pytest.mark.parametrize("p", [0.0, 1.0, 1.5, 2.0, np.inf])
def test_pdist(rng, p):
    x = rng.standard_normal((6, 4))
    expected = {0.0: np.full(15, 4.0), np.inf: pdist(x, "chebyshev")}.get(p)
    assert_close(candelabra.pdist(tensor(x), p), pdist(x, "minkowski", p=p) if expected is None else expected)
    assert candelabra.pdist(tensor(x[:1]), p).shape == (0,)
    for match, arguments in (
        ("2D", (tensor(x[0]),)),
        ("floating", (tensor(x).long(),)),
        ("negative", (tensor(x), -1.0)),
    ):
        with pytest.raises(RuntimeError, match=match):
            candelabra.pdist(*arguments)


def test_products_of_groups(rng):
    a, b = rng.standard_normal((6, 3)), rng.standard_normal((2, 3, 4))
    ends = candelabra.tensor([2, 5], dtype=candelabra.int32)
    rows = np.concatenate([a[:2] @ b[0], a[2:5] @ b[1], np.zeros((1, 4))])
    assert_close(F.grouped_mm(tensor(a), tensor(b), offs=ends), rows)
    columns = F.grouped_mm(tensor(b.swapaxes(1, 2).copy()), tensor(a.T.copy()), offs=ends)
    assert_close(columns, np.concatenate([b[0].T @ a[:2].T, b[1].T @ a[2:5].T, np.zeros((4, 1))], 1))
    inner = F.grouped_mm(tensor(a.T.copy()), tensor(a), offs=ends)
    assert_close(inner, np.array([a[:2].T @ a[:2], a[2:5].T @ a[2:5]]))
    assert_close(F.grouped_mm(tensor(b), tensor(b.swapaxes(1, 2).copy())), b @ b.swapaxes(1, 2))
    for match, call in (
        ("Have to provide offsets", lambda: F.grouped_mm(tensor(a), tensor(b))),
        ("int32", lambda: F.grouped_mm(tensor(a), tensor(b), offs=ends.long())),
        ("must not fall", lambda: F.grouped_mm(tensor(a), tensor(b), offs=ends + 2)),
        ("contraction", lambda: F.grouped_mm(tensor(a), tensor(a), offs=ends)),
        ("do not fit", lambda: F.grouped_mm(tensor(a), tensor(b), offs=ends[:1])),
        ("Bias", lambda: F.grouped_mm(tensor(a), tensor(b), offs=ends, bias=tensor(a))),
    ):
        with pytest.raises(RuntimeError, match=match):
            call()
    for function in (F.scaled_mm, F.scaled_grouped_mm):
        with pytest.raises(NotImplementedError, match="scales of blocks of float8"):
            function(tensor(a), tensor(b))


class Foreign:
    """Not a tensor, but it takes over functions."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func


@pytest.mark.parametrize(
    "function",
    [
        candelabra.lstm, candelabra.gru_cell, candelabra.norm_except_dim, candelabra.native_layer_norm, candelabra.segment_reduce,
        candelabra.grid_sampler, nn.init.normal_, nn.init.kaiming_uniform_,
    ],
)  # fmt: skip
def test_other_classes_take_over(function):
    assert function(Foreign()) is function
    assert function in candelabra.overrides.get_testing_overrides()
