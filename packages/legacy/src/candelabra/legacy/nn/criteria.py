"""Criteria that are a function of input and target: one row of a table each."""

from __future__ import annotations

import math
from typing import Any

import candelabra
from candelabra import Tensor
from candelabra.nn import functional

from .criterion import Criterion
from .function import criterion


def _reduction(sizeAverage: bool) -> str:
    return "mean" if sizeAverage else "sum"


def _reduce(losses: Tensor, sizeAverage: bool) -> Tensor:
    return losses.mean() if sizeAverage else losses.sum()


def _like(value: Any, other: Tensor) -> Tensor:
    """Return a number or a tensor as a tensor of the type of another."""
    tensor = value if isinstance(value, Tensor) else candelabra.tensor(value)
    return tensor.to(device=other.device, dtype=other.dtype)


def _classes(target: Any, input: Tensor) -> Tensor:
    """Return the numbers of classes; for a single sample without a dimension."""
    tensor = target if isinstance(target, Tensor) else candelabra.tensor(target)
    classes = tensor.to(device=input.device).long()
    if input.dim() == 1:
        return classes.reshape(())
    return classes.reshape(-1) if input.dim() == 2 else classes


def _cast(weights: Tensor | None, input: Tensor) -> Tensor | None:
    return None if weights is None else _like(weights, input)


def _class_nll(input: Tensor, target: Any, weights: Tensor | None = None, sizeAverage: bool = True) -> Tensor:
    return functional.nll_loss(input, _classes(target, input), _cast(weights, input), reduction=_reduction(sizeAverage))


def _cross_entropy(input: Tensor, target: Any, weights: Tensor | None = None, sizeAverage: bool = True) -> Tensor:
    return functional.cross_entropy(
        input, _classes(target, input), _cast(weights, input), reduction=_reduction(sizeAverage)
    )


def _binary_cross_entropy(
    input: Tensor, target: Tensor, weights: Tensor | None = None, sizeAverage: bool = True
) -> Tensor:
    if input.numel() != target.numel():
        raise RuntimeError("input and target size mismatch")
    # Torch 7 keeps logarithms finite by a constant, where nn's loss clamps them.
    goal = _like(target, input).reshape(input.shape)
    losses = -(goal * (input + 1e-12).log() + (1 - goal) * (1 - input + 1e-12).log())
    return _reduce(losses if weights is None else losses * _cast(weights, input), sizeAverage)


def _kl_divergence(input: Tensor, target: Tensor, sizeAverage: bool = True) -> Tensor:
    goal = _like(target, input)
    positive = goal > 0
    losses = candelabra.where(positive, goal * (candelabra.where(positive, goal, 1).log() - input), 0)
    return _reduce(losses, sizeAverage)


def _margin(input: Tensor, target: Any, margin: float = 1, sizeAverage: bool = True) -> Tensor:
    return _reduce((margin - input * _like(target, input)).clamp(min=0), sizeAverage)


def _hinge_embedding(input: Tensor, target: Any, margin: float = 1, sizeAverage: bool = True) -> Tensor:
    return functional.hinge_embedding_loss(input, _like(target, input), margin, reduction=_reduction(sizeAverage))


def _l1_hinge_embedding(input: list[Tensor], target: Any, margin: float = 1) -> Tensor:
    distance = (input[0] - input[1]).abs().sum()
    # The target is a number, or a tensor with one element.
    return distance if float(target) != -1 else (margin - distance).clamp(min=0)


def _cosine_embedding(input: list[Tensor], target: Any, margin: float = 0, sizeAverage: bool = True) -> Tensor:
    first, second = (rows if rows.dim() == 2 else rows.unsqueeze(0) for rows in input)
    squares = ((first * first).sum(1) + 1e-12) * ((second * second).sum(1) + 1e-12)
    cosines = (first * second).sum(1) / squares.sqrt()
    goal = _like(target, cosines).reshape(-1)
    return _reduce(candelabra.where(goal > 0, 1 - cosines, (cosines - margin).clamp(min=0)), sizeAverage)


def _margin_ranking(input: list[Tensor], target: Any, margin: float = 1, sizeAverage: bool = True) -> Tensor:
    losses = (margin - _like(target, input[0]) * (input[0] - input[1])).clamp(min=0)
    return _reduce(losses, sizeAverage)


def _multi_margin(
    input: Tensor,
    target: Any,
    p: int = 1,
    weights: Tensor | None = None,
    margin: float = 1,
    sizeAverage: bool = True,
) -> Tensor:
    return functional.multi_margin_loss(
        input, _classes(target, input), p, margin, _cast(weights, input), reduction=_reduction(sizeAverage)
    )


def _multi_label_soft_margin(
    input: Tensor, target: Tensor, weights: Tensor | None = None, sizeAverage: bool = True
) -> Tensor:
    return functional.binary_cross_entropy_with_logits(
        input, _like(target, input), _cast(weights, input), reduction=_reduction(sizeAverage)
    )


def _weighted_mse(input: Tensor, target: Tensor, weight: Tensor, sizeAverage: bool = True) -> Tensor:
    # Only the target is weighted: Torch 7 compares the input with the weighted target.
    goal = _like(target, input) * _like(weight, input)
    return functional.mse_loss(input, goal, reduction=_reduction(sizeAverage))


