"""Operators of ATen that Python has by other names, and names of dtypes that no tensor has."""

import pytest

import candelabra

aten = candelabra.ops.aten


def test_assertions():
    aten._assert_async.msg(candelabra.tensor(True), "not told")
    with pytest.raises(RuntimeError, match="told"):
        aten._assert_async.msg(candelabra.tensor(0.0), "told")
    with pytest.raises(RuntimeError, match="told"):
        aten._assert_scalar.default(False, "told")


def test_is_all_true():
    assert aten._is_all_true.default(candelabra.tensor([True, True]))
    assert not aten._is_all_true.default(candelabra.tensor([True, False]))
    with pytest.raises(RuntimeError, match="bool"):
        aten._is_all_true.default(candelabra.ones(2))


def test_sparse_operators_refuse():
    with pytest.raises(NotImplementedError, match="sparse"):
        aten._sparse_addmm.default(candelabra.ones(2, 2))


class Foreign:
    """A class that takes over every function."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise AssertionError(f"asked for {func}")


def test_questions_are_not_taken_over():
    assert not candelabra.is_tensor(Foreign())
    assert not candelabra.is_storage(Foreign())


class Described:
    """A dtype that no tensor has."""

    def __init__(self, name, is_signed=True):
        self.name, self.is_signed, self.itemsize, self.is_complex = name, is_signed, 1, False


@pytest.mark.parametrize(
    "name, largest, eps", [("float8_e4m3fn", 448, 0.125), ("float8_e5m2", 57344, 0.25), ("float8_e4m3fnuz", 240, 0.125)]
)
def test_finfo_of_float8(name, largest, eps):
    found = candelabra.finfo(Described(name))
    assert (found.max, found.min, found.eps, found.bits) == (largest, -largest, eps, 8)


def test_finfo_of_unsigned_exponents():
    found = candelabra.finfo(Described("float8_e8m0fnu", is_signed=False))
    assert (found.min, found.tiny) == (2.0**-127, 2.0**-127)
