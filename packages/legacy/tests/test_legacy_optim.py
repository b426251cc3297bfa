"""Optimizers: steps compared with those of candelabra.optim or by hand, and minima."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import candelabra
from candelabra import optim as modern
from candelabra.legacy import nn, optim
from candelabra.testing import assert_close

ALL = [getattr(optim, name) for name in optim.__all__]


def rosenbrock(x: candelabra.Tensor) -> tuple[float, candelabra.Tensor]:
    x0, x1 = x[:-1], x[1:]
    gradient = candelabra.zeros_like(x)
    gradient[:-1] += -400 * x0 * (x1 - x0**2) - 2 * (1 - x0)
    gradient[1:] += 200 * (x1 - x0**2)
    return float((100 * (x1 - x0**2) ** 2 + (1 - x0) ** 2).sum()), gradient


def quadratic(x: candelabra.Tensor) -> tuple[float, candelabra.Tensor]:
    scales = candelabra.arange(1.0, 1 + x.numel(), dtype=x.dtype)
    return float((scales * x * x).sum()), 2 * scales * x


def start() -> candelabra.Tensor:
    return candelabra.tensor([1.0, -2.0, 3.0], dtype=candelabra.float64)


#: An optimizer here and its settings, and the same of candelabra.optim.
SAME: list[tuple[Any, dict[str, Any], Callable[..., Any]]] = [
    (optim.sgd, {"learningRate": 0.05}, lambda p: modern.SGD(p, lr=0.05)),
    (optim.sgd, {"learningRate": 0.05, "momentum": 0.9, "dampening": 0, "weightDecay": 0.1}, lambda p: modern.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.1)),
    (optim.sgd, {"learningRate": 0.01, "momentum": 0.9, "dampening": 0, "nesterov": True}, lambda p: modern.SGD(p, lr=0.01, momentum=0.9, nesterov=True)),
    (optim.sgd, {"learningRate": 0.05, "momentum": 0.5}, lambda p: modern.SGD(p, lr=0.05, momentum=0.5, dampening=0.5)),
    (optim.adam, {"learningRate": 0.1, "weightDecay": 0.1}, lambda p: modern.Adam(p, lr=0.1, weight_decay=0.1, eps=0)),
    (optim.adamax, {"learningRate": 0.1}, lambda p: modern.Adamax(p, lr=0.1, eps=1e-38)),
    (optim.adagrad, {"learningRate": 0.1, "learningRateDecay": 0.1}, lambda p: modern.Adagrad(p, lr=0.1, lr_decay=0.1)),
    (optim.adadelta, {"rho": 0.8, "weightDecay": 0.1}, lambda p: modern.Adadelta(p, lr=1, rho=0.8, weight_decay=0.1)),
    (optim.rmsprop, {"learningRate": 0.1}, lambda p: modern.RMSprop(p, lr=0.1)),
    (optim.rprop, {"stepsize": 0.3}, lambda p: modern.Rprop(p, lr=0.3)),
    (optim.asgd, {"eta0": 0.05, "lambda": 0.1, "t0": 2}, lambda p: modern.ASGD(p, lr=0.05, lambd=0.1, t0=2)),
]  # fmt: skip


@pytest.mark.parametrize("step, config, make", SAME, ids=[f"{i}-{row[0].__name__}" for i, row in enumerate(SAME)])
def test_steps_are_those_of_optim(step: Any, config: dict[str, Any], make: Callable[..., Any]) -> None:
    x, parameter = start(), start().requires_grad_()
    optimizer = make([parameter])
    state: dict[str, Any] = {}
    given = dict(config)
    for _ in range(6):
        value, gradient = quadratic(parameter.detach())
        parameter.grad = gradient
        optimizer.step()
        result = step(quadratic, x, config, state)
        assert result[0] is x and result[1] == pytest.approx([value], rel=1e-6)
        assert_close(x, parameter.detach(), rtol=1e-6, atol=1e-6)
    assert config == given and state


def test_the_config_keeps_the_state_where_there_is_none() -> None:
    config: dict[str, Any] = {"learningRate": 0.05, "momentum": 0.9}
    x, same = start(), start()
    state: dict[str, Any] = {}
    for _ in range(3):
        optim.sgd(quadratic, x, config)
        optim.sgd(quadratic, same, {"learningRate": 0.05, "momentum": 0.9}, state)
    assert x.equal(same) and config["evalCounter"] == 3 and "dfdx" in config


def test_settings_of_sgd() -> None:
    x = start()
    optim.sgd(quadratic, x, {"learningRate": 1, "learningRates": candelabra.tensor([0.1, 0.0, 0.0]).double()})
    assert_close(x, candelabra.tensor([0.8, -2.0, 3.0]).double(), rtol=1e-6, atol=1e-6)
    x = start()
    optim.sgd(
        lambda x: (0.0, candelabra.zeros_like(x)),
        x,
        {"learningRate": 1, "weightDecays": candelabra.tensor([0.5, 0.0, 1.0]).double()},
    )
    assert_close(x, candelabra.tensor([0.5, -2.0, 0.0]).double())
    x, config = start(), {"learningRate": 1.0, "learningRateDecay": 1.0}
    for expected in (0.0, -0.5):
        optim.sgd(lambda x: (0.0, candelabra.ones_like(x)), x, config)
        assert x[0] == expected
    with pytest.raises(ValueError, match="requires a momentum and zero dampening"):
        optim.sgd(quadratic, x, {"nesterov": True, "momentum": 0.9})
    with pytest.raises(ValueError, match="exclude each other"):
        optim.sgd(quadratic, x, {"weightDecay": 0.1, "weightDecays": x})


def test_nag_looks_ahead() -> None:
    x, places = start(), []

    def watched(x: candelabra.Tensor) -> tuple[float, candelabra.Tensor]:
        places.append(x.clone())
        return quadratic(x)

    config = {"learningRate": 0.01, "momentum": 0.5}
    optim.nag(watched, x, config)
    first = x.clone()
    optim.nag(watched, x, config)
    assert_close(places[1], first + 0.5 * (first - places[0]))
    assert_close(x, places[1] - 0.01 * quadratic(places[1])[1])
    with pytest.raises(ValueError, match="Momentum must be positive"):
        optim.nag(quadratic, x, {"momentum": 0})


def test_the_average_of_asgd() -> None:
    x, state, places = start(), {}, []
    for _ in range(6):
        x, _, average = optim.asgd(quadratic, x, {"eta0": 0.05, "t0": 2}, state)
        places.append(x.clone())
    assert_close(average, candelabra.stack(places[3:]).mean(0))


@pytest.mark.parametrize("minimize", [optim.cg, optim.lbfgs])
def test_minimum_of_rosenbrock(minimize: Any) -> None:
    x = candelabra.zeros(2, dtype=candelabra.float64)
    config = {
        "maxIter": 100,
        "tolX": 1e-12,
        "tolFun": 1e-12,
        **({"learningRate": 1e-0} if minimize is optim.cg else {}),
    }
    if minimize is optim.lbfgs:
        config["lineSearch"] = backtracking
    found, values, evaluations = minimize(rosenbrock, x, config)
    assert found is x and values[0] == 1.0 and values[-1] < 1e-8 and evaluations <= 126
    assert_close(x, candelabra.ones(2, dtype=candelabra.float64), rtol=1e-3, atol=1e-3)


def backtracking(opfunc, x, t, d, f, g, gtd, options):  # type: ignore[no-untyped-def]
    """Halve the step until the function decreases enough."""
    for count in range(1, 20):  # noqa: B007
        moved = x + t * d
        value, gradient = opfunc(moved)
        if value <= f + 1e-4 * t * gtd:
            break
        t /= 2
    return value, gradient, moved, t, count


def test_lbfgs_goes_on_where_it_stopped() -> None:
    x = start()
    config: dict[str, Any] = {"maxIter": 2, "learningRate": 0.5}
    values = [optim.lbfgs(quadratic, x, config)[1][0] for _ in range(15)]
    assert values[-1] < 1e-6 * values[0] and config["nIter"] > 5 and config["funcEval"] >= 15
    x = candelabra.zeros(3)
    assert optim.lbfgs(quadratic, x, {}) == (x, [0.0], 1)


def test_lbfgs_follows_optim() -> None:
    x, parameter = start(), start().requires_grad_()
    optimizer = modern.LBFGS([parameter], lr=0.7, max_iter=7, max_eval=99, history_size=2)

    def closure() -> candelabra.Tensor:
        value, gradient = quadratic(parameter.detach())
        parameter.grad = gradient
        return candelabra.tensor(value)

    optimizer.step(closure)
    optim.lbfgs(quadratic, x, {"maxIter": 7, "maxEval": 99, "learningRate": 0.7, "nCorrection": 2})
    assert_close(x, parameter.detach(), rtol=1e-6, atol=1e-6)


def test_cg_minimizes_a_quadratic_in_few_evaluations() -> None:
    x = start()
    _, values, evaluations = optim.cg(quadratic, x, {"maxEval": 20})
    assert values == sorted(values, reverse=True) and x.abs().max() < 1e-3 and evaluations <= 21
    x = candelabra.zeros(3)
    _, values, _ = optim.cg(quadratic, x)
    assert values[0] == 0.0 and not x.any()


@pytest.mark.parametrize("minimize", ALL, ids=optim.__all__)
def test_training_decreases_the_loss(minimize: Any) -> None:
    net = nn.Sequential().add(nn.Linear(2, 8)).add(nn.Tanh()).add(nn.Linear(8, 2)).add(nn.LogSoftMax())
    criterion = nn.ClassNLLCriterion()
    x, gradients = net.getParameters()
    points = candelabra.randn(60, 2)
    labels = (points[:, 0] * points[:, 1] > 0).long()

    def feval(_: candelabra.Tensor) -> tuple[float, candelabra.Tensor]:
        gradients.zero_()
        loss = criterion.forward(net.forward(points), labels)
        net.backward(points, criterion.backward(net.output, labels))
        return loss, gradients

    rates = {"sgd": 0.5, "nag": 0.1, "adam": 0.05, "adamax": 0.05, "adagrad": 0.1, "rmsprop": 0.01}
    config: dict[str, Any] = {"eta0": 0.5}
    if minimize.__name__ in rates:
        config["learningRate"] = rates[minimize.__name__]
    values: list[float] = []
    for _ in range(4 if minimize in (optim.cg, optim.lbfgs) else 60):
        values += minimize(feval, x, config)[1]
    assert values[-1] < 0.97 * values[0]


def test_functions_may_use_the_tape() -> None:
    x = start()

    def loss(x: candelabra.Tensor) -> tuple[candelabra.Tensor, candelabra.Tensor]:
        point = x.clone().requires_grad_()
        value = (point * point).sum()
        value.backward()
        return value, point.grad

    optim.sgd(loss, x, {"learningRate": 0.25})
    assert_close(x, start() / 2)
