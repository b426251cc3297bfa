"""Operators of network layers: normalisations, attention, pooling and embeddings."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import ops

from ..layout import local_shape_and_offset
from ..placements import Partial, Replicate, Shard
from .table import Call, Labels, Row, rule

# ---- normalisations


def _layer_norm(call: Call) -> Labels:
    rank = len(call.layouts[0].shape)
    kept = rank - len(call.get("normalized_shape"))
    batch, inner = list(range(kept)), [None] * (rank - kept)
    inputs = [[*batch, *inner], *([None] * len(layout.shape) for layout in call.layouts[1:])]
    return Labels(inputs, [[*batch, *inner], *[[*batch, *inner]] * (call.func.result_count - 1)])


def _layer_norm_backward(call: Call) -> Labels:
    rank = len(call.layouts[0].shape)
    kept = rank - len(call.get("normalized_shape"))
    batch, inner = list(range(kept)), [None] * (rank - kept)
    count = 4 if call.name == "native_layer_norm_backward" else 3
    inputs = [[*batch, *inner]] * count + [inner] * (len(call.layouts) - count)
    outputs = [[*batch, *inner], *[inner] * (call.func.result_count - 1)]
    return Labels(inputs, outputs, dict.fromkeys(batch, "sum"))


def _group_norm(call: Call) -> Labels:
    rank = len(call.layouts[0].shape)
    inputs = [["b", *[None] * (rank - 1)], *([None] * len(layout.shape) for layout in call.layouts[1:])]
    return Labels(inputs, [inputs[0], ["b", None], ["b", None]])


def _group_norm_backward(call: Call) -> Labels:
    rank = len(call.layouts[0].shape)
    whole = ["b", *[None] * (rank - 1)]
    statistics = [["b", *[None] * (len(call.layouts[k].shape) - 1)] for k in (2, 3)]
    weights = [[None]] * (len(call.layouts) - 4)
    return Labels([whole, whole, *statistics, *weights], [whole, [None], [None]], {"b": "sum"})


rule("native_layer_norm _fused_rms_norm", _layer_norm)
rule("native_layer_norm_backward _fused_rms_norm_backward", _layer_norm_backward)
rule("native_group_norm", _group_norm)
rule("native_group_norm_backward", _group_norm_backward)


# ---- attention: the leading dimensions are batches and heads


def _attention(call: Call) -> Labels:
    rank = len(call.layouts[0].shape)
    batch = _shared_batch(call, 3)
    whole = [*batch, None, None]
    inputs: list[Any] = [whole] * 3
    if len(call.layouts) > 3:
        inputs.append(_mask(call, 3, batch, rank))
    return Labels(inputs, [whole, [*batch, None]])


def _attention_backward(call: Call) -> Labels:
    rank = len(call.layouts[0].shape)
    batch = _shared_batch(call, 4)
    whole = [*batch, None, None]
    inputs: list[Any] = [whole] * 4
    if len(call.layouts) > 6:
        inputs.append(_mask(call, 4, batch, rank))
    return Labels([*inputs, whole, [*batch, None]], [whole] * 3, linear=[[0]])


def _shared_batch(call: Call, count: int) -> list[Any]:
    """Return the labels of the leading dimensions that are as long in all tensors."""
    shapes = [layout.shape for layout in call.layouts[:count]]
    return [
        at if len({len(shape) for shape in shapes}) == 1 and len({shape[at] for shape in shapes}) == 1 else None
        for at in range(len(shapes[0]) - 2)
    ]


def _mask(call: Call, k: int, batch: list[Any], rank: int) -> list[Any]:
    shape = call.layouts[k].shape
    start = rank - len(shape)
    return [
        batch[at] if at < rank - 2 and size == call.layouts[0].shape[at] else None
        for at, size in enumerate(shape, start)
    ]


rule("_scaled_dot_product_attention", _attention)
rule("_scaled_dot_product_attention_backward", _attention_backward)


# ---- pooling: the last dimensions are space


def _pool(call: Call) -> Labels:
    if call.name.startswith("adaptive"):
        space = len(call.get("output_size"))
    else:
        space = len(call.get("kernel_size"))
    rank = len(call.layouts[0].shape)
    labels = [at if at < rank - space else None for at in range(rank)]
    return Labels([labels], [labels] * call.func.result_count)


def _pool_backward(call: Call) -> Labels:
    rank = len(call.layouts[0].shape)
    labels = [at if at < rank - 3 or (at < rank - 2 and rank == 4) else None for at in range(rank)]
    return Labels([labels] * len(call.layouts), [labels])


rule("max_pool max_pool_values avg_pool adaptive_avg_pool adaptive_max_pool", _pool)
rule("max_pool_backward avg_pool_backward adaptive_avg_pool_backward", _pool_backward, sizes={"input_size": 0})


# ---- embeddings


def _embedding(call: Call) -> list[Row]:
    indices = [f"i{at}" for at in range(len(call.layouts[1].shape))]
    rows = Labels([[None, "e"], indices], [[*indices, "e"]]).rows(call)
    rows.append(Row((Partial(),), (Shard(0), Replicate())))
    return rows


def _local_embedding(call: Call, rows: list[Row], arguments: dict[str, Any], outs: Any) -> Any:
    """Look up the rows that are in this part of the table; the others are zero here."""
    if not any(row.inputs[0] == Shard(0) for row in rows):
        return ops.embedding(**arguments)
    weight, indices = arguments["weight"], arguments["indices"]
    placements = tuple(row.inputs[0] for row in rows)
    _, offset = local_shape_and_offset(call.layouts[0].shape, call.mesh, placements)
    if not weight.shape[0]:
        return candelabra.zeros((*indices.shape, weight.shape[1]), dtype=weight.dtype, device=weight.device)
    own = indices - offset[0]
    is_here = (own >= 0) & (own < weight.shape[0])
    made = ops.embedding(weight, own.masked_fill(~is_here, 0))
    return made.masked_fill(~is_here.unsqueeze(-1), 0)


def _embedding_backward(call: Call) -> Labels:
    indices = [f"i{at}" for at in range(len(call.layouts[1].shape))]
    return Labels([[*indices, "e"], indices], [[None, "e"]], dict.fromkeys(indices, "sum"), linear=[[0]])


rule("embedding", rows=_embedding, local=_local_embedding)
rule("embedding_backward", _embedding_backward)
