"""Implement classification and likelihood losses."""

from __future__ import annotations

import math

import candelabra
from candelabra import _C, Tensor, no_grad, ops
from candelabra.amp import is_autocast_enabled
from candelabra.composite.nn.loss import reduction_number
from candelabra.composite.registration import fast_path
from candelabra.composite.transformed import all_values
from candelabra.dispatch_hooks import full_precision

from .reduction import legacy, reduced

_log_softmax = ops.log_softmax
_nll_loss = ops.nll_loss_forward
_log_sigmoid = ops.log_sigmoid


def _check_classes(name: str, input: Tensor, target: Tensor) -> None:
    if input.ndim == 2 and target.ndim == 1 and len(input) == len(target):
        return
    if input.ndim < 1:
        raise ValueError(f"{name}: Expected 1 or more dimensions (got {input.ndim})")
    if input.ndim == 1:
        if target.ndim > 1 or (target.ndim == 1 and target.shape[0] != 1):
            raise RuntimeError(
                f"{name}: Expected a target of one class for an input of shape {input.shape}, but got {target.shape}"
            )
        return
    if target.ndim == 0 or input.shape[0] != target.shape[0]:
        found = target.shape[0] if target.ndim else "none"
        raise ValueError(f"Expected input batch_size ({input.shape[0]}) to match target batch_size ({found}).")
    if tuple(target.shape[1:]) != tuple(input.shape[2:]):
        wanted = [input.shape[0], *input.shape[2:]]
        raise RuntimeError(f"Expected target size {wanted}, got {list(target.shape)}")


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the negative log-likelihood: minus the entry of `input` at the class `target`.

    Parameters
    ----------
    input
        Log-probabilities, (N, C), (N, C, ...) or (C).
    target
        Class indices, (N), (N, ...) or ().
    weight
        Weight of each class, (C); the mean is weighted.
    ignore_index
        Target value that is ignored.
    reduction
        ``"mean"``, ``"sum"`` or ``"none"``.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.nll_loss(candelabra.tensor([[-0.5, -1.0], [-2.0, -0.25]]), candelabra.tensor([0, 1]))
    tensor(0.3750)
    """
    if size_average is not None or reduce is not None:
        reduction = legacy(size_average, reduce)
    mode = reduction_number(reduction)
    _check_classes("nll_loss", input, target)
    return _nll_loss(input, target, weight, mode, ignore_index)[0]


@fast_path(ops.cross_entropy_forward, dimensions=(2, 1))
@full_precision
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Compute the cross entropy between logits and class indices or class probabilities.

    Parameters
    ----------
    input
        Logits, (N, C), (N, C, ...) or (C).
    target
        Class indices, (N), (N, ...) or (); or probabilities of a floating dtype and the shape of
        `input`.
    weight
        Weight of each class, (C).
    ignore_index
        Target value that is ignored; for class indices only.
    reduction
        ``"mean"`` (weighted, over the targets that are not ignored), ``"sum"`` or ``"none"``.
    label_smoothing
        Fraction of the target that is spread evenly over all classes, from 0 to 1.

    Raises
    ------
    RuntimeError, ValueError
        If the shapes are incompatible or an option is out of range.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.cross_entropy(candelabra.tensor([[0.0, 0.0]]), candelabra.tensor([1]))
    tensor(0.6931)
    """
    if size_average is not None or reduce is not None:
        reduction = legacy(size_average, reduce)
    mode = reduction_number(reduction)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    dims = input.ndim
    axis = 0 if dims == 1 else 1
    if dims != 2 or target.ndim != 1 or len(input) != len(target):
        if dims < 1:
            raise ValueError(f"cross_entropy: Expected 1 or more dimensions (got {dims})")
        if target.ndim == dims and target.shape == input.shape:
            return _soft_cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing, axis)
        _check_classes("cross_entropy", input, target)
    log_p = _log_softmax(input, axis)
    loss = _nll_loss(log_p, target, weight, mode, ignore_index)[0]
    if label_smoothing == 0.0:
        return loss

    classes = input.shape[axis]
    spread = -(log_p if weight is None else log_p * _along_classes(weight, input.ndim, axis)).sum(axis)
    ignored = (target == ignore_index).reshape(spread.shape)
    spread = spread.masked_fill(ignored, 0.0)
    if reduction == "sum":
        spread = spread.sum()
    elif reduction == "mean":
        if weight is None:
            spread = spread.sum() / (~ignored).sum()
        else:
            weights = weight.index_select(0, target.reshape(-1).masked_fill(ignored.reshape(-1), 0))
            spread = spread.sum() / weights.masked_fill(ignored.reshape(-1), 0.0).sum()
    return (1 - label_smoothing) * loss + (label_smoothing / max(classes, 1)) * spread


