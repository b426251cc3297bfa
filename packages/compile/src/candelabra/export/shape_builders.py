"""``dynamic_shapes`` by tensor, and from further examples."""

from __future__ import annotations

from typing import Any

from candelabra import Tensor, pytree

from .dims import Dim
from .trees import names_of_arguments


class ShapesCollection:
    """``dynamic_shapes`` that are assigned to the tensors of the arguments.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> from candelabra.export import Dim, ShapesCollection, export
    >>> x = candelabra.ones(4, 3)
    >>> shapes = ShapesCollection()
    >>> shapes[x] = {0: Dim("batch")}
    >>> export(nn.ReLU(), (x,), dynamic_shapes=shapes).module()(candelabra.ones(7, 3)).shape
    candelabra.Size([7, 3])
    """

    def __init__(self) -> None:
        self._shapes: dict[int, tuple[Tensor, Any]] = {}

    def __setitem__(self, t: Tensor, shape: Any) -> None:
        if not isinstance(t, Tensor):
            raise TypeError(f"sizes are assigned to tensors, not to a {type(t).__name__}")
        if id(t) in self._shapes and self._shapes[id(t)][1] != shape:
            raise ValueError(f"Shapes assigned to input do not match: expected {self._shapes[id(t)][1]}, got {shape}")
        self._shapes[id(t)] = (t, shape)

    def __getitem__(self, t: Tensor) -> Any:
        return self._shapes.setdefault(id(t), (t, {}))[1]

    def __len__(self) -> int:
        return len(self._shapes)

    def dynamic_shapes(self, m: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return ``dynamic_shapes`` by the names of the arguments of a module.

        Raises
        ------
        ValueError
            If the arguments lack a tensor that has sizes.
        """
        arguments = _named(m, args, kwargs)
        known = {id(leaf) for leaf in pytree.tree_leaves(arguments)}
        if not known.issuperset(self._shapes):
            raise ValueError("Some tensors that were assigned shapes were not found in args.")
        return {name: pytree.tree_map(self._shape_of, value) for name, value in arguments.items()}

    def _shape_of(self, leaf: Any) -> Any:
        return self._shapes[id(leaf)][1] if id(leaf) in self._shapes else None


class AdditionalInputs:
    """``dynamic_shapes`` from further examples: sizes that are not those of the first may differ.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> from candelabra.export import AdditionalInputs, export
    >>> inputs = AdditionalInputs()
    >>> inputs.add((candelabra.ones(5, 3),))
    >>> program = export(nn.ReLU(), (candelabra.ones(4, 3),), dynamic_shapes=inputs)
    >>> program.module()(candelabra.ones(7, 3)).shape
    candelabra.Size([7, 3])
    """

    def __init__(self) -> None:
        self._examples: list[tuple[tuple[Any, ...], dict[str, Any] | None]] = []

    def add(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        """Add arguments of another call."""
        if type(args) is not tuple:
            raise TypeError(f"Representative args {args} must be a tuple")
        if kwargs is not None and type(kwargs) is not dict:
            raise TypeError(f"Representative kwargs {kwargs} must be None or a dict")
        self._examples.append((args, kwargs))

    def dynamic_shapes(self, m: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return ``dynamic_shapes`` by the names of the arguments of a module.

        Raises
        ------
        ValueError
            If something besides sizes differs between the examples.
        """
        first, *others = [_named(m, *example) for example in ((args, kwargs), *self._examples)]
        return {
            name: pytree.tree_map(_differing, value, *(one[name] for one in others)) for name, value in first.items()
        }

    def verify(self, ep: Any) -> None:
        """Raise the error of the first example that a program does not take."""
        module = ep.module()
        for args, kwargs in self._examples:
            module(*args, **(kwargs or {}))


def _named(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> dict[str, Any]:
    return dict(zip(names_of_arguments(module.forward, args), args, strict=True)) | (kwargs or {})


def _differing(value: Any, *others: Any) -> Any:
    if not all(type(other) is type(value) for other in others):
        raise ValueError(f"The following inputs were found to have differing types: {(value, *others)}.")
    if not isinstance(value, Tensor):
        if any(other != value for other in others):
            raise ValueError(f"The following inputs were found to have differing values: {(value, *others)}.")
        return None
    if any(other.ndim != value.ndim or other.dtype != value.dtype for other in others):
        raise ValueError("tensors of the examples have other dtypes or numbers of dimensions")
    return tuple(
        Dim.DYNAMIC if any(other.shape[dim] != size for other in others) else None
        for dim, size in enumerate(value.shape)
    )
