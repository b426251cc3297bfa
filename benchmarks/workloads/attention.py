"""Attention: plain, causal and masked, forward and backward, and one query with a KV cache."""

from __future__ import annotations

from typing import Any

from ..inputs import Input, booleans, normal
from ..workload import Workload, both_ways, forward, layer


def _attention(
    name: str, shape: tuple[int, int, int, int], causal: bool = False, dtype: str = "float32", backward: bool = False
) -> Workload:
    inputs = [normal(*shape, dtype=dtype, grad=backward, number=number) for number in range(3)]
    batch, heads, length, size = shape
    operations = 4.0 * batch * heads * length**2 * size * (0.5 if causal else 1.0) * (3.5 if backward else 1.0)
    build = both_ways if backward else forward
    return build(name, _function(is_causal=causal), *inputs, operations=operations, rate=dtype)


def _function(**options: Any) -> Any:
    return lambda xp, q, k, v, *mask: xp.nn.functional.scaled_dot_product_attention(q, k, v, *mask, **options)


def _three(*shape: int, grad: bool = False) -> list[Input]:
    return [normal(*shape, grad=grad, number=number) for number in range(3)]


GPT = (8, 8, 256, 64)

WORKLOADS = [
    _attention("2x4x128x32, forward and backward", (2, 4, 128, 32), backward=True),
    _attention("1x1x8x16", (1, 1, 8, 16)),
    _attention("1x8x64x64", (1, 8, 64, 64)),
    _attention("8x8x256x64, causal", GPT, True),
    _attention("8x8x256x64, causal, forward and backward", GPT, True, backward=True),
    _attention("2x8x1024x64", (2, 8, 1024, 64)),
    _attention("2x8x1024x64, causal", (2, 8, 1024, 64), True),
    _attention("2x8x1024x64, forward and backward", (2, 8, 1024, 64), backward=True),
    _attention("2x8x1024x64, bfloat16", (2, 8, 1024, 64), dtype="bfloat16"),
    forward("8x8x256x64, masked", _function(), *_three(*GPT), booleans(8, 1, 256, 256), operations=4.0 * 64 * 256**2 * 64),
    both_ways("8x8x256x64, masked by numbers, forward and backward", _function(), *_three(*GPT, grad=True), normal(256, 256), operations=14.0 * 64 * 256**2 * 64),
    forward("one query, 1024 keys, 4x8x64", _function(), normal(4, 8, 1, 64), normal(4, 8, 1024, 64), normal(4, 8, 1024, 64, number=1)),
    forward(
        "8 heads of 2 keys, 2x8x512x64", _function(enable_gqa=True), normal(2, 8, 512, 64), normal(2, 2, 512, 64), normal(2, 2, 512, 64, number=1),
        operations=4.0 * 16 * 512**2 * 64,
    ),
    forward("heads transposed, 8x256x8x64", lambda xp, *given: _function(is_causal=True)(xp, *(x.transpose(1, 2) for x in given)), *_three(8, 256, 8, 64), operations=2.0 * 64 * 256**2 * 64),
    layer("nn.MultiheadAttention, 8 x 128 x 256, inference", lambda xp: _self_attention(xp), normal(8, 128, 256), operations=8.0 * 1024 * 256**2),
    layer("nn.MultiheadAttention, forward and backward", lambda xp: _self_attention(xp), normal(8, 128, 256, grad=True), backward=True, operations=24.0 * 1024 * 256**2),
    layer(
        "nn.TransformerEncoderLayer, inference, 8 x 128 x 256", lambda xp: xp.nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True).eval(),
        normal(8, 128, 256), operations=24.0 * 1024 * 256**2, tolerance=1e-3,
    ),
]  # fmt: skip


def _self_attention(xp: Any) -> Any:
    """Return self-attention as a module of one argument."""

    class SelfAttention(xp.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.inner = xp.nn.MultiheadAttention(256, 8, batch_first=True)

        def forward(self, x: Any) -> Any:
            return self.inner(x, x, x, need_weights=False)[0]

    return SelfAttention()
