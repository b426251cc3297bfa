"""Arguments of calls, in the form that the signatures of the functions have."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import candelabra
from candelabra import overrides

from . import attributes
from .naming import is_ours

if TYPE_CHECKING:
    from .node import Node

__all__ = [
    "ArgsKwargsPair", "check_for_mutable_operation", "get_signature_for_torch_op", "normalize_function", "normalize_module",
]  # fmt: skip


class ArgsKwargsPair(NamedTuple):
    """The arguments of a call, by position and by name."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    if isinstance(function, candelabra._C.Operator):
        return overrides._signature_of(function)
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def get_signature_for_torch_op(op: Callable[..., Any]) -> list[inspect.Signature] | None:
    """Return the signatures of a function of Candelabra, or None.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import fx
    >>> list(fx.operator_schemas.get_signature_for_torch_op(candelabra.relu)[0].parameters)
    ['input']
    """
    signature = _signature(op) if is_ours(op) else None
    return None if signature is None else [signature]


def check_for_mutable_operation(target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise an error if a call of a function of Candelabra changes one of its arguments.

    Raises
    ------
    RuntimeError
        If it works in place, or has ``out``.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import fx
    >>> fx.operator_schemas.check_for_mutable_operation(candelabra.relu, (candelabra.ones(2),), {})
    """
    name = getattr(target, "__name__", "")
    is_in_place = name.endswith("_") and not name.endswith("__")
    if is_ours(target) and (is_in_place or kwargs.get("inplace") or kwargs.get("out") is not None):
        raise RuntimeError(f"Tried to trace mutable operation {target}. FX only supports functional code")


def _bound(
    signature: inspect.Signature | None, args: tuple[Any, ...], kwargs: dict[str, Any], only_kwargs: bool
) -> ArgsKwargsPair | None:
    if signature is None:
        return None
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    if kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}:
        return None
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    positional: list[Any] = []
    by_name: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        by_position = parameter.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        if by_position and not only_kwargs and name not in kwargs and len(positional) < len(args):
            positional.append(bound.arguments[name])
        else:
            by_name[name] = bound.arguments[name]
    return ArgsKwargsPair(tuple(positional), by_name)


def normalize_function(
    target: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: tuple[Any, ...] | None = None,
    kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """Return the arguments of a function of Candelabra with its defaults, or None if they are
    unknown.

    Parameters
    ----------
    target, args, kwargs
        The call.
    arg_types, kwarg_types
        Accepted for compatibility: functions have one signature here.
    normalize_to_only_use_kwargs
        Whether all arguments are by name.

    Examples
    --------
    >>> from candelabra import fx, nn
    >>> fx.operator_schemas.normalize_function(nn.functional.relu, (1,), normalize_to_only_use_kwargs=True).kwargs
    {'input': 1, 'inplace': False}
    """
    if not is_ours(target):
        return None
    return _bound(_signature(target), args, dict(kwargs or {}), normalize_to_only_use_kwargs)


def normalize_module(
    root: Any,
    target: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """Return the arguments of a layer of Candelabra with its defaults, or None if it is another
    module.
    """
    module = attributes.fetch(root, target)
    if not is_ours(type(module)):
        return None
    return _bound(inspect.signature(module.forward), args, dict(kwargs or {}), normalize_to_only_use_kwargs)


def normalized_pair(first: Node, second: Node) -> tuple[ArgsKwargsPair, ArgsKwargsPair] | None:
    """Return the arguments of two calls of the same function by name, or None if they are
    unknown.
    """
    pair = []
    for node in (first, second):
        owner = node.graph.owning_module
        if node.op == "call_module" and owner is None:
            return None
        found = node.normalized_arguments(owner, normalize_to_only_use_kwargs=True)
        if found is None:
            return None
        pair.append(found)
    return pair[0], pair[1]
