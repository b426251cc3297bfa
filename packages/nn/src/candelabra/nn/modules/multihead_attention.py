"""Provide multi-head attention."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Tensor

from .. import functional as F
from .. import init
from ..parameter import Parameter
from .linear import Linear
from .module import Module


class NonDynamicallyQuantizableLinear(Linear):
    """Rename `Linear` for the output projection, as PyTorch does."""


class MultiheadAttention(Module):
    """Compute multi-head attention.

    Project query, key and value, attend in each head, and project the concatenated heads.

    Parameters
    ----------
    embed_dim
        Size of query and output, a multiple of `num_heads`.
    num_heads
        Number of heads. Each has ``embed_dim / num_heads`` features.
    dropout
        Dropout probability of the attention weights; used in training only.
    bias
        Whether the projections have biases.
    add_bias_kv, add_zero_attn
        Whether to append an additional key and value, trained or zero.
    kdim, vdim
        Sizes of key and value. Default: the size of the query. With other sizes, each projection
        has its own parameter.
    batch_first
        Whether inputs and output are (N, L, E) rather than (L, N, E).

    Notes
    -----
    Shapes: query (L, N, E) or (L, E), key and value (S, N, ...). The results are the output (L, N,
    E) and the weights (N, L, S). Without `need_weights` the weights are None, and the fused
    attention is used, whose memory use does not grow with L * S. A mask is boolean, true where a
    key is masked, or floating point, added to the scores. Source: Vaswani et al., 2017.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> x = candelabra.randn(2, 5, 8)
    >>> output, weights = nn.MultiheadAttention(8, 2, batch_first=True)(x, x, x)
    >>> output.shape, weights.shape
    (candelabra.Size([2, 5, 8]), candelabra.Size([2, 5, 5]))
    """

    in_proj_weight: Parameter | None
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = kdim if kdim is not None else embed_dim
        self.vdim = vdim if vdim is not None else embed_dim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")

        def parameter(*shape: int) -> Parameter:
            return Parameter(candelabra.empty(shape, device=device, dtype=dtype))

        if self._qkv_same_embed_dim:
            self.in_proj_weight = parameter(3 * embed_dim, embed_dim)
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.q_proj_weight = parameter(embed_dim, embed_dim)
            self.k_proj_weight = parameter(embed_dim, self.kdim)
            self.v_proj_weight = parameter(embed_dim, self.vdim)
            self.register_parameter("in_proj_weight", None)
        self.register_parameter("in_proj_bias", parameter(3 * embed_dim) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        self.bias_k = parameter(1, 1, embed_dim) if add_bias_kv else None
        self.bias_v = parameter(1, 1, embed_dim) if add_bias_kv else None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)  # type: ignore[arg-type]
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        turn = self.batch_first and query.ndim == 3
        if turn:
            # Keep identical tensors identical: self-attention uses one matrix product.
            transposed = {id(x): x.transpose(0, 1) for x in (query, key, value)}
            query, key, value = transposed[id(query)], transposed[id(key)], transposed[id(value)]
        separate: dict[str, Any] = {}
        if not self._qkv_same_embed_dim:
            separate = {
                "use_separate_proj_weight": True, "q_proj_weight": self.q_proj_weight, "k_proj_weight": self.k_proj_weight,
                "v_proj_weight": self.v_proj_weight,
            }  # fmt: skip
        output, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k, self.bias_v,
            self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, training=self.training,
            key_padding_mask=key_padding_mask, need_weights=need_weights, attn_mask=attn_mask,
            average_attn_weights=average_attn_weights, is_causal=is_causal, **separate,
        )  # fmt: skip
        return (output.transpose(0, 1) if turn else output), weights

    def merge_masks(
        self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor
    ) -> tuple[Tensor | None, int | None]:
        """Merge the two masks of a query (N, L, E) into one that broadcasts to (N, heads, L, L).

        Returns
        -------
        mask, kind
            None (None) without masks, the padding mask alone (kind 1), or the attention mask, plus
            the padding mask if given (kind 2).
        """
        if attn_mask is None:
            return (None, None) if key_padding_mask is None else (key_padding_mask, 1)
        batch, length, _ = query.shape
        if attn_mask.ndim == 3:
            merged = attn_mask.view(batch, -1, length, length)
        else:
            merged = attn_mask.view(1, 1, length, length).expand(batch, self.num_heads, -1, -1)
        if key_padding_mask is not None:
            merged = merged + key_padding_mask.view(batch, 1, 1, length).expand(-1, self.num_heads, -1, -1)
        return merged, 2


__all__ = ["MultiheadAttention"]
