"""Test losses against NumPy and SciPy."""

import warnings

import numpy as np
import pytest
from nn_numerics import array, assert_close, tensor
from scipy import special, stats

import candelabra
from candelabra import nn
from candelabra.nn import functional as F


def reduced(losses, reduction):
    return {"mean": np.mean, "sum": np.sum, "none": np.asarray}[reduction](losses)


REDUCTIONS = pytest.mark.parametrize("reduction", ["mean", "sum", "none"])


@REDUCTIONS
def test_numbers(rng, reduction):
    x, y, w = rng.standard_normal((3, 4)), rng.standard_normal((3, 4)), rng.random((3, 4))
    d = x - y
    smooth = np.where(np.abs(d) < 0.5, d**2, np.abs(d) - 0.25)
    huber = np.where(np.abs(d) <= 0.5, d**2 / 2, 0.5 * (np.abs(d) - 0.25))
    a, b = tensor(x), tensor(y)
    assert_close(nn.MSELoss(reduction=reduction)(a, b), reduced(d**2, reduction))
    assert_close(nn.L1Loss(reduction=reduction)(a, b), reduced(np.abs(d), reduction))
    assert_close(nn.SmoothL1Loss(reduction=reduction, beta=0.5)(a, b), reduced(smooth, reduction))
    assert_close(F.smooth_l1_loss(a, b, reduction=reduction, beta=0.0), reduced(np.abs(d), reduction))
    assert_close(nn.HuberLoss(reduction=reduction, delta=0.5)(a, b), reduced(huber, reduction))
    assert_close(F.huber_loss(a, b, reduction=reduction, delta=0.5, weight=tensor(w)), reduced(huber * w, reduction))
    weighted = (d**2 * w).sum() / w.sum() if reduction == "mean" else reduced(d**2 * w, reduction)
    assert_close(F.mse_loss(a, b, reduction=reduction, weight=tensor(w)), weighted)


def cross_entropy(x, target, weight=None, ignore=-100, smoothing=0.0, reduction="mean"):
    """Compute -sum over classes of weight * smoothed one-hot * log softmax, without ignored
    targets.
    """
    log_p = np.moveaxis(special.log_softmax(x, 1), 1, -1).reshape(-1, x.shape[1])
    classes = x.shape[1]
    weight = np.ones(classes) if weight is None else weight
    flat = target.reshape(-1)
    keep = flat != ignore
    losses = np.zeros(len(flat))
    for i in np.flatnonzero(keep):
        goal = np.full(classes, smoothing / classes)
        goal[flat[i]] += 1 - smoothing
        # The hard part uses the weight of the target class, the smooth part that of each class.
        # Together this is weight * goal.
        losses[i] = -(weight * goal * log_p[i]).sum()
    if reduction == "mean":
        return losses.sum() / weight[flat[keep]].sum()
    return losses.sum() if reduction == "sum" else losses.reshape(target.shape)


@REDUCTIONS
@pytest.mark.parametrize("spatial", [(), (3,), (3, 2)])
def test_classes(rng, spatial, reduction):
    x, target, weight = rng.standard_normal((4, 5, *spatial)), rng.integers(0, 5, (4, *spatial)), rng.random(5)
    target.flat[1] = 3
    a, t, w = tensor(x), tensor(target), tensor(weight)
    assert_close(nn.CrossEntropyLoss(reduction=reduction)(a, t), cross_entropy(x, target, reduction=reduction))
    assert_close(
        nn.CrossEntropyLoss(w, reduction=reduction)(a, t), cross_entropy(x, target, weight, reduction=reduction)
    )
    options = {"ignore_index": 3, "reduction": reduction}
    assert_close(F.cross_entropy(a, t, w, **options), cross_entropy(x, target, weight, 3, reduction=reduction))
    assert_close(
        F.cross_entropy(a, t, w, label_smoothing=0.2, **options), cross_entropy(x, target, weight, 3, 0.2, reduction)
    )  # fmt: skip
    assert_close(
        nn.CrossEntropyLoss(label_smoothing=0.2, reduction=reduction)(a, t), cross_entropy(x, target, None, -100, 0.2, reduction)
    )  # fmt: skip
    log_p = special.log_softmax(x, 1)
    assert_close(
        nn.NLLLoss(w, ignore_index=3, reduction=reduction)(tensor(log_p), t),
        cross_entropy(x, target, weight, 3, reduction=reduction),
    )


