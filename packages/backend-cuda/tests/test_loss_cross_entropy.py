"""Test cross entropy on a device against its formula in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax

import candelabra

TOLERANCES = {"float32": 2e-6, "float64": 1e-13, "float16": 2e-3, "bfloat16": 2e-2}
IGNORED = 3


def assert_right(got, want, dtype):
    tolerance = TOLERANCES[dtype]
    np.testing.assert_allclose(got.cpu().to(candelabra.float64).numpy(), want, rtol=tolerance, atol=tolerance)


def case(shape, dtype, weighted):
    rng = np.random.default_rng(shape[1])
    as_dtype = getattr(candelabra, dtype)
    scores = candelabra.tensor(rng.normal(0, 3, shape)).to(as_dtype)
    weight = candelabra.tensor(rng.uniform(0.5, 2, shape[1])).to(as_dtype) if weighted else None
    return scores, rng.integers(0, shape[1], shape[0]), weight


# Rows computed by a warp and by a block, few and many, with odd numbers of classes.
@pytest.mark.parametrize("shape", [(5, 7), (1, 1), (70, 1024), (9, 1025), (3, 2900), (2500, 5), (0, 4)], ids=str)
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_loss_and_gradient(cuda, shape, dtype, weighted, reduction):
    scores, classes, weight = case(shape, dtype, weighted)
    factor = np.ones(shape[1]) if weight is None else weight.to(candelabra.float64).numpy()
    of_row = np.where(classes == IGNORED, 0, factor[classes])
    logarithms = log_softmax(scores.to(candelabra.float64).numpy(), 1)
    losses = -of_row * logarithms[np.arange(shape[0]), classes]
    total = of_row.sum()
    with np.errstate(invalid="ignore"):
        want = {"none": losses, "sum": losses.sum(), "mean": losses.sum() / total}[reduction]
    # A strided view, and one gradient for all rows.
    target = candelabra.tensor(np.stack([classes, classes], 1)).to(cuda)[:, 0]
    on_device = None if weight is None else weight.to(cuda)
    x = scores.to(cuda)
    loss, weights, kept = candelabra.ops.cross_entropy_forward(
        x, target, on_device, ignore_index=IGNORED, reduction=reduction
    )
    scale = 1 if reduction != "sum" else max(1.0, abs(float(want)))
    assert_right(loss.to(candelabra.float64) / scale, want / scale, dtype)
    if dtype != "float16" or total < 60000:
        assert_right(weights.to(candelabra.float64) / max(total, 1), total / max(total, 1), dtype)
    grad = candelabra.full((), 0.5, dtype=scores.dtype, device=cuda)
    if reduction == "none":
        grad = grad.expand(shape[0])
    # The kernel gets the sum after rounding.
    divisor = float(weights) if reduction == "mean" and shape[0] else 1.0
    back = candelabra.ops.cross_entropy_backward(grad, x, target, on_device, IGNORED, reduction, weights, kept)
    hot = np.arange(shape[1]) == classes[:, None]
    assert_right(back, 0.5 * of_row[:, None] / (divisor or 1.0) * (np.exp(logarithms) - hot), dtype)


def test_of_infinities_and_nan(cuda):
    inf, nan = np.inf, np.nan
    rows = np.array([[-inf, 0.0, 1.0], [-inf, -inf, -inf], [nan, 0.0, 1.0], [inf, 0.0, 1.0], [-inf, -inf, 2.0]])
    target = candelabra.tensor([1, 0, 1, 1, 2]).to(cuda)
    loss = candelabra.ops.cross_entropy_forward(candelabra.tensor(rows).to(cuda), target, reduction="none").output
    np.testing.assert_allclose(loss.cpu().numpy(), [np.log1p(np.e), nan, nan, nan, 0.0], rtol=1e-14)


def test_what_is_no_class_is_reported(cuda):
    scores = candelabra.zeros(2, 3, device=cuda)
    candelabra.ops.cross_entropy_forward(scores, candelabra.tensor([0, 3]).to(cuda))
    with pytest.raises(
        IndexError, match="cross_entropy_forward: Target 3 is out of bounds"
    ):  # when the device is waited for
        candelabra.cuda.synchronize()
