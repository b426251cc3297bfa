"""Implement multi-head attention, including its projections."""

from __future__ import annotations

import math

import candelabra
from candelabra import _C, Tensor, ops

from .attention import scaled_dot_product_attention
from .dropout import dropout

_linear = ops.linear


def _check_shapes(
    query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None, attn_mask: Tensor | None, num_heads: int
) -> bool:
    """Check the shapes and return whether the inputs have a batch dimension."""
    if query.ndim not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.ndim}-D query tensor"
        )
    kind = "batched (3-D)" if query.ndim == 3 else "unbatched (2-D)"
    if key.ndim != query.ndim or value.ndim != query.ndim:
        raise AssertionError(
            f"For {kind} `query`, expected `key` and `value` to be {query.ndim}-D but found {key.ndim}-D and {value.ndim}-D tensors "
            "respectively"
        )
    if key_padding_mask is not None and key_padding_mask.ndim != query.ndim - 1:
        raise AssertionError(
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {query.ndim - 1}-D but found {key_padding_mask.ndim}-D "
            "tensor instead"
        )
    if attn_mask is not None:
        if attn_mask.ndim not in (2, 3):
            raise AssertionError(
                f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.ndim}-D tensor instead"
            )
        if query.ndim == 2 and attn_mask.ndim == 3:
            expected = (num_heads, query.shape[0], key.shape[0])
            if tuple(attn_mask.shape) != expected:
                raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {tuple(attn_mask.shape)}")
    return query.ndim == 3


def _as_numbers(mask: Tensor | None, name: str, other: Tensor | None, dtype: candelabra.dtype) -> Tensor | None:
    """Convert a mask to floating point, so that it can be added to the scores.

    Booleans are true where a key is masked: true becomes -inf and false becomes 0.
    """
    if mask is None:
        return None
    if mask.dtype != candelabra.bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {name} are supported")
    if other is not None and other.dtype != mask.dtype:
        _C.warn(
            f"Support for mismatched {name} and attn_mask is deprecated. Use same type for both instead.",
        )
    if mask.dtype == candelabra.bool:
        return candelabra.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(mask, -math.inf)
    return mask


def _projected(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    separate: tuple[Tensor | None, Tensor | None, Tensor | None] | None,
) -> tuple[Tensor, Tensor, Tensor]:
    if separate is None:
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        if query is key and key is value:
            # Self-attention: one matrix product computes all three projections.
            q, k, v = _linear(query, in_proj_weight, in_proj_bias).chunk(3, -1)
            return q, k, v
        weights: tuple[Tensor | None, ...] = in_proj_weight.chunk(3)
    else:
        weights = separate
    biases = (None, None, None) if in_proj_bias is None else in_proj_bias.chunk(3)
    made = []
    for name, x, weight, bias in zip("qkv", (query, key, value), weights, biases, strict=True):
        if weight is None:
            raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
        made.append(_linear(x, weight, bias))
    return made[0], made[1], made[2]


def _one_more_key(mask: Tensor | None) -> Tensor | None:
    """Extend a mask by one key that is not masked."""
    return None if mask is None else candelabra.cat([mask, mask.new_zeros((*mask.shape[:-1], 1))], -1)


def _head_size(width: int, expected_width: int, num_heads: int) -> int:
    """Check the embedding dimension and return the size of one head."""
    if width != expected_width:
        raise AssertionError(f"was expecting embedding dimension of {expected_width}, but got {width}")
    size = width // num_heads
    if size * num_heads != width:
        raise AssertionError(f"embed_dim {width} not divisible by num_heads {num_heads}")
    return size


def _check_source(key: Tensor, value: Tensor, separate_weights: bool) -> None:
    """Check that key and value belong together."""
    if separate_weights:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
            )
    elif key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")


def _check_mask(mask: Tensor | None, length: int, source: int, heads: int) -> None:
    if mask is not None:
        expected = (length, source) if mask.ndim == 2 else (heads, length, source)
        if tuple(mask.shape) != expected:
            raise RuntimeError(f"The shape of the {mask.ndim}D attn_mask is {mask.shape}, but should be {expected}.")


def _with_biases(
    k: Tensor, v: Tensor, bias_k: Tensor | None, bias_v: Tensor | None, static: bool
) -> tuple[Tensor, Tensor]:
    """Append a key and a value that are the same for all sequences."""
    if bias_k is None or bias_v is None:
        raise AssertionError("bias_k and bias_v must be given together")
    if static:
        raise AssertionError("bias cannot be added to static key or value.")
    batch = k.shape[1]
    return candelabra.cat([k, bias_k.expand(1, batch, -1)]), candelabra.cat([v, bias_v.expand(1, batch, -1)])


def _by_head(projected: Tensor, static: Tensor | None, name: str, heads: int, size: int) -> Tensor:
    """Return keys or values as (heads, S, size): the static ones if given."""
    if static is None:
        return projected.reshape(projected.shape[0], heads, size).transpose(0, 1)
    if static.shape[0] != heads:
        raise AssertionError(f"expecting {name}.size(0) of {heads}, but got {static.shape[0]}")
    if static.shape[2] != size:
        raise AssertionError(f"expecting {name}.size(2) of {size}, but got {static.shape[2]}")
    return static


