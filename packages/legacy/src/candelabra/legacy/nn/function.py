"""Classes of layers and criteria that are no more than a function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from .criterion import Criterion
from .module import Module

PUBLIC = "candelabra.legacy.nn"


class _Arguments:
    """Settings that are the arguments of a function after the tensors."""

    _signature: ClassVar[inspect.Signature]
    __dict__: dict[str, Any]

    def _bind(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        bound = self._signature.bind(*arguments, **named)
        bound.apply_defaults()
        self.__dict__.update(bound.arguments)

    def _settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._signature.parameters}

    def __repr__(self) -> str:
        given = [
            f"{name}={value!r}" if parameter.default is not parameter.empty else repr(value)
            for name, parameter in self._signature.parameters.items()
            if (value := getattr(self, name)) is parameter.empty or not _same(value, parameter.default)
        ]
        return f"nn.{type(self).__name__}" + (f"({', '.join(given)})" if given else "")


class FunctionModule(_Arguments, Module):
    """A layer without parameters, made by :func:`layer`."""

    _function: ClassVar[Callable[..., Any]]
    _parameter_names = ()

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__()
        self._bind(arguments, named)

    def _compute(self, input: Any, *parameters: Any) -> Any:
        return self._function(input, **self._settings())


class FunctionCriterion(_Arguments, Criterion):
    """A criterion that is a function of input and target, made by :func:`criterion`."""

    _function: ClassVar[Callable[..., Any]]

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__()
        self._bind(arguments, named)

    def _compute(self, input: Any, target: Any) -> Any:
        return self._function(input, target, **self._settings())


def layer(
    name: str,
    function: Callable[..., Any],
    doc: str,
    *,
    one_based: Sequence[str] = (),
    torch7_names: dict[str, str] | None = None,
) -> type[FunctionModule]:
    """Return the class of a layer that is a function.

    Parameters
    ----------
    name
        Of the class.
    function
        Takes the input; its other parameters are the constructor's and the layer's attributes.
    doc
        What the layer computes.
    one_based
        Parameters that Torch 7's files count from one.
    torch7_names
        Torch 7's names of attributes that have another name here.
    """
    return _make(name, function, doc, FunctionModule, 1, one_based, torch7_names)


def criterion(
    name: str, function: Callable[..., Any], doc: str, *, torch7_names: dict[str, str] | None = None
) -> type[FunctionCriterion]:
    """Return the class of a criterion that is a function of input and target."""
    return _make(name, function, doc, FunctionCriterion, 2, (), torch7_names)


def _make(
    name: str,
    function: Callable[..., Any],
    doc: str,
    base: Any,
    tensors: int,
    one_based: Sequence[str],
    torch7_names: dict[str, str] | None,
) -> Any:
    signature = inspect.signature(function)
    settings = list(signature.parameters.values())[tensors:]
    # What a file does not have is at its default.
    defaults = {setting.name: setting.default for setting in settings if setting.default is not setting.empty}
    members = {
        "__doc__": doc,
        "__module__": PUBLIC,
        "__signature__": signature.replace(parameters=settings),
        "_function": staticmethod(function),
        "_signature": signature.replace(parameters=settings),
        "_one_based": tuple(one_based),
        "_torch7_names": dict(torch7_names or {}),
    }
    return type(name, (base,), {**defaults, **members})


def _same(value: Any, default: Any) -> bool:
    return value is default or (isinstance(value, (int, float, str, tuple)) and value == default)
