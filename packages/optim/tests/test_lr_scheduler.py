"""Test learning-rate schedules against their closed forms."""

import copy
import math
import pickle
import warnings

import numpy as np
import pytest

import candelabra
from candelabra import optim
from candelabra.optim import lr_scheduler as schedules


def optimizer(lr=1.0, name="SGD", **options):
    if name == "SGD":
        options.setdefault("momentum", 0.9)
    return getattr(optim, name)(
        [{"params": [candelabra.zeros(1)]}, {"params": [candelabra.zeros(1)], "lr": lr / 2}], lr=lr, **options
    )


def rates(schedule, steps=30, metrics=None):
    found = []
    for step in range(steps):
        found.append(list(schedule.get_last_lr()))
        schedule.optimizer.step()
        schedule.step(*([] if metrics is None else [metrics[step]]))
    return np.array(found)


def triangle(t, up, down):
    """Return the height of a triangle wave that rises for `up` steps and falls for `down` steps."""
    t = t % (up + down)
    return t / up if t <= up else 1 - (t - up) / down


#: Schedules, with the factor on the base rate at step t.
CLOSED = {
    "LambdaLR": (lambda o: schedules.LambdaLR(o, lambda t: 0.9**t), lambda t: 0.9**t),
    "MultiplicativeLR": (lambda o: schedules.MultiplicativeLR(o, lambda t: 0.9), lambda t: 0.9**t),
    "StepLR": (lambda o: schedules.StepLR(o, 7, 0.3), lambda t: 0.3 ** (t // 7)),
    "MultiStepLR": (
        lambda o: schedules.MultiStepLR(o, [3, 10, 10], 0.3),
        lambda t: 0.3 ** sum(t >= m for m in (3, 10, 10)),
    ),
    "ConstantLR": (lambda o: schedules.ConstantLR(o, 0.3, 6), lambda t: 0.3 if t < 6 else 1),
    "LinearLR": (lambda o: schedules.LinearLR(o, 0.2, 0.8, 9), lambda t: 0.2 + 0.6 * min(t, 9) / 9),
    "ExponentialLR": (lambda o: schedules.ExponentialLR(o, 0.9), lambda t: 0.9**t),
    "PolynomialLR": (lambda o: schedules.PolynomialLR(o, 9, 2.0), lambda t: (1 - min(t, 9) / 9) ** 2),
    "CosineAnnealingLR": (lambda o: schedules.CosineAnnealingLR(o, 7), lambda t: (1 + math.cos(math.pi * t / 7)) / 2),
    "CosineAnnealingWarmRestarts": (
        lambda o: schedules.CosineAnnealingWarmRestarts(o, 5, 2),
        lambda t: (1 + math.cos(math.pi * (t / 5 if t < 5 else (t - 5) / 10 if t < 15 else (t - 15) / 20))) / 2,
    ),
    "SequentialLR": (
        lambda o: schedules.SequentialLR(o, [schedules.LinearLR(o, 0.1, 1.0, 5), schedules.ExponentialLR(o, 0.9)], [5]),
        lambda t: 0.1 + 0.9 * t / 5 if t < 5 else 0.9 ** (t - 5),
    ),
    "SequentialLR nested": (
        lambda o: schedules.SequentialLR(
            o,
            [
                schedules.SequentialLR(o, [schedules.ConstantLR(o, 0.1, 2), schedules.ExponentialLR(o, 0.5)], [2]),
                schedules.StepLR(o, 3, 0.5),
            ],
            [6],
        ),
        lambda t: 0.1 if t < 2 else 0.5 ** (t - 2) if t < 6 else 0.5 ** ((t - 6) // 3),
    ),
    "ChainedScheduler": (
        lambda o: schedules.ChainedScheduler([schedules.ConstantLR(o, 0.3, 4), schedules.ExponentialLR(o, 0.9)]),
        lambda t: (0.3 if t < 4 else 1) * 0.9**t,
    ),
}


@pytest.mark.parametrize("name", CLOSED)
def test_closed_form(name):
    make, factor = CLOSED[name]
    found = rates(make(optimizer(2.0)))
    expected = np.array([[2.0 * factor(t), 1.0 * factor(t)] for t in range(30)])
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_cosine_with_a_floor():
    found = rates(schedules.CosineAnnealingLR(optimizer(2.0), 7, 0.1))
    for group, base in enumerate((2.0, 1.0)):
        expected = [0.1 + (base - 0.1) * (1 + math.cos(math.pi * t / 7)) / 2 for t in range(30)]
        np.testing.assert_allclose(found[:, group], expected, rtol=1e-9)


def test_functions_a_group():
    found = rates(schedules.LambdaLR(optimizer(), [lambda t: 0.5**t, lambda t: t]), 3)
    np.testing.assert_allclose(found, [[1, 0], [0.5, 0.5], [0.25, 1]])


def test_one_cycle():
    o = optimizer()
    schedule = schedules.OneCycleLR(o, [1.0, 2.0], 40, pct_start=0.25)
    momenta = []
    schedule.optimizer.register_step_pre_hook(lambda o, *rest: momenta.append(o.param_groups[0]["momentum"]))
    found = rates(schedule, 40)

    def cosine(a, b, x):
        return b + (a - b) / 2 * (1 + math.cos(math.pi * x))

    for group, top in enumerate((1.0, 2.0)):
        low, end = top / 25, top / 25 / 1e4
        expected = [cosine(low, top, t / 9) if t <= 9 else cosine(top, end, (t - 9) / 30) for t in range(40)]
        np.testing.assert_allclose(found[:, group], expected, rtol=1e-9)
    np.testing.assert_allclose(
        momenta, [cosine(0.95, 0.85, t / 9) if t <= 9 else cosine(0.85, 0.95, (t - 9) / 30) for t in range(40)]
    )
    with pytest.raises(ValueError, match="Tried to step 41 times. The specified number of total steps is 40"):
        schedule.step()


def test_one_cycle_in_three_phases_with_betas():
    o = optimizer(name="Adam")
    found = rates(
        schedules.OneCycleLR(
            o, 1.0, epochs=5, steps_per_epoch=4, pct_start=0.4, anneal_strategy="linear", three_phase=True
        ),
        20,
    )
    expected = np.interp(range(20), [0, 7, 14, 19], [0.04, 1, 0.04, 4e-6])
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-9)
    assert abs(o.param_groups[0]["betas"][0] - 0.95) < 1e-9 and o.param_groups[0]["betas"][1] == 0.999


@pytest.mark.parametrize(
    ("options", "scale"),
    [
        ({}, lambda t: 1),
        ({"mode": "triangular2"}, lambda t: 0.5 ** (t // 10)),
        ({"mode": "exp_range", "gamma": 0.95}, lambda t: 0.95**t),
        ({"scale_fn": lambda cycle: 1 / cycle}, lambda t: 1 / (t // 10 + 1)),
    ],
)
def test_cyclic(options, scale):
    o = optimizer()
    found = rates(schedules.CyclicLR(o, 0.1, [1.0, 2.0], 4, 6, **options))
    for group, top in enumerate((1.0, 2.0)):
        np.testing.assert_allclose(
            found[:, group], [0.1 + (top - 0.1) * triangle(t, 4, 6) * scale(t) for t in range(30)], atol=1e-12
        )
    np.testing.assert_allclose(o.param_groups[0]["momentum"], 0.9 - 0.1 * triangle(30, 4, 6) * scale(30))


def test_plateau():
    o = optimizer()
    schedule = schedules.ReduceLROnPlateau(o, factor=0.5, patience=2, cooldown=1, min_lr=[0.2, 0.3])
    found = rates(schedule, 14, [1.0, 0.9] + [0.9] * 12)
    # Steps 2, 3, 4 are bad (more than 2): halve. Step 5 is cooldown. Steps 6, 7, 8: halve again.
    # Step 9 is cooldown. Steps 10, 11, 12: the minimum.
    np.testing.assert_allclose(found[:, 0], [1] * 5 + [0.5] * 4 + [0.25] * 4 + [0.2])
    np.testing.assert_allclose(found[:, 1], [0.5] * 5 + [0.3] * 9)
    assert schedule.best == 0.9 and schedule.last_epoch == 14


@pytest.mark.parametrize(
    ("mode", "threshold_mode", "first", "better", "worse"),
    [
        ("min", "rel", 1.0, 0.85, 0.95),
        ("min", "abs", 2.0, 1.85, 1.95),
        ("max", "rel", 1.0, 1.15, 1.05),
        ("max", "abs", 2.0, 2.15, 2.05),
    ],
)
def test_plateau_thresholds(mode, threshold_mode, first, better, worse):
    for value, bad in ((better, 0), (worse, 1)):
        schedule = schedules.ReduceLROnPlateau(optimizer(), mode, threshold=0.1, threshold_mode=threshold_mode)
        schedule.step(first)
        schedule.step(candelabra.tensor(value))
        assert schedule.num_bad_epochs == bad


@pytest.mark.parametrize("name", CLOSED)
def test_resuming(name):
    make, _ = CLOSED[name]
    whole = rates(make(optimizer()), 20)
    first = make(o := optimizer())
    begin = rates(first, 8)
    saved = pickle.loads(pickle.dumps((first.state_dict(), o.state_dict())))
    second = make(other := optimizer())
    second.load_state_dict(saved[0])
    other.load_state_dict(saved[1])
    np.testing.assert_allclose(np.concatenate([begin, rates(second, 12)]), whole, rtol=1e-12)


def test_last_epoch_resumes():
    o = optimizer()
    rates(schedules.ExponentialLR(o, 0.5), 3)
    assert o.param_groups[0]["lr"] == 0.125
    schedule = schedules.ExponentialLR(o, 0.5, last_epoch=2)
    assert schedule.last_epoch == 3 and schedule.get_last_lr() == [0.125, 0.0625]


def test_closed_form_by_epoch():
    for name in (
        "StepLR",
        "MultiStepLR",
        "ConstantLR",
        "LinearLR",
        "ExponentialLR",
        "PolynomialLR",
        "CosineAnnealingLR",
    ):
        make, factor = CLOSED[name]
        schedule = make(o := optimizer(2.0))
        o.step()
        with pytest.warns(UserWarning, match="The epoch parameter in `scheduler.step"):
            schedule.step(5)
        np.testing.assert_allclose(schedule.get_last_lr(), [2 * factor(5), factor(5)], rtol=1e-12)
    schedule = schedules.CosineAnnealingWarmRestarts(o := optimizer(), 4, 2)
    o.step()
    schedule.step(5.5)
    np.testing.assert_allclose(schedule.get_last_lr()[0], (1 + math.cos(math.pi * 1.5 / 8)) / 2)
    schedule.step(1.5)
    np.testing.assert_allclose(schedule.get_last_lr()[0], (1 + math.cos(math.pi * 1.5 / 4)) / 2)
    with pytest.raises(ValueError, match="Expected non-negative epoch, but got -1"):
        schedule.step(-1)


def test_warnings():
    with pytest.warns(UserWarning, match="Detected call of `lr_scheduler.step\\(\\)` before `optimizer.step\\(\\)`"):
        schedules.StepLR(optimizer(), 3).step()
    with pytest.warns(UserWarning, match="please use `get_last_lr"):
        schedules.StepLR(optimizer(), 3).get_lr()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rates(schedules.StepLR(optimizer(), 3), 5)


def test_tensor_rates_stay_tensors():
    lr = candelabra.tensor(1.0)
    o = optim.SGD([candelabra.zeros(1)], lr=lr)
    schedule = schedules.ExponentialLR(o, 0.5)
    o.step()
    schedule.step()
    assert o.param_groups[0]["lr"] is lr and lr.item() == 0.5 and schedule.get_last_lr()[0].item() == 0.5


@pytest.mark.parametrize("kind", ["CyclicLR", "OneCycleLR"])
def test_tensor_options_are_copied(kind):
    lr, momentum = candelabra.tensor(0.5), candelabra.tensor(0.75)
    o = optim.SGD([candelabra.zeros(1)], lr=0.1, momentum=0.9)
    options = {"base_lr": candelabra.tensor(0.25)} if kind == "CyclicLR" else {"total_steps": 9}
    getattr(schedules, kind)(o, max_lr=lr, base_momentum=momentum, max_momentum=momentum, **options)
    before = copy.deepcopy(o.param_groups)
    lr.mul_(2)
    momentum.mul_(2)
    names = [name for name in before[0] if name != "params"]
    assert [float(o.param_groups[0][name] or 0) for name in names] == [float(before[0][name] or 0) for name in names]


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda: schedules.StepLR(3, 1), TypeError, "int is not an Optimizer"),
        (
            lambda: schedules.StepLR(optimizer(), 1, last_epoch=3),
            KeyError,
            "param 'initial_lr' is not specified in param_groups[0]",
        ),
        (lambda: schedules.LambdaLR(optimizer(), [abs]), ValueError, "Expected 2 lr_lambdas, but got 1"),
        (
            lambda: schedules.ConstantLR(optimizer(), 2.0),
            ValueError,
            "Constant multiplicative factor expected to be between 0 and 1.",
        ),
        (
            lambda: schedules.LinearLR(optimizer(), 0.0),
            ValueError,
            "Starting multiplicative factor expected to be greater than 0",
        ),
        (
            lambda: schedules.LinearLR(optimizer(), 0.1, 2.0),
            ValueError,
            "Ending multiplicative factor expected to be between 0 and 1.",
        ),
        (lambda: schedules.OneCycleLR(optimizer(), 1.0), ValueError, "You must define either total_steps OR"),
        (
            lambda: schedules.OneCycleLR(optimizer(), 1.0, -1),
            ValueError,
            "Expected positive integer total_steps, but got -1",
        ),
        (
            lambda: schedules.OneCycleLR(optimizer(), 1.0, epochs=0, steps_per_epoch=1),
            ValueError,
            "Expected positive integer epochs",
        ),
        (
            lambda: schedules.OneCycleLR(optimizer(), 1.0, epochs=1, steps_per_epoch=0),
            ValueError,
            "integer steps_per_epoch",
        ),
        (
            lambda: schedules.OneCycleLR(optimizer(), 1.0, 9, pct_start=2.0),
            ValueError,
            "Expected float between 0 and 1 pct_start",
        ),
        (
            lambda: schedules.OneCycleLR(optimizer(), 1.0, 9, anneal_strategy="x"),
            ValueError,
            "must be one of 'cos' or 'linear'",
        ),
        (
            lambda: schedules.OneCycleLR(optimizer(), [1.0], 9),
            ValueError,
            "max_lr must have the same length as optimizer.param_groups. max_lr has 1 values, param_groups has 2",
        ),
        (
            lambda: schedules.OneCycleLR(optimizer(name="Adagrad"), 1.0, 9),
            ValueError,
            "optimizer must support momentum or beta1",
        ),
        (
            lambda: schedules.CyclicLR(optimizer(), 0.1, 1.0, mode="x"),
            ValueError,
            "mode is invalid and scale_fn is None",
        ),
        (
            lambda: schedules.CosineAnnealingWarmRestarts(optimizer(), 0),
            ValueError,
            "Expected positive integer T_0, but got 0",
        ),
        (
            lambda: schedules.CosineAnnealingWarmRestarts(optimizer(), 1, 0),
            ValueError,
            "Expected integer T_mult >= 1, but got 0",
        ),
        (lambda: schedules.ReduceLROnPlateau(optimizer(), "x"), ValueError, "mode x is unknown!"),
        (lambda: schedules.ReduceLROnPlateau(optimizer(), factor=1.0), ValueError, "Factor should be < 1.0."),
        (
            lambda: schedules.ReduceLROnPlateau(optimizer(), threshold_mode="x"),
            ValueError,
            "threshold mode x is unknown!",
        ),
        (lambda: schedules.ReduceLROnPlateau(optimizer(), min_lr=[1.0]), ValueError, "expected 2 min_lrs, got 1"),
        (lambda: schedules.SequentialLR(optimizer(), [], []), ValueError, "expects at least one scheduler"),
        (
            lambda: schedules.SequentialLR(o := optimizer(), [schedules.StepLR(o, 1)], [3]),
            ValueError,
            "expects number of schedulers",
        ),
        (
            lambda: schedules.SequentialLR(optimizer(), [schedules.StepLR(optimizer(), 1)], []),
            ValueError,
            "to belong to the same optimizer",
        ),
        (lambda: schedules.SequentialLR(optimizer(), [3], []), TypeError, "should have `optimizer` as its attribute"),
        (
            lambda: schedules.SequentialLR(o := optimizer(), [schedules.ReduceLROnPlateau(o)], []),
            ValueError,
            "does not support `ReduceLROnPlateau`",
        ),
        (lambda: schedules.ChainedScheduler([]), ValueError, "expects at least one scheduler to be chained"),
        (
            lambda: schedules.ChainedScheduler([schedules.ReduceLROnPlateau(optimizer())]),
            ValueError,
            "does not support `ReduceLROnPlateau`",
        ),
        (
            lambda: schedules.ChainedScheduler([schedules.StepLR(optimizer(), 1), schedules.StepLR(optimizer(), 1)]),
            ValueError,
            "to belong to the same optimizer",
        ),
        (lambda: schedules.LRScheduler(optimizer()), NotImplementedError, "LRScheduler defines no get_lr()"),
    ],
)
def test_errors(act, error, text):
    with pytest.raises(error) as caught:
        act()
    assert text in str(caught.value.args[0])


def test_plateau_after_a_new_group():
    o = optimizer()
    schedule = schedules.ReduceLROnPlateau(o, patience=0)
    o.add_param_group({"params": [candelabra.zeros(1)], "lr": 3.0})
    schedule.step(1.0)
    schedule.step(2.0)
    np.testing.assert_allclose(schedule.get_last_lr(), [0.1, 0.05, 0.3])
    listed = schedules.ReduceLROnPlateau(o, patience=0, min_lr=[0.0, 0.0, 0.0])
    o.add_param_group({"params": [candelabra.zeros(1)]})
    listed.step(1.0)
    with pytest.raises(RuntimeError, match="The number of param groups in the `optimizer`"):
        listed.step(2.0)


def test_recursive_undo():
    o = optimizer()
    inner = schedules.SequentialLR(
        o, [schedules.ExponentialLR(o, 0.5), schedules.ExponentialLR(o, 0.5)], milestones=[3]
    )
    outer = schedules.SequentialLR(o, [inner, schedules.ConstantLR(o)], milestones=[5])
    before = [part.last_epoch for part in (*inner._schedulers, outer._schedulers[1])]
    outer.recursive_undo()
    assert [part.last_epoch for part in (*inner._schedulers, outer._schedulers[1])] == [count - 1 for count in before]


def test_chained_schedules_first_in_a_sequence():
    optimizer = optim.SGD([candelabra.zeros(1)], lr=0.1)
    chained = schedules.ChainedScheduler(
        [schedules.ConstantLR(optimizer, 0.5, 2), schedules.ExponentialLR(optimizer, 0.9)]
    )
    sequence = schedules.SequentialLR(optimizer, [chained, schedules.ExponentialLR(optimizer, 0.5)], milestones=[3])
    rates = []
    for _ in range(6):
        optimizer.step()
        sequence.step()
        rates.append(round(optimizer.param_groups[0]["lr"], 6))
    assert rates == [0.0405, 0.0729, 0.1, 0.05, 0.025, 0.0125]  # PyTorch's
