"""Schemas taken apart where there is no operator to ask: before it is defined, and before the core
is compiled.

Operators answer for themselves: ``operator.parameters``, ``parameter_types``, ``positional_count``.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Parameter(NamedTuple):
    """One parameter of a schema."""

    name: str
    #: With what makes it a list or optional, without the mark of an argument that is changed:
    #: ``"Tensor[]"``.
    type: str
    mutated: bool
    keyword_only: bool
    #: The text of its default; None where it is required.
    default: str | None


class Parsed(NamedTuple):
    """What a schema says."""

    parameters: tuple[Parameter, ...]
    #: The types of the results: none for ``()``.
    results: tuple[str, ...]

    @property
    def is_functional(self) -> bool:
        """Whether no argument is changed."""
        return not any(parameter.mutated for parameter in self.parameters)


_TYPE = r"(?P<base>\w+)\s*(?:\(\w+(?P<mark>!?)\))?\s*(?P<list>\??(?:\[\d*\])?\??)"
_PARAMETER = re.compile(_TYPE + r"\s*(?<=[\s?\])])(?P<name>\w+)\s*(?:=\s*(?P<default>.*))?", re.DOTALL)
_RESULT = re.compile(_TYPE + r"(?:\s+\w+)?")


def _split(text: str) -> list[str]:
    """Part at the commas that lie in no brackets and in no quotes."""
    parts, depth, quote = [""], 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        else:
            depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts] if text.strip() else []


def parse(schema: str) -> Parsed:
    """Take a schema apart.

    Raises
    ------
    ValueError
        Where a parameter or a result cannot be read.

    Examples
    --------
    >>> parse("topk(Tensor self, int k, int dim=-1) -> (Tensor values, Tensor indices)").parameters[2]
    Parameter(name='dim', type='int', mutated=False, keyword_only=False, default='-1')
    """
    arrow = schema.rindex("->")
    head, tail = schema[:arrow].rstrip(), schema[arrow + 2 :].strip()
    parameters: list[Parameter] = []
    keyword_only = False
    for part in _split(head[head.index("(") + 1 : -1]):
        if part == "*":
            keyword_only = True
            continue
        match = _PARAMETER.fullmatch(part)
        if match is None:
            raise ValueError(f"cannot read the parameter {part!r} of {schema!r}")
        kind = match["base"] + match["list"]
        parameters.append(Parameter(match["name"], kind, match["mark"] == "!", keyword_only, match["default"]))
    results: list[str] = []
    for part in _split(tail[1:-1] if tail.startswith("(") else tail):
        match = _RESULT.fullmatch(part)
        if match is None:
            raise ValueError(f"cannot read the result {part!r} of {schema!r}")
        results.append(match["base"] + match["list"])
    return Parsed(tuple(parameters), tuple(results))
