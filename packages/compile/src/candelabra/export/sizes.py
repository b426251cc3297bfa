"""Sizes of other calls: numbers that differ between recordings become formulas of sizes."""

from __future__ import annotations

from typing import Any, NamedTuple

import candelabra
from candelabra import Tensor

from .graph import ExportError, Node, Ref, Size, find_operator, walk
from .recording import Recording

#: Pairs of sizes whose products are tried.
_MOST_FACTORS = 48
_MOST_DIVISOR = 64

Numbers = tuple[int, ...]


class _Known(NamedTuple):
    """The sizes that differ between the recordings, and where they are found."""

    #: By the numbers that a size has in the recordings: a value and its dimension.
    sizes: dict[Numbers, tuple[int, int]]


def unify(recordings: list[Recording]) -> Recording:
    """Return the first recording with formulas for the numbers that differ in the others.

    Raises
    ------
    ExportError
        If the recordings differ in anything else, or a number follows from no sizes.
    """
    first = recordings[0]
    if len(recordings) == 1:
        return first
    _check_same_path(recordings)
    _check_constants(recordings)
    known = _Known({})
    produced = {number for node in first.nodes for number in node.outputs if number is not None}
    for number in first.described:
        if number not in produced:
            _learn(known, recordings, number)
    for nodes in zip(*(recording.nodes for recording in recordings), strict=True):
        node = nodes[0]
        names = find_operator(node.op).parameters
        node.args = [_unified([one.args[k] for one in nodes], node, names[k], known) for k in range(len(node.args))]
        node.kwargs = {key: _unified([one.kwargs[key] for one in nodes], node, key, known) for key in node.kwargs}
        for number in node.outputs:
            if number is not None:
                _learn(known, recordings, number)
    result = Node("the result", [], {}, [], False)
    first.outputs = [
        _unified(list(values), result, str(k), known)
        for k, values in enumerate(zip(*(recording.outputs for recording in recordings), strict=True))
    ]
    return first


def _check_same_path(recordings: list[Recording]) -> None:
    first = recordings[0]
    for other in recordings[1:]:
        for a, b in zip(first.nodes, other.nodes, strict=False):
            if a.op != b.op or len(a.args) != len(b.args) or list(a.kwargs) != list(b.kwargs):
                raise ExportError(
                    f"the program computes other operators at other sizes: {a.place()} became {b.place()}; make the size "
                    "fixed, or let the program not branch on it"
                )
            if a.outputs != b.outputs:
                raise ExportError(
                    f"{a.place()} returns another number of tensors at other sizes: {len(a.outputs)} became {len(b.outputs)}"
                )
        if len(first.nodes) != len(other.nodes):
            longer = max(first, other, key=lambda one: len(one.nodes)).nodes
            extra = longer[min(len(first.nodes), len(other.nodes))]
            raise ExportError(
                f"the program computes {len(first.nodes)} operators, and {len(other.nodes)} at other sizes, with {extra.place()}; "
                "make the size fixed, or let the program not loop over it"
            )
        if first.out_spec != other.out_spec:
            raise ExportError("the result has another form at other sizes")


def _check_constants(recordings: list[Recording]) -> None:
    for states in zip(*(recording.constants for recording in recordings), strict=True):
        first = states[0].tensor
        for state in states[1:]:
            other = state.tensor
            if first is other or (first.dtype == other.dtype and first.shape == other.shape and first.equal(other)):
                continue
            users = [
                node
                for node in recordings[0].nodes
                if any(leaf == Ref(states[0].value) for leaf in walk([*node.args, *node.kwargs.values()]))
            ]
            where = f" of {users[0].place()}" if users else ""
            raise ExportError(
                f"a tensor{where} is made from numbers of Python that differ at other sizes; make it by operators, such as "
                "arange or full, from the shapes of tensors"
            )


def _learn(known: _Known, recordings: list[Recording], number: int) -> None:
    shapes = [recording.described[number].sizes for recording in recordings]
    if len({len(shape) for shape in shapes}) != 1:
        raise ExportError("a tensor has another number of dimensions at other sizes")
    for dim, numbers in enumerate(zip(*shapes, strict=True)):
        if len(set(numbers)) > 1:
            known.sizes.setdefault(numbers, (number, dim))


