"""Implement regression, margin and distance losses."""

from __future__ import annotations

from collections.abc import Callable

import candelabra
from candelabra import _C, Tensor, ops
from candelabra.composite.nn.loss import reduction_number
from candelabra.dispatch_hooks import full_precision

from .distance import pairwise_distance
from .dtypes import floating_only
from .reduction import legacy, reduced

_log_sigmoid = ops.log_sigmoid


def _same_size(input: Tensor, target: Tensor) -> None:
    if target.shape != input.shape:
        _C.warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will likely lead to incorrect "
            "results due to broadcasting. Please ensure they have the same size.",
        )


def _weighted(losses: Tensor, weight: Tensor | None, input: Tensor, reduction: str) -> Tensor:
    """Weight the losses and reduce them; the mean is weighted."""
    if weight is None:
        return reduced(losses, reduction)
    if weight.shape != input.shape:
        raise ValueError("Weights and input must have the same size.")
    losses = losses * weight
    return losses.sum() / weight.sum() if reduction == "mean" else reduced(losses, reduction)


@full_precision
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Compute the squared error ``(input - target)^2``.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.mse_loss(candelabra.tensor([1.0, 2.0]), candelabra.tensor([1.0, 4.0]))
    tensor(2.)
    """
    if target.shape != input.shape:
        _same_size(input, target)
    if size_average is not None or reduce is not None:
        reduction = legacy(size_average, reduce)
    floating_only("mse_cpu", input, target)
    return _weighted(ops.squared_error(input, target), weight, input, reduction)


@full_precision
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Compute the absolute error ``|input - target|``.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.l1_loss(candelabra.tensor([1.0, 2.0]), candelabra.tensor([1.0, 4.0]), reduction="none")
    tensor([0., 2.])
    """
    if target.shape != input.shape:
        _same_size(input, target)
    if size_average is not None or reduce is not None:
        reduction = legacy(size_average, reduce)
    return _weighted((input - target).abs(), weight, input, reduction)


@full_precision
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Compute the smooth L1 loss of ``d = input - target``.

    The loss is ``0.5 * d^2 / beta`` where ``|d|`` is less than `beta`, else ``|d| - 0.5 * beta``.
    Source: Girshick, 2015.
    """
    if target.shape != input.shape:
        _same_size(input, target)
    if size_average is not None or reduce is not None:
        reduction = legacy(size_average, reduce)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    floating_only("smooth_l1_cpu", input, target)
    if beta == 0:
        return reduced((input - target).abs(), reduction)
    return reduced(ops.huber_error(input, target, beta, 1 / beta), reduction)


@full_precision
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Compute the Huber loss of ``d = input - target``.

    The loss is ``0.5 * d^2`` where ``|d|`` is at most `delta`, else ``delta * (|d| - 0.5 *
    delta)``. Source: Huber, 1964.
    """
    if not isinstance(delta, float | int):
        raise TypeError(f"delta must be a float or int, got: {type(delta)}")
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    if target.shape != input.shape:
        _same_size(input, target)
    floating_only("huber_cpu", input, target)
    losses = ops.huber_error(input, target, delta)
    if weight is not None:
        if weight.shape != input.shape:
            raise ValueError("Weights and input must have the same size.")
        losses = losses * weight  # as in PyTorch, this mean is not weighted, unlike in mse_loss and l1_loss
    return reduced(losses, reduction)


