"""Provide transformer layers: attention and feedforward blocks with residual connections."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import candelabra
from candelabra import Tensor

from .. import functional as F
from .. import init
from .activation import GELU, ReLU
from .containers import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .multihead_attention import MultiheadAttention
from .normalization import LayerNorm

Activation = str | Callable[[Tensor], Tensor]


def _causal_mask(size: int, device: Any = None, dtype: Any = None) -> Tensor:
    return candelabra.full((size, size), -math.inf, device=device, dtype=dtype).triu(1)


def _is_causal(mask: Tensor | None, is_causal: bool | None, size: int | None) -> bool:
    """Return whether the mask is causal.

    The answer is `is_causal` if given. Otherwise the mask is compared with the causal mask.
    """
    if is_causal is not None or mask is None:
        return is_causal is True
    size = mask.shape[-2] if size is None else size
    if tuple(mask.shape) != (size, size):
        return False
    if mask.dtype == candelabra.bool:
        return bool((mask == candelabra.ones(size, size, dtype=candelabra.bool, device=mask.device).triu(1)).all())
    return bool((mask == _causal_mask(size, mask.device, mask.dtype)).all())


def _length(x: Tensor, batch_first: bool) -> int:
    return x.shape[1] if x.ndim == 3 and batch_first else x.shape[0]


def _activation(activation: Activation) -> Callable[[Tensor], Tensor]:
    if not isinstance(activation, str):
        return activation
    if activation == "relu":
        return F.relu
    if activation == "gelu":
        return F.gelu
    raise RuntimeError(f"activation should be relu/gelu, not {activation}")


def _is_plain(module: Any, kinds: tuple[type, ...]) -> bool:
    """Return whether calling `module` is equivalent to calling the function of its class."""
    return type(module) in kinds and not module._hooked and "forward" not in module.__dict__


def _linear_and_activation(linear: Module, activation: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Return ``activation(linear(x))``, fused if an operator exists and no graph is recorded."""
    relu = activation is F.relu or _is_plain(activation, (ReLU,))
    gelu = activation is F.gelu or (_is_plain(activation, (GELU,)) and activation.approximate == "none")  # type: ignore[attr-defined]
    if not (relu or gelu) or x.ndim < 2 or not _is_plain(linear, (Linear,)) or linear.bias is None:
        return activation(linear(x))
    weight, bias = linear.weight, linear.bias
    if candelabra.is_grad_enabled() and (x.requires_grad or weight.requires_grad or bias.requires_grad):
        return activation(linear(x))
    rows = x if x.ndim == 2 else x.flatten(0, -2)
    made = candelabra._addmm_activation(bias, rows, weight.t(), use_gelu=gelu)
    return made if x.ndim == 2 else made.unflatten(0, x.shape[:-1])


