"""Rules of attention and embeddings."""

from __future__ import annotations

import itertools

import candelabra

from ..builder import INT64, Builder, Value
from .table import rule


def _repeated(b: Builder, value: Value, heads: int) -> str:
    """Return keys or values with one head for each head of the queries."""
    batch, groups, length, width = value.shape
    if groups == heads:
        return b.name(value)
    count = heads // b.static(groups, "the number of heads")
    wide = b.op("Expand", b.unsqueeze(value, 2), b.sizes([1, 1, count, 1, 1]))
    return b.reshape(wide, [batch, heads, length, width])


def _causal(b: Builder, query: Value, key: Value) -> str:
    """Return which keys a query may see: those up to its own position."""
    rows, columns = query.shape[2], key.shape[2]
    if isinstance(rows, int) and isinstance(columns, int):
        return b.tensor(candelabra.ones(rows, columns, dtype=candelabra.bool).tril())
    zero, one = b.constant(0), b.constant(1)
    first = b.unsqueeze(b.op("Range", zero, b.number(rows), one), 1)
    return b.op("LessOrEqual", b.op("Range", zero, b.number(columns), one), first)


@rule("_scaled_dot_product_attention")
def _scaled_dot_product_attention(
    b: Builder, query: Value, key: Value, value: Value, mask: Value | None, is_causal: bool, scale: float
) -> list[str | None]:
    dtype = query.dtype
    heads = b.static(query.shape[1], "the number of heads")
    keys, values = _repeated(b, key, heads), _repeated(b, value, heads)
    scaled = b.op("Mul", query, b.constant(scale, dtype))
    scores = b.op("MatMul", scaled, b.transpose(keys, [0, 1, 3, 2]))
    lowest = b.constant(-float("inf"), dtype)
    has_empty_rows = False
    if is_causal:
        scores = b.op("Where", _causal(b, query, key), scores, lowest)
    if mask is not None and mask.dtype is candelabra.bool:
        scores = b.op("Where", mask, scores, lowest)
        has_empty_rows = True
    elif mask is not None:
        scores = b.op("Add", scores, b.cast(mask, dtype))
    weights = b.op("Softmax", scores, axis=-1)
    if has_empty_rows:
        # Queries whose keys are all masked have a result of zero.
        weights = b.op("Where", b.op("IsNaN", weights), b.constant(0, dtype), weights)
    return [b.op("MatMul", weights, values), None]


@rule("embedding")
def _embedding(b: Builder, weight: Value, indices: Value, padding_idx: int = -1) -> str:
    return b.op("Gather", weight, b.cast(indices, INT64), axis=0)


@rule("_embedding_bag")
def _embedding_bag(
    b: Builder, weight: Value, indices: Value, offsets: Value, mode: str, per_sample_weights: Value | None, scale_grad_by_freq: bool,
    include_last_offset: bool, padding_idx: int,
) -> list[str | None]:  # fmt: skip
    """Bags of one length, which is that of bags that are given as a matrix."""
    count = b.static(indices.shape[0], "the number of indices")
    starts = None if offsets.tensor is None else [*offsets.tensor.tolist(), *([] if include_last_offset else [count])]
    lengths = set() if starts is None else {end - start for start, end in itertools.pairwise(starts)}
    if len(lengths) != 1 or 0 in lengths or padding_idx >= 0:
        b.refuse("the bags are not a matrix, or have a padding_idx")
    length = lengths.pop()
    rows = b.op("Gather", weight, b.cast(indices, INT64), axis=0)
    if per_sample_weights is not None:
        rows = b.op("Mul", rows, b.unsqueeze(per_sample_weights, 1))
    bags = b.reshape(rows, [count // length, length, weight.shape[1]])
    kind = {"sum": "ReduceSum", "mean": "ReduceMean", "max": "ReduceMax"}[mode]
    return [b.op(kind, bags, b.constant([1]), keepdims=0), None, None, None]
