"""Test the negative log-likelihood against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from values import FLOATS, LAYOUTS, assert_values, random_tensor, tensor, wide

import candelabra
from candelabra import ops

NONE, MEAN, SUM = range(3)
SHAPES = [(4,), (5, 4), (1, 1), (300, 10), (3, 4, 7), (2, 5, 3, 6), (40_000, 3)]


def reference(array: np.ndarray, target: np.ndarray, weight: np.ndarray, ignored: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the loss of each position and its weight."""
    batched, targets = (array[None], target.reshape(1)) if array.ndim == 1 else (array, target)
    known = targets != ignored
    safe = np.where(known, targets, 0)
    picked = np.take_along_axis(batched, safe[:, None], 1)[:, 0]
    weights = np.where(known, weight[safe], 0.0)
    return (-weights * picked).reshape(target.shape), weights.reshape(target.shape)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("reduction", [NONE, MEAN, SUM])
@pytest.mark.parametrize("weighted", [False, True])
def test_nll_loss(dtype: str, reduction: int, weighted: bool) -> None:
    for seed, shape in enumerate(SHAPES):
        for layout in LAYOUTS:
            x = random_tensor(shape, dtype, layout, seed)
            classes = shape[0] if len(shape) == 1 else shape[1]
            generator = np.random.default_rng(seed)
            target = generator.integers(0, classes, () if len(shape) == 1 else (shape[0], *shape[2:]))
            target = np.where(generator.random(target.shape) < 0.2, -100, target)
            weight: Any = random_tensor((classes,), dtype, seed=3) if weighted else None
            if weighted:
                weight = weight * weight
            each, weights = reference(wide(x), target, wide(weight) if weighted else np.ones(classes), -100)
            with np.errstate(invalid="ignore"):
                expected = (
                    each if reduction == NONE else each.sum() / weights.sum() if reduction == MEAN else each.sum()
                )
                scale = (
                    np.abs(each)
                    if reduction == NONE
                    else np.abs(each).sum() / (weights.sum() if reduction == MEAN else 1)
                )
            output, total = ops.nll_loss_forward(x, tensor(target), weight, reduction, -100)
            assert_values(output, expected, scale=np.nan_to_num(scale))
            if reduction != NONE:
                assert_values(total, weights.sum())
            share = -weights / (weights.sum() if reduction == MEAN and weights.sum() else 1)
            grad = (
                random_tensor(target.shape, dtype, "transposed") if reduction == NONE else tensor(np.array(2.5), dtype)
            )
            gradient = np.zeros((1, classes) if len(shape) == 1 else shape)
            batched = target.reshape(1) if len(shape) == 1 else target
            values = np.where(batched == -100, 0.0, (share * wide(grad)).reshape(batched.shape))
            np.put_along_axis(gradient, np.where(batched == -100, 0, batched)[:, None], 0.0, 1)
            at = np.where(batched == -100, 0, batched)[:, None]
            gradient_at = np.take_along_axis(gradient, at, 1) + values[:, None]
            np.put_along_axis(gradient, at, gradient_at, 1)
            result = ops.nll_loss_backward(grad, x, tensor(target), weight, reduction, -100, total)
            assert_values(result, gradient.reshape(shape))


def test_everything_ignored() -> None:
    x = candelabra.ones(2, 3)
    target = tensor(np.array([-100, -100]))
    assert np.isnan(float(ops.nll_loss_forward(x, target, None, MEAN, -100)[0]))
    assert float(ops.nll_loss_forward(x, target, None, SUM, -100)[0]) == 0
    assert (
        ops.nll_loss_backward(candelabra.ones(()), x, target, None, SUM, -100, candelabra.zeros(())).tolist()
        == [[0] * 3] * 2
    )


def test_no_rows() -> None:
    x = candelabra.ones(0, 3)
    target = candelabra.zeros(0, dtype=candelabra.int64)
    assert np.isnan(float(ops.nll_loss_forward(x, target, None, MEAN, -100)[0]))
    assert float(ops.nll_loss_forward(x, target, None, SUM, -100)[0]) == 0
    assert tuple(ops.nll_loss_forward(x, target, None, NONE, -100)[0].shape) == (0,)
    assert tuple(
        ops.nll_loss_backward(candelabra.ones(()), x, target, None, MEAN, -100, candelabra.zeros(())).shape
    ) == (0, 3)


@pytest.mark.parametrize("bad", [3, 10, -1])
@pytest.mark.parametrize("reduction", [NONE, MEAN, SUM])
def test_targets_are_checked(bad: int, reduction: int) -> None:
    x = candelabra.ones(2, 3)
    target = tensor(np.array([1, bad]))
    with pytest.raises(IndexError, match=f"Target {bad} is out of bounds"):
        ops.nll_loss_forward(x, target, None, reduction, -100)
    grad = candelabra.ones(2) if reduction == NONE else candelabra.ones(())
    with pytest.raises(IndexError, match=f"Target {bad} is out of bounds"):
        ops.nll_loss_backward(grad, x, target, None, reduction, -100, candelabra.ones(()))


def test_an_ignored_class_may_be_a_real_one() -> None:
    x = tensor(np.array([[0.1, 0.2], [0.3, 0.4]]))
    loss, total = ops.nll_loss_forward(x, tensor(np.array([0, 1])), None, MEAN, 1)
    assert float(loss) == pytest.approx(-0.1)
    assert float(total) == 1


@pytest.mark.parametrize("dtype", FLOATS)
def test_errors_of_pairs(dtype: str) -> None:
    for seed, shape in enumerate([(), (1,), (15,), (16,), (17,), (9, 33), (300, 7), (70, 1024)]):
        for layout in LAYOUTS if shape else LAYOUTS[:1]:
            x, target = random_tensor(shape, dtype, layout, seed), random_tensor(shape, dtype, "contiguous", seed + 50)
            difference = wide(x) - wide(target)
            assert_values(ops.squared_error(x, target), difference**2, scale=np.abs(wide(x)) ** 2 + wide(target) ** 2)
            for delta, scale in ((1.0, 1.0), (0.5, 2.0)):
                near = np.clip(difference, -delta, delta)
                expected = near * (difference - near / 2) * scale
                assert_values(
                    ops.huber_error(x, target, delta, scale),
                    expected,
                    scale=(np.abs(wide(x)) + np.abs(wide(target)) + 1) ** 2,
                )
    x = tensor(np.array([np.nan, np.inf, -np.inf, 1.0] * 9), dtype)
    zero = tensor(np.zeros(36), dtype)
    np.testing.assert_array_equal(wide(ops.squared_error(x, zero)), np.array([np.nan, np.inf, np.inf, 1.0] * 9))
    np.testing.assert_array_equal(wide(ops.huber_error(x, zero, 1.0, 1.0)), np.array([np.nan, np.inf, np.inf, 0.5] * 9))
