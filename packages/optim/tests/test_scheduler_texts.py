"""Test the representations of learning-rate schedules."""

import pytest

import candelabra as c
from candelabra import optim
from candelabra.optim import lr_scheduler as schedules


def optimizer():
    return optim.SGD([c.zeros(1)], lr=0.5, momentum=0.9)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda o: schedules.StepLR(o, 3), "StepLR(step_size=3, gamma=0.1, last_epoch=0, lr=[0.5])"),
        (lambda o: schedules.ExponentialLR(o, 0.5), "ExponentialLR(gamma=0.5, last_epoch=0, lr=[0.5])"),
    ],
)
def test_options_and_the_rate(make, text):
    assert repr(make(optimizer())) == text


def test_compositions_have_those_of_their_parts():
    o = optimizer()
    parts = [schedules.ConstantLR(o, 0.5, 2), schedules.ExponentialLR(o, 0.5)]
    assert repr(schedules.ChainedScheduler(parts)) == f"ChainedScheduler([{parts[0]!r}, {parts[1]!r}])"


@pytest.mark.parametrize(
    "make",
    [
        lambda o: schedules.LambdaLR(o, lambda epoch: 1.0),
        lambda o: schedules.MultiStepLR(o, [3, 5]),
        lambda o: schedules.CyclicLR(o, 0.1, 0.2),
        lambda o: schedules.OneCycleLR(o, 0.1, 10),
        lambda o: schedules.ReduceLROnPlateau(o),
        lambda o: schedules.CosineAnnealingWarmRestarts(o, 3),
        lambda o: schedules.SequentialLR(o, [schedules.ConstantLR(o), schedules.LinearLR(o)], [2]),
    ],
)
def test_no_addresses(make):
    text = repr(make(optimizer()))
    assert " at 0x" not in text
    assert "lr=[" in text
