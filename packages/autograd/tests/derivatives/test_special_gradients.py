"""Test gradients of special functions against finite differences."""

import pytest

import candelabra
from candelabra import special
from candelabra.autograd import gradcheck, gradgradcheck
from candelabra.autograd.derivatives.special import WITHOUT_GRADIENT


def numbers(low, high, count=7):
    return candelabra.linspace(low, high, count, dtype=candelabra.float64).requires_grad_()


UNARY = {
    "i0": (-3.1, 3.0), "i0e": (-3.1, 3.0), "i1": (-3.1, 3.0), "i1e": (-3.1, 3.0), "entr": (0.1, 3.0), "erfcx": (-1.0, 30.0),
    "log_ndtr": (-9.0, 3.0), "ndtri": (0.05, 0.95), "ndtr": (-3.0, 3.0), "digamma": (0.3, 4.0), "gammaln": (0.3, 4.0),
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_one_argument(name):
    function, x = getattr(special, name), numbers(*UNARY[name])
    assert gradcheck(function, (x,))
    assert gradgradcheck(function, (x,))


@pytest.mark.parametrize("name", ["i1", "i1e"])
def test_at_zero(name):
    x = candelabra.zeros(1, dtype=candelabra.float64, requires_grad=True)
    getattr(special, name)(x).backward(candelabra.ones(1, dtype=candelabra.float64))
    assert x.grad.tolist() == [0.5]


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5])
def test_polygamma(n):
    assert gradcheck(lambda x: special.polygamma(n, x), (numbers(0.4, 4.0),))


def test_two_arguments():
    x, y = numbers(0.5, 4.0), numbers(1.0, 3.0)
    assert gradcheck(special.xlog1py, (x, y))
    assert gradcheck(lambda y: special.zeta(2.5, y), (y,))
    assert gradcheck(lambda y: special.gammainc(x.detach(), y), (y,))
    assert gradcheck(lambda y: special.gammaincc(x.detach(), y), (y,))
    assert gradcheck(lambda x: special.multigammaln(x + 2, 3), (x,))
    assert gradcheck(
        lambda x: candelabra.frexp(x).mantissa,
        (candelabra.tensor([0.6, 3.3, -9.1], dtype=candelabra.float64, requires_grad=True),),
    )


def test_xlog1py_at_zero():
    x = candelabra.zeros(1, requires_grad=True)
    special.xlog1py(x, candelabra.tensor([-1.0])).sum().backward()
    assert x.grad.tolist() == [0.0]


@pytest.mark.parametrize("name", WITHOUT_GRADIENT)
def test_what_is_not_differentiated_says_so(name):
    x = candelabra.ones(2, requires_grad=True)
    function = getattr(special, name.removeprefix("special_"))
    made = function(x, 2) if "polynomial" in name else function(x)
    with pytest.raises(NotImplementedError, match="the derivative for 'self' of .* is not implemented"):
        made.sum().backward()


@pytest.mark.parametrize("name", ["gammainc", "gammaincc", "zeta"])
def test_orders_have_no_gradient(name):
    x = (2 * candelabra.ones(2)).requires_grad_()
    with pytest.raises(NotImplementedError, match="is not implemented"):
        getattr(special, name)(x, candelabra.ones(2)).sum().backward()
