"""Decompositions of attention and its gradient, with the full matrix of scores."""

from __future__ import annotations

import math

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..elementwise.elementwise import narrow_to, wide
from ..registration import decomposes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor

_where = OPERATORS["where"]
_sum = OPERATORS["sum"]
_exp = OPERATORS["exp"]


def _spread(x: Tensor, heads: int) -> Any:
    """Repeat heads (N, G, ...) to (N, heads, ...), for query heads that share them."""
    groups = x.shape[1]
    if groups == heads:
        return x
    # No groups: expanding refuses the sizes.
    shape = (x.shape[0], groups, heads // max(groups, 1), *x.shape[2:])
    return OPERATORS["expand"](OPERATORS["unsqueeze"](x, 2), shape).reshape((x.shape[0], heads, *x.shape[2:]))


def _gathered(x: Tensor, groups: int) -> Any:
    """Sum gradients (N, heads, ...) over the query heads that share one of `groups`."""
    heads = x.shape[1]
    if groups == heads:
        return x
    return _sum(x.reshape((x.shape[0], groups, heads // max(groups, 1), *x.shape[2:])), 2)


def _weights(query: Tensor, key: Tensor, mask: Tensor | None, is_causal: bool, scale: float) -> Any:
    """Return the softmax of the scores, which is zero in fully masked rows, and the logsumexp."""
    scores = (query @ OPERATORS["transpose"](key, -2, -1)) * scale
    if mask is not None:
        scores = OPERATORS["masked_fill"](scores, ~mask, -math.inf) if mask.dtype is _C.bool else scores + wide(mask)
    if is_causal:
        at = [OPERATORS["arange"](0, size, 1, dtype=_C.int64, device=query.device) for size in scores.shape[-2:]]
        later = at[1] > OPERATORS["unsqueeze"](at[0], 1)
        scores = OPERATORS["masked_fill"](scores, later, -math.inf)
    if scores.numel() == 0:
        # A row without keys is a fully masked one.
        return scores, OPERATORS["sum"](scores, -1) + math.inf
    largest = OPERATORS["amax"](scores.detach(), -1, True)
    empty = largest == -math.inf
    powers = _exp(scores - OPERATORS["masked_fill"](largest, empty, 0.0))
    sums = _sum(powers, -1, True)
    logarithms = OPERATORS["masked_fill"](largest + OPERATORS["log"](sums), empty, math.inf)
    return powers / OPERATORS["masked_fill"](sums, empty, 1.0), OPERATORS["squeeze"](logarithms, -1)


@decomposes("_scaled_dot_product_attention")
def _scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool, scale: float
) -> Any:
    heads = query.shape[1]
    weights, logarithms = _weights(wide(query), _spread(wide(key), heads), mask, is_causal, scale)
    return narrow_to(weights @ _spread(wide(value), heads), query.dtype), logarithms


@decomposes("_scaled_dot_product_attention_backward")
def _scaled_dot_product_attention_backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    output: Tensor,
    logsumexp: Tensor,
    is_causal: bool,
    scale: float,
) -> Any:
    # output and logsumexp depend on the other arguments: they are recomputed for second
    # derivatives.
    heads, groups = query.shape[1], key.shape[1]
    q, k, v, g = wide(query), _spread(wide(key), heads), _spread(wide(value), heads), wide(grad)
    weights, _ = _weights(q, k, mask, is_causal, scale)
    of_value = OPERATORS["transpose"](weights, -2, -1) @ g
    of_weights = g @ OPERATORS["transpose"](v, -2, -1)
    slopes = weights * (of_weights - _sum(of_weights * weights, -1, True)) * scale
    of_query, of_key = slopes @ k, OPERATORS["transpose"](slopes, -2, -1) @ q
    return (
        narrow_to(of_query, query.dtype),
        narrow_to(_gathered(of_key, groups), key.dtype),
        narrow_to(_gathered(of_value, groups), value.dtype),
    )
