"""Operators that read or write elements by indices."""

from __future__ import annotations

from typing import Any

from .table import Call, Labels, Names, numbered, rule


def _gather(call: Call) -> Labels:
    """Return the labels of operators along one dimension of tensors of one rank."""
    shapes = [layout.shape for layout in call.layouts]
    rank = len(shapes[0])
    dim = call.get("dim") % rank if rank else 0
    labels = [
        at if at != dim and all(len(shape) == rank and shape[at] == shapes[0][at] for shape in shapes) else None
        for at in range(rank)
    ]
    inputs = [labels if len(shape) == rank else [None] * len(shape) for shape in shapes]
    return Labels(inputs, [labels], linear=[[0]] if call.name == "gather" else [])


def _index_select(call: Call) -> Labels:
    labels = numbered(call.layouts[0])
    dim = call.get("dim") % len(labels)
    index: Names = ["i"] if len(call.layouts[1].shape) else []
    labels[dim] = None
    return Labels([labels, index], [[*labels[:dim], *(index or [None]), *labels[dim + 1 :]]], linear=[[0]])


def _index_add(call: Call) -> Labels:
    """Return the labels of operators that write slices along one dimension."""
    shape = call.layouts[0].shape
    dim = call.get("dim") % len(shape)
    labels = [None if at == dim else at for at in range(len(shape))]
    inputs: list[Any] = [labels, [None] * len(call.layouts[1].shape)]
    inputs += [labels if len(layout.shape) == len(shape) else [] for layout in call.layouts[2:]]
    return Labels(inputs, [labels])


def _index(call: Call) -> Labels:
    """Return the labels of indexing by tensors of numbers: dimensions that are not indexed have
    one.

    The values that `index_put` writes have those of what `index` reads.
    """
    rank = len(call.layouts[0].shape)
    given = list(call.get("indices"))
    used = [at for at, each in enumerate(given) if each is not None]
    labels: list[Any] = [None] * rank
    is_adjacent = used == list(range(used[0], used[-1] + 1))
    is_mask = any(str(each.dtype).endswith("bool") for each in given if each is not None)
    shapes = [layout.shape for layout in call.layouts[1 : 1 + len(used)]]
    inner = max(len(shape) for shape in shapes)
    out: list[Any] = []
    if is_adjacent and not is_mask:
        labels = [None if at in used else at for at in range(rank)]
        out = [*labels[: used[0]], *[None] * inner, *labels[used[-1] + 1 :]]
    elif not is_mask:
        out = [None] * (inner + rank - len(used))
    else:
        raise NotImplementedError(
            f"the operator {call.name} has no rule for a DTensor and a mask: compute it on to_local() or full_tensor()"
        )
    numbers = [[None] * len(shape) for shape in shapes]
    if call.name == "index":
        return Labels([labels, *numbers], [out], linear=[[0]])
    values = call.layouts[-1].shape
    if len(values) != len(out):
        labels, out = [None] * rank, [None] * len(values)
    return Labels([labels, *numbers, out], [labels], linear=[[0, len(shapes) + 1]] if call.get("accumulate") else [])


rule("gather scatter scatter_add scatter_reduce", _gather)
rule("index_select", _index_select)
rule("index_add index_copy index_fill", _index_add)
rule("index index_put", _index)
