"""Test the cross-entropy of logits and classes, and its gradient, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from values import FLOATS, LAYOUTS, assert_values, random_tensor, tensor, wide

import candelabra
from candelabra import ops

# Rows that fit one register, rows that do not, and enough rows for several threads.
SHAPES = [(5, 4), (1, 1), (300, 10), (7, 16), (6, 17), (3, 5000)]


def expected(
    x: np.ndarray, target: np.ndarray, weight: np.ndarray, reduction: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return losses after `reduction`, their weights, and the logits' gradient for an output
    gradient of 1.
    """
    known = target != -100
    safe = np.where(known, target, 0)
    shifted = x - x.max(1, keepdims=True)
    logarithms = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    weights = np.where(known, weight[safe], 0.0)
    each = -weights * np.take_along_axis(logarithms, safe[:, None], 1)[:, 0]
    gradient = weights[:, None] * (np.exp(logarithms) - (np.arange(x.shape[1]) == safe[:, None]))
    if reduction == "none":
        return each, weights, gradient
    if reduction == "sum":
        return each.sum(), weights, gradient
    with np.errstate(invalid="ignore", divide="ignore"):
        return each.sum() / weights.sum(), weights, np.where(known[:, None], gradient / weights.sum(), 0)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy(dtype: str, reduction: str, weighted: bool) -> None:
    for seed, shape in enumerate(SHAPES):
        for layout in LAYOUTS:
            x = random_tensor(shape, dtype, layout, seed)
            generator = np.random.default_rng(seed)
            target = generator.integers(0, shape[1], shape[0])
            target[1:] = np.where(generator.random(shape[0] - 1) < 0.2, -100, target[1:])
            weight: Any = random_tensor((shape[1],), dtype, seed=3).abs() + 0.5 if weighted else None
            known = wide(weight) if weighted else np.ones(shape[1])
            loss, weights, gradient = expected(wide(x), target, known, reduction)
            results = ops.cross_entropy_forward(x, tensor(target), weight, reduction=reduction)
            assert_values(results[0], loss, scale=np.abs(loss) + 1)
            assert_values(results[1], weights.sum())
            top = wide(x).max(1)
            assert_values(
                results[2], np.stack((top, np.log(np.exp(wide(x) - top[:, None]).sum(1)))), scale=np.ones((2, shape[0]))
            )
            arrived = tensor(np.ones(shape[0] if reduction == "none" else ()), dtype)
            made = ops.cross_entropy_backward(arrived, x, tensor(target), weight, -100, reduction, *results[1:])
            assert_values(
                made, gradient, scale=np.abs(gradient) + weights.max() / (weights.sum() if reduction == "mean" else 1)
            )


def test_gradients_of_single_losses_of_any_strides() -> None:
    x, target = random_tensor((4, 3), "float64"), tensor(np.array([0, 2, 1, 1]))
    results = ops.cross_entropy_forward(x, target, reduction="none")
    grad = candelabra.arange(8, dtype=candelabra.float64)[::2]
    one = ops.cross_entropy_backward(grad, x, target, None, -100, "none", *results[1:])
    unit = ops.cross_entropy_backward(candelabra.ones_like(grad), x, target, None, -100, "none", *results[1:])
    np.testing.assert_allclose(one.numpy(), unit.numpy() * grad.numpy()[:, None], rtol=1e-14)
    nothing = ops.cross_entropy_backward(
        candelabra.zeros(1).double().expand(4), x, target, None, -100, "none", *results[1:]
    )
    assert not nothing.any()


def test_infinite_scores_and_nan() -> None:
    low = tensor(np.array([[0.0, -np.inf, 1.0]]))
    assert float(ops.cross_entropy_forward(low, tensor(np.array([1])))[0]) == np.inf
    assert np.isfinite(float(ops.cross_entropy_forward(low, tensor(np.array([2])))[0]))
    for bad in (np.nan, np.inf):
        assert np.isnan(float(ops.cross_entropy_forward(tensor(np.array([[0.0, bad]])), tensor(np.array([1])))[0]))


def test_large_scores_lose_nothing() -> None:
    x = tensor(np.array([[1e4, 1e4 - 1, 0.0]]), "float32")
    loss = ops.cross_entropy_forward(x, tensor(np.array([0])))
    assert float(loss[0]) == pytest.approx(np.log1p(np.exp(-1)), rel=1e-6)


def test_nothing_counts() -> None:
    x, none = candelabra.ones(2, 3), tensor(np.array([-100, -100]))
    assert np.isnan(float(ops.cross_entropy_forward(x, none)[0]))
    results = ops.cross_entropy_forward(x, none, reduction="sum")
    assert float(results[0]) == 0
    assert not ops.cross_entropy_backward(candelabra.ones(()), x, none, None, -100, "sum", *results[1:]).any()
    for shape in ((0, 3), (0, 0)):
        results = ops.cross_entropy_forward(candelabra.ones(shape), candelabra.zeros(0, dtype=candelabra.int64))
        assert np.isnan(float(results[0]))
        assert tuple(results[2].shape) == (2, 0)


@pytest.mark.parametrize("bad", [3, -1])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_classes_are_checked(bad: int, reduction: str) -> None:
    x, target = candelabra.ones(2, 3), tensor(np.array([1, bad]))
    with pytest.raises(IndexError, match=f"Target {bad} is out of bounds"):
        ops.cross_entropy_forward(x, target, reduction=reduction)
    grad, kept = candelabra.ones(2) if reduction == "none" else candelabra.ones(()), candelabra.ones(2, 2)
    with pytest.raises(IndexError, match=f"Target {bad} is out of bounds"):
        ops.cross_entropy_backward(grad, x, target, None, -100, reduction, candelabra.ones(()), kept)
    with pytest.raises(IndexError, match="Target 0 is out of bounds"):
        ops.cross_entropy_forward(candelabra.ones(1, 0), tensor(np.array([0])))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            (candelabra.ones(2, 3), candelabra.zeros(3, dtype=candelabra.int64)),
            ValueError,
            r"batch_size \(2\) to match target",
        ),
        ((candelabra.ones(2, 3), candelabra.zeros(2)), RuntimeError, "expected target dtype to be Long"),
        (
            (candelabra.ones(2, 3), candelabra.zeros(2, 1, dtype=candelabra.int64)),
            RuntimeError,
            r"classes of shape \(N\)",
        ),
        (
            (candelabra.ones(2, 3), candelabra.zeros(2, dtype=candelabra.int64), candelabra.ones(2)),
            RuntimeError,
            "all 3 classes",
        ),
        (
            (candelabra.ones(2, 3).int(), candelabra.zeros(2, dtype=candelabra.int64)),
            NotImplementedError,
            "not implemented for 'Int'",
        ),
    ],
)
def test_refusals(arguments: tuple[Any, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ops.cross_entropy_forward(*arguments)
