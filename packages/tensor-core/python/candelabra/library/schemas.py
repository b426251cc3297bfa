"""Schemas of custom operators, inferred from the annotations of a function."""

from __future__ import annotations

import collections.abc
import functools
import inspect
import operator
import types
import typing
from typing import Any, NoReturn

from candelabra import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: Python types of parameters with their names in a schema, and whether there are lists of them.
_BASIC: dict[Any, tuple[str, bool]] = {
    _C.Tensor: ("Tensor", True), int: ("SymInt", True), float: ("float", True), bool: ("bool", True), str: ("str", False),
    _C.dtype: ("ScalarType", False), _C.device: ("Device", False), _C.memory_format: ("MemoryFormat", False),
}  # fmt: skip
_RETURNED: dict[Any, str] = {_C.Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool"}
#: What a union of numbers may be made of to stand for a Scalar.
_NUMBERS = frozenset({bool, int, float, complex})
_VALID = (
    "Tensor, int, float, bool, str, candelabra.types.Number, candelabra.dtype, candelabra.device, Optional of these, lists of Tensor, "
    "int, float and bool"
)


def _members(annotation: Any) -> tuple[Any, ...] | None:
    """The members of a union, or None."""
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        return typing.get_args(annotation)
    return None


def _is_number(annotation: Any) -> bool:
    members = _members(annotation)
    return members is not None and {int, float} <= set(members) <= _NUMBERS


def _schema_type(annotation: Any) -> str | None:
    """The type of a schema that an annotation means, or None where it means none."""
    if annotation in _BASIC:
        return _BASIC[annotation][0]
    if _is_number(annotation):
        return "Scalar"
    members = _members(annotation)
    if members is not None and type(None) in members:
        inner = functools.reduce(operator.or_, (member for member in members if member is not type(None)))
        made = _schema_type(inner)
        return None if made is None or made.endswith("?") or made == "Tensor[]" else made + "?"
    if typing.get_origin(annotation) in (list, collections.abc.Sequence):
        (element,) = typing.get_args(annotation) or (None,)
        if element in _BASIC and _BASIC[element][1]:
            return f"{_BASIC[element][0]}[]"
        if _schema_type(element) == "Tensor?":
            return "Tensor?[]"
    return None


def _returned_type(annotation: Any) -> str | None:
    if annotation in _RETURNED:
        return _RETURNED[annotation]
    if _is_number(annotation):
        return "Scalar"
    if typing.get_origin(annotation) in (list, collections.abc.Sequence) and typing.get_args(annotation) == (
        _C.Tensor,
    ):
        return "Tensor[]"
    return None


def _default_text(name: str, value: Any, fail: Callable[[str], NoReturn]) -> str:
    if value is None or isinstance(value, (bool, int, float)):
        return str(value)
    if isinstance(value, (str, _C.device)):
        return f'"{value}"' if isinstance(value, str) else str(value)
    if isinstance(value, _C.dtype):
        return str(value).removeprefix("candelabra.")
    fail(f"Parameter {name} has an unsupported default value type {type(value)}.")


def infer_schema(
    prototype_function: Callable[..., Any], /, *, mutates_args: str | Iterable[str], op_name: str | None = None
) -> str:
    """Read the schema of an operator from the annotations of a function.

    Parameters
    ----------
    prototype_function
        A function whose parameters and result are annotated with Tensor, int, float, bool, str,
        Number, dtype, device, what is Optional of these, and lists of Tensor, int, float and bool.
    mutates_args
        The names of the arguments that it changes in place, or ``"unknown"``: all tensors may be.
    op_name
        The name in the schema; none by default.

    Returns
    -------
    str
        Such as ``"(Tensor x, SymInt n=2) -> Tensor"``.

    Raises
    ------
    ValueError
        If an annotation is missing or means nothing in a schema, or `mutates_args` names what is
        not there.

    Examples
    --------
    >>> import candelabra
    >>> def smooth(x: candelabra.Tensor, strength: float = 1.0) -> candelabra.Tensor: ...
    >>> candelabra.library.infer_schema(smooth, mutates_args=())
    '(Tensor x, float strength=1.0) -> Tensor'
    """
    plain = inspect.signature(prototype_function)

    def fail(what: str) -> NoReturn:
        raise ValueError(f"infer_schema(func): {what} Got func with signature {plain})")

    try:
        signature = inspect.signature(prototype_function, eval_str=True)
    except Exception as error:
        fail(
            f"Unsupported type annotation. It is not a type. ({type(error).__name__}: {error}). Annotations are evaluated in the module of the "
            "function: types that are local to another function are not found."
        )
    if isinstance(mutates_args, str):
        if mutates_args != "unknown":
            raise ValueError(
                "mutates_args must either be a sequence of the names of the arguments that are mutated or the string 'unknown'. "
            )
        mutated = None
    else:
        mutated = set(mutates_args)
    parts: list[str] = []
    for position, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            fail("We do not support positional-only args, varargs, or varkwargs.")
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        annotation = parameter.annotation
        if annotation is parameter.empty:
            fail(f"Parameter {name} must have a type annotation.")
        kind = _schema_type(annotation)
        if kind is None:
            hint = ""
            if typing.get_origin(annotation) is tuple:
                hint = "We do not support Tuple inputs in schema. As a workaround, please try to use List instead. "
            fail(f"Parameter {name} has unsupported type {annotation}. {hint}The valid types are: {_VALID}.")
        if kind.startswith("Tensor"):
            if mutated is None or name in mutated:
                kind = f"Tensor(a{position}!){kind.removeprefix('Tensor')}"
        elif mutated is not None and name in mutated:
            fail(f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors can be mutated")
        default = "" if parameter.default is parameter.empty else f"={_default_text(name, parameter.default, fail)}"
        parts.append(f"{kind} {name}{default}")
    unknown = (mutated or set()) - set(signature.parameters)
    if unknown:
        fail(
            f"{unknown} in mutates_args were not found in the custom op's signature. mutates_args should contain the names of all args "
            "that the custom op mutates, or just the string 'unknown' if you don't know."
        )
    return f"{op_name or ''}({', '.join(parts)}) -> {_results_text(signature.return_annotation, fail)}"


def _results_text(annotation: Any, fail: Callable[[str], NoReturn]) -> str:
    if annotation is None or annotation is type(None):
        return "()"
    if annotation is inspect.Signature.empty:
        fail("No return type annotation was provided. Please add one.")
    several = typing.get_args(annotation) if typing.get_origin(annotation) is tuple else (annotation,)
    kinds = [_returned_type(one) for one in several]
    if any(kind is None for kind in kinds):
        fail(
            f"Return has unsupported type {annotation}. The valid types are: Tensor, list[Tensor], int, float, bool, Number, tuples of these."
        )
    made = ", ".join(kind for kind in kinds if kind is not None)
    return f"({made})" if typing.get_origin(annotation) is tuple else made