def _unified(values: list[Any], node: Node, name: str, known: _Known) -> Any:
    first = values[0]
    if type(first) is list:
        if any(type(value) is not list or len(value) != len(first) for value in values):
            raise ExportError(f"argument '{name}' of {node.place()} has another length at other sizes")
        return [_unified([value[k] for value in values], node, name, known) for k in range(len(first))]
    if all(type(value) is type(first) and value == first for value in values):
        return first
    numbers = tuple(values)
    if all(type(value) is float and value.is_integer() for value in numbers):
        found = _formula(tuple(int(value) for value in numbers), known)
        if found is not None:
            return found._replace(is_float=True)
    if all(type(value) is int for value in numbers):
        found = _formula(numbers, known)
        if found is not None:
            return found
    raise ExportError(
        f"argument '{name}' of {node.place()} is {first} in the example and {', '.join(map(str, values[1:]))} at other sizes, "
        "which follows from no sizes of tensors by a simple formula; compute it from shapes, or make the size fixed"
    )


def _formula(numbers: Numbers, known: _Known) -> Size | None:
    """Return a formula for a number, given what it is in each recording."""
    place = known.sizes.get(numbers)
    if place is not None:
        return Size((place,))
    for sizes, place in known.sizes.items():
        found = _linear(numbers, sizes, (place,))
        if found is not None:
            return found
    for sizes, place in known.sizes.items():
        for divisor in range(2, _MOST_DIVISOR):
            if all(size // divisor == number for size, number in zip(sizes, numbers, strict=True)):
                return Size((place,), 1, divisor)
            # Rounded up.
            if all(-(-size // divisor) == number for size, number in zip(sizes, numbers, strict=True)):
                return Size((place,), 1, divisor, 0, rounds_up=True)
    factors = list(known.sizes.items())[:_MOST_FACTORS]
    for k, (a, at) in enumerate(factors):
        for b, other in factors[k:]:
            product = tuple(x * y for x, y in zip(a, b, strict=True))
            found = _linear(numbers, product, (at, other), with_offset=False)
            if found is not None:
                return found
            rest = [n // p for n, p in zip(numbers, product, strict=True) if p and n % p == 0]
            third = known.sizes.get(tuple(rest)) if len(rest) == len(numbers) else None
            if third is not None:
                return Size((at, other, third))
    return None


def _linear(numbers: Numbers, sizes: Numbers, of: tuple[tuple[int, int], ...], with_offset: bool = True) -> Size | None:
    """Return ``sizes * factor // divisor + offset`` for numbers that are exactly that."""
    first, last = 0, max(range(len(sizes)), key=lambda k: abs(sizes[k] - sizes[0]))
    run, rise = sizes[last] - sizes[first], numbers[last] - numbers[first]
    if run == 0 or rise == 0:
        return None
    if rise % run == 0:
        factor, divisor = rise // run, 1
    elif run % rise == 0 and run // rise > 0:
        factor, divisor = 1, run // rise
    else:
        return None
    if divisor > 1 and any(size % divisor for size in sizes):
        return None
    offset = numbers[0] - sizes[0] * factor // divisor
    if offset and not with_offset:
        return None
    if all(size * factor // divisor + offset == number for size, number in zip(sizes, numbers, strict=True)):
        return Size(of, factor, divisor, offset)
    return None


def resized(tensor: Tensor, sizes: dict[int, int]) -> Tensor:
    """Return a tensor with other sizes, whose slices are those of the tensor in turn."""
    with candelabra.no_grad():
        for dim, size in sizes.items():
            if tensor.shape[dim] == 0:
                shape = [*tensor.shape[:dim], size, *tensor.shape[dim + 1 :]]
                tensor = candelabra.zeros(shape, dtype=tensor.dtype, device=tensor.device)
            elif tensor.shape[dim] != size:
                index = candelabra.arange(size, device=tensor.device) % tensor.shape[dim]
                tensor = tensor.index_select(dim, index)
    return tensor
