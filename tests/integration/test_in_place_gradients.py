"""Test that functions which overwrite their input have the same gradients as others."""

import pytest

import candelabra
from candelabra.nn import functional as F

ACTIVATIONS = [
    "relu",
    "leaky_relu",
    "elu",
    "selu",
    "celu",
    "hardtanh",
    "relu6",
    "silu",
    "mish",
    "hardswish",
    "hardsigmoid",
]
METHODS = {
    "logit": (1e-3,),
    "sinc": (),
    "polygamma": (1,),
    "mvlgamma": (2,),
    "renorm": (2, 0, 1.0),
    "index_reduce": (0, candelabra.tensor([0, 2]), candelabra.full((2, 3), 2.0), "prod"),
    "addmv": (candelabra.ones(4, 3), candelabra.ones(3)),
    "ldexp": (candelabra.tensor(2),),
}


def gradient(function, x):
    leaf = x.detach().requires_grad_()
    result = function(leaf * 1)
    (result * candelabra.arange(1.0, result.numel() + 1).reshape(result.shape)).sum().backward()
    return leaf.grad


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    x = candelabra.linspace(-4.0, 4.0, 9)
    function = getattr(F, name)
    wanted = gradient(function, x)
    assert candelabra.equal(gradient(lambda y: function(y, inplace=True), x), wanted)
    overwritten = x.clone()
    assert function(overwritten, inplace=True) is overwritten
    assert candelabra.equal(overwritten, function(x))


@pytest.mark.parametrize("name", ["threshold", "rrelu"])
def test_with_arguments(name):
    x = candelabra.linspace(-4.0, 4.0, 9)
    arguments = (0.1, 20.0) if name == "threshold" else (0.2, 0.2, True)
    function = getattr(F, name)
    wanted = gradient(lambda y: function(y, *arguments), x)
    assert candelabra.equal(gradient(lambda y: function(y, *arguments, inplace=True), x), wanted)


@pytest.mark.parametrize("name", METHODS)
def test_methods_made_of_operators(name):
    x = (
        candelabra.linspace(1.1, 3.0, 12).reshape(4, 3)
        if name != "logit"
        else candelabra.linspace(0.1, 0.9, 12).reshape(4, 3)
    )
    x = x[:, 0] if name == "addmv" else x
    arguments = METHODS[name]
    wanted = gradient(lambda y: getattr(candelabra.Tensor, name)(y, *arguments), x)
    candelabra.testing.assert_close(gradient(lambda y: getattr(y, f"{name}_")(*arguments), x), wanted)
