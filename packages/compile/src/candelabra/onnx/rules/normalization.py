"""Rules of normalization and dropout."""

from __future__ import annotations

from collections.abc import Sequence

import candelabra

from ..builder import FLOAT, Builder, Value
from .table import rule


def _ones(b: Builder, count: int, dtype: candelabra.dtype, value: float = 1.0) -> str:
    return b.tensor(candelabra.full((count,), value, dtype=dtype))


@rule("native_batch_norm")
def _native_batch_norm(
    b: Builder, input: Value, weight: Value | None, bias: Value | None, running_mean: Value | None, running_var: Value | None,
    training: bool, momentum: float, eps: float,
) -> list[str | None]:  # fmt: skip
    channels = b.static(input.shape[1], "the number of channels")
    like = running_mean or weight
    dtype = input.dtype if like is None else like.dtype
    scale = _ones(b, channels, dtype) if weight is None else b.name(weight)
    offset = _ones(b, channels, dtype, 0.0) if bias is None else b.name(bias)
    if not training and running_mean is not None:
        return [b.op("BatchNormalization", input, scale, offset, running_mean, running_var, epsilon=eps), None, None]
    dims = b.constant([dim for dim in range(input.rank) if dim != 1])
    mean = b.op("ReduceMean", input, dims, keepdims=0)
    shape = [channels, *(1 for _ in range(input.rank - 2))]
    centered = b.op("Sub", input, b.reshape(mean, shape))
    variance = b.op("ReduceMean", b.op("Mul", centered, centered), dims, keepdims=0)
    mean, variance = (b.cast(one, dtype, input.dtype) for one in (mean, variance))
    return [b.op("BatchNormalization", input, scale, offset, mean, variance, epsilon=eps), mean, None]


@rule("native_layer_norm")
def _native_layer_norm(
    b: Builder, input: Value, normalized_shape: Sequence[int], weight: Value | None = None, bias: Value | None = None, eps: float = 1e-5
) -> list[str | None]:  # fmt: skip
    scale = b.name(weight)
    if not scale:
        scale = b.expand(b.constant(1.0, input.dtype), list(normalized_shape))
    return [b.op("LayerNormalization", input, scale, bias, axis=-len(normalized_shape), epsilon=eps), None, None]


@rule("native_group_norm")
def _native_group_norm(
    b: Builder, input: Value, weight: Value | None, bias: Value | None, num_groups: int, eps: float
) -> list[str | None]:
    channels = b.static(input.shape[1], "the number of channels")
    groups = b.reshape(input, [input.shape[0], num_groups, -1])
    normal = b.op(
        "InstanceNormalization",
        groups,
        _ones(b, num_groups, input.dtype),
        _ones(b, num_groups, input.dtype, 0.0),
        epsilon=eps,
    )
    found = b.op("Reshape", normal, b.op("Shape", input))
    shape = [channels, *(1 for _ in range(input.rank - 2))]
    for kind, factor in (("Mul", weight), ("Add", bias)):
        if factor is not None:
            found = b.op(kind, found, b.reshape(factor, shape))
    return [found, None, None]


@rule("_fused_rms_norm")
def _fused_rms_norm(
    b: Builder, input: Value, normalized_shape: Sequence[int], weight: Value | None, eps: float
) -> list[str | None]:
    inner = input.dtype if input.dtype is candelabra.float64 else FLOAT
    x = b.cast(input, inner)
    dims = b.constant([dim - len(normalized_shape) for dim in range(len(normalized_shape))])
    mean = b.op("ReduceMean", b.op("Mul", x, x), dims, keepdims=1)
    scale = b.op("Reciprocal", b.op("Sqrt", b.op("Add", mean, b.constant(eps, inner))))
    found = b.op("Mul", x, scale)
    if weight is not None:
        found = b.op("Mul", found, b.cast(weight, inner))
    return [b.cast(found, b.result.dtype, inner), scale]


@rule("native_dropout")
def _native_dropout(b: Builder, input: Value, p: float) -> list[str]:
    return b.several("Dropout", 2, input, b.constant(float(p), FLOAT), b.constant(True, candelabra.bool))
