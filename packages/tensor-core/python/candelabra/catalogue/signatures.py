"""Signatures of operators, for editors, `help` and libraries that ask for parameters' names."""

from __future__ import annotations

import ast
from inspect import Parameter, Signature
from keyword import iskeyword
from typing import Any

from .declaration import RANDOM
from .schemas import parse

#: Defaults that are no literals of Python.
_NUMBERS = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}


def _default(text: str | None) -> Any:
    if text is None:
        return Parameter.empty
    return _NUMBERS[text] if text in _NUMBERS else ast.literal_eval(text)


def signature(operator: Any) -> Signature:
    """Return the signature of an operator as a function.

    Methods have that of the function without the first parameter. Every function that returns
    something takes `out`, except those in place, and a random one `generator`. What PyTorch accepts
    besides, such as sizes one by one, is not in it.

    Examples
    --------
    >>> import inspect
    >>> import candelabra
    >>> inspect.signature(candelabra.cumsum)
    <Signature (input, dim, *, dtype=None, out=None)>
    >>> inspect.signature(candelabra.ones(2).cumsum)
    <Signature (dim, *, dtype=None, out=None)>
    """
    declared = parse(operator.schema).parameters
    # Words of Python, such as `from`, are given by position only, and so is what comes before.
    by_position = max((number for number, parameter in enumerate(declared, 1) if iskeyword(parameter.name)), default=0)
    parameters = [
        Parameter(
            "input" if parameter.name == "self" else parameter.name,
            Parameter.POSITIONAL_ONLY
            if number < by_position
            else Parameter.KEYWORD_ONLY
            if parameter.keyword_only
            else Parameter.POSITIONAL_OR_KEYWORD,
            default=_default(parameter.default),
        )
        for number, parameter in enumerate(declared)
    ]
    names = {parameter.name for parameter in parameters}
    options = [
        ("out", operator.result_count > 0 and not operator.name.endswith("_")),
        ("generator", bool(operator.tags & RANDOM)),
    ]
    parameters += [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None)
        for name, is_taken in options
        if is_taken and name not in names
    ]
    return Signature(parameters)
