"""Exchanging what two tensors are: ``Tensor._swap``."""

from __future__ import annotations

import weakref

import pytest

import candelabra
from candelabra import Tensor


class Named(Tensor):
    """A subclass without memory of its own."""


def test_what_is_exchanged():
    a, b = candelabra.arange(3.0), candelabra.ones(2, 2, dtype=candelabra.int32)
    a.kind = "first"
    identities, numbers = (id(a), id(b)), (a._cdata, b._cdata)
    a._swap(b)
    assert (a.tolist(), a.dtype, b.tolist()) == ([[1, 1], [1, 1]], candelabra.int32, [0, 1, 2])
    assert b.kind == "first"
    assert not hasattr(a, "kind")
    assert (id(a), id(b)) == identities
    assert a._cdata != numbers[0]
    assert b._cdata not in (*numbers, a._cdata)


def test_classes():
    a, b = candelabra.ones(1).as_subclass(Named), candelabra.zeros(1)
    a._swap(b)
    assert (type(a), type(b)) == (Tensor, Named)


def test_itself():
    a = candelabra.ones(2)
    number = a._cdata
    a._swap(a)
    assert a._cdata == number


def test_a_number_is_forgotten_with_its_tensor():
    a, b = candelabra.ones(1), candelabra.ones(1)
    a._swap(b)
    del b
    made = [candelabra.ones(1) for _ in range(300)]
    assert all(x._cdata % 2 == 0 for x in made)
    assert len({x._cdata for x in [*made, a]}) == 301


def test_refused():
    class Slotted(Tensor):
        __slots__ = ("more",)

    a, b = candelabra.ones(1), candelabra.ones(1)
    reference = weakref.ref(a)
    with pytest.raises(RuntimeError, match="Cannot swap t1 because it has weakref"):
        a._swap(b)
    with pytest.raises(RuntimeError, match="Cannot swap t2 because it has weakref"):
        b._swap(a)
    assert reference() is a
    with pytest.raises(RuntimeError, match="different slots"):
        b._swap(b.as_subclass(Slotted))
    with pytest.raises(TypeError, match="expected a Tensor, not int"):
        a._swap(1)