def test_one_sample(rng):
    x = rng.standard_normal(5)
    expected = -special.log_softmax(x)[2]
    assert_close(F.cross_entropy(tensor(x), tensor(2)), expected)
    assert_close(F.nll_loss(tensor(x), tensor(2), reduction="sum"), -x[2])
    assert_close(F.cross_entropy(tensor(x), tensor(2), reduction="none"), expected)


@REDUCTIONS
def test_probabilities(rng, reduction):
    x, p, w = rng.standard_normal((4, 5, 3)), rng.random((4, 5, 3)), rng.random(5)
    losses = -(w[:, None] * p * special.log_softmax(x, 1)).sum(1)
    expected = losses.sum() / 12 if reduction == "mean" else reduced(losses, reduction)
    assert_close(F.cross_entropy(tensor(x), tensor(p), tensor(w), reduction=reduction), expected)
    smoothed = -((p * 0.9 + 0.1 / 5) * special.log_softmax(x, 1)).sum(1)
    expected = smoothed.sum() / 12 if reduction == "mean" else reduced(smoothed, reduction)
    assert_close(F.cross_entropy(tensor(x), tensor(p), label_smoothing=0.1, reduction=reduction), expected)


@REDUCTIONS
def test_binary(rng, reduction):
    p, t, w, pos = rng.random((3, 4)), rng.random((3, 4)), rng.random((3, 4)), rng.random(4)
    losses = -(t * np.log(p) + (1 - t) * np.log1p(-p))
    assert_close(nn.BCELoss(reduction=reduction)(tensor(p), tensor(t)), reduced(losses, reduction))
    assert_close(nn.BCELoss(tensor(w), reduction=reduction)(tensor(p), tensor(t)), reduced(losses * w, reduction))
    assert_close(
        F.binary_cross_entropy(tensor([0.0, 1, 0, 1]), tensor([0.0, 1, 1, 0]), reduction="none"),
        np.float32([0, 0, 100, 100]),
    )
    x = rng.standard_normal((3, 4)) * 50
    losses = -(pos * t * special.log_expit(x) + (1 - t) * special.log_expit(-x))
    assert_close(
        nn.BCEWithLogitsLoss(pos_weight=tensor(pos), reduction=reduction)(tensor(x), tensor(t)),
        reduced(losses, reduction),
    )
    losses = -(t * special.log_expit(x) + (1 - t) * special.log_expit(-x))
    assert_close(
        nn.BCEWithLogitsLoss(tensor(w), reduction=reduction)(tensor(x), tensor(t)), reduced(losses * w, reduction)
    )
    loss = nn.MultiLabelSoftMarginLoss(tensor(w[0]), reduction=reduction)
    assert_close(loss(tensor(x), tensor(t)), reduced((losses * w[0]).mean(1), reduction))
    signs = np.sign(rng.standard_normal((3, 4)))
    assert_close(
        nn.SoftMarginLoss(reduction=reduction)(tensor(x), tensor(signs)),
        reduced(np.logaddexp(0, -signs * x), reduction),
    )


@REDUCTIONS
def test_distributions(rng, reduction):
    p, q = special.softmax(rng.standard_normal((3, 5)), 1), special.softmax(rng.standard_normal((3, 5)), 1)
    q[0, 0] = 0
    losses = special.rel_entr(q, p) + 0  # q log(q / p)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_close(nn.KLDivLoss(reduction=reduction)(tensor(np.log(p)), tensor(q)), reduced(losses, reduction))
        q[0, 0] = 0.1
        both = F.kl_div(tensor(np.log(p)), tensor(np.log(q)), reduction=reduction, log_target=True)
    assert_close(both, reduced(special.rel_entr(q, p), reduction))
    assert_close(F.kl_div(tensor(np.log(p)), tensor(q), reduction="batchmean"), special.rel_entr(q, p).sum() / 3)
    with pytest.warns(UserWarning, match="'batchmean' divides only by the batch size"):
        F.kl_div(tensor(np.log(p)), tensor(q))

    x, counts, var = rng.standard_normal((3, 5)), np.floor(rng.random((3, 5)) * 6), rng.random((3, 5))
    assert_close(
        nn.PoissonNLLLoss(reduction=reduction)(tensor(x), tensor(counts)), reduced(np.exp(x) - counts * x, reduction)
    )
    rates = rng.random((3, 5)) + 0.5
    stirling = np.where(
        counts > 1, counts * np.log(np.maximum(counts, 1)) - counts + 0.5 * np.log(2 * np.pi * np.maximum(counts, 1)), 0
    )
    loss = nn.PoissonNLLLoss(log_input=False, full=True, eps=0.1, reduction=reduction)
    assert_close(
        loss(tensor(rates), tensor(counts)), reduced(rates - counts * np.log(rates + 0.1) + stirling, reduction)
    )
    y = rng.standard_normal((3, 5))
    loss = nn.GaussianNLLLoss(full=True, reduction=reduction)
    assert_close(loss(tensor(x), tensor(y), tensor(var)), reduced(-stats.norm.logpdf(y, x, np.sqrt(var)), reduction))
    wide = np.repeat(var[:, :1], 5, 1)
    for v in (var[:, 0], var[:, :1]):
        assert_close(loss(tensor(x), tensor(y), tensor(v)), reduced(-stats.norm.logpdf(y, x, np.sqrt(wide)), reduction))
    assert_close(loss(tensor(x), tensor(y), 2.0), reduced(-stats.norm.logpdf(y, x, np.sqrt(2)), reduction))


