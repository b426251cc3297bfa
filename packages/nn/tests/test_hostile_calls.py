"""Call every function of candelabra.nn.functional with hostile arguments, in a separate process."""

import pytest

import candelabra
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
