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
