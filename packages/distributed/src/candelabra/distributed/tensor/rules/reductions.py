"""Operators that reduce dimensions, scan them, or sort along them."""

from __future__ import annotations

from typing import Any

from candelabra import ops

from ..placements import Shard, _NormPartial
from .table import Call, Labels, Row, listed, numbered, rule, without

_COMBINED = {"sum": "sum", "_nansum": "sum", "mean": "sum", "prod": "product", "amax": "max", "amin": "min"}


def _kept(labels: list[Any], dims: tuple[int, ...], keepdim: bool) -> list[Any]:
    if keepdim:
        return without(labels, dims)
    return [label for at, label in enumerate(labels) if at not in dims]


def _reduced(call: Call) -> Labels:
    layout = call.layouts[0]
    labels = numbered(layout)
    dims = listed(call.get("dim"), len(layout.shape))
    op = _COMBINED.get(call.name)
    if op in ("max", "min") and any(layout.shape[dim] % call.parts_of(0, dim) for dim in dims):
        op = None  # a rank may have no elements, and so no extremum
    if op == "product" and not layout.dtype.is_floating_point:
        op = None
    reductions = {} if op is None else {labels[dim]: op for dim in dims}
    # `std` and the like need all values of a dimension: it has no label.
    inputs = labels if op is not None else without(labels, dims)
    out = _kept(labels, dims, bool(call.get("keepdim", False)))
    return Labels([inputs], [out] * call.func.result_count, reductions, linear=[[0]] if op == "sum" else [])


def _mean(call: Call, rows: list[Row], arguments: dict[str, Any], outs: Any) -> Any:
    """Sum, and divide by the number of elements of the whole tensor."""
    layout = call.layouts[0]
    count = 1
    for dim in listed(call.get("dim"), len(layout.shape)):
        count *= layout.shape[dim]
    local = arguments.pop("self")
    made = ops.sum(local, **arguments)
    if not made.is_floating_point() and not made.is_complex():
        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or complex"
        )
    return made / count if count else made / 0.0


def _norm(call: Call) -> list[Row]:
    """Return the rows of a norm: slices of reduced dimensions give norms of parts."""
    layout = call.layouts[0]
    labels = numbered(layout)
    dims = listed(call.get("dim"), len(layout.shape))
    out = _kept(labels, dims, bool(call.get("keepdim", False)))
    rows = Labels([without(labels, dims)], [out]).rows(call)
    p = float(call.get("ord", 2))
    pending = _NormPartial("sum", p)
    place = call.placed(0)
    is_empty = p in (float("inf"), float("-inf")) and any(layout.shape[dim] % call.parts_of(0, dim) for dim in dims)
    if (isinstance(place, Shard) and place.dim in dims and not is_empty) or place == pending:
        rows.append(Row((pending,), (place,)))
    return rows


def _scanned(call: Call) -> Labels:
    """Return the labels of operators that need all values along one dimension, which they keep."""
    layout = call.layouts[0]
    labels = without(numbered(layout), listed(call.get("dim", -1), len(layout.shape)) if layout.shape else ())
    linear = [[0]] if call.name == "cumsum" else []
    return Labels([labels], [labels] * call.func.result_count, linear=linear)


def _of_matrices(call: Call) -> Labels:
    """Return the labels of operators on the last two dimensions."""
    rank = len(call.layouts[0].shape)
    labels = without(numbered(call.layouts[0]), (rank - 2, rank - 1))
    return Labels([labels], [labels], linear=[[0]])


rule("sum _nansum prod amax amin any all argmax argmin std var logsumexp max_with_indices min_with_indices _aminmax "
     "count_nonzero", _reduced)  # fmt: skip
rule("mean", _reduced, local=_mean)
rule("linalg_vector_norm", rows=_norm)
rule("softmax log_softmax cumsum cumprod logcumsumexp sort topk _cummax_cummin", _scanned)
rule("tril triu", _of_matrices)


def _softmax_backward(call: Call) -> Labels:
    layout = call.layouts[0]
    labels = without(numbered(layout), listed(call.get("dim"), len(layout.shape)))
    return Labels([labels, labels], [labels], linear=[[0]])


rule("softmax_backward log_softmax_backward", _softmax_backward)
