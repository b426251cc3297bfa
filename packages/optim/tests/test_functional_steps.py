"""Test functional optimizer steps against the formulas of their papers and the classes."""

from __future__ import annotations

import numpy as np
import pytest

import candelabra
from candelabra import optim
from candelabra.optim import _functional

GRADS = [np.array([0.5, -2.0, 0.0]), np.array([1.0, 1.0, -3.0])]
START = np.array([1.0, 2.0, 3.0])
#: By function: the class, the initial value of each list of states, the options of the function,
#: and further options of the class.
CASES = {
    "adadelta": (
        optim.Adadelta, {"square_avgs": 0.0, "acc_deltas": 0.0}, {"lr": 0.5, "rho": 0.8, "eps": 1e-3, "weight_decay": 0.1, "maximize": False}, {},
    ),
    "adagrad": (
        optim.Adagrad, {"state_sums": 0.0}, {"lr": 0.5, "weight_decay": 0.1, "lr_decay": 0.2, "eps": 1e-3, "maximize": False}, {},
    ),
    "adam": (
        optim.Adam, {"exp_avgs": 0.0, "exp_avg_sqs": 0.0, "max_exp_avg_sqs": 0.0},
        {"amsgrad": True, "beta1": 0.8, "beta2": 0.9, "lr": 0.5, "weight_decay": 0.1, "eps": 1e-3, "maximize": True}, {},
    ),
    "adamw": (
        optim.AdamW, {"exp_avgs": 0.0, "exp_avg_sqs": 0.0, "max_exp_avg_sqs": 0.0},
        {"amsgrad": False, "beta1": 0.8, "beta2": 0.9, "lr": 0.5, "weight_decay": 0.1, "eps": 1e-3, "maximize": False}, {},
    ),
    "adamax": (
        optim.Adamax, {"exp_avgs": 0.0, "exp_infs": 0.0}, {"eps": 1e-3, "beta1": 0.8, "beta2": 0.9, "lr": 0.5, "weight_decay": 0.1}, {},
    ),
    "asgd": (
        optim.ASGD, {"axs": 0.0, "mus": 1.0, "etas": 0.5}, {"lambd": 1e-2, "lr": 0.5, "t0": 1.0, "alpha": 0.75, "weight_decay": 0.1}, {},
    ),
    "nadam": (
        optim.NAdam, {"exp_avgs": 0.0, "exp_avg_sqs": 0.0, "mu_products": 1.0},
        {"beta1": 0.8, "beta2": 0.9, "lr": 0.5, "weight_decay": 0.1, "momentum_decay": 4e-3, "eps": 1e-3}, {},
    ),
    "radam": (
        optim.RAdam, {"exp_avgs": 0.0, "exp_avg_sqs": 0.0}, {"beta1": 0.8, "beta2": 0.9, "lr": 0.5, "weight_decay": 0.1, "eps": 1e-3}, {},
    ),
    "rmsprop": (
        optim.RMSprop, {"square_avgs": 0.0, "grad_avgs": 0.0, "momentum_buffer_list": 0.0},
        {"lr": 0.5, "alpha": 0.9, "eps": 1e-3, "weight_decay": 0.1, "momentum": 0.7, "centered": True}, {},
    ),
    "rprop": (
        optim.Rprop, {"prevs": 0.0, "step_sizes": 0.5}, {"step_size_min": 1e-6, "step_size_max": 50.0, "etaminus": 0.5, "etaplus": 1.2},
        {"lr": 0.5},
    ),
}  # fmt: skip
ONE_EACH = {"mus", "etas", "mu_products"}


def class_options(options):
    made = {
        name: value
        for name, value in options.items()
        if name not in ("beta1", "beta2", "step_size_min", "step_size_max", "etaminus", "etaplus")
    }
    if "beta1" in options:
        made["betas"] = (options["beta1"], options["beta2"])
    if "etaminus" in options:
        made |= {
            "etas": (options["etaminus"], options["etaplus"]),
            "step_sizes": (options["step_size_min"], options["step_size_max"]),
        }
    return made


