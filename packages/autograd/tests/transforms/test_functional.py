"""Test autograd.functional against NumPy."""

from __future__ import annotations

import numpy
import pytest

import candelabra
from candelabra.autograd import functional, gradcheck

MATRIX = numpy.array([[1.0, 2.0, -1.0], [0.5, -1.0, 3.0]])


def tensor(values, grad=False):
    return candelabra.tensor(values, dtype=candelabra.float64, requires_grad=grad)


def linear(x):
    return tensor(MATRIX) @ x


def cubic(x):
    return (x**3).sum()


X = numpy.array([1.0, -2.0, 0.5])


def test_vjp():
    value, product = functional.vjp(linear, tensor(X), tensor([1.0, -2.0]))
    numpy.testing.assert_allclose(value.numpy(), MATRIX @ X)
    numpy.testing.assert_allclose(product.numpy(), MATRIX.T @ [1.0, -2.0])
    assert not product.requires_grad


def test_vjp_of_several():
    (a, b), (of_x, of_y) = functional.vjp(
        lambda x, y: (x * y, x + y), (tensor([2.0]), tensor([3.0])), (tensor([1.0]), tensor([10.0]))
    )
    assert (a.item(), b.item()) == (6.0, 5.0)
    assert (of_x.item(), of_y.item()) == (13.0, 12.0)


def test_jvp():
    value, product = functional.jvp(linear, tensor(X), tensor([1.0, 0.0, 2.0]))
    numpy.testing.assert_allclose(value.numpy(), MATRIX @ X)
    numpy.testing.assert_allclose(product.numpy(), MATRIX @ [1.0, 0.0, 2.0])
    _, product = functional.jvp(lambda x: x.exp(), tensor(X), tensor([1.0, 2.0, 3.0]))
    numpy.testing.assert_allclose(product.numpy(), numpy.exp(X) * [1.0, 2.0, 3.0])


def test_jacobian():
    numpy.testing.assert_allclose(functional.jacobian(linear, tensor(X)).numpy(), MATRIX)
    made = functional.jacobian(lambda x, y: x.unsqueeze(1) * y, (tensor([1.0, 2.0]), tensor([3.0, 4.0, 5.0])))
    assert [part.shape for part in made] == [(2, 3, 2), (2, 3, 3)]
    expected = numpy.einsum("ik,j->ijk", numpy.eye(2), [3.0, 4.0, 5.0])
    numpy.testing.assert_allclose(made[0].numpy(), expected)
    nested = functional.jacobian(lambda x: (x * 2, x.sum()), tensor(X))
    assert [part.shape for part in nested] == [(3, 3), (3,)]


def test_jacobian_on_the_tape():
    x = tensor(X, grad=True)
    made = functional.jacobian(lambda x: x**2, x, create_graph=True)
    assert made.requires_grad
    assert gradcheck(lambda x: functional.jacobian(lambda t: t**3, x, create_graph=True), x)


def test_hessian():
    numpy.testing.assert_allclose(functional.hessian(cubic, tensor(X)).numpy(), numpy.diag(6 * X))
    made = functional.hessian(lambda x, y: (x * x * y).sum(), (tensor([2.0]), tensor([3.0])))
    assert [[part.item() for part in row] for row in made] == [[6.0, 4.0], [4.0, 0.0]]


def test_vhp_and_hvp():
    v = [1.0, 2.0, 3.0]
    for function in (functional.vhp, functional.hvp):
        value, product = function(cubic, tensor(X), tensor(v))
        assert value.item() == pytest.approx((X**3).sum())
        numpy.testing.assert_allclose(product.numpy(), 6 * X * v)


def test_strict():
    with pytest.raises(RuntimeError, match="does not require gradients"):
        functional.vjp(lambda x: x.detach(), tensor([1.0]), tensor([1.0]), strict=True)
    with pytest.raises(RuntimeError, match="independent of input 1"):
        functional.vjp(lambda x, y: x * 2, (tensor([1.0]), tensor([1.0])), tensor([1.0]), strict=True)
    assert functional.vjp(lambda x: x.detach(), tensor([1.0]), tensor([1.0]))[1].tolist() == [0.0]
    assert functional.jacobian(lambda x: x.detach(), tensor([1.0, 2.0])).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_errors():
    with pytest.raises(RuntimeError, match="v can only be None"):
        functional.vjp(linear, tensor(X))
    with pytest.raises(RuntimeError, match="v has invalid size"):
        functional.vjp(linear, tensor(X), tensor([1.0]))
    with pytest.raises(TypeError, match="must be either a Tensor or a tuple of Tensors"):
        functional.jacobian(lambda x: x, (1, 2))
    with pytest.raises(RuntimeError, match="should contain a single element"):
        functional.hessian(lambda x: x * 2, tensor(X))
    with pytest.raises(NotImplementedError, match="vectorize=True"):
        functional.jacobian(linear, tensor(X), strategy="forward-mode")


def test_empty():
    made = functional.jacobian(lambda x: x[:0], tensor(X))
    assert made.shape == (0, 3)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda f, x: f.vjp(lambda a: a.detach(), x, x, strict=True),
            "Output 0 of the user-provided function does not require",
        ),
        (
            lambda f, x: f.vjp(lambda a: a.clone(), x, x.detach(), create_graph=True, strict=True),
            "The jacobian of the user-provided function is independent of input 0",
        ),
        (
            lambda f, x: f.jvp(lambda a: a.detach().exp().requires_grad_(), x, x, strict=True),
            "is independent of input 0",
        ),
        (
            lambda f, x: f.jacobian(lambda a, b: a * 2, (x, x), strict=True),
            "Output 0 of the user-provided function is independent of input 1",
        ),
        (
            lambda f, x: f.jacobian(lambda a: a * 2, x, create_graph=True, strict=True),
            "The jacobian of the user-provided function is independent of input 0",
        ),
        (
            lambda f, x: f.hessian(lambda a: a.sum(), x, strict=True),
            "the jacobian of the user-provided function with respect to input 0",
        ),
        (
            lambda f, x: f.vhp(lambda a: a.sum(), x, x, strict=True),
            "the jacobian of the user-provided function with respect to input 0",
        ),
        (
            lambda f, x: f.hvp(lambda a: a.sum(), x, x, strict=True),
            "the jacobian of the user-provided function with respect to input 0",
        ),
        (
            lambda f, x: f.hvp(lambda a: (a**2).sum(), x, x.detach(), create_graph=True, strict=True),
            "The hessian of the user-provided function is independent of input 0",
        ),
        (
            lambda f, x: f.hessian(lambda a: (a.sum(),), x),
            "The function given to hessian should return a single Tensor",
        ),
        (lambda f, x: f.vjp(lambda a: a * 2, x, x[:1]), "^v has invalid size: should be"),
        (lambda f, x: f.jvp(lambda a, b: a * b, (x, x), (x, x[:1])), "^Entry 1 in v has invalid size: should be"),
    ],
)
def test_strict_mode_and_checks(call, text):
    x = candelabra.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match=text):
        call(candelabra.autograd.functional, x)


def test_results_and_inputs_are_tensors():
    functional, x = candelabra.autograd.functional, candelabra.ones(2)
    with pytest.raises(
        TypeError, match="The inputs given to vjp must be either a Tensor .* the value at index 1 has type"
    ):
        functional.vjp(lambda a, b: a, (x, 2), x)
    with pytest.raises(
        TypeError, match="The outputs of the user-provided function given to hessian must be either a Tensor"
    ):
        functional.hessian(lambda a: (a.sum(), "more"), x)
