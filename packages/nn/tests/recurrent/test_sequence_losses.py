"""Test the CTC loss, multi-label losses, and losses with large intermediates, by definition."""

import itertools

import numpy as np
import pytest
from nn_numerics import assert_close, tensor
from scipy.special import log_softmax

import candelabra
from candelabra import nn
from candelabra.nn import functional as F


def ctc(scores, labels, blank=0):
    """Sum over all paths that give the labels after repeats and blanks are removed."""
    total = 0.0
    for path in itertools.product(range(scores.shape[1]), repeat=len(scores)):
        said = [s for s, group in itertools.groupby(path) if s != blank]
        if said == list(labels):
            total += np.exp(sum(scores[t, s] for t, s in enumerate(path)))
    with np.errstate(divide="ignore"):
        return -np.log(total)


@pytest.fixture
def scores(rng):
    return log_softmax(rng.standard_normal((5, 3, 3)), -1)


TARGETS = [[1, 1, 2], [2, 0, 0], [1, 2, 0]]
LENGTHS = [3, 1, 2]


def test_ctc(scores):
    losses = np.array([ctc(scores[:, n], TARGETS[n][:length]) for n, length in enumerate(LENGTHS)])
    x, targets = tensor(scores), candelabra.tensor(TARGETS)
    lengths = candelabra.tensor(LENGTHS)
    every = candelabra.tensor([5, 5, 5])
    assert_close(F.ctc_loss(x, targets, every, lengths, reduction="none"), losses)
    assert_close(F.ctc_loss(x, targets, (5, 5, 5), LENGTHS, reduction="sum"), losses.sum())
    assert_close(F.ctc_loss(x, targets.int(), every, lengths), (losses / LENGTHS).mean())
    together = candelabra.tensor(
        [label for row, length in zip(TARGETS, LENGTHS, strict=True) for label in row[:length]]
    )
    assert_close(F.ctc_loss(x, together, every, lengths, reduction="none"), losses)
    assert_close(F.ctc_loss(x[:, 0], targets[0], every[0], lengths[0], reduction="none"), losses[0])
    shorter = [ctc(scores[:length, n], TARGETS[n][: LENGTHS[n]]) for n, length in enumerate((4, 2, 3))]
    assert_close(F.ctc_loss(x, targets, [4, 2, 3], LENGTHS, reduction="none"), shorter)
    other = [ctc(scores[:, n], [0, 1][: n + 1], blank=2) for n in range(2)]
    assert_close(
        F.ctc_loss(x[:, :2], candelabra.tensor([[0, 1], [0, 1]]), [5, 5], [1, 2], blank=2, reduction="none"), other
    )
    assert_close(candelabra.ctc_loss(x, targets, every, lengths, 0, 2), losses.sum())


def test_ctc_of_nothing(scores):
    x, targets = tensor(scores), candelabra.tensor(TARGETS)
    blanks = -scores[..., 0].sum(0)
    assert_close(F.ctc_loss(x, targets, [5, 5, 5], [0, 0, 0], reduction="none"), blanks)
    assert_close(F.ctc_loss(x, targets, [5, 5, 5], [0, 0, 0]), blanks.mean())
    # With no frames, an empty target has loss 0 and any label has infinite loss.
    assert F.ctc_loss(x, targets, [0, 0, 5], [0, 1, 2], reduction="none").tolist()[:2] == [0.0, np.inf]
    zeroed = F.ctc_loss(x, targets, [5, 1, 5], [3, 1, 2], reduction="none", zero_infinity=True)
    assert zeroed.isfinite().all()
    assert F.ctc_loss(x, targets, [2, 5, 5], LENGTHS, reduction="none", zero_infinity=True)[0].item() == 0


def test_ctc_errors(scores):
    x, targets = tensor(scores), candelabra.tensor(TARGETS)
    with pytest.raises(RuntimeError, match="blank must be in label range"):
        F.ctc_loss(x, targets, [5] * 3, LENGTHS, blank=3)
    with pytest.raises(RuntimeError, match="at most 5"):
        F.ctc_loss(x, targets, [6, 5, 5], LENGTHS)
    with pytest.raises(RuntimeError, match="must be integral"):
        F.ctc_loss(x, targets, candelabra.tensor([5.0, 5.0, 5.0]), LENGTHS)
    with pytest.raises(RuntimeError, match="batch_size"):
        F.ctc_loss(x, targets, [5] * 2, LENGTHS)
    with pytest.raises(IndexError, match="out of bounds"):
        F.ctc_loss(x, targets + 2, [5] * 3, LENGTHS)
    with pytest.raises(ValueError, match="not a valid value for reduction"):
        F.ctc_loss(x, targets, [5] * 3, LENGTHS, reduction="all")
    with pytest.raises(NotImplementedError, match="ctc_loss_cpu"):
        F.ctc_loss(x.half(), targets, [5] * 3, LENGTHS)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_multilabel_margin(rng, reduction):
    x = rng.standard_normal((4, 5))
    target = np.array([[3, 0, -1, 1, 2], [-1, 0, 1, 2, 3], [0, 1, 2, 3, 4], [2, 2, -1, 0, 0]])
    losses = []
    for row, labels in zip(x, target, strict=True):
        said = list(itertools.takewhile(lambda label: label >= 0, labels))
        others = [i for i in range(5) if i not in said]
        losses.append(sum(max(0, 1 - (row[y] - row[i])) for y in said for i in others) / 5)
    expected = {"none": np.array(losses), "mean": np.mean(losses), "sum": np.sum(losses)}[reduction]
    assert_close(F.multilabel_margin_loss(tensor(x), tensor(target), reduction=reduction), expected)
    single = F.multilabel_margin_loss(tensor(x[0]), tensor(target[0]), reduction=reduction)
    assert_close(single, losses[0])


