"""Implement scaled dot-product attention."""

from __future__ import annotations

import math
import threading

import candelabra
from candelabra import Tensor, is_grad_enabled, ops
from candelabra.backends import cuda as _cuda
from candelabra.dispatch_hooks import computed

from .dropout import dropout

_attention = ops._scaled_dot_product_attention

#: Per-thread state of nn.attention.sdpa_kernel: whether MATH is allowed, whether the fused
#: implementation is allowed, and whether MATH is preferred.
_ways = threading.local()


def allowed() -> tuple[bool, bool, bool]:
    """Return what this thread allows: (MATH, fused, whether MATH is preferred)."""
    return getattr(_ways, "allowed", (True, True, False))


def allow(math: bool, fused: bool, math_first: bool = False) -> None:
    """Set the attention implementations that this thread allows."""
    _ways.allowed = (math, fused, math_first)


@computed("lower")
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Return ``softmax(query @ key^T * scale + mask) @ value``.

    Without dropout and without a gradient for the mask, the computation is blocked. The matrix of
    scores is then never stored in full.

    Parameters
    ----------
    query, key, value
        (..., L, E), (..., S, E) and (..., S, V).
    attn_mask
        Broadcastable to (..., L, S). Boolean: true where a query may attend to a key. Floating
        point: added to the scores.
    dropout_p
        Dropout probability of the attention weights.
    is_causal
        Whether query i attends only to keys 0 to i. Not allowed together with a mask.
    scale
        Default: ``1 / sqrt(E)``.
    enable_gqa
        Whether key and value may have fewer heads (dimension -3) than query. Several query heads
        then share a key head.

    Returns
    -------
    Tensor
        (..., L, V). The rows of queries that attend to no key are zero. Source: Vaswani et al.,
        2017.

    Raises
    ------
    RuntimeError
        If shapes or dtypes are incompatible, or a mask is given with `is_causal`.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> query = key = value = candelabra.ones(1, 3, 2)
    >>> F.scaled_dot_product_attention(query, key, value, is_causal=True).shape
    candelabra.Size([1, 3, 2])
    """
    _check_attention(query, key, value, attn_mask, is_causal)
    if dropout_p < 0.0 or dropout_p > 1.0:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout_p}")
    factor = (1 / math.sqrt(query.shape[-1]) if query.shape[-1] else math.nan) if scale is None else float(scale)
    mask_needs_gradient = attn_mask is not None and attn_mask.requires_grad and is_grad_enabled()
    sizes = (*query.shape, *key.shape, *value.shape)
    fused = dropout_p == 0.0 and not mask_needs_gradient and 0 not in sizes and query.is_floating_point()
    if query.is_cuda or hasattr(_ways, "allowed"):
        by_scores, by_fusion, scores_first = allowed()
        if query.is_cuda:
            on_cuda = _cuda.attention_ways()
            by_scores, by_fusion = by_scores and on_cuda[0], by_fusion and on_cuda[1]
        if not by_scores and not (fused and by_fusion):
            raise RuntimeError(
                "No viable backend for scaled_dot_product_attention was found. This is likely due to turning off both the math kernel and "
                "the fused kernels."
            )
        fused = fused and by_fusion and not scores_first
    if enable_gqa:
        _check_heads(query, key, value)
        if (
            fused
            and query.ndim == 4
            and query.shape[:1] == key.shape[:1] == value.shape[:1]
            and key.shape[-3] == value.shape[-3]
        ):
            return _attention(query, key, value, attn_mask, is_causal, factor)[0]
        key, value = (x.repeat_interleave(query.shape[-3] // x.shape[-3], -3) for x in (key, value))
    if not fused:
        return _with_all_scores(query, key, value, attn_mask, dropout_p, is_causal, factor)
    # The fused operator takes the batch and the heads as two dimensions.
    if (
        query.ndim == 4
        and query.shape[:2] == key.shape[:2] == value.shape[:2]
        and (attn_mask is None or attn_mask.ndim == 2)
    ):
        return _attention(query, key, value, attn_mask, is_causal, factor)[0]
    leading = tuple(candelabra.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2]))
    if attn_mask is not None:
        leading = tuple(candelabra.broadcast_shapes(leading, attn_mask.shape[:-2]))
    if len(leading) == 2:
        q, k, v = (
            x if tuple(x.shape[:-2]) == leading else x.expand(*leading, *x.shape[-2:]) for x in (query, key, value)
        )
        return _attention(q, k, v, attn_mask, is_causal, factor)[0]
    q, k, v = (_as_batches(x, leading) for x in (query, key, value))
    if attn_mask is not None and attn_mask.ndim > 2:
        attn_mask = _as_batches(attn_mask, leading)
    return _attention(q, k, v, attn_mask, is_causal, factor)[0].reshape(*leading, query.shape[-2], value.shape[-1])


def _as_batches(x: Tensor, leading: tuple[int, ...]) -> Tensor:
    return x.expand(*leading, *x.shape[-2:]).reshape(math.prod(leading), 1, *x.shape[-2:])


def _check_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, is_causal: bool) -> None:
    if not query.dtype == key.dtype == value.dtype:
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{query.dtype} key.dtype: {key.dtype} and value.dtype: {value.dtype} instead."
        )
    if query.ndim < 2 or key.ndim < 2 or value.ndim < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
            f"{query.ndim}, key.dim: {key.ndim} and value.dim: {value.ndim} instead."
        )
    if attn_mask is None:
        return
    if attn_mask.dtype not in (candelabra.bool, candelabra.float32, query.dtype):
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
            f"{attn_mask.dtype} and  query.dtype: {query.dtype} instead."
        )
    if is_causal:
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")


def _check_heads(query: Tensor, key: Tensor, value: Tensor) -> None:
    if min(query.ndim, key.ndim, value.ndim) < 3:
        raise RuntimeError("enable_gqa: query, key and value must have a dimension of heads, the third from the end")
    heads, key_heads, value_heads = query.shape[-3], key.shape[-3], value.shape[-3]
    if not key_heads or not value_heads or heads % key_heads or heads % value_heads:
        raise RuntimeError(
            "Number of heads in key and value must divide the number of heads in query, but got "
            f"{heads}, {key_heads} and {value_heads}"
        )


def _with_all_scores(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    factor: float,
) -> Tensor:
    """Compute attention with the whole matrix of scores.

    Dropout and a gradient for the mask need this matrix.
    """
    half = query.dtype in (candelabra.float16, candelabra.bfloat16)
    dtype = query.dtype
    if half:
        query, key, value = query.float(), key.float(), value.float()
    scores = (query * factor) @ key.transpose(-2, -1)
    if is_causal:
        seen = candelabra.ones(scores.shape[-2], scores.shape[-1], dtype=candelabra.bool, device=query.device).tril()
        scores = scores.masked_fill(~seen, -math.inf)
    elif attn_mask is not None and attn_mask.dtype == candelabra.bool:
        scores = scores.masked_fill(~attn_mask, -math.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    weights = scores.softmax(-1)
    if attn_mask is not None and scores.numel():
        # Fully masked rows become zeros instead of NaN.
        empty = (scores.detach() == -math.inf).all(-1, keepdim=True)
        if bool(empty.any()):
            weights = scores.masked_fill(empty, 0.0).softmax(-1).masked_fill(empty, 0.0)
    result = dropout(weights, dropout_p) @ value
    return result.to(dtype) if half else result


__all__ = ["scaled_dot_product_attention"]