def _copies(module: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


class _TransformerLayer(Module):
    """Share the self-attention, feedforward and normalization layers of encoder and decoder."""

    activation: Callable[[Tensor], Tensor]

    def __init__(self, attentions: tuple[str, ...], d_model: int, nhead: int, dim_feedforward: int, dropout: float,
                 activation: Activation, layer_norm_eps: float, batch_first: bool, norm_first: bool, bias: bool, device: Any,
                 dtype: Any) -> None:  # fmt: skip
        super().__init__()
        options: dict[str, Any] = {"device": device, "dtype": dtype}
        for name in attentions:
            attention = MultiheadAttention(
                d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **options
            )
            self.add_module(name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **options)
        self.norm_first = norm_first
        # One for each attention block, and one for the feedforward block.
        for kind, make in (
            ("norm", lambda: LayerNorm(d_model, layer_norm_eps, bias=bias, **options)),
            ("dropout", lambda: Dropout(dropout)),
        ):
            for number in range(1, len(attentions) + 2):
                self.add_module(f"{kind}{number}", make())
        self.activation = _activation(activation)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("activation", F.relu)

    def _sa_block(
        self, x: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        """Apply the self-attention block."""
        attended = self.self_attn(
            x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal, need_weights=False
        )
        return self.dropout1(attended[0])

    def _network(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(_linear_and_activation(self.linear1, self.activation, x)))


class TransformerEncoderLayer(_TransformerLayer):
    """Apply self-attention and a feedforward network.

    Each has a residual connection and a normalization.

    Parameters
    ----------
    d_model, nhead
        Size of the input, and number of heads.
    dim_feedforward
        Width of the feedforward network.
    dropout
        Dropout probability; used in training only.
    activation
        ``"relu"``, ``"gelu"`` or a function.
    layer_norm_eps
        See `LayerNorm`.
    batch_first
        Whether inputs are (N, S, E) rather than (S, N, E).
    norm_first
        Whether to normalize before attention and feedforward network, rather than after.
    bias
        Whether linear and normalization layers have biases.

    Notes
    -----
    Source: Vaswani et al., Attention Is All You Need, 2017.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.TransformerEncoderLayer(8, 2, 16)(candelabra.randn(5, 3, 8)).shape
    candelabra.Size([5, 3, 8])
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            ("self_attn",), d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device, dtype
        )  # fmt: skip
        if self.activation is F.relu or isinstance(self.activation, ReLU):
            self.activation_relu_or_gelu = 1
        else:
            self.activation_relu_or_gelu = 2 if self.activation is F.gelu or isinstance(self.activation, GELU) else 0

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        if self.norm_first:
            x = src + self._sa_block(self.norm1(src), src_mask, src_key_padding_mask, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(src + self._sa_block(src, src_mask, src_key_padding_mask, is_causal))
        return self.norm2(x + self._ff_block(x))

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout2(self._network(x))


class TransformerDecoderLayer(_TransformerLayer):
    """Apply self-attention, attention to the encoder output, and a feedforward network.

    The parameters are those of `TransformerEncoderLayer`.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.TransformerDecoderLayer(8, 2, 16)(candelabra.randn(5, 3, 8), candelabra.randn(7, 3, 8)).shape
    candelabra.Size([5, 3, 8])
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            ("self_attn", "multihead_attn"), d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first,
            bias, device, dtype,
        )  # fmt: skip

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory, memory_mask, memory_key_padding_mask, memory_is_causal)
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), *other)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, *other))
        return self.norm3(x + self._ff_block(x))

    def _mha_block(
        self, x: Tensor, mem: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        attended = self.multihead_attn(
            x, mem, mem, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal, need_weights=False
        )
        return self.dropout2(attended[0])

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout3(self._network(x))


class TransformerEncoder(Module):
    """Stack copies of a `TransformerEncoderLayer`, with an optional final normalization.

    `enable_nested_tensor` and `mask_check` are accepted but have no effect. In PyTorch they enable
    faster inference over padded batches, which returns zeros at padded positions. Candelabra
    computes these positions like all others.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)(candelabra.randn(3, 5, 8)).shape
    candelabra.Size([3, 5, 8])
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        causal = _is_causal(mask, is_causal, _length(src, self.layers[0].self_attn.batch_first))
        output = src
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=causal, src_key_padding_mask=src_key_padding_mask)
        return output if self.norm is None else self.norm(output)


class TransformerDecoder(Module):
    """Stack copies of a `TransformerDecoderLayer`, with an optional final normalization."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        causal = _is_causal(tgt_mask, tgt_is_causal, _length(tgt, self.layers[0].self_attn.batch_first))
        output = tgt
        for layer in self.layers:
            output = layer(
                output,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return output if self.norm is None else self.norm(output)


class Transformer(Module):
    """Combine an encoder and a decoder.

    Parameters
    ----------
    d_model, nhead, dim_feedforward, dropout, activation
        See `TransformerEncoderLayer`.
    layer_norm_eps, batch_first, norm_first, bias
        See `TransformerEncoderLayer`.
    num_encoder_layers, num_decoder_layers
        Number of encoder and decoder layers.
    custom_encoder, custom_decoder
        Modules that replace the encoder and the decoder.

    Notes
    -----
    Shapes: src (S, N, E), tgt (T, N, E); with `batch_first` (N, S, E) and (N, T, E). The batch
    dimension is optional. The result has the shape of tgt.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> model = nn.Transformer(8, 2, 1, 1, 16)
    >>> tgt = candelabra.randn(4, 3, 8)
    >>> model(candelabra.randn(5, 3, 8), tgt, tgt_mask=model.generate_square_subsequent_mask(4)).shape
    candelabra.Size([4, 3, 8])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        layer = (
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
            bias,
            device,
            dtype,
        )
        norm = {"bias": bias, "device": device, "dtype": dtype}
        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            self.encoder = TransformerEncoder(
                TransformerEncoderLayer(*layer), num_encoder_layers, LayerNorm(d_model, layer_norm_eps, **norm)
            )
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            self.decoder = TransformerDecoder(
                TransformerDecoderLayer(*layer), num_decoder_layers, LayerNorm(d_model, layer_norm_eps, **norm)
            )
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """Return the causal mask (sz, sz): 0 on and below the diagonal, -inf above it.

        Examples
        --------
        >>> from candelabra import nn
        >>> nn.Transformer.generate_square_subsequent_mask(2)
        tensor([[0., -inf],
                [0., 0.]])
        """
        return _causal_mask(sz, device, dtype)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        batch = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[batch] != tgt.shape[batch]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )


__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]