AbsCriterion = criterion(
    "AbsCriterion",
    lambda input, target, sizeAverage=True: functional.l1_loss(
        input, _like(target, input), reduction=_reduction(sizeAverage)
    ),
    "Compute mean absolute differences.",
)
MSECriterion = criterion(
    "MSECriterion",
    lambda input, target, sizeAverage=True: functional.mse_loss(
        input, _like(target, input), reduction=_reduction(sizeAverage)
    ),
    "Compute mean squared differences.",
)
SmoothL1Criterion = criterion(
    "SmoothL1Criterion",
    lambda input, target, sizeAverage=True: functional.smooth_l1_loss(
        input, _like(target, input), reduction=_reduction(sizeAverage)
    ),
    "Compute squared differences where they are less than one, and absolute ones elsewhere.",
)
SoftMarginCriterion = criterion(
    "SoftMarginCriterion",
    lambda input, target, sizeAverage=True: functional.soft_margin_loss(
        input, _like(target, input), reduction=_reduction(sizeAverage)
    ),
    "Compute `log(1 + exp(-x * y))` for targets of 1 and -1.",
)
MultiLabelMarginCriterion = criterion(
    "MultiLabelMarginCriterion",
    lambda input, target, sizeAverage=True: functional.multilabel_margin_loss(
        input, target.long(), reduction=_reduction(sizeAverage)
    ),
    "Compute margins between classes that are targets and others. Rows of targets end with -1.",
)
DistKLDivCriterion = criterion(
    "DistKLDivCriterion", _kl_divergence, "Compute the divergence of a target from logarithms of probabilities."
)
BCECriterion = criterion("BCECriterion", _binary_cross_entropy, "Compute the cross entropy of probabilities.")
ClassNLLCriterion = criterion(
    "ClassNLLCriterion", _class_nll, "Compute the negative logarithms of the targets' probabilities, from logarithms."
)
SpatialClassNLLCriterion = criterion(
    "SpatialClassNLLCriterion", _class_nll, "As `ClassNLLCriterion`, for each pixel of a batch of images."
)
CrossEntropyCriterion = criterion(
    "CrossEntropyCriterion", _cross_entropy, "Compute `LogSoftMax` and `ClassNLLCriterion` in one."
)
MarginCriterion = criterion("MarginCriterion", _margin, "Compute `max(0, margin - x * y)` for targets of 1 and -1.")
HingeEmbeddingCriterion = criterion(
    "HingeEmbeddingCriterion",
    _hinge_embedding,
    "Compute distances where the target is 1, and what they lack to a margin where it is -1.",
)
L1HingeEmbeddingCriterion = criterion(
    "L1HingeEmbeddingCriterion",
    _l1_hinge_embedding,
    "Compute the L1 distance of two tensors for the target 1, and what it lacks to a margin for -1.",
)
CosineEmbeddingCriterion = criterion(
    "CosineEmbeddingCriterion",
    _cosine_embedding,
    "Compute `1 - cos` of two inputs for the target 1, and `max(0, cos - margin)` for -1.",
)
MarginRankingCriterion = criterion(
    "MarginRankingCriterion",
    _margin_ranking,
    "Compute `max(0, margin - y * (x1 - x2))`: the first input ranks higher for the target 1.",
)
MultiMarginCriterion = criterion(
    "MultiMarginCriterion", _multi_margin, "Compute the margin between the target's class and all others."
)
MultiLabelSoftMarginCriterion = criterion(
    "MultiLabelSoftMarginCriterion", _multi_label_soft_margin, "Compute the cross entropy of each class's logit."
)
WeightedMSECriterion = criterion(
    "WeightedMSECriterion", _weighted_mse, "Compute mean squared differences from the target times a weight."
)
L1Cost = criterion("L1Cost", lambda input, target=None: input.abs().sum(), "Compute the sum of absolute values.")


def regular_simplex(n: int) -> Tensor:
    """Return the corners of a regular simplex: `n + 1` rows of `n` coordinates, of norm one."""
    corners = candelabra.zeros(n + 1, n, dtype=candelabra.float64)
    for k in range(n):
        own = math.sqrt(1 - float((corners[k, :k] ** 2).sum()))
        corners[k, k] = own
        # The products of different corners are -1 / n.
        corners[k + 1 :, k] = (own**2 - 1 - 1 / n) / own
    return corners.to(candelabra.get_default_dtype())


class ClassSimplexCriterion(Criterion):
    """Compute mean squared differences from a corner of a simplex for each class.

    Parameters
    ----------
    nClasses
        The number of classes, and of the input's columns.
    """

    sizeAverage = True

    def __init__(self, nClasses: int) -> None:
        super().__init__()
        if nClasses < 2:
            raise ValueError(f"there are at least two classes, got {nClasses}")
        self.nClasses = nClasses
        # One dimension more than the simplex needs makes training easier.
        self.simplex = functional.pad(regular_simplex(nClasses - 1), (0, 1))

    def _compute(self, input: Tensor, target: Tensor) -> Tensor:
        goal = _like(self.simplex, input).index_select(0, target.reshape(-1).long())
        return functional.mse_loss(input, goal, reduction=_reduction(self.sizeAverage))

    def getPredictions(self, input: Tensor) -> Tensor:
        """Return the products of the input with the corners."""
        return input @ _like(self.simplex, input).t()

    def getTopPrediction(self, input: Tensor) -> Tensor:
        """Return the class of each row."""
        return self.getPredictions(input).argmax(-1)
