"""The table of rules: for each operator of the catalogue, a function that writes it as ONNX.

A rule is called with the builder and the arguments of the call, as the operator's schema has them:
tensors are `Value`, and sizes that differ from call to call are `Size`, which only arguments that
the rule names in `sizes` may have. It returns the names of the results; None for a result that
ONNX cannot give, which is refused if the program uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Rule(NamedTuple):
    """How an operator is written."""

    function: Callable[..., str | Sequence[str | None]]
    #: The arguments that may be sizes which differ from call to call.
    sizes: frozenset[str]


RULES: dict[str, Rule] = {}


def rule(*operators: str, sizes: str = "") -> Callable[[F], F]:
    """Make a function the rule of operators; `sizes` names arguments, with spaces between them."""

    def add(function: F) -> F:
        for operator in operators:
            assert operator not in RULES, operator
            RULES[operator] = Rule(function, frozenset(sizes.split()))
        return function

    return add