def _combined_mask(
    mask: Tensor | None, padding: Tensor | None, batch: int, num_heads: int, length: int, source: int
) -> Tensor | None:
    """Return the sum of both masks, broadcastable to (batch, num_heads, length, source)."""
    if mask is not None:
        mask = mask.reshape(-1, 1, length, source) if mask.ndim == 2 else mask.reshape(batch, num_heads, length, source)
    if padding is None:
        return mask
    if tuple(padding.shape) != (batch, source):
        raise AssertionError(
            f"Expected key_padded_mask.shape equal to ({batch}, {source}), but got {tuple(padding.shape)}"
        )
    hidden = padding.reshape(batch, 1, 1, source)
    return hidden if mask is None else mask + hidden


def _attention_with_weights(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, probability: float
) -> tuple[Tensor, Tensor]:
    scores = (q * math.sqrt(1.0 / q.shape[-1])) @ k.transpose(-2, -1)
    weights = dropout((scores if mask is None else scores + mask).softmax(-1), probability)
    return weights @ v, weights


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Compute multi-head attention.

    Project query, key and value, attend in each head, and project the concatenated heads.

    Parameters
    ----------
    query, key, value
        (L, N, E), (S, N, E), (S, N, E), or the same without the batch dimension N.
    embed_dim_to_check
        E, which must be a multiple of `num_heads`.
    in_proj_weight, in_proj_bias
        (3E, E) and (3E): the stacked projections of query, key and value.
    bias_k, bias_v
        (1, 1, E): an additional key and value for all sequences.
    add_zero_attn
        Whether to append a key and a value of zeros.
    dropout_p, training
        Dropout probability of the attention weights; used in training only.
    out_proj_weight, out_proj_bias
        The output projection.
    key_padding_mask
        (N, S). Boolean: true where a key is masked. Floating point: added to the scores.
    need_weights, average_attn_weights
        Whether to return the weights, and whether to average them over the heads. Without them the
        memory use does not grow with L * S.
    attn_mask
        (L, S) or (N * num_heads, L, S). Boolean: true where a key is masked. Floating point: added
        to the scores.
    use_separate_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight
        Separate projections, used if key and value have sizes other than E.
    static_k, static_v
        (N * num_heads, S, E / num_heads): keys and values that replace the projected ones.
    is_causal
        Hint that `attn_mask` is the causal mask. The mask must still be given.

    Returns
    -------
    output, weights
        (L, N, E), and the weights: (N, L, S), (N, num_heads, L, S) or None. Source: Vaswani et al.,
        2017.

    Raises
    ------
    AssertionError, RuntimeError
        If shapes, dtypes or options are incompatible.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> x, eye = candelabra.eye(2), candelabra.eye(2)
    >>> weight = candelabra.cat([eye, eye, eye])
    >>> F.multi_head_attention_forward(x, x, x, 2, 1, weight, None, None, None, False, 0.0, eye, None)[1]
    tensor([[0.6698, 0.3302],
            [0.3302, 0.6698]])
    """
    batched = _check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        alike = query is key and key is value
        query = query.unsqueeze(1)
        key, value = (query, query) if alike else (key.unsqueeze(1), value.unsqueeze(1))
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, width = query.shape
    padding = _as_numbers(key_padding_mask, "key_padding_mask", attn_mask, query.dtype)
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and padding is None and not need_weights:
        mask = None  # the fused kernel applies the causal mask itself
    else:
        mask = _as_numbers(attn_mask, "attn_mask", None, query.dtype)
        is_causal = is_causal and padding is None

    size = _head_size(width, embed_dim_to_check, num_heads)
    heads = batch * num_heads
    _check_source(key, value, use_separate_proj_weight)
    _check_mask(mask, length, key.shape[0], heads)
    separate = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    q, k, v = _projected(query, key, value, in_proj_weight, in_proj_bias, separate)
    if bias_k is not None or bias_v is not None:
        k, v = _with_biases(k, v, bias_k, bias_v, static_k is not None or static_v is not None)
        mask, padding = _one_more_key(mask), _one_more_key(padding)
    q = q.reshape(length, heads, size).transpose(0, 1)
    k = _by_head(k, static_k, "static_k", heads, size)
    v = _by_head(v, static_v, "static_v", heads, size)
    if add_zero_attn:
        k, v = (candelabra.cat([x, x.new_zeros((heads, 1, size))], 1) for x in (k, v))
        mask, padding = _one_more_key(mask), _one_more_key(padding)
    mask = _combined_mask(mask, padding, batch, num_heads, length, k.shape[1])

    probability = dropout_p if training else 0.0
    q, k, v = (x.reshape(batch, num_heads, x.shape[1], size) for x in (q, k, v))
    weights = None
    if need_weights:
        output, weights = _attention_with_weights(q, k, v, mask, probability)
        if average_attn_weights:
            weights = weights.mean(1)
        if not batched:
            weights = weights.squeeze(0)
    else:
        output = scaled_dot_product_attention(q, k, v, mask, probability, is_causal and mask is None)
    output = _linear(output.permute(2, 0, 1, 3).reshape(length, batch, width), out_proj_weight, out_proj_bias)
    return output if batched else output.squeeze(1), weights


__all__ = ["multi_head_attention_forward"]
