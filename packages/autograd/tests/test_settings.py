"""Settings of threads, and errors of candelabra.autograd.functional."""

import pytest

import candelabra
from candelabra.autograd import functional


def test_multithreading_is_remembered() -> None:
    assert candelabra.autograd.is_multithreading_enabled()
    with candelabra.autograd.set_multithreading_enabled(False):
        assert not candelabra.autograd.is_multithreading_enabled()
    assert candelabra.autograd.is_multithreading_enabled()


def test_errors_of_products_name_what_is_wrong() -> None:
    x = candelabra.ones(3)
    with pytest.raises(RuntimeError, match="if the user-provided function returns a single Tensor"):
        functional.vjp(lambda a: a * 2, x)
    with pytest.raises(RuntimeError, match="if the input to the user-provided function is a single Tensor"):
        functional.jvp(lambda a: a.sum(), x)
    with pytest.raises(RuntimeError, match="The given v should contain a single Tensor"):
        functional.vjp(lambda a: a * 2, x, (x, x))
    with pytest.raises(TypeError, match="The inputs given to hessian must be either a Tensor"):
        functional.hessian(lambda a: a.sum(), (x, 2))
