"""Implement functions of the top-level package that differ from ``torch.nn.functional``.

They follow PyTorch's top-level signatures: integer reductions, another argument order, in-place
variants. `candelabra.nn.functional` does the computation.
"""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Tensor, ops
from candelabra.composite.registration import overridable

from . import distance, distance_loss, loss, loss_sequence, normalization
from .dropout import alpha_dropout as _alpha_dropout
from .dropout import dropout as _dropout
from .dropout import feature_alpha_dropout as _feature_alpha_dropout
from .dropout import feature_dropout as _feature_dropout
from .embedding import MODES, bags, embedding_options, embedding_renorm_
from .embedding import embedding as _embedding
from .linear import bilinear
from .recurrent import gru, gru_cell, lstm, lstm_cell, rnn_relu, rnn_relu_cell, rnn_tanh, rnn_tanh_cell
from .segments import segment_reduce

_REDUCTIONS = ("none", "mean", "sum")


def _named(reduction: int | str) -> str:
    """Return the name of a reduction given as an integer."""
    if isinstance(reduction, str) or not 0 <= reduction <= 2:
        raise ValueError(f"{reduction} is not a valid value for reduction: expected 0 (none), 1 (mean) or 2 (sum)")
    return _REDUCTIONS[reduction]


# ---- normalization


def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = False,
) -> Tensor:
    """Normalize each channel; see :func:`candelabra.nn.functional.batch_norm`.

    `cudnn_enabled` is ignored.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.batch_norm(candelabra.tensor([[1.0], [3.0]]), None, None, None, None, True, 0.1, 1e-5, False)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    return native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


def _statistics_dtype(input: Tensor, weight: Tensor | None) -> candelabra.dtype:
    """Return the dtype of the weight, which may be wider than a half-precision input."""
    return input.dtype if weight is None else weight.dtype


def _given(name: str, results: tuple[Tensor, Tensor, Tensor], out: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Return the results, or copy them to the three tensors of ``out=``."""
    if out is None:
        return results
    if len(out) != 3:
        raise TypeError(f"{name}(): out must be three tensors, but got {len(out)}")
    first, second, third = (
        candelabra._C.give_to_out(name, given, made) for given, made in zip(out, results, strict=True)
    )
    return first, second, third


def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    *,
    out: Any = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalize each channel, and also return the means and the inverse standard deviations.

    Without `training` the two statistics are empty.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.native_batch_norm(candelabra.tensor([[1.0], [3.0]]), None, None, None, None, True, 0.1, 0.0)[1]
    tensor([2.])
    """
    if not training and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when training=False")
    output, mean, rstd = ops.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
    if not training:
        mean, rstd = mean.new_empty(0), rstd.new_empty(0)
    parameters = [x for x in (weight, bias, running_mean, running_var) if x is not None]
    dtype = _statistics_dtype(input, parameters[0] if parameters else None)
    mean, rstd = mean.to(dtype), rstd.to(dtype)
    return _given("native_batch_norm", (output, mean, rstd), out)


def batch_norm_update_stats(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, momentum: float
) -> tuple[Tensor, Tensor]:
    """Return the means and the biased variances of the channels, and update the running ones.

    Examples
    --------
    >>> import candelabra
    >>> mean, variance = candelabra.zeros(1), candelabra.ones(1)
    >>> candelabra.batch_norm_update_stats(candelabra.tensor([[1.0], [3.0]]), mean, variance, 0.5)
    (tensor([2.]), tensor([1.]))
    >>> mean, variance
    (tensor([1.]), tensor([1.5000]))
    """
    dims = [0, *range(2, input.ndim)]
    statistics = input.detach().to(_statistics_dtype(input, running_mean))
    variance, mean = candelabra.var_mean(statistics, dims, correction=0)
    count = input.numel() // input.shape[1]
    if running_mean is not None:
        running_mean.lerp_(mean.to(running_mean.dtype), momentum)
    if running_var is not None:
        running_var.lerp_((variance * (count / (count - 1))).to(running_var.dtype), momentum)
    return mean, variance


def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = False,
) -> Tensor:
    """Normalize each channel of each sample; see :func:`candelabra.nn.functional.instance_norm`.

    `cudnn_enabled` is ignored.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.instance_norm(candelabra.tensor([[[1.0, 3.0]]]), None, None, None, None, True, 0.1, 1e-5, False)
    tensor([[[-1.0000,  1.0000]]])
    """
    return normalization.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def layer_norm(
    input: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:
    """Normalize over the last dimensions; see :func:`candelabra.nn.functional.layer_norm`.

    `cudnn_enable` is ignored.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.layer_norm(candelabra.tensor([1.0, 3.0]), (2,))
    tensor([-1.0000,  1.0000])
    """
    return normalization.layer_norm(input, normalized_shape, weight, bias, eps)


def native_layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalize over the last dimensions.

    Also return the means and the inverse standard deviations.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.native_layer_norm(candelabra.tensor([1.0, 3.0]), (2,), None, None, 0.0)[1]
    tensor([2.])
    """
    output, mean, rstd = ops.native_layer_norm(input, normalized_shape, weight, bias, eps)
    dtype = _statistics_dtype(input, weight if weight is not None else bias)
    return output, mean.to(dtype), rstd.to(dtype)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Tensor:
    """Normalize groups of channels; see :func:`candelabra.nn.functional.group_norm`.

    `cudnn_enabled` is ignored.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.group_norm(candelabra.tensor([[1.0, 3.0]]), 1)
    tensor([[-1.0000,  1.0000]])
    """
    return normalization.group_norm(input, num_groups, weight, bias, eps)


