"""Test the signatures that editors and libraries ask operators for."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import candelabra
from candelabra.assembly import MissingPackageError
from candelabra.catalogue import OPERATORS

x = candelabra.ones(2, 3)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (candelabra.add, "(input, other, *, alpha=1, out=None)"),
        (candelabra.Tensor.add, "(input, other, *, alpha=1, out=None)"),
        (x.add, "(other, *, alpha=1, out=None)"),
        (x.add_, "(other, *, alpha=1)"),
        (candelabra.topk, "(input, k, dim=-1, largest=True, sorted=True, *, out=None)"),
        (OPERATORS["uniform_"], "(input, from=0, /, to=1, *, generator=None)"),
        (candelabra.bernoulli, None),
        (x.nan_to_num, None),
    ],
)
def test_text(function: Any, text: str | None) -> None:
    found = inspect.signature(function)
    assert text is None or str(found) == text


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_every_operator(name: str) -> None:
    operator = OPERATORS[name]
    parameters = list(inspect.signature(operator).parameters.values())
    declared = ["input" if p == "self" else p for p in operator.parameters]
    assert [p.name for p in parameters][: len(declared)] == declared
    assert [p.kind is not p.KEYWORD_ONLY for p in parameters].count(True) == operator.positional_count


def test_every_public_function() -> None:
    for holder in (candelabra, candelabra.Tensor):
        for name in dir(holder):
            try:
                function = getattr(holder, name)
            except (AttributeError, MissingPackageError):
                continue  # It comes with a package that is not installed, or tensors alone have it.
            if not name.startswith("_") and callable(function) and not isinstance(function, type):
                assert inspect.signature(function) is not None, name


def test_bound_calls() -> None:
    arguments = inspect.signature(candelabra.sum).bind(x, dim=0)
    assert candelabra.equal(candelabra.sum(*arguments.args, **arguments.kwargs), candelabra.tensor([2.0, 2.0, 2.0]))
