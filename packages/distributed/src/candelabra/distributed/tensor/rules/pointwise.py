"""Operators that compute each element of the result from those at its place."""

from __future__ import annotations

from collections.abc import Sequence

from candelabra import ops

from ..layout import Layout
from ..placements import Partial, Replicate, Shard
from .table import RULES, Call, Labels, Row, rule

#: Linear in the first tensor, whatever the others are.
_LINEAR = {"neg", "threshold_backward"}
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
    labels = Labels(names, [list(range(rank))] * call.func.result_count, linear=_linear(call), keeps=_keeps(call))
    rows = labels.rows(call)
    # Tensors of one shape that are sliced alike stay so, in whatever way.
    placed = {call.placed(k) for k in range(len(call.layouts))}
    if len({layout.shape for layout in call.layouts}) == 1 and len(placed) == 1:
        (place,) = placed
        if isinstance(place, Shard):
            rows.insert(0, Row((place,) * call.func.result_count, (place,) * len(call.layouts)))
    return rows


def _keeps(call: Call) -> bool:
    """Return whether the result has any pending reduction, too: of copies that do not round."""
    if call.name not in _KEEPS:
        return False
    kinds = {layout.dtype for layout in call.layouts}
    if call.name in ("to", "_to_copy"):
        kinds.add(call.on_whole().dtype)
    return len(kinds) == 1 or all(kind.is_floating_point or kind.is_complex for kind in kinds)


def _linear(call: Call) -> Sequence[Sequence[int]]:
    count = len(call.layouts)
    if call.name in ("add", "sub"):
        return [[0, 1]] if count == 2 else []  # a number would be added on each rank
    if call.name == "mul":
        return [[0], [1]] if count == 2 else [[0]]
    if call.name == "div":
        return [[0]] if not call.get("rounding_mode") and isinstance(call.get("self"), Layout) else []
    if call.name == "where":
        return [[1, 2]] if count == 3 else []
    if call.name == "fill_":
        return [[0]] if call.get("value") == 0 else []
    return [[0]] if call.name in _LINEAR else []


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
