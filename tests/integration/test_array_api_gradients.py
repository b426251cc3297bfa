"""Test that array API code is differentiable: functions, operators and indexing."""

import pytest

import candelabra
import candelabra.array_api as xp
from candelabra.autograd import gradcheck

FUNCTIONS = {
    "standardized": lambda x: (x - xp.mean(x, axis=0)) / xp.std(x, axis=0),
    "indexing": lambda x: xp.asarray(x)[::-1, 0] * x[1, 2],
    "assignment": lambda x: assigned(x),
    "shapes": lambda x: xp.concat([xp.reshape(x, (-1,)), xp.permute_dims(x, (1, 0))[0]]),
    "products": lambda x: xp.linalg.solve(xp.matmul(xp.matrix_transpose(x), x) + xp.eye(3, dtype=xp.float64), x[0, :]),
    "floor and remainder": lambda x: xp.remainder(x, 0.75) * x,
    "where": lambda x: xp.where(x > 0, xp.exp(x), 1.0),
    "in place": lambda x: doubled(xp.positive(x)),
    "fft": lambda x: xp.real(xp.fft.rfft(x)),
    "searches": lambda x: xp.sort(x) * xp.take_along_axis(x, xp.argsort(x), axis=-1),
}


def assigned(x):
    y = xp.positive(x)
    y[::-1, 1] = x[:, 0] * x[:, 0]
    return y


def doubled(y):
    y *= 2
    return y


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(name):
    candelabra.manual_seed(3)
    x = candelabra.randn(4, 3, dtype=candelabra.float64, requires_grad=True)
    result = FUNCTIONS[name](x)
    assert type(result) is xp.Array
    assert result.requires_grad
    assert gradcheck(FUNCTIONS[name], (x,))


def test_leaves_stay_what_they_are():
    x = candelabra.ones(2, requires_grad=True)
    array = xp.asarray(x)
    assert type(x) is candelabra.Tensor
    (array * array).sum().backward()
    assert x.grad.tolist() == [2, 2]