def native_group_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalize groups of channels of (N, C, HxW).

    Also return the means and the inverse standard deviations.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.native_group_norm(candelabra.tensor([[1.0, 3.0]]), None, None, 1, 2, 1, 1, 0.0)[1]
    tensor([[2.]])
    """
    if input.numel() != N * C * HxW:
        raise RuntimeError(
            f"native_group_norm: an input of shape {list(input.shape)} does not have {N} * {C} * {HxW} elements"
        )
    samples = input.reshape(N, C, HxW)
    output, mean, rstd = ops.native_group_norm(samples, weight, bias, group, eps)
    dtype = _statistics_dtype(input, weight if weight is not None else bias)
    if input.requires_grad and candelabra.is_grad_enabled():
        # As in PyTorch, the statistics are differentiable here, unlike in native_layer_norm.
        wide = samples.float() if input.dtype in (candelabra.float16, candelabra.bfloat16) else samples
        groups = wide.reshape(N, group, -1) if wide.numel() else wide.reshape(N, group, 0)
        mean = groups.mean(-1)
        rstd = (groups.var(-1, correction=0) + eps).rsqrt()
    return output.reshape(input.shape), mean.to(dtype), rstd.to(dtype)


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """Return the norms over all dimensions but `dim`; the reduced dimensions have size 1.

    If `dim` is -1, return the norm of the whole tensor.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.norm_except_dim(candelabra.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5.],
            [1.]])
    """
    if dim == -1:
        return ops.linalg_vector_norm(v, pow)
    if not 0 <= dim < v.ndim:
        raise RuntimeError(
            f"norm_except_dim: dim must be -1 or a dimension of the tensor of shape {list(v.shape)}, but got {dim}"
        )
    others = [d for d in range(v.ndim) if d != dim]
    return (
        ops.linalg_vector_norm(v, pow, others, True)
        if others
        else ops.linalg_vector_norm(v.unsqueeze(-1), pow, [-1], False)
    )


# ---- dropout


def _checked(p: float) -> float:
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")
    return p


def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """Zero elements in place; see :func:`candelabra.dropout`."""
    return _dropout(input, _checked(p), train, True)


def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Apply dropout that preserves mean and variance.

    See :func:`candelabra.nn.functional.alpha_dropout`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.alpha_dropout(candelabra.ones(2), 0.5, False)
    tensor([1., 1.])
    """
    return _alpha_dropout(input, _checked(p), train)


def alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """Apply dropout that preserves mean and variance, in place.

    See :func:`candelabra.alpha_dropout`.
    """
    return _alpha_dropout(input, _checked(p), train, True)


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Zero whole channels at random. Shapes: (N, C, ...).

    Examples
    --------
    >>> import candelabra
    >>> candelabra.feature_dropout(candelabra.ones(1, 1, 2), 1.0, True)
    tensor([[[0., 0.]]])
    """
    return _feature_dropout(input, _checked(p), train, False)


def feature_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """Zero whole channels in place; see :func:`candelabra.feature_dropout`."""
    return _feature_dropout(input, _checked(p), train, True)


def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Apply `alpha_dropout` to whole channels.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.feature_alpha_dropout(candelabra.ones(1, 1, 2), 0.5, False)
    tensor([[[1., 1.]]])
    """
    return _feature_alpha_dropout(input, _checked(p), train)


def feature_alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """Apply `alpha_dropout` to whole channels in place.

    See :func:`candelabra.feature_alpha_dropout`.
    """
    return _feature_alpha_dropout(input, _checked(p), train, True)


def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Apply dropout and also return the mask of kept elements.

    `p` is the probability of a zero. A `train` of None means true.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.native_dropout(candelabra.ones(2), 0.5, False)[1]
    tensor([True, True])
    """
    if train is False or input.numel() == 0:
        return input.clone(), candelabra.ones(input.shape, dtype=candelabra.bool, device=input.device)
    output, mask = ops.native_dropout(input, _checked(p))
    return output, mask


# ---- embedding


def embedding(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Tensor:
    """Return the rows of `weight` at `indices`. A `padding_idx` of -1 means none.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.embedding(candelabra.tensor([[1.0], [2.0]]), candelabra.tensor([1, 0]))
    tensor([[2.],
            [1.]])
    """
    row = padding_idx if padding_idx >= 0 else None
    return _embedding(indices, weight, row, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)


def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return sums (mode 0), means (1) or maxima (2) of bags of rows.

    See :func:`candelabra.nn.functional.embedding_bag`.

    Returns
    -------
    output, offset2bag, bag_size, max_indices
        The results, the bag of each index, the bag sizes (zeros for mode 0), and for mode 2 the row
        of each maximum.

    Examples
    --------
    >>> import candelabra
    >>> table = candelabra.tensor([[1.0], [2.0]])
    >>> candelabra.embedding_bag(table, candelabra.tensor([0, 1, 1]), candelabra.tensor([0, 2]))[0]
    tensor([[3.],
            [2.]])
    """
    if not 0 <= mode <= 2:
        raise RuntimeError(f"embedding_bag: mode must be 0 (sum), 1 (mean) or 2 (max), but got {mode}")
    if sparse:
        embedding_options(scale_grad_by_freq, sparse)
    name = MODES[mode]
    if per_sample_weights is not None:
        if name != "sum":
            raise RuntimeError("embedding_bag: per_sample_weights only supported with mode='sum'")
        if per_sample_weights.shape != indices.shape:
            raise RuntimeError(
                f"embedding_bag: expected per_sample_weights of the shape {list(indices.shape)} of indices, but got {list(per_sample_weights.shape)}"
            )
    return bags(
        weight, indices, offsets, scale_grad_by_freq, name, per_sample_weights, include_last_offset, padding_idx
    )


# ---- distances, products and losses

pdist = distance.pdist


