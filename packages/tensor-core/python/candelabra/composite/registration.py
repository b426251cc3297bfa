"""Decorators that register functions as decompositions, as functions of the package `candelabra`,
and as methods of `Tensor`.
"""

from __future__ import annotations

import functools

from candelabra import _C
from candelabra.catalogue import OPERATORS
from candelabra.catalogue.declaration import COMPOSITE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    Function = TypeVar("Function", bound=Callable[..., Any])

#: Functions of the package by name.
FUNCTIONS: dict[str, Callable[..., Any]] = {}
#: Methods of Tensor by name.
METHODS: dict[str, Callable[..., Any]] = {}
#: Read-only and settable attributes of Tensor by name.
PROPERTIES: dict[str, property] = {}


def decomposes(name: str) -> Callable[[Function], Function]:
    """Register the decorated function as the decomposition of the composite operator `name`.

    The core implements the in-place variant and ``out=``.
    """

    def register(decomposition: Function) -> Function:
        OPERATORS[name].composite = decomposition
        return decomposition

    return register


def name_as(implementation: Function, name: str) -> Function:
    """Return a function that Python's messages about arguments name as callers know it.

    They have its qualified name, which for a function inside another one, or beside an operator, is
    not what was called.
    """
    inner: Any = implementation
    while inner is not None:
        known = getattr(inner, "__qualname__", name)
        if "<locals>" in known or (known.startswith("_") and not known.startswith("__")):
            inner.__name__ = inner.__qualname__ = name
        inner = getattr(inner, "__wrapped__", None)
    return implementation


def fallback(*names: str) -> Callable[[Function], Function]:
    """Decorate the fallback of the operators `names`, for calls that do not fit their schema.

    The fallback handles PyTorch's other spellings of the operator. For all other calls it returns
    NotImplemented, and the core raises the error about the schema.
    """

    def register(other_spellings: Function) -> Function:
        for name in names:
            OPERATORS[name].fallback = other_spellings
        if len(names) == 1:
            name_as(other_spellings, names[0])
        return other_spellings

    return register


#: Functions whose calls an operator of the same name handles if they fit its schema.
BY_OPERATOR: set[str] = set()


def function(
    name: str | None = None,
    *,
    method: bool = True,
    package: bool = True,
    aliases: tuple[str, ...] = (),
    operator: bool = False,
    out: str = "",
) -> Callable[[Function], Function]:
    """Publish the decorated function as ``candelabra.name``, as a method of Tensor, or as both.

    Parameters
    ----------
    name
        The public name; by default that of the function.
    method
        Whether to publish a method, whose tensor is the first parameter.
    package
        Whether to publish a function of the package.
    aliases
        Further names.
    operator
        Whether what is published is the operator of this name, which the core runs without a step
        of Python. The function gets the calls that do not fit its schema, and those to be recorded;
        it has to deal with any.
    out
        What PyTorch asks of a tensor given as ``out=``, in the words of
        :func:`candelabra.catalogue.operator`.
    """

    def register(implementation: Function) -> Function:
        if out:
            _C.declare_out_rule(name or implementation.__name__, out)
        name_as(implementation, name or implementation.__name__)
        for public in (name or implementation.__name__, *aliases):
            if package:
                FUNCTIONS[public] = implementation
            if method:
                METHODS[public] = implementation
        if operator:
            _stands_behind(OPERATORS[implementation.__name__], implementation)
        return implementation

    return register


def out_rule(name: str, rule: str) -> Callable[[Function], Function]:
    """State the rule for ``out=`` of the decorated function, which hands its results over as
    `name`.

    For functions of the modules below the package; :func:`function` states it of its own.
    """

    def register(implementation: Function) -> Function:
        _C.declare_out_rule(name, rule)
        return implementation

    return register


def _stands_behind(operator: Any, implementation: Callable[..., Any]) -> None:
    operator.fallback = implementation
    operator.__doc__ = implementation.__doc__
    operator.__wrapped__ = implementation  # the object whose signature is shown
    if operator.tags & COMPOSITE:
        operator.composite = implementation
    BY_OPERATOR.add(operator.name)


def fast_path(
    operator: Any, *, dimensions: tuple[int, ...] = (), appended: tuple[Any, ...] = ()
) -> Callable[[Function], Function]:
    """Let an operator handle the plain calls of the decorated function in C++.

    Parameters
    ----------
    operator
        The operator. If it has several results, the function returns the first.
    dimensions
        The required numbers of dimensions of the first arguments; other calls go to the function.
    appended
        Arguments to append to calls with a single argument; other calls go to the function.

    The function handles the calls that do not fit the operator's schema. For calls that fit, both
    must be equivalent.
    """

    def decorate(implementation: Function) -> Function:
        fast: Any = _C.FastPath(operator, implementation, dimensions, appended)
        functools.update_wrapper(fast, implementation)
        return fast  # type: ignore[no-any-return]

    return decorate