def _along_classes(weight: Tensor, ndim: int, axis: int) -> Tensor:
    return weight.reshape(*(-1 if i == axis else 1 for i in range(ndim)))


def _soft_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
    axis: int,
) -> Tensor:
    """Compute the cross entropy with class probabilities as the target."""
    if not target.is_floating_point():
        raise RuntimeError(f"Expected floating point type for target with class probabilities, got {target.dtype}")
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    classes = input.shape[axis]
    if weight is not None and tuple(weight.shape) != (classes,):
        raise RuntimeError(f"cross_entropy: weight tensor should be defined either for all {classes} classes or no classes but got weight "
                           f"tensor of shape: {list(weight.shape)}")  # fmt: skip
    if label_smoothing > 0.0:
        target = target * (1 - label_smoothing) + label_smoothing / max(classes, 1)
    losses = _log_softmax(input, axis) * target
    if weight is not None:
        losses = losses * _along_classes(weight, input.ndim, axis)
    if reduction == "none":
        return -losses.sum(axis)
    total = -losses.sum()
    return total if reduction == "sum" else total / (input.numel() / classes if input.numel() else math.nan)


@full_precision
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the binary cross entropy of probabilities.

    The loss is ``-(target * log(input) + (1 - target) * log(1 - input))`` with the logarithms
    clamped to at least -100.

    Raises
    ------
    RuntimeError
        If `input` is not within [0, 1], or if autocast is active on its device and that device is
        not the CPU. Half-precision probabilities are too coarse.
    ValueError
        If the shapes differ.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.binary_cross_entropy(candelabra.tensor([0.5, 0.5]), candelabra.tensor([1.0, 0.0]))
    tensor(0.6931)
    """
    if input.device.type != "cpu" and is_autocast_enabled(input.device.type):
        raise RuntimeError(
            "candelabra.nn.functional.binary_cross_entropy and candelabra.nn.BCELoss are unsafe to autocast. Combine them with the "
            "sigmoid layer before them: candelabra.nn.functional.binary_cross_entropy_with_logits and candelabra.nn.BCEWithLogitsLoss "
            "are safe to autocast."
        )
    if size_average is not None or reduce is not None:
        reduction = legacy(size_average, reduce)
    reduction_number(reduction)
    if target.shape != input.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. Please ensure they "
            "have the same size."
        )
    if input.numel() and not input.is_meta:
        with no_grad():
            values = all_values(input)
            if bool(values.amin() < 0) or bool(values.amax() > 1):
                raise RuntimeError("all elements of input should be between 0 and 1")
    losses = ops.probability_cross_entropy(input, target)
    return reduced(losses if weight is None else losses * weight, reduction)


@full_precision
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Compute the binary cross entropy of ``sigmoid(input)`` without overflow.

    `pos_weight` weights the positive targets, per class.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.binary_cross_entropy_with_logits(candelabra.zeros(2), candelabra.tensor([1.0, 0.0]))
    tensor(0.6931)
    """
    if size_average is not None or reduce is not None:
        reduction = legacy(size_average, reduce)
    reduction_number(reduction)
    if target.shape != input.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    if pos_weight is not None:
        losses = (1 - target) * input - ((pos_weight - 1) * target + 1) * _log_sigmoid(input)
    else:
        losses = ops.logits_cross_entropy(input, target)
    return reduced(losses if weight is None else losses * weight, reduction)


