"""Implement losses of label sequences and label sets, and a chunked linear cross entropy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import candelabra
from candelabra import _C, Tensor, is_grad_enabled, ops
from candelabra.composite.nn.loss import reduction_number
from candelabra.dispatch_hooks import full_precision

from .dtypes import floating_only
from .loss import cross_entropy
from .reduction import legacy, reduced

_ctc = ops._ctc_loss
_linear = ops.linear


def _lengths(lengths: Any, name: str) -> list[int]:
    if not isinstance(lengths, Tensor):
        return [int(length) for length in lengths]
    if lengths.is_floating_point() or lengths.is_complex() or lengths.dtype == candelabra.bool:
        raise RuntimeError(f"{name} must be integral")
    return [int(length) for length in lengths.reshape(-1).tolist()]


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Compute the connectionist temporal classification (CTC) loss.

    The loss is minus the log of the probability of a label sequence. This probability is the sum
    over all alignments.

    Parameters
    ----------
    log_probs
        Log-probabilities, e.g. from `log_softmax`: (T, N, C), or (T, C) for one sample. float32 or
        float64.
    targets
        Labels without blanks: (N, S), or the concatenated labels of all samples.
    input_lengths, target_lengths
        Input length and number of labels of each sample: tensors or sequences of N integers.
    blank
        Index of the blank label.
    reduction
        ``"none"``, ``"sum"``, or ``"mean"`` of the losses divided by the target lengths.
    zero_infinity
        Whether to replace infinite losses and their gradients by zero. A loss is infinite if the
        target is too long for its input.

    Returns
    -------
    Tensor
        (N), or () if reduced or for one sample. Source: Graves et al., 2006.

    Raises
    ------
    RuntimeError
        If shapes, dtypes or lengths are incompatible.
    IndexError
        If a label is out of range.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> log_probs = F.log_softmax(candelabra.zeros(2, 1, 2), 2)
    >>> F.ctc_loss(log_probs, candelabra.tensor([[1]]), [2], [1])
    tensor(0.2877)
    """
    mode = reduction_number(reduction)
    single = log_probs.ndim == 2
    if single:
        log_probs = log_probs.unsqueeze(1)
        if targets.ndim == 1:
            targets = targets.unsqueeze(0)
    sizes = _lengths(target_lengths, "target_lengths")
    losses = _ctc(log_probs, targets, _lengths(input_lengths, "input_lengths"), sizes, blank, zero_infinity)[0]
    if zero_infinity:
        losses = candelabra.where(
            losses == math.inf, candelabra.zeros((), dtype=losses.dtype, device=losses.device), losses
        )
    if mode == 1:
        divisors = candelabra.tensor(sizes, dtype=losses.dtype, device=losses.device).clamp(min=1)
        return (losses / divisors).mean()
    if mode == 2:
        return losses.sum()
    return losses.squeeze(0) if single else losses