@pytest.mark.parametrize("name", CASES)
def test_a_function_steps_as_its_class(name):
    kind, states, options, more = CASES[name]
    parameter = candelabra.tensor(START)
    optimizer = kind([parameter], **class_options(options), **more)
    own = candelabra.tensor(START)
    lists = {
        state: [candelabra.full(() if state in ONE_EACH else (3,), start, dtype=own.dtype)]
        for state, start in states.items()
    }
    steps = [candelabra.tensor(0.0)]
    before = own._version
    for count, grad in enumerate(GRADS, start=1):
        parameter.grad = candelabra.tensor(grad)
        optimizer.step()
        getattr(_functional, name)([own], [candelabra.tensor(grad)], *lists.values(), steps, **options)
        np.testing.assert_array_equal(own.numpy(), parameter.numpy())
        assert steps[0].item() == count
    assert own._version > before
    assert own.grad is None
    assert not np.array_equal(own.numpy(), START)


def test_adam_is_the_papers():
    p, m, v = START.copy(), np.zeros(3), np.zeros(3)
    own, lists, steps = (
        candelabra.tensor(START),
        [candelabra.zeros(3, dtype=candelabra.float64) for _ in range(2)],
        [candelabra.tensor(0.0)],
    )
    for step, grad in enumerate(GRADS, start=1):
        m, v = 0.9 * m + 0.1 * grad, 0.99 * v + 0.01 * grad**2
        p -= 0.1 * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.99**step)) + 1e-8)
        _functional.adam(
            [own], [candelabra.tensor(grad)], lists[:1], lists[1:], [], steps, amsgrad=False, beta1=0.9, beta2=0.99, lr=0.1, weight_decay=0.0,
            eps=1e-8, maximize=False,
        )  # fmt: skip
    np.testing.assert_allclose(own.numpy(), p, rtol=1e-12)
    np.testing.assert_allclose(lists[0].numpy(), m, rtol=1e-12)
    np.testing.assert_allclose(lists[1].numpy(), v, rtol=1e-12)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_sgd_fills_its_buffers(momentum):
    p, buffer = START.copy(), None
    own, buffers = candelabra.tensor(START, requires_grad=True), [None]
    for grad in GRADS:
        buffer = grad if buffer is None else momentum * buffer + grad
        p -= 0.1 * (buffer if momentum else grad)
        _functional.sgd(
            [own],
            [candelabra.tensor(grad)],
            buffers,
            weight_decay=0.0,
            momentum=momentum,
            lr=0.1,
            dampening=0.0,
            nesterov=False,
            maximize=False,
        )
    np.testing.assert_allclose(own.detach().numpy(), p, rtol=1e-14)
    assert (buffers[0] is None) == (momentum == 0)


def test_each_is_in_the_module_of_its_class():
    from candelabra.optim.adam import adam
    from candelabra.optim.sgd import sgd

    assert adam is _functional.adam
    assert sgd is optim._functional.sgd


def test_what_is_refused():
    p, options = candelabra.ones(1), CASES["adadelta"][2]
    with pytest.raises(RuntimeError, match="expected grads to have one entry a parameter, 1 of them, but got 0"):
        _functional.adadelta([p], [], [p], [p], [p], **options)
    with pytest.raises(NotImplementedError, match=r"adadelta\(\): differentiable is not supported by the function"):
        _functional.adadelta([p], [p], [p], [p], [p], differentiable=True, **options)
    with pytest.raises(NotImplementedError, match="no sparse tensors"):
        _functional.sparse_adam([p], [p], [p], [p], [0], eps=1e-8, beta1=0.9, beta2=0.999, lr=0.1, maximize=False)
    _functional.adadelta([], [], [], [], [], **options)