def margins(x, target):
    losses = []
    for row, labels in zip(x, target, strict=True):
        said = list(itertools.takewhile(lambda label: label >= 0, labels))
        others = [i for i in range(len(row)) if i not in said]
        pairs = (1 - (row[y] - row[i]) for y in said for i in others)
        losses.append(sum((pair if np.isnan(pair) else max(0, pair) for pair in pairs), 0.0) / len(row))
    return np.array(losses)


def test_multilabel_margin_of_many_rows(rng):
    """There are more pairs than one block holds."""
    x = rng.standard_normal((30, 90))
    target = np.stack([rng.permutation(90) for _ in range(30)])
    for row, count in enumerate(rng.integers(0, 60, 30)):
        target[row, count] = -1
    expected = margins(x, target)
    assert_close(F.multilabel_margin_loss(tensor(x), tensor(target), reduction="none"), expected)


def test_multilabel_margin_of_what_is_not_finite():
    """Elements outside all pairs are ignored, even if they are infinite."""
    x = np.array([[np.inf, 1.0, 2.0], [np.nan, 1.0, 2.0], [0.0, -np.inf, 1.0], [1.0, np.nan, 0.5]])
    target = np.array([[0, -1, 0], [-1, 0, 0], [1, -1, 0], [0, 1, 2]])
    with np.errstate(invalid="ignore"):
        expected = margins(x, target)
    np.testing.assert_array_equal(
        F.multilabel_margin_loss(tensor(x), tensor(target), reduction="none").numpy(), expected
    )


def test_multilabel_margin_errors(rng):
    x, target = tensor(rng.standard_normal((2, 4))), candelabra.tensor([[1, -1, 0, 0], [3, 2, -1, 0]])
    with pytest.raises(RuntimeError, match="inconsistent target size"):
        F.multilabel_margin_loss(x, target[:, :2])
    with pytest.raises(RuntimeError, match="out of range"):
        F.multilabel_margin_loss(x, target + 3)
    with pytest.raises(RuntimeError, match="Long"):
        F.multilabel_margin_loss(x, target.double())


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_linear_cross_entropy(rng, reduction):
    x, w, b = rng.standard_normal((7, 3)), rng.standard_normal((5, 3)), rng.standard_normal(5)
    target, classes = rng.integers(0, 5, 7), rng.random(5)
    target[2] = 1
    options = {"linear_bias": tensor(b), "weight": tensor(classes), "reduction": reduction, "ignore_index": 1}
    counted = np.where(target == 1, 0, classes[target])
    losses = -log_softmax(x @ w.T + b, -1)[np.arange(7), target] * counted
    expected = {"none": losses, "mean": losses.sum() / counted.sum(), "sum": losses.sum()}[reduction]
    assert_close(F.linear_cross_entropy(tensor(x), tensor(w), tensor(target), **options), expected)
    for chosen in (
        nn.LinearCrossEntropyOptions(batch_chunk_size=2, chunking_method=None),
        nn.LinearCrossEntropyOptions(),
    ):
        assert_close(F.linear_cross_entropy(tensor(x), tensor(w), tensor(target), options=chosen, **options), expected)
    single = F.linear_cross_entropy(tensor(x[0]), tensor(w), tensor(target[0]), options=chosen)
    assert_close(single, -log_softmax(x[0] @ w.T)[target[0]])


def test_linear_cross_entropy_of_positions(rng):
    x, w = rng.standard_normal((2, 3)), rng.standard_normal((5, 4, 3))
    target = rng.integers(0, 5, (2, 4))
    scores = log_softmax(np.einsum("ni,cdi->ncd", x, w), 1)
    expected = -np.take_along_axis(scores, target[:, None], 1).mean()
    assert_close(F.linear_cross_entropy(tensor(x), tensor(w), tensor(target)), expected)
    with pytest.warns(UserWarning, match="options are ignored"):
        F.linear_cross_entropy(tensor(x), tensor(w), tensor(target), options=nn.LinearCrossEntropyOptions())
    with pytest.raises(RuntimeError, match="requires batched input"):
        F.linear_cross_entropy(tensor(x[0]), tensor(w), tensor(target[0]))
    with pytest.raises(RuntimeError, match="last dimensions"):
        F.linear_cross_entropy(tensor(x[:, :2]), tensor(w), tensor(target))
    with pytest.raises(RuntimeError, match="probabilities"):
        F.linear_cross_entropy(tensor(x), tensor(w), candelabra.ones(2, 5, 4), ignore_index=1)
    with pytest.raises(ValueError, match="chunking_method"):
        nn.LinearCrossEntropyOptions(chunking_method="none")