def _sums_of_pairs(a: Tensor, b: Tensor) -> Tensor:
    """Return the sum of max(0, a + b) over all pairs in each row."""
    if a.requires_grad or b.requires_grad or type(a) is not Tensor:
        return (a.unsqueeze(2) + b.unsqueeze(1)).clamp(min=0).sum((1, 2))
    # Process the rows in chunks whose pairs fit in the L2 cache.
    most = max(1, 65536 // (a.shape[1] * b.shape[1]))
    parts = [
        (a[i : i + most].unsqueeze(2) + b[i : i + most].unsqueeze(1)).clamp_(min=0).sum((1, 2))
        for i in range(0, a.shape[0], most)
    ]
    return candelabra.cat(parts)


@full_precision
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the multi-label hinge loss.

    Sum ``max(0, 1 - (x[y] - x[i]))`` over the labels y and the other classes i, and divide by the
    number of classes.

    Shapes: input and target (N, C) or (C). A target lists classes and ends at the first -1.

    Raises
    ------
    RuntimeError
        If the shapes are incompatible or a label is out of range.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.multilabel_margin_loss(candelabra.tensor([0.1, 0.2, 0.4, 0.8]), candelabra.tensor([3, 0, -1, 1]))
    tensor(0.8500)
    """
    if size_average is not None or reduce is not None:
        reduction = legacy(size_average, reduce)
    reduction_number(reduction)
    if input.ndim > 2 or (input.ndim > 0 and input.shape[-1] == 0):
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}"
        )
    if target.shape != input.shape and not (input.ndim <= 1 and target.ndim <= 1 and target.numel() == input.numel()):
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for an input of size {list(input.shape)}")
    if target.dtype != candelabra.int64:
        raise RuntimeError(f"expected scalar type Long but found {target.dtype} for the target")
    floating_only("multilabel_margin_loss_forward_out_frame", input)
    classes = input.shape[-1] if input.ndim else 1
    rows, labels = input.reshape(-1, classes), target.reshape(-1, classes)
    if target.numel() and not target.is_meta and (int(target.amin()) < -1 or int(target.amax()) >= classes):
        raise RuntimeError(f"target is out of range: labels must be from 0 to {classes - 1}, or -1 behind the last")
    listed = (labels >= 0).to(candelabra.int64).cumprod(1) == 1
    # Unused target entries are scattered to an additional column, which is then dropped.
    places = labels.masked_fill(~listed, classes)
    marks = candelabra.zeros((rows.shape[0], classes + 1), dtype=candelabra.bool, device=input.device)
    is_label = marks.scatter(1, places, True).narrow(1, 0, classes)
    if rows.numel() and not rows.is_meta and bool(candelabra.isfinite(rows).all()):
        # -inf removes a pair from the sum. It replaces unused target entries in `of_labels`, and
        # labels in the class scores.
        of_labels = (1 - rows.gather(1, labels.masked_fill(~listed, 0))).masked_fill(~listed, -math.inf)
        of_labels = of_labels.narrow(1, 0, max(1, int(listed.sum(1).amax())))
        losses = _sums_of_pairs(of_labels, rows.masked_fill(is_label, -math.inf)) / classes
    else:
        margins = (1 - rows.gather(1, labels.masked_fill(~listed, 0)).unsqueeze(2) + rows.unsqueeze(1)).clamp(min=0)
        counts = listed.unsqueeze(2) & ~is_label.unsqueeze(1)
        losses = margins.masked_fill(~counts, 0.0).sum((1, 2)) / classes
    return reduced(losses.reshape(input.shape[:-1]) if input.ndim <= 1 else losses, reduction)


@dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """Configure how `linear_cross_entropy` splits the batch into chunks.

    With chunks, the logits of all samples are never in memory at the same time.

    Parameters
    ----------
    allow_retain_graph
        Accepted for PyTorch compatibility. The backward pass recomputes the chunks, so it can
        always be repeated.
    batch_chunk_size
        Number of samples per chunk. Default: all.
    chunking_method
        How to choose the chunk size. ``"aspect_ratio"`` makes the logits of a chunk as large as the
        input, and ``"aspect_ratio:N"`` an N-th of that. ``"auto"`` is ``"aspect_ratio:2"``. None
        uses `batch_chunk_size`.
    acc_policy, acc_dtype
        Accepted for PyTorch compatibility. The operators choose how to accumulate.

    Examples
    --------
    >>> from candelabra import nn
    >>> nn.LinearCrossEntropyOptions(batch_chunk_size=8, chunking_method=None).batch_chunk_size
    8
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        if self.acc_policy not in ("auto", "accurate", "balanced", "compact"):
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        if self.chunking_method not in (None, "auto"):
            name, _, factor = self.chunking_method.partition(":")
            if name != "aspect_ratio" or not (factor or "1").isdigit() or int(factor or "1") < 1:
                raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        if self.batch_chunk_size is not None and self.batch_chunk_size < 1:
            raise ValueError(f"batch_chunk_size must be positive, got {self.batch_chunk_size}")


def _chunk_size(options: Any, samples: int, classes: int, features: int) -> int:
    method = options.chunking_method
    if options.batch_chunk_size is not None or method is None:
        return options.batch_chunk_size or max(samples, 1)
    factor = 2 if method == "auto" else int(method.partition(":")[2] or "1")
    pieces = max(-(-classes // max(features, 1)), 1)
    wanted = max(-(-samples // pieces), 1)
    return max((1 << (wanted - 1).bit_length()) // factor, 1)


def _check_linear(input: Tensor, linear_weight: Tensor, linear_bias: Tensor | None) -> None:
    """Check the shapes of the linear layer that gives the logits."""
    if input.ndim not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.ndim}")
    if linear_weight.ndim < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.ndim}")
    features = input.shape[-1]
    if features != linear_weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), "
            f"got {features} and {linear_weight.shape[-1]}, respectively"
        )
    outputs = tuple(linear_weight.shape[:-1])
    if linear_bias is not None and tuple(linear_bias.shape) != outputs:
        raise RuntimeError(f"expected linear_bias shape {outputs}, got {tuple(linear_bias.shape)}")
    if len(outputs) > 1 and input.ndim == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched input, (N, {features}), got "
            f"unbatched input with shape {tuple(input.shape)}"
        )


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: LinearCrossEntropyOptions | None = None,
) -> Tensor:
    """Compute `cross_entropy` of ``linear(input, linear_weight, linear_bias)``.

    Parameters
    ----------
    input
        (N, features) or (features).
    linear_weight, linear_bias
        (C, ..., features) and (C, ...). With dimensions in between, each position has its own
        logits, and the input must have a batch dimension.
    target
        Class indices, (N, ...) or (); or probabilities of the shape of the logits.
    weight, reduction, label_smoothing
        As in `cross_entropy`.
    ignore_index
        Target value that is ignored. Default: -100. Not for probabilities.
    options
        If given, process the batch in chunks and recompute their logits in the backward pass.
        Useful for many classes.

    Returns
    -------
    Tensor
        As in `cross_entropy`.

    Raises
    ------
    RuntimeError, ValueError
        If the shapes are incompatible or an option is out of range.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.linear_cross_entropy(candelabra.zeros(1, 3), candelabra.ones(2, 3), candelabra.tensor([1]))
    tensor(0.6931)
    """
    _check_linear(input, linear_weight, linear_bias)
    features, outputs = input.shape[-1], tuple(linear_weight.shape[:-1])
    shape = (*input.shape[:-1], *outputs)
    if tuple(target.shape) == shape and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    ignored = -100 if ignore_index is None else ignore_index
    if options is not None:
        if (
            len(outputs) == 1
            and label_smoothing == 0.0
            and target.dtype == candelabra.int64
            and tuple(target.shape) != shape
        ):
            reduction_number(reduction)
            if input.ndim == 1:
                return _in_pieces(
                    input.unsqueeze(0),
                    linear_weight,
                    target.reshape(1),
                    linear_bias,
                    weight,
                    reduction,
                    ignored,
                    options,
                ).reshape(())
            return _in_pieces(input, linear_weight, target, linear_bias, weight, reduction, ignored, options)
        _C.warn(
            "linear_cross_entropy: options are ignored; pieces need label_smoothing == 0, a target of classes and a linear_weight of two "
            f"dimensions, but got label_smoothing={label_smoothing}, target of {target.dtype} and linear_weight of shape "
            f"{tuple(linear_weight.shape)}",
        )
    flat_bias = None if linear_bias is None else linear_bias.reshape(-1)
    scores = _linear(input, linear_weight.reshape(-1, features), flat_bias).reshape(shape)
    return cross_entropy(
        scores, target, weight, reduction=reduction, ignore_index=ignored, label_smoothing=label_smoothing
    )