@full_precision
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return ``x`` where the target is 1, and ``max(0, margin - x)`` where it is -1."""
    if size_average is not None or reduce is not None:
        reduction = legacy(size_average, reduce)
    away = candelabra.where(target != 1, (margin - input).clamp(min=0), 0.0)
    near = candelabra.where(target != -1, input, 0.0)
    return reduced(away + near, reduction)


@full_precision
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return ``max(0, -target * (input1 - input2) + margin)``.

    Target 1 ranks the first input higher, target -1 the second.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy(size_average, reduce)
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    return reduced((-target * (input1 - input2) + float(margin)).clamp(min=0), reduction)


@full_precision
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the cosine embedding loss.

    The loss is ``1 - cos(input1, input2)`` where the target is 1, and ``max(0, cos - margin)``
    where it is -1. Shapes: (N, D) and (N), or (D) and ().
    """
    if size_average is not None or reduce is not None:
        reduction = legacy(size_average, reduce)
    if target.ndim not in (0, 1):
        raise RuntimeError(
            f"0D or 1D target tensor expected, multi-target not supported, but got a target of shape {list(target.shape)}"
        )
    if not input1.ndim == input2.ndim == target.ndim + 1:
        raise RuntimeError(
            f"{target.ndim}D target tensor expects {target.ndim + 1}D input tensors, but found inputs with sizes {list(input1.shape)} and "
            f"{list(input2.shape)}."
        )
    axis = target.ndim
    tiny = 1e-12  # as in PyTorch: keeps the square root away from 0
    product = (input1 * input2).sum(axis)
    cosine = product / (((input1 * input1).sum(axis) + tiny) * ((input2 * input2).sum(axis) + tiny)).sqrt()
    losses = candelabra.where(target == 1, 1 - cosine, 0.0) + candelabra.where(
        target == -1, (cosine - margin).clamp(min=0), 0.0
    )
    return reduced(losses, reduction)


@full_precision
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Return ``max(0, d(anchor, positive) - d(anchor, negative) + margin)`` for any distance d.

    See `triplet_margin_loss`.
    """
    reduction_number(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: anchor "
            f"{anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )
    distance = distance_function or pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = candelabra.minimum(far, distance(positive, negative))
    return reduced((margin + near - far).clamp(min=0), reduction)


@full_precision
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return ``max(0, |anchor - positive|_p - |anchor - negative|_p + margin)``.

    Shapes: (N, D) or (D).

    With `swap`, the smaller of the distances anchor-negative and positive-negative is used. Source:
    Balntas et al., 2016.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy(size_average, reduce)

    def distance(first: Tensor, second: Tensor) -> Tensor:
        return pairwise_distance(first, second, p, eps)

    return triplet_margin_with_distance_loss(
        anchor, positive, negative, distance_function=distance, margin=margin, swap=swap, reduction=reduction
    )  # fmt: skip


@full_precision
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return ``log(1 + exp(-target * input))``, computed without overflow. Targets are 1 and -1."""
    if size_average is not None or reduce is not None:
        reduction = legacy(size_average, reduce)
    return reduced(-_log_sigmoid(target * input), reduction)


@full_precision
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Average the binary cross entropy of logits over the classes (the last dimension).

    Targets are 0 and 1.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy(size_average, reduce)
    losses = -(target * _log_sigmoid(input) + (1 - target) * _log_sigmoid(-input))
    if weight is not None:
        losses = losses * weight
    return reduced(losses.sum(-1) / input.shape[-1], reduction)


@full_precision
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Average ``max(0, margin - x[target] + x[class])^p`` over the other classes.

    Shapes: (N, C) and (N), or (C) and ().
    """
    if size_average is not None or reduce is not None:
        reduction = legacy(size_average, reduce)
    reduction_number(reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    floating_only("multi_margin_loss_cpu_kernel", input)
    single = input.ndim <= 1
    rows = input.reshape(1, -1) if single else input
    if rows.ndim != 2 or target.ndim > 1 or target.numel() != rows.shape[0]:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). Expected target "
            f"size [{rows.shape[0]}], but got {list(target.shape)}. Input has shape {list(input.shape)}."
        )
    classes = target.reshape(-1, 1)
    losses = (margin - rows.gather(1, classes) + rows).clamp(min=0)
    if p == 2:
        losses = losses.square()
    if weight is not None:
        losses = losses * weight.index_select(0, target.reshape(-1)).reshape(-1, 1)
    losses = losses.scatter(1, classes, 0.0).sum(1) / rows.shape[1]
    return reduced(losses.reshape(target.shape) if single else losses, reduction)


__all__ = [
    "cosine_embedding_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "l1_loss",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_soft_margin_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]
