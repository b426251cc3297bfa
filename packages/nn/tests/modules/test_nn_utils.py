"""Test gradient clipping and parameters_to_vector. The tests set gradients by hand."""

import math

import numpy as np
import pytest
from nn_numerics import array, assert_close, tensor

import candelabra
from candelabra import nn
from candelabra.nn import utils


def owners(rng):
    made = []
    for shape in ((2, 3), (4,), ()):
        made.append(tensor(np.zeros(shape)))
        made[-1].grad = tensor(rng.standard_normal(shape))
    made.append(candelabra.zeros(2))  # has no gradient
    return made


def flat(parameters):
    return np.concatenate([array(p.grad).ravel() for p in parameters if p.grad is not None])


@pytest.mark.parametrize("order", [1.0, 2.0, 3.0, math.inf])
def test_clip_norm(rng, order):
    parameters = owners(rng)
    before = flat(parameters)
    norm = np.linalg.norm(before, order)
    assert_close(utils.get_total_norm([p.grad for p in parameters[:3]], order), norm)
    assert_close(utils.clip_grad_norm_(parameters, 0.5, order), norm)
    np.testing.assert_allclose(flat(parameters), before * 0.5 / (norm + 1e-6))
    assert_close(utils.clip_grad_norm_(iter(parameters), 100.0, order), np.linalg.norm(flat(parameters), order))
    np.testing.assert_allclose(flat(parameters), before * 0.5 / (norm + 1e-6))


def test_clip_one_tensor_and_none():
    parameter = candelabra.zeros(2)
    assert utils.clip_grad_norm_(parameter, 1.0).item() == 0
    assert utils.clip_grad_norm_([], 1.0).item() == 0
    parameter.grad = candelabra.tensor([3.0, 4.0])
    assert utils.clip_grad_norm_(parameter, 1.0).item() == 5


def test_nonfinite():
    parameter = candelabra.zeros(2)
    parameter.grad = candelabra.tensor([math.inf, 1.0])
    with pytest.raises(RuntimeError, match="is non-finite, so it cannot be clipped"):
        utils.clip_grad_norm_([parameter], 1.0, error_if_nonfinite=True)
    assert array(parameter.grad).tolist() == [math.inf, 1.0]
    assert math.isinf(utils.clip_grad_norm_([parameter], 1.0).item())


def test_clip_value(rng):
    parameters = owners(rng)
    before = flat(parameters)
    utils.clip_grad_value_(parameters, 0.3)
    np.testing.assert_array_equal(flat(parameters), np.clip(before, -0.3, 0.3))


def test_vectors(rng):
    layer = nn.Linear(2, 3)
    vector = utils.parameters_to_vector(layer.parameters())
    np.testing.assert_array_equal(array(vector), np.concatenate([array(layer.weight).ravel(), array(layer.bias)]))
    new = candelabra.arange(9.0)
    weight = layer.weight
    utils.vector_to_parameters(new, layer.parameters())
    assert layer.weight is weight and weight.requires_grad
    np.testing.assert_array_equal(array(layer.weight), np.arange(6).reshape(3, 2))
    np.testing.assert_array_equal(array(layer.bias), np.arange(6, 9))
    with pytest.raises(TypeError, match="expected candelabra.Tensor, but got: list"):
        utils.vector_to_parameters([1], layer.parameters())


def test_copies_between_devices():
    from candelabra.nn.parallel import comm
    from candelabra.nn.parallel.parallel_apply import get_a_var

    x = candelabra.arange(4.0)
    out = [candelabra.empty(4), candelabra.empty(4)]
    assert comm.broadcast(x, out=out) == tuple(out) and out[1].tolist() == x.tolist()
    assert [part.tolist() for part in comm.scatter(x, ["cpu", "cpu"], [1, 3])] == [[0], [1, 2, 3]]
    assert comm.gather(comm.scatter(x, ["cpu"] * 2)).tolist() == x.tolist()
    assert comm.reduce_add([x, x, x]).tolist() == [0, 3, 6, 9]
    assert [one.tolist() for one in comm.reduce_add_coalesced([[x, x + 1], [x, x]])] == [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert comm.broadcast_coalesced([x], ["cpu"])[0][0].tolist() == x.tolist()
    with pytest.raises(RuntimeError, match="Exactly one of 'devices' and 'out'"):
        comm.broadcast(x)
    with pytest.raises(ValueError, match="input 1 has invalid size: got 2, but expected 4"):
        comm.reduce_add([x, x[:2]])
    assert get_a_var({"a": [1, (x,)]}) is x and get_a_var([1]) is None
