"""Criteria: values by hand or by nn, gradients by finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from legacy_checks import STEP, direction_of, inner, moved

import candelabra
from candelabra.legacy import nn
from candelabra.legacy.nn.tape import tensors_of
from candelabra.nn import functional
from candelabra.testing import assert_close


def randn(*shape: int) -> Any:
    return candelabra.randn(*shape, dtype=candelabra.float64)


def probabilities(*shape: int) -> Any:
    return candelabra.rand(*shape, dtype=candelabra.float64) * 0.8 + 0.1


def signs(*shape: int) -> Any:
    return candelabra.randn(*shape).sign()


def classes(*shape: int, below: int = 5) -> Any:
    return candelabra.randint(0, below, shape)


WEIGHTS = candelabra.tensor([0.5, 1.0, 2.0, 0.1, 3.0])

#: Name, constructor, input, target.
CRITERIA: list[tuple[str, Callable[[], Any], Callable[[], Any], Callable[[], Any]]] = [
    *[(name, getattr(nn, name), lambda: randn(3, 5), lambda: randn(3, 5)) for name in ("AbsCriterion", "MSECriterion", "SmoothL1Criterion")],
    ("MSECriterion", lambda: nn.MSECriterion(False), lambda: randn(3, 5), lambda: randn(3, 5)),
    ("SoftMarginCriterion", nn.SoftMarginCriterion, lambda: randn(3, 5), lambda: signs(3, 5)),
    ("MultiLabelMarginCriterion", nn.MultiLabelMarginCriterion, lambda: randn(2, 5), lambda: candelabra.tensor([[3, 0, -1, 1, 1], [2, -1, 0, 0, 0]])),
    ("DistKLDivCriterion", nn.DistKLDivCriterion, lambda: probabilities(3, 5).log(), lambda: probabilities(3, 5)),
    ("BCECriterion", nn.BCECriterion, lambda: probabilities(3, 5), lambda: classes(3, 5, below=2)),
    ("BCECriterion", lambda: nn.BCECriterion(WEIGHTS, False), lambda: probabilities(3, 5), lambda: probabilities(3, 5)),
    ("ClassNLLCriterion", nn.ClassNLLCriterion, lambda: randn(3, 5), lambda: classes(3)),
    ("ClassNLLCriterion", lambda: nn.ClassNLLCriterion(WEIGHTS), lambda: randn(3, 5), lambda: classes(3, 1)),
    ("ClassNLLCriterion", nn.ClassNLLCriterion, lambda: randn(5), lambda: 3),
    ("SpatialClassNLLCriterion", nn.SpatialClassNLLCriterion, lambda: randn(2, 5, 3, 3), lambda: classes(2, 3, 3)),
    ("CrossEntropyCriterion", nn.CrossEntropyCriterion, lambda: randn(3, 5), lambda: classes(3)),
    ("CrossEntropyCriterion", lambda: nn.CrossEntropyCriterion(WEIGHTS), lambda: randn(5), lambda: candelabra.tensor([2])),
    ("MarginCriterion", nn.MarginCriterion, lambda: randn(3, 5), lambda: signs(3, 5)),
    ("HingeEmbeddingCriterion", nn.HingeEmbeddingCriterion, lambda: probabilities(6), lambda: signs(6)),
    ("HingeEmbeddingCriterion", lambda: nn.HingeEmbeddingCriterion(2), lambda: probabilities(1), lambda: -1),
    ("L1HingeEmbeddingCriterion", nn.L1HingeEmbeddingCriterion, lambda: [randn(2, 3), randn(2, 3)], lambda: 1),
    ("L1HingeEmbeddingCriterion", lambda: nn.L1HingeEmbeddingCriterion(99), lambda: [randn(2, 3), randn(2, 3)], lambda: -1),
    ("CosineEmbeddingCriterion", nn.CosineEmbeddingCriterion, lambda: [randn(4, 3), randn(4, 3)], lambda: signs(4)),
    ("CosineEmbeddingCriterion", lambda: nn.CosineEmbeddingCriterion(-0.9), lambda: [randn(3), randn(3)], lambda: -1),
    ("MarginRankingCriterion", nn.MarginRankingCriterion, lambda: [randn(4), randn(4)], lambda: signs(4)),
    ("MarginRankingCriterion", lambda: nn.MarginRankingCriterion(9), lambda: [randn(1), randn(1)], lambda: -1),
    ("MultiMarginCriterion", nn.MultiMarginCriterion, lambda: randn(3, 5), lambda: classes(3)),
    ("MultiMarginCriterion", lambda: nn.MultiMarginCriterion(2, WEIGHTS, 0.5), lambda: randn(3, 5), lambda: classes(3)),
    ("MultiLabelSoftMarginCriterion", nn.MultiLabelSoftMarginCriterion, lambda: randn(3, 5), lambda: classes(3, 5, below=2)),
    ("WeightedMSECriterion", lambda: nn.WeightedMSECriterion(WEIGHTS), lambda: randn(3, 5), lambda: randn(3, 5)),
    ("L1Cost", nn.L1Cost, lambda: randn(3, 5), lambda: None),
    ("ClassSimplexCriterion", lambda: nn.ClassSimplexCriterion(5), lambda: randn(3, 5), lambda: classes(3)),
    ("MultiCriterion", lambda: nn.MultiCriterion().add(nn.MSECriterion(), 0.5).add(nn.AbsCriterion(), 2), lambda: randn(3, 5), lambda: randn(3, 5)),
    ("ParallelCriterion", lambda: nn.ParallelCriterion().add(nn.ClassNLLCriterion(), 0.5).add(nn.MSECriterion()), lambda: [randn(2, 5), randn(3)], lambda: [classes(2), randn(3)]),
    ("ParallelCriterion", lambda: nn.ParallelCriterion(True).add(nn.AbsCriterion()).add(nn.MSECriterion()), lambda: [randn(3), randn(3), randn(2)], lambda: randn(3)),
]  # fmt: skip


def test_every_criterion_is_here() -> None:
    names = {name for name in nn.__all__ if issubclass(getattr(nn, name), nn.Criterion)}
    assert {name for name, *_ in CRITERIA} == names - {"Criterion"}


@pytest.mark.parametrize("name, make, draw, aim", CRITERIA, ids=[f"{i}-{row[0]}" for i, row in enumerate(CRITERIA)])
def test_gradients(name: str, make: Any, draw: Any, aim: Any) -> None:
    criterion, value, target = make().double(), draw(), aim()
    loss = criterion.forward(value, target)
    assert type(loss) is float and loss == criterion.output and loss == criterion(value, target)
    gradient = criterion.backward(value, target)
    assert gradient is criterion.gradInput
    assert [t.shape for t in tensors_of(gradient)] == [t.shape for t in tensors_of(value)]
    direction = direction_of(value)
    losses = [criterion.forward(moved(value, direction, step), target) for step in (STEP, -STEP)]
    found = (losses[0] - losses[1]) / (2 * STEP)
    assert abs(found - inner(gradient, direction)) < 1e-5 * max(1, abs(found))
    assert criterion.clone().forward(value, target) == pytest.approx(loss)
    assert repr(criterion).startswith(f"nn.{name}")
    assert criterion.clearState() is criterion and criterion.gradInput.numel() == 0


def test_values() -> None:
    value, target = randn(4, 5), randn(4, 5)
    assert nn.MSECriterion().forward(value, target) == pytest.approx(float(((value - target) ** 2).mean()))
    assert nn.AbsCriterion(False).forward(value, target) == pytest.approx(float((value - target).abs().sum()))
    weight = candelabra.rand(5)
    weighted = float(((value - weight * target) ** 2).mean())
    assert nn.WeightedMSECriterion(weight).forward(value, target) == pytest.approx(weighted)
    labels = classes(4)
    expected = float(functional.cross_entropy(value, labels))
    assert nn.CrossEntropyCriterion().forward(value, labels) == pytest.approx(expected)
    assert nn.ClassNLLCriterion().forward(value.log_softmax(1), labels) == pytest.approx(expected)
    chances = value.sigmoid()
    goals = classes(4, 5, below=2).double()
    expected = float(functional.binary_cross_entropy(chances, goals))
    assert nn.BCECriterion().forward(chances, goals) == pytest.approx(expected)
    assert nn.MultiLabelSoftMarginCriterion().forward(value, goals) == pytest.approx(expected)
    assert nn.BCECriterion().forward(candelabra.tensor([1.0, 0.0]), candelabra.tensor([1.0, 0.0])) == pytest.approx(0)
    logs = value.log_softmax(1)
    expected = float(functional.kl_div(logs, chances, reduction="sum")) / 20
    assert nn.DistKLDivCriterion().forward(logs, chances) == pytest.approx(expected)
    assert nn.L1Cost().forward(value, None) == pytest.approx(float(value.abs().sum()))


def test_backward_follows_the_target() -> None:
    criterion, value = nn.MSECriterion(False), candelabra.zeros(2)
    target = candelabra.ones(2)
    criterion.forward(value, target)
    assert criterion.backward(value, target).tolist() == [-2.0, -2.0]
    target.fill_(3)
    assert criterion.backward(value, target).tolist() == [-6.0, -6.0]
    hinge = nn.L1HingeEmbeddingCriterion(9)
    pair = [candelabra.ones(1), candelabra.zeros(1)]
    hinge.forward(pair, 1)
    assert [g.tolist() for g in hinge.backward(pair, -1)] == [[-1.0], [1.0]]


def test_mixed_criteria_are_sums() -> None:
    value, target = randn(3), randn(3)
    mixed = nn.MultiCriterion().add(nn.MSECriterion(), 0.5).add(nn.AbsCriterion(), 2)
    parts = nn.MSECriterion().forward(value, target), nn.AbsCriterion().forward(value, target)
    assert mixed.forward(value, target) == pytest.approx(0.5 * parts[0] + 2 * parts[1])
    assert [criterion.output for criterion in mixed.criterions] == pytest.approx(parts)


def test_criterion_table() -> None:
    module = nn.CriterionTable(nn.MSECriterion())
    pair = [candelabra.ones(2), candelabra.zeros(2)]
    assert module.forward(pair) == 1.0 and module.parameters() is None
    assert module.backward(pair)[0].tolist() == [1.0, 1.0]
    module.accGradParameters(pair)
    assert module.gradInput[0].tolist() == [1.0, 1.0]


def test_simplex() -> None:
    criterion = nn.ClassSimplexCriterion(6)
    products = (criterion.simplex @ criterion.simplex.t()).numpy()
    np.testing.assert_allclose(products, np.eye(6) * 1.2 - 0.2, atol=1e-6)
    assert criterion.getTopPrediction(criterion.simplex).tolist() == list(range(6))
    assert criterion.forward(criterion.simplex, candelabra.arange(6)) == pytest.approx(0, abs=1e-12)


def test_single_precision_takes_double_targets() -> None:
    value = candelabra.randn(3)
    criterion = nn.MSECriterion()
    criterion.forward(value, randn(3))
    assert criterion.backward(value, randn(3)).dtype == candelabra.float32
    with pytest.raises(RuntimeError, match="size mismatch"):
        nn.BCECriterion().forward(candelabra.rand(3), candelabra.rand(4))
    with pytest.raises(NotImplementedError, match="Criterion does not define its function"):
        nn.Criterion().forward(value, value)
    assert_close(
        nn.ClassNLLCriterion(candelabra.ones(3)).double().weights, candelabra.ones(3, dtype=candelabra.float64)
    )
