"""How the modules of this package give their functions to the catalogue, to the package
`candelabra` and to `Tensor`.
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
    """Make the decorated function the decomposition of the composite operator `name`.

    The core takes care of the in-place variant and of ``out=``.
    """

    def register(decomposition: Function) -> Function:
        OPERATORS[name].composite = decomposition
        return decomposition

    return register


def fallback(*names: str) -> Callable[[Function], Function]:
    """Make the decorated function what the operators `names` call with arguments that do not fit
    their schema.

    It answers to the other spellings that PyTorch has for the operator, and returns NotImplemented
    for all else; then the error about the schema is raised.
    """

    def register(other_spellings: Function) -> Function:
        for name in names:
            OPERATORS[name].fallback = other_spellings
        return other_spellings

    return register


#: Names whose calls an operator of the same name takes where they fit its schema.
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
        The public name; that of the function when not given.
    method
        Whether it is a method; its first parameter is then the tensor.
    package
        Whether it is a function of the package.
    aliases
        Further names for the same.
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
    """State the rule for ``out=`` of the decorated function, which hands its results over as `name`.

    For functions of the modules below the package; :func:`function` states it of its own.
    """

    def register(implementation: Function) -> Function:
        _C.declare_out_rule(name, rule)
        return implementation

    return register


def _stands_behind(operator: Any, implementation: Callable[..., Any]) -> None:
    operator.fallback = implementation
    operator.__doc__ = implementation.__doc__
    operator.__wrapped__ = implementation  # whose signature is shown
    if operator.tags & COMPOSITE:
        operator.composite = implementation
    BY_OPERATOR.add(operator.name)


def fast_path(
    operator: Any, *, dimensions: tuple[int, ...] = (), appended: tuple[Any, ...] = ()
) -> Callable[[Function], Function]:
    """Have the plain calls of the decorated function done by an operator, without a step of Python.

    Parameters
    ----------
    operator
        What does them. Where it has several results, the first is the function's.
    dimensions
        How many dimensions its first arguments must have; calls with others are the function's.
    appended
        Arguments that follow the only one of a call; calls with several are the function's.

    The function gets the calls that do not fit the operator's schema. What fits must mean the same
    to both.
    """

    def decorate(implementation: Function) -> Function:
        front: Any = _C.FastPath(operator, implementation, dimensions, appended)
        functools.update_wrapper(front, implementation)
        return front  # type: ignore[no-any-return]

    return decorate


#: Functions that are called so often that a wrapper would be felt; they look at what they are
#: given, or call `refuse_others` where an attribute is missing.
CHECK_THEMSELVES = frozenset(
    {"reshape", "matmul", "flatten", "equal", "split", "zeros_like", "ones_like", "empty_like", "full_like"}
)


def refuse_others(name: str, **given: Any) -> None:
    """Raise TypeError for the first of the arguments of a function that is no tensor."""
    for position, (parameter, value) in enumerate(given.items(), start=1):
        if not isinstance(value, _C.Tensor):
            raise TypeError(
                f"{name}(): argument '{parameter}' (position {position}) must be Tensor, not {type(value).__name__}"
            )


def with_checked_tensors(name: str, implementation: Callable[..., Any], method: bool = False) -> Callable[..., Any]:
    """Return the function such that it says which argument is no tensor, where it fails as a
    tensor's attribute is missing.

    Only what fails is looked at: a call that succeeds is not made slower by a check of each
    argument. A method whose only tensor is the tensor itself is returned as it is.
    """
    inner = implementation
    while hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    code = getattr(inner, "__code__", None)
    if code is None or name in CHECK_THEMSELVES:
        return implementation
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    annotations = implementation.__annotations__
    tensors = {p: i for i, p in enumerate(parameters) if annotations.get(p) == "Tensor"}
    positional = code.co_argcount
    # Those that take several are called with them one by one, or with one sequence of them.
    several = bool({"tensors", "matrices"} & set(code.co_varnames[: len(parameters) + 1]))
    if len(tensors) < (2 if method else 1) and not several:
        return implementation

    @functools.wraps(implementation)
    def call(*arguments: Any, **keywords: Any) -> Any:
        try:
            return implementation(*arguments, **keywords)
        except AttributeError:
            if several:
                _check_elements(name, arguments[0] if len(arguments) == 1 and _is_sequence(arguments[0]) else arguments)
            for parameter, position in tensors.items():
                given = arguments[position] if position < min(positional, len(arguments)) else keywords.get(parameter)
                if given is not None and not isinstance(given, _C.Tensor):
                    raise TypeError(
                        f"{name}(): argument '{parameter}' (position {position + (not method)}) must be Tensor, "
                        f"not {type(given).__name__}"
                    ) from None
            raise

    return call


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


#: Other names that PyTorch has for operators: the alias and the operator, in-place variants
#: included.
ALIASES: dict[str, str] = {
    "absolute": "abs", "negative": "neg", "subtract": "sub", "multiply": "mul", "divide": "div", "clip": "clamp", "fix": "trunc",
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
    "arctan2": "atan2", "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le", "not_equal": "ne",
    "concat": "cat", "concatenate": "cat",
}  # fmt: skip