@full_precision
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Compute the Kullback-Leibler divergence ``target * (log(target) - input)``.

    `input` holds log-probabilities.

    With `log_target`, `target` also holds log-probabilities. ``reduction="batchmean"`` is the sum
    divided by the size of dimension 0.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> p = candelabra.tensor([[0.25, 0.75]])
    >>> F.kl_div(p.log(), p, reduction="batchmean")
    tensor(0.)
    """
    if size_average is not None or reduce is not None:
        reduction = legacy(size_average, reduce)
    if reduction == "mean":
        _C.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size. 'batchmean' divides only by the batch "
            "size, and aligns with the KL div math definition. 'mean' will be changed to behave the same as 'batchmean' in the next major "
            "release.",
        )
    if reduction == "batchmean":
        total = divergence(input, target, "sum", log_target)
        return total / input.shape[0] if input.ndim else total
    return divergence(input, target, reduction, log_target)


def divergence(input: Tensor, target: Tensor, reduction: str, log_target: bool) -> Tensor:
    """Compute the Kullback-Leibler divergence without the warning about the mean."""
    for given in (input, target):
        if not (given.dtype.is_floating_point or given.dtype.is_complex):
            raise RuntimeError(
                f"kl_div: Integral inputs not supported, but got {given.dtype}; convert with .to(candelabra.float32)"
            )
    losses = target.exp() * (target - input) if log_target else target.xlogy(target) - target * input
    return reduced(losses, reduction)


@full_precision
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the negative log-likelihood of counts under Poisson distributions.

    The rates are ``exp(input)`` with `log_input`, else `input`.

    `full` adds Stirling's approximation of the term that depends on the target alone. By default
    this term is omitted.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy(size_average, reduce)
    losses = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        # This order of operations gives PyTorch's rounding in half precision, also for the
        # gradients.
        stirling = target.log() * target - target + (target * (2 * math.pi)).log() * 0.5
        losses = losses + stirling.masked_fill(target <= 1, 0.0)
    return reduced(losses, reduction)


@full_precision
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """Compute the negative log-likelihood of `target` under normal distributions.

    The means are `input` and the variances `var`.

    Shapes: `var` has the shape of `input`, or lacks its last dimension, or has size 1 in one
    dimension. Variances are clamped to at least `eps`.

    Raises
    ------
    ValueError
        If a variance is negative or the shapes are incompatible.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.gaussian_nll_loss(candelabra.zeros(2), candelabra.ones(2), candelabra.ones(2))
    tensor(0.5000)
    """
    if not isinstance(var, Tensor):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * candelabra.ones_like(input)
    elif not var.is_meta and bool((var < 0).any()):
        raise ValueError("var has negative entry/entries")
    if tuple(var.shape) != tuple(input.shape):
        if tuple(input.shape[:-1]) == tuple(var.shape):
            var = var.unsqueeze(-1)
        elif input.ndim != var.ndim or sum(y for x, y in zip(input.shape, var.shape, strict=True) if x != y) != 1:
            raise ValueError("var is of incorrect size")
    reduction_number(reduction)
    # The clamp changes the value only: the gradient passes through to variances below the bound.
    bounded = var.clone()
    with no_grad():
        bounded.clamp_(min=eps)
    losses = 0.5 * (bounded.log() + (input - target).square() / bounded)
    if full:
        losses = losses + 0.5 * math.log(2 * math.pi)
    return reduced(losses, reduction)


__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "gaussian_nll_loss",
    "kl_div",
    "nll_loss",
    "poisson_nll_loss",
]
