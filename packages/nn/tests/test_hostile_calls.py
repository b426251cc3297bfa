"""Call every function of candelabra.nn.functional with hostile arguments, in a separate process."""

import pytest

import candelabra
from candelabra import nn
from candelabra.nn import functional as F
from candelabra.testing import hostile


def test_functional():
    report = hostile.run(["candelabra.nn.functional"], calls=4)
    assert report.crashes == []
    assert report.wrong == []
    assert report.calls > 400


def test_running_statistics_are_left_alone_by_a_call_that_raises():
    x, mean, var = candelabra.randn(2, 3, 4), candelabra.zeros(3), candelabra.ones(3)
    for weight, running_var, message in (
        (candelabra.ones(2), var, "weight"),
        (None, candelabra.ones(4), "running_var should contain 3"),
    ):
        with pytest.raises(RuntimeError, match=message):
            F.instance_norm(x, mean, running_var, weight)
        assert mean.tolist() == [0, 0, 0]
    F.instance_norm(x, mean, var)
    assert mean.tolist() != [0, 0, 0]


def test_no_classes():
    loss = F.cross_entropy(candelabra.zeros(2, 0), candelabra.zeros(2, 0), label_smoothing=0.5)
    assert loss.isnan()


def test_initialization_that_is_refused_writes_nothing():
    for x, settings, error in (
        (candelabra.ones(2, dtype=candelabra.complex64), {}, NotImplementedError),
        (candelabra.ones(2, dtype=candelabra.float16), {"b": 1e300}, RuntimeError),
    ):
        with pytest.raises(error):
            nn.init.trunc_normal_(x, **settings)
        assert x.tolist() == [1, 1]
    x = candelabra.empty(1000)
    assert nn.init.trunc_normal_(x, 1.0, 2.0, a=-1.0, b=2.0) is x
    assert x.min() >= -1 and x.max() <= 2 and 0 < x.mean() < 1


def test_a_vector_that_is_too_short_changes_no_parameter():
    parameters = [candelabra.zeros(2), candelabra.zeros(3)]
    with pytest.raises(RuntimeError, match="invalid for input of size 2"):
        nn.utils.vector_to_parameters(candelabra.ones(4), parameters)
    assert [one.tolist() for one in parameters] == [[0, 0], [0, 0, 0]]
    nn.utils.vector_to_parameters(candelabra.ones(5), parameters)
    assert [one.tolist() for one in parameters] == [[1, 1], [1, 1, 1]]
