"""Attention."""

from __future__ import annotations

import math

import candelabra
from candelabra import Tensor

from .dropout import dropout


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """``softmax(query @ key^T * scale + mask) @ value``.

    Parameters
    ----------
    query, key, value
        (..., L, E), (..., S, E) and (..., S, V).
    attn_mask
        Broadcastable to (..., L, S). Booleans: true where a key may be seen; numbers: added to the scores.
    dropout_p
        Probability of dropping a weight.
    is_causal
        Position i sees the keys up to i only; not together with a mask.
    scale
        ``1 / sqrt(E)`` when not given.
    enable_gqa
        Whether key and value may have fewer heads (dimension -3) than query, each then shared by several.

    Returns
    -------
    Tensor
        (..., L, V). Source: Vaswani et al., 2017.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> query = key = value = candelabra.ones(1, 3, 2)
    >>> F.scaled_dot_product_attention(query, key, value, is_causal=True).shape
    candelabra.Size([1, 3, 2])
    """
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if tensor.ndim < 2:
            raise RuntimeError(
                f"scaled_dot_product_attention: {name} must have at least 2 dimensions, but got {list(tensor.shape)}"
            )
    if is_causal and attn_mask is not None:
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    if enable_gqa:
        heads = query.shape[-3]
        if key.shape[-3] != value.shape[-3] or heads % key.shape[-3]:
            raise RuntimeError(
                "Number of heads in key and value must be equal and divide the number of heads in query, but got "
                f"{heads}, {key.shape[-3]} and {value.shape[-3]}"
            )
        share = heads // key.shape[-3]
        key = key.repeat_interleave(share, -3)
        value = value.repeat_interleave(share, -3)
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (query * factor) @ key.transpose(-2, -1)
    empty_rows = None
    if is_causal:
        seen = candelabra.ones(scores.shape[-2], scores.shape[-1], dtype=candelabra.bool, device=query.device).tril()
        scores = scores.masked_fill(~seen, -math.inf)
    elif attn_mask is not None and attn_mask.dtype == candelabra.bool:
        # A row that sees nothing becomes zeros, not NaN: its scores are left as they are and its weights dropped.
        empty_rows = ~attn_mask.any(-1, keepdim=True)
        scores = scores.masked_fill(~(attn_mask | empty_rows), -math.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    weights = scores.softmax(-1)
    if empty_rows is not None:
        weights = weights.masked_fill(empty_rows, 0.0)
    return dropout(weights, dropout_p) @ value


__all__ = ["scaled_dot_product_attention"]
