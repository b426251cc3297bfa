"""Operators that show, join or rearrange elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from candelabra import ops

from ..layout import local_shape_and_offset
from .table import Call, Labels, listed, numbered, rule


def _shown(inputs: list[Any], outputs: list[Any], count: int = 1) -> Labels:
    return Labels([inputs], [outputs] * count, keeps=True)


def _transpose(call: Call) -> Labels:
    labels = numbered(call.layouts[0])
    out = list(labels)
    if labels:
        a, b = call.get("dim0") % len(labels), call.get("dim1") % len(labels)
        out[a], out[b] = out[b], out[a]
    return _shown(labels, out)


def _t(call: Call) -> Labels:
    labels = numbered(call.layouts[0])
    return _shown(labels, labels[::-1])


def _permute(call: Call) -> Labels:
    labels = numbered(call.layouts[0])
    return _shown(labels, [labels[dim] for dim in listed(call.get("dims"), len(labels))] if labels else [])


def _movedim(call: Call) -> Labels:
    labels = numbered(call.layouts[0])
    source, target = (listed(call.get(name), len(labels)) for name in ("source", "destination"))
    rest = iter([at for at in range(len(labels)) if at not in source])
    places = dict(zip(target, source, strict=True))
    return _shown(labels, [labels[places[at]] if at in places else labels[next(rest)] for at in range(len(labels))])


def _unsqueeze(call: Call) -> Labels:
    labels = numbered(call.layouts[0])
    at = call.get("dim") % (len(labels) + 1)
    return _shown(labels, [*labels[:at], None, *labels[at:]])


def _squeeze(call: Call) -> Labels:
    shape = call.layouts[0].shape
    dims = listed(call.get("dim"), len(shape)) if call.get("dim") != () else ()
    gone = {dim for dim in dims if shape and shape[dim] == 1}
    labels = [None if at in gone else at for at in range(len(shape))]
    return _shown(labels, [label for label in labels if label is not None])


def _expand(call: Call) -> Labels:
    shape, size = call.layouts[0].shape, list(call.get("size"))
    new = len(size) - len(shape)
    labels = [at if size[at + new] in (-1, n) else None for at, n in enumerate(shape)]
    return _shown(labels, [*[None] * new, *labels])


def _narrowed(call: Call) -> Labels:
    """Return the labels of operators that show a part along one dimension, or split it."""
    layout = call.layouts[0]
    dim = call.get("dim", 0) % len(layout.shape)
    labels = numbered(layout)
    if call.name != "slice" or (call.get("start"), call.get("end"), call.get("step", 1)) != (None, None, 1):
        labels[dim] = None
    out = labels if call.name != "select" else [*labels[:dim], *labels[dim + 1 :]]
    return _shown(labels, out)


def _diagonal(call: Call) -> Labels:
    rank = len(call.layouts[0].shape)
    dims = {call.get("dim1", 0) % rank, call.get("dim2", 1) % rank}
    labels = [None if at in dims else at for at in range(rank)]
    return _shown(labels, [*[at for at in range(rank) if at not in dims], None])


def _unfold(call: Call) -> Labels:
    rank = len(call.layouts[0].shape)
    labels = [None if at == call.get("dimension") % rank else at for at in range(rank)]
    return _shown(labels, [*labels, None])


def _as_complex(call: Call) -> Labels:
    labels = numbered(call.layouts[0])
    if call.name == "view_as_real":
        return Labels([labels], [[*labels, None]], linear=[[0]])
    return Labels([[*labels[:-1], None]], [labels[:-1]], linear=[[0]])


def _flip(call: Call) -> Labels:
    labels = numbered(call.layouts[0])
    dims = listed(call.get("dims"), len(labels)) if labels and len(call.get("dims")) else ()
    labels = [None if at in dims else at for at in range(len(labels))]
    return _shown(labels, labels)


def _view(call: Call) -> Labels:
    """Return the labels of a view of another shape.

    The shapes are cut into groups of dimensions with as many elements. A slice along the first
    dimension of a group is one along the first dimension of the other group, if both divide evenly.
    """
    layout = call.layouts[0]
    if call.name == "unflatten":
        dim = call.get("dim") % len(layout.shape)
        wanted = [*layout.shape[:dim], *call.get("sizes"), *layout.shape[dim + 1 :]]
    else:
        wanted = list(call.get("size" if call.name == "view" else "shape"))
    known = math.prod(size for size in wanted if size != -1)
    size = [math.prod(layout.shape) // known if each == -1 and known else each for each in wanted]
    labels: list[Any] = [None] * len(layout.shape)
    out: list[Any] = [None] * len(size)
    for old, new in _groups(layout.shape, size):
        first = next((at for at in old if layout.shape[at] != 1), None)
        other = next((at for at in new if size[at] != 1), None)
        if first is None or other is None:
            continue
        parts = call.parts_of(0, first)
        same = layout.shape[first] == size[other]
        if same or (layout.shape[first] % parts == 0 and size[other] % parts == 0):
            labels[first] = out[other] = first
    return _shown(labels, out)


def _groups(old: Sequence[int], new: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Return groups of dimensions of two shapes with as many elements."""
    if math.prod(old) == 0:
        return [([at], [at]) for at in range(min(len(old), len(new))) if list(old[: at + 1]) == list(new[: at + 1])]
    groups = []
    i = j = 0
    while i < len(old) or j < len(new):
        a, b = [i] if i < len(old) else [], [j] if j < len(new) else []
        i, j = i + len(a), j + len(b)
        while (left := math.prod(old[at] for at in a)) != (right := math.prod(new[at] for at in b)):
            if left < right:
                a.append(i)
                i += 1
            else:
                b.append(j)
                j += 1
        groups.append((a, b))
    return groups


def _cat(call: Call) -> Labels:
    if call.name == "stack":
        labels = numbered(call.layouts[0])
        at = call.get("dim", 0) % (len(labels) + 1)
        return Labels([labels] * len(call.layouts), [[*labels[:at], None, *labels[at:]]], keeps=True)
    dim = call.get("dim", 0) % max(len(layout.shape) for layout in call.layouts)
    inputs = [[None if at == dim else at for at in range(len(layout.shape))] for layout in call.layouts]
    return Labels(inputs, [max(inputs, key=len)], keeps=True)


def _pad(call: Call) -> Labels:
    rank = len(call.layouts[0].shape)
    labels = [at if at < rank - len(call.get("padding")) // 2 else None for at in range(rank)]
    return Labels([labels], [labels])


def _local_view(call: Call, rows: Any, arguments: dict[str, Any], outs: Any) -> Any:
    """View the part. It may be laid out otherwise than the whole tensor, so that it is copied."""
    shape, _ = local_shape_and_offset(outs[0].shape, call.mesh, outs[0].placements)
    return ops.reshape(arguments["self"], list(shape))


rule("transpose", _transpose)
rule("t", _t)
rule("permute", _permute)
rule("movedim", _movedim)
rule("unsqueeze", _unsqueeze)
rule("squeeze", _squeeze, local=_local_view)
rule("expand", _expand, sizes={"size": 0})
rule("narrow slice select split", _narrowed)
rule("diagonal", _diagonal)
rule("unfold", _unfold)
rule("view_as_real view_as_complex", _as_complex)
rule("flip", _flip)
rule("cat stack", _cat)
rule("_constant_pad_nd", _pad)

rule("view reshape unflatten", _view, local=_local_view)