@REDUCTIONS
def test_margins(rng, reduction):
    x, signs = rng.standard_normal((3, 4)), np.sign(rng.standard_normal((3, 4)))
    hinge = np.where(signs == 1, x, np.maximum(0, 0.8 - x))
    assert_close(nn.HingeEmbeddingLoss(0.8, reduction=reduction)(tensor(x), tensor(signs)), reduced(hinge, reduction))
    y = rng.standard_normal((3, 4))
    ranking = np.maximum(0, -signs * (x - y) + 0.1)
    assert_close(
        nn.MarginRankingLoss(0.1, reduction=reduction)(tensor(x), tensor(y), tensor(signs)), reduced(ranking, reduction)
    )
    cosine = (x * y).sum(1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)
    target = np.array([1, -1, 1])
    losses = np.where(target == 1, 1 - cosine, np.maximum(0, cosine - 0.1))
    loss = nn.CosineEmbeddingLoss(0.1, reduction=reduction)
    assert_close(loss(tensor(x), tensor(y), tensor(target)), reduced(losses, reduction), atol=1e-9)
    z = rng.standard_normal((3, 4))
    for p, swap in ((2.0, False), (1.0, True)):
        near, far, other = (np.linalg.norm(u - v + 1e-6, p, 1) for u, v in ((x, y), (x, z), (y, z)))
        far = np.minimum(far, other) if swap else far
        loss = nn.TripletMarginLoss(3.0, p=p, swap=swap, reduction=reduction)
        assert_close(loss(tensor(x), tensor(y), tensor(z)), reduced(np.maximum(0, 3 + near - far), reduction))
    loss = nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).abs().sum(1), reduction=reduction)
    expected = np.maximum(0, 1 + np.abs(x - y).sum(1) - np.abs(x - z).sum(1))
    assert_close(loss(tensor(x), tensor(y), tensor(z)), reduced(expected, reduction))
    classes, w = np.array([0, 3, 1]), rng.random(4)
    for p in (1, 2):
        margins = np.maximum(0, 0.5 - x[range(3), classes][:, None] + x) ** p * w[classes][:, None]
        margins[range(3), classes] = 0
        loss = nn.MultiMarginLoss(p, 0.5, tensor(w), reduction=reduction)
        assert_close(loss(tensor(x), tensor(classes)), reduced(margins.sum(1) / 4, reduction))
    assert F.multi_margin_loss(tensor(x[0]), tensor(0)).shape == ()


def test_older_arguments():
    x, y = tensor([1.0, 2.0]), tensor([0.0, 0.0])
    with pytest.warns(UserWarning, match="please use reduction='sum' instead"):
        assert F.mse_loss(x, y, size_average=False).item() == 5
    with pytest.warns(UserWarning, match="reduction='none'"):
        assert nn.L1Loss(reduce=False)(x, y).shape == (2,)


@pytest.mark.parametrize("function", [F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss])
def test_sizes_warn(function):
    with pytest.warns(UserWarning, match=r"Using a target size .* that is different to the input size"):
        function(candelabra.ones(2, 3), candelabra.ones(3))


