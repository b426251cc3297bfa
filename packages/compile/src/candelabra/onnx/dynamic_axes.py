"""``dynamic_axes``, and names in ``dynamic_shapes``, as the sizes of `candelabra.export`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from candelabra import Tensor, nn, pytree
from candelabra import export as _export  # noqa: F401  (a package is imported before its modules)
from candelabra.export.interface import Dim

Axes = Mapping[str, Mapping[int, str] | Sequence[int]]


def with_dims(shapes: Any, made: dict[str, Dim] | None = None) -> Any:
    """Return ``dynamic_shapes`` with a `Dim` for each name."""
    made = {} if made is None else made
    if isinstance(shapes, str):
        return _dim(shapes, made)
    if isinstance(shapes, Mapping):
        return {key: with_dims(value, made) for key, value in shapes.items()}
    if isinstance(shapes, list | tuple):
        return type(shapes)(with_dims(value, made) for value in shapes)
    return shapes


def axes_by_name(name: str, axes: Mapping[int, str] | Sequence[int]) -> dict[int, str]:
    """Return the names of the axes of one tensor; those without get PyTorch's."""
    if isinstance(axes, Mapping):
        return dict(axes)
    return {axis: f"{name}_dynamic_axes_{k + 1}" for k, axis in enumerate(axes)}


def shapes_of_axes(
    model: nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    dynamic_axes: Axes,
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
) -> tuple[Any, ...]:
    """Return ``dynamic_shapes`` for ``dynamic_axes``.

    Raises
    ------
    ValueError
        If there are axes of a name that is neither an input nor an output, or of a dimension that
        a tensor does not have.
    """
    given = [*args, *kwargs.values()]
    leaves, spec = pytree.tree_flatten(given)
    names = list(input_names or _tensor_names(model, args, kwargs))
    unknown = set(dynamic_axes) - set(names) - set(output_names or ())
    if unknown:
        raise ValueError(f"dynamic_axes has {sorted(unknown)}, which are not among the names of the inputs and outputs")
    dims: dict[str, Dim] = {}
    found: list[Any] = [None] * len(leaves)
    tensors = [k for k, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
    for name, at in zip(names, tensors, strict=False):
        if name not in dynamic_axes:
            continue
        rank = leaves[at].ndim
        axes = axes_by_name(name, dynamic_axes[name])
        if any(not -rank <= axis < rank for axis in axes):
            raise ValueError(f"dynamic_axes has the axes {list(axes)} of {name}, which has {rank} dimensions")
        found[at] = {axis % rank: _dim(text, dims) for axis, text in axes.items()}
    return tuple(pytree.tree_unflatten(found, spec))


def _tensor_names(model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[str]:
    """Return the names of the arguments that are tensors."""
    parameters = inspect.signature(model.forward).parameters
    named = [*zip(parameters, args, strict=False), *kwargs.items()]
    return [name for name, value in named if isinstance(value, Tensor)]


def _dim(name: str, made: dict[str, Dim]) -> Dim:
    """Return the size of a name, which may be no identifier."""
    text = "".join(c if c.isalnum() else "_" for c in name)
    return made.setdefault(name, Dim(text if text.isidentifier() else f"dim_{text}"))
