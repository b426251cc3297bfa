"""Operators that compute each element of the result from those at its place."""

from __future__ import annotations

from candelabra import ops

from ..placements import Partial, Replicate, Shard
from .table import RULES, Call, Labels, Row, rule

#: Jointly linear in these tensors, by number.
_LINEAR: dict[str, list[list[int]]] = {
    "add": [[0, 1]],
    "sub": [[0, 1]],
    "neg": [[0]],
    "mul": [[0], [1]],
    "div": [[0]],
    "where": [[1, 2]],
    "threshold_backward": [[0]],
    "to": [[0]],
    "clone": [[0]],
    "contiguous": [[0]],
    "alias": [[0]],
    "detach": [[0]],
    "copy_": [[0, 1]],
    "_to_copy": [[0]],
}
#: Of pending reductions of any kind they are one of the same kind.
_KEEPS = {"clone", "contiguous", "alias", "detach", "copy_", "to", "_to_copy"}
_RANDOM = {"bernoulli", "bernoulli_", "exponential_", "normal_", "random_range_", "uniform_"}
_MORE = """
    alias clone contiguous copy_ detach elu_backward frexp gcd gelu_backward hardsigmoid_backward
    hardswish_backward hardtanh_backward huber_error huber_error_backward lcm leaky_relu_backward
    log_sigmoid_backward mish_backward shrink_backward sigmoid_backward silu_backward
    softplus_backward squared_error squared_error_backward tanh_backward threshold_backward to
    _to_copy zeros_like ones_like empty_like full_like
"""


def pointwise(call: Call) -> list[Row]:
    """Return the rows: all slices of the result, and pending sums where the operator is linear."""
    rank = max((len(layout.shape) for layout in call.layouts), default=0)
    sizes = [1] * rank
    for layout in call.layouts:
        for at, size in enumerate(layout.shape, rank - len(layout.shape)):
            sizes[at] = size if sizes[at] == 1 else sizes[at]
    names = [
        [at if size == sizes[at] else None for at, size in enumerate(layout.shape, rank - len(layout.shape))]
        for layout in call.layouts
    ]
    labels = Labels(
        names, [list(range(rank))] * call.func.result_count, linear=_linear(call), keeps=call.name in _KEEPS
    )
    rows = labels.rows(call)
    # Tensors of one shape that are sliced alike stay so, in whatever way.
    placed = {call.placed(k) for k in range(len(call.layouts))}
    if len({layout.shape for layout in call.layouts}) == 1 and len(placed) == 1:
        (place,) = placed
        if isinstance(place, Shard):
            rows.insert(0, Row((place,) * call.func.result_count, (place,) * len(call.layouts)))
    return rows


def _linear(call: Call) -> list[list[int]]:
    linear = _LINEAR.get(call.name, [])
    if call.name in ("to", "_to_copy", "copy_"):
        kinds = {layout.dtype for layout in call.layouts} | {call.get("dtype") or call.layouts[0].dtype}
        return linear if all(kind.is_floating_point for kind in kinds) else []
    if call.name == "where":
        return linear if len(call.layouts) == 3 else []
    if call.name in ("add", "sub"):
        return linear if len(call.layouts) == 2 else []  # a number would be added on each rank
    if call.name == "mul" and len(call.layouts) == 1:
        return [[0]]
    if call.name == "div" and (call.get("rounding_mode") or not hasattr(call.get("self"), "shape")):
        return []
    return linear


def like(call: Call) -> list[Row]:
    """Return the rows of operators that take a shape only: the result is where the tensor is."""
    place = call.placed(0)
    out = Replicate() if isinstance(place, Partial) else place
    if call.name == "zeros_like" and isinstance(place, Partial) and place.reduce_op == "sum":
        out = place
    return [Row((out,), (place,))]


_likes = {"zeros_like", "ones_like", "empty_like", "full_like"}
rule(sorted(_likes), rows=like)
_names = {name for name in dir(ops) if getattr(getattr(ops, name), "elementwise", False)}
_names = {name for name in _names if not name.endswith("_") or name == "fill_"} | set(_MORE.split())
rule(sorted(_names - _likes - _RANDOM - set(RULES)), rows=pointwise)