ones = candelabra.ones


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda: F.mse_loss(ones(2), ones(2), reduction="x"), ValueError, "x is not a valid value for reduction"),
        (
            lambda: F.nll_loss(ones(2, 3), tensor([0, 1]), reduction="x"),
            ValueError,
            "x is not a valid value for reduction",
        ),
        (
            lambda: F.mse_loss(ones(2), ones(2), weight=ones(3)),
            ValueError,
            "Weights and input must have the same size.",
        ),
        (
            lambda: F.cross_entropy(ones(2, 3), tensor([0, 1, 1])),
            ValueError,
            "Expected input batch_size (2) to match target batch_size (3).",
        ),
        (lambda: F.cross_entropy(ones(2, 3), tensor([0, 5])), IndexError, "Target 5 is out of bounds"),
        (
            lambda: F.cross_entropy(ones(2, 3, 4), tensor(np.ones((2, 3), int))),
            RuntimeError,
            "Expected target size [2, 4], got [2, 3]",
        ),
        (
            lambda: F.cross_entropy(ones(2, 3), tensor(np.ones((2, 3), int))),
            RuntimeError,
            "Expected floating point type for target",
        ),
        (
            lambda: F.cross_entropy(ones(2, 3), ones(2, 3), ignore_index=1),
            RuntimeError,
            "ignore_index is not supported for floating",
        ),
        (
            lambda: F.cross_entropy(ones(2, 3), tensor([0, 1]), label_smoothing=2.0),
            RuntimeError,
            "label_smoothing must be between 0.0 and 1.0",
        ),
        (
            lambda: F.cross_entropy(ones(2, 3), ones(2, 3), ones(2)),
            RuntimeError,
            "either for all 3 classes or no classes",
        ),
        (
            lambda: F.nll_loss(ones(2, 3), tensor([0, 1]), ones(4)),
            RuntimeError,
            "either for all 3 classes or no classes",
        ),
        (
            lambda: F.binary_cross_entropy(ones(2) * 2, ones(2)),
            RuntimeError,
            "all elements of input should be between 0 and 1",
        ),
        (lambda: F.binary_cross_entropy(ones(2), ones(3)), ValueError, "is different to the input size"),
        (lambda: F.binary_cross_entropy_with_logits(ones(2), ones(3)), ValueError, "must be the same as input size"),
        (lambda: F.gaussian_nll_loss(ones(2), ones(2), -ones(2)), ValueError, "var has negative entry/entries"),
        (lambda: F.gaussian_nll_loss(ones(2), ones(2), -1.0), ValueError, "var has negative entry/entries"),
        (lambda: F.gaussian_nll_loss(ones(2), ones(2), ones(3)), ValueError, "var is of incorrect size"),
        (
            lambda: F.huber_loss(ones(2), ones(2), delta=0.0),
            RuntimeError,
            "does not support non-positive values for delta",
        ),
        (
            lambda: F.smooth_l1_loss(ones(2), ones(2), beta=-1.0),
            RuntimeError,
            "does not support negative values for beta",
        ),
        (
            lambda: F.margin_ranking_loss(ones(2), ones(2, 1), ones(2)),
            RuntimeError,
            "All input tensors should have same dimension",
        ),
        (
            lambda: F.cosine_embedding_loss(ones(2, 3), ones(2, 3), ones(2, 3)),
            RuntimeError,
            "0D or 1D target tensor expected",
        ),
        (
            lambda: F.cosine_embedding_loss(ones(3), ones(2, 3), ones(2)),
            RuntimeError,
            "1D target tensor expects 2D input tensors",
        ),
        (
            lambda: F.triplet_margin_loss(ones(2, 3), ones(3), ones(2, 3)),
            RuntimeError,
            "expected to have the same number of dimensions",
        ),
        (
            lambda: F.triplet_margin_loss(ones(3), ones(3), ones(3), margin=0.0),
            ValueError,
            "margin must be greater than 0",
        ),
        (
            lambda: F.multi_margin_loss(ones(2, 3), tensor([1])),
            RuntimeError,
            "target tensor should be 1-D with size equal to the number of input samples",
        ),
    ],
)
def test_errors(act, error, text):
    with pytest.raises(error) as caught:
        act()
    assert text in str(caught.value)


def test_losses_keep_weights_as_buffers():
    loss = nn.CrossEntropyLoss(weight=ones(3)).double()
    assert loss.weight.dtype == candelabra.float64 and list(loss.state_dict()) == ["weight"]
    assert array(loss(ones(1, 3).double(), tensor([0]))).dtype == np.float64
