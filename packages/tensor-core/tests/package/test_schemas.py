"""The parser of schemas that needs no compiled core says what the core says of every operator."""

from __future__ import annotations

import re

import pytest

from candelabra.catalogue import OPERATORS
from candelabra.catalogue.schemas import parse


@pytest.mark.parametrize("name", OPERATORS)
def test_parser_agrees_with_the_core(name):
    for operator in (OPERATORS[name], OPERATORS[name].inplace):
        if operator is None:
            continue
        parsed = parse(operator.schema)
        assert tuple(parameter.name for parameter in parsed.parameters) == operator.parameters
        assert sum(not parameter.keyword_only for parameter in parsed.parameters) == operator.positional_count
        types = [re.sub(r"\(\w+!?\)", "", kind) for kind in operator.parameter_types]
        assert [parameter.type for parameter in parsed.parameters] == types
        assert len(parsed.results) == operator.result_count


def test_what_a_parameter_says():
    parsed = parse("ns::f.out(Tensor(a!)[] xs, str text='a, (b', *, int[2]? size = [1, 2]) -> (Tensor?, Tensor[] y)")
    xs, text, size = parsed.parameters
    assert xs == ("xs", "Tensor[]", True, False, None)
    assert text == ("text", "str", False, False, "'a, (b'")
    assert size == ("size", "int[2]?", False, True, "[1, 2]")
    assert parsed.results == ("Tensor?", "Tensor[]")
    assert not parsed.is_functional
    assert parse("f() -> ()") == ((), ())


@pytest.mark.parametrize("schema", ["f(Tensorx) -> Tensor", "f(int[ k) -> Tensor", "f(Tensor x y) -> Tensor"])
def test_what_cannot_be_read(schema):
    with pytest.raises(ValueError, match="cannot read the parameter"):
        parse(schema)