def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: int = 1
) -> Tensor:
    """Compute the binary cross entropy of logits.

    See :func:`candelabra.nn.functional.binary_cross_entropy_with_logits`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.binary_cross_entropy_with_logits(candelabra.zeros(1), candelabra.ones(1))
    tensor(0.6931)
    """
    return loss.binary_cross_entropy_with_logits(
        input, target, weight, reduction=_named(reduction), pos_weight=pos_weight
    )


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    """Compute the cosine embedding loss.

    See :func:`candelabra.nn.functional.cosine_embedding_loss`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cosine_embedding_loss(candelabra.ones(1, 2), candelabra.ones(1, 2), candelabra.tensor([-1]))
    tensor(1.)
    """
    return distance_loss.cosine_embedding_loss(input1, input2, target, margin, reduction=_named(reduction))


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int = 1,
    zero_infinity: bool = False,
) -> Tensor:
    """Compute the CTC loss; see :func:`candelabra.nn.functional.ctc_loss`.

    Examples
    --------
    >>> import candelabra
    >>> log_probs = candelabra.log_softmax(candelabra.zeros(2, 1, 2), 2)
    >>> candelabra.ctc_loss(log_probs, candelabra.tensor([[1]]), [2], [1])
    tensor(0.2877)
    """
    return loss_sequence.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, _named(reduction), zero_infinity
    )


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 1) -> Tensor:
    """Compute the hinge embedding loss.

    See :func:`candelabra.nn.functional.hinge_embedding_loss`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.hinge_embedding_loss(candelabra.tensor([0.5, 0.25]), candelabra.tensor([1.0, -1.0]))
    tensor(0.6250)
    """
    return distance_loss.hinge_embedding_loss(input, target, margin, reduction=_named(reduction))


def kl_div(input: Tensor, target: Tensor, reduction: int = 1, *, log_target: bool = False) -> Tensor:
    """Compute the Kullback-Leibler divergence; see :func:`candelabra.nn.functional.kl_div`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.kl_div(candelabra.zeros(2), candelabra.ones(2))
    tensor(0.)
    """
    return loss.divergence(input, target, _named(reduction), log_target)


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 1
) -> Tensor:
    """Compute the margin ranking loss; see :func:`candelabra.nn.functional.margin_ranking_loss`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.margin_ranking_loss(candelabra.zeros(1), candelabra.ones(1), candelabra.ones(1))
    tensor(1.)
    """
    return distance_loss.margin_ranking_loss(input1, input2, target, margin, reduction=_named(reduction))


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    """Compute the Poisson loss; see :func:`candelabra.nn.functional.poisson_nll_loss`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.poisson_nll_loss(candelabra.zeros(1), candelabra.ones(1), True, False, 1e-8, 1)
    tensor(1.)
    """
    return loss.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=_named(reduction))


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = 1,
) -> Tensor:
    """Compute the triplet loss; see :func:`candelabra.nn.functional.triplet_margin_loss`.

    Examples
    --------
    >>> import candelabra
    >>> zero = candelabra.zeros(1, 2)
    >>> candelabra.triplet_margin_loss(zero, zero, zero)
    tensor(1.)
    """
    return distance_loss.triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=_named(reduction)
    )


__all__ = [
    "alpha_dropout", "alpha_dropout_", "batch_norm", "batch_norm_update_stats", "bilinear", "binary_cross_entropy_with_logits", "cosine_embedding_loss",
    "ctc_loss", "dropout_", "embedding", "embedding_bag", "embedding_renorm_", "feature_alpha_dropout",
    "feature_alpha_dropout_", "feature_dropout", "feature_dropout_", "group_norm", "gru", "gru_cell", "hinge_embedding_loss",
    "instance_norm", "kl_div", "layer_norm", "lstm", "lstm_cell", "margin_ranking_loss", "native_batch_norm", "native_dropout",
    "native_group_norm", "native_layer_norm", "norm_except_dim", "pdist", "poisson_nll_loss", "rnn_relu", "rnn_relu_cell", "rnn_tanh",
    "rnn_tanh_cell", "segment_reduce", "triplet_margin_loss",
]  # fmt: skip

for _name in __all__:
    globals()[_name] = _public = overridable(_name, globals()[_name])
    _public.__module__ = __name__  # pickle looks the function up in this module