def _without_checkpoint(function: Any, *arguments: Any, use_reentrant: bool) -> Any:
    return function(*arguments)


def _in_pieces(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    linear_bias: Tensor | None,
    weight: Tensor | None,
    reduction: str,
    ignored: int,
    options: Any,
) -> Tensor:
    """Compute the cross entropy in chunks, keeping only chunk inputs for the backward pass."""
    run: Any = _without_checkpoint
    if is_grad_enabled() and any(x is not None and x.requires_grad for x in (input, linear_weight, linear_bias)):
        try:
            from candelabra.autograd import checkpoint
        except ModuleNotFoundError:
            run = _without_checkpoint  # without candelabra-autograd no graph is built, so nothing needs recomputing
        else:
            run = checkpoint.checkpoint

    if target.ndim != 1 or target.shape[0] != input.shape[0]:
        raise ValueError(
            f"Expected input batch_size ({input.shape[0]}) to match target batch_size ({target.shape[0] if target.ndim else 0})."
        )
    size = _chunk_size(options, input.shape[0], linear_weight.shape[0], input.shape[1])
    each = "none" if reduction == "none" else "sum"

    dtype = input.dtype
    if dtype in (candelabra.float16, candelabra.bfloat16):
        # Sums over many chunks accumulate in float32.
        input, linear_weight = input.float(), linear_weight.float()
        linear_bias, weight = (None if x is None else x.float() for x in (linear_bias, weight))

    def piece(x: Tensor, classes: Tensor, rows: Tensor, bias: Tensor | None) -> Tensor:
        return cross_entropy(_linear(x, rows, bias), classes, weight, reduction=each, ignore_index=ignored)

    parts = [
        run(piece, x, classes, linear_weight, linear_bias, use_reentrant=False)
        for x, classes in zip(input.split(size), target.split(size), strict=True)
    ]
    if reduction == "none":
        return candelabra.cat(parts).to(dtype)
    total = candelabra.stack(parts).sum()
    if reduction == "sum":
        return total.to(dtype)
    counted = target != ignored
    if weight is None:
        return (total / counted.sum()).to(dtype)
    return (total / weight.index_select(0, target.masked_fill(~counted, 0)).masked_fill(~counted, 0.0).sum()).to(dtype)


__all__ = ["ctc_loss", "linear_cross_entropy", "multilabel_margin_loss"]