#: Functions for which a wrapper would be too slow. They check their arguments, or call
#: `refuse_others` if an attribute is missing.
CHECK_THEMSELVES = frozenset(
    {"reshape", "matmul", "flatten", "equal", "split", "zeros_like", "ones_like", "empty_like", "full_like"}
)


def refuse_others(name: str, **given: Any) -> None:
    """Raise TypeError for the first argument of a function that is not a tensor."""
    for position, (parameter, value) in enumerate(given.items(), start=1):
        if not isinstance(value, _C.Tensor):
            raise TypeError(
                f"{name}(): argument '{parameter}' (position {position}) must be Tensor, not {type(value).__name__}"
            )


#: What `overridable` has made: a function has one public form, in whatever modules it is.
_OVERRIDABLE: dict[tuple[Any, bool], Any] = {}


def overridable(name: str, implementation: Callable[..., Any], method: bool = False) -> Any:
    """Return a public function: ``__torch_function__`` of its arguments' classes may take it over.

    If a tensor's attribute is missing, it reports which argument is not a tensor. Arguments are
    only checked after a failure, so that successful calls are not slower. A method without further
    tensor arguments needs no check.
    """
    if isinstance(implementation, (_C.OverridableFunction, _C.Operator, _C.FastPath, type)):
        return implementation
    known = _OVERRIDABLE.get((implementation, method))
    if known is None:
        known = _C.OverridableFunction(implementation, _checker(name, implementation, method))
        _OVERRIDABLE[implementation, method] = known
    return known


def overridable_property(attribute: property) -> property:
    """Return a property of Tensor that ``__torch_function__`` may take over."""
    getter, setter = parts = [
        None if accessor is None else _C.OverridableFunction(accessor) for accessor in (attribute.fget, attribute.fset)
    ]
    made = property(getter, setter, None, attribute.__doc__)
    for part, accessor in zip(parts, ("__get__", "__set__")):
        if part is not None:
            part._show_as(getattr(made, accessor))
    return made


#: Stands for an argument that is not given, which is another mistake than None.
_ABSENT = object()


def _checker(name: str, implementation: Callable[..., Any], method: bool) -> Callable[..., None] | None:
    """Return the function that looks for an argument that is not a tensor, if any has to be one."""
    inner = implementation
    while hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    code = getattr(inner, "__code__", None)
    if code is None or name in CHECK_THEMSELVES:
        return None
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    annotations = implementation.__annotations__
    tensors = {p: i for i, p in enumerate(parameters) if annotations.get(p) == "Tensor"}
    positional = code.co_argcount
    # Functions of several tensors accept them as separate arguments, or as one sequence.
    several = bool({"tensors", "matrices"} & set(code.co_varnames[: len(parameters) + 1]))
    if len(tensors) < (2 if method else 1) and not several:
        return None

    def check(*arguments: Any, **keywords: Any) -> None:
        if several and arguments:
            _check_elements(name, arguments[0] if len(arguments) == 1 and _is_sequence(arguments[0]) else arguments)
        for parameter, position in tensors.items():
            given = (
                arguments[position] if position < min(positional, len(arguments)) else keywords.get(parameter, _ABSENT)
            )
            if given is not _ABSENT and not isinstance(given, _C.Tensor):
                raise TypeError(
                    f"{name}(): argument '{parameter}' (position {position + (not method)}) must be Tensor, "
                    f"not {type(given).__name__}"
                ) from None

    return check


def _is_sequence(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _check_elements(name: str, tensors: Any) -> None:
    for i, given in enumerate(tensors):
        if not isinstance(given, _C.Tensor):
            raise TypeError(
                f"{name}(): expected Tensor as element {i} in argument 0, but got {type(given).__name__}"
            ) from None


def tensor_property(implementation: Callable[[Any], Any]) -> property:
    """Publish the decorated function as a read-only attribute of Tensor."""
    made = property(implementation, doc=implementation.__doc__)
    PROPERTIES[implementation.__name__] = made
    return made


#: PyTorch's aliases of operators: alias and operator, including in-place variants.
ALIASES: dict[str, str] = {
    "absolute": "abs", "negative": "neg", "subtract": "sub", "multiply": "mul", "divide": "div", "clip": "clamp", "fix": "trunc",
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
    "arctan2": "atan2", "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le", "not_equal": "ne",
    "concat": "cat", "concatenate": "cat",
}  # fmt: skip
