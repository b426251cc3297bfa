"""Optimizers that evaluate the function once for each step."""

from __future__ import annotations

import math
from typing import Any

import candelabra
from candelabra import Tensor

from .settings import Opfunc, Table, annealed, decayed, evaluate, tables


@candelabra.no_grad()
def sgd(opfunc: Opfunc, x: Tensor, config: Table | None = None, state: Table | None = None) -> tuple[Tensor, list[Any]]:
    """Make a step of stochastic gradient descent.

    Parameters
    ----------
    opfunc
        Returns the value of the function and its gradient at a point.
    x
        The point, which is changed in place.
    config
        ``learningRate`` (1e-3), ``learningRateDecay`` (0), ``weightDecay`` (0) or a vector
        ``weightDecays``, ``momentum`` (0), ``dampening`` (as momentum), ``nesterov`` (False), and
        ``learningRates``, a vector of factors.
    state
        Kept between calls; by default the config.

    Returns
    -------
    x : Tensor
        The point.
    values : list
        The function's value before the step.

    Raises
    ------
    ValueError
        If settings contradict one another.
    """
    settings, memory = tables(config, state)
    momentum: float = settings.get("momentum", 0)
    dampening: float = settings.get("dampening", momentum)
    decays = settings.get("weightDecays")
    if settings.get("nesterov", False) and (momentum <= 0 or dampening != 0):
        raise ValueError("Nesterov momentum requires a momentum and zero dampening")
    if decays is not None and settings.get("weightDecay", 0) != 0:
        raise ValueError("weightDecay and weightDecays exclude each other")
    fx, gradient = evaluate(opfunc, x)
    gradient = decayed(gradient, x, settings)
    if decays is not None:
        gradient = gradient + decays * x
    if momentum != 0:
        if "dfdx" in memory:
            memory["dfdx"].mul_(momentum).add_(gradient, alpha=1 - dampening)
        else:
            memory["dfdx"] = gradient.clone()
        gradient = gradient + momentum * memory["dfdx"] if settings.get("nesterov", False) else memory["dfdx"]
    rates = settings.get("learningRates")
    rate = annealed(settings.get("learningRate", 1e-3), settings, memory)
    x.add_(gradient if rates is None else gradient * rates, alpha=-rate)
    return x, [fx]


@candelabra.no_grad()
def nag(opfunc: Opfunc, x: Tensor, config: Table | None = None, state: Table | None = None) -> tuple[Tensor, list[Any]]:
    """Make a step of Nesterov's accelerated gradient (Sutskever and others, 2013).

    Parameters
    ----------
    opfunc, x, state
        As of :func:`sgd`.
    config
        ``learningRate`` (1e-3), ``learningRateDecay`` (0), ``weightDecay`` (0), ``momentum`` (0.9)
        and ``learningRates``, a vector of factors.

    Returns
    -------
    x : Tensor
        The point.
    values : list
        The function's value at the point where the gradient was taken.
    """
    settings, memory = tables(config, state)
    momentum = settings.get("momentum", 0.9)
    if momentum <= 0:
        raise ValueError("Momentum must be positive for Nesterov Accelerated Gradient")
    velocity = memory.setdefault("dfdx", candelabra.zeros_like(x))
    x.add_(velocity, alpha=momentum)
    fx, gradient = evaluate(opfunc, x)
    gradient = decayed(gradient, x, settings)
    rates = settings.get("learningRates")
    rate = annealed(settings.get("learningRate", 1e-3), settings, memory)
    step = gradient if rates is None else gradient * rates
    x.add_(step, alpha=-rate)
    velocity.mul_(momentum).add_(step, alpha=-rate)
    return x, [fx]


@candelabra.no_grad()
def adam(
    opfunc: Opfunc, x: Tensor, config: Table | None = None, state: Table | None = None
) -> tuple[Tensor, list[Any]]:
    """Make a step of Adam (Kingma and Ba, 2014).

    Parameters
    ----------
    opfunc, x, state
        As of :func:`sgd`.
    config
        ``learningRate`` (1e-3), ``learningRateDecay`` (0), ``beta1`` (0.9), ``beta2`` (0.999),
        ``epsilon`` (1e-8) and ``weightDecay`` (0).

    Returns
    -------
    x : Tensor
        The point.
    values : list
        The function's value before the step.
    """
    settings, memory = tables(config, state)
    beta1, beta2 = settings.get("beta1", 0.9), settings.get("beta2", 0.999)
    fx, gradient = evaluate(opfunc, x)
    gradient = decayed(gradient, x, settings)
    mean = memory.setdefault("m", candelabra.zeros_like(x))
    square = memory.setdefault("v", candelabra.zeros_like(x))
    memory["t"] = t = memory.get("t", 0) + 1
    mean.mul_(beta1).add_(gradient, alpha=1 - beta1)
    square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
    rate = annealed(settings.get("learningRate", 1e-3), settings, memory)
    step = rate * math.sqrt(1 - beta2**t) / (1 - beta1**t)
    x.addcdiv_(mean, square.sqrt().add_(settings.get("epsilon", 1e-8)), value=-step)
    return x, [fx]


@candelabra.no_grad()
def adamax(
    opfunc: Opfunc, x: Tensor, config: Table | None = None, state: Table | None = None
) -> tuple[Tensor, list[Any]]:
    """Make a step of AdaMax (Kingma and Ba, 2014).

    Parameters
    ----------
    opfunc, x, state
        As of :func:`sgd`.
    config
        ``learningRate`` (2e-3), ``beta1`` (0.9), ``beta2`` (0.999), ``epsilon`` (1e-38) and
        ``weightDecay`` (0).

    Returns
    -------
    x : Tensor
        The point.
    values : list
        The function's value before the step.
    """
    settings, memory = tables(config, state)
    beta1, beta2 = settings.get("beta1", 0.9), settings.get("beta2", 0.999)
    fx, gradient = evaluate(opfunc, x)
    gradient = decayed(gradient, x, settings)
    mean = memory.setdefault("m", candelabra.zeros_like(x))
    largest = memory.setdefault("u", candelabra.zeros_like(x))
    memory["t"] = t = memory.get("t", 0) + 1
    mean.mul_(beta1).add_(gradient, alpha=1 - beta1)
    largest.copy_(candelabra.maximum(largest * beta2, gradient.abs() + settings.get("epsilon", 1e-38)))
    x.addcdiv_(mean, largest, value=-settings.get("learningRate", 0.002) / (1 - beta1**t))
    return x, [fx]


@candelabra.no_grad()
def adagrad(
    opfunc: Opfunc, x: Tensor, config: Table | None = None, state: Table | None = None
) -> tuple[Tensor, list[Any]]:
    """Make a step of Adagrad.

    Parameters
    ----------
    opfunc, x, state
        As of :func:`sgd`.
    config
        ``learningRate`` (1e-3), ``learningRateDecay`` (0) and ``weightDecay`` (0).

    Returns
    -------
    x : Tensor
        The point.
    values : list
        The function's value before the step.
    """
    settings, memory = tables(config, state)
    fx, gradient = evaluate(opfunc, x)
    gradient = decayed(gradient, x, settings)
    variance = memory.setdefault("paramVariance", candelabra.zeros_like(x))
    variance.addcmul_(gradient, gradient)
    rate = annealed(settings.get("learningRate", 1e-3), settings, memory)
    x.addcdiv_(gradient, variance.sqrt().add_(1e-10), value=-rate)
    return x, [fx]


@candelabra.no_grad()
def adadelta(
    opfunc: Opfunc, x: Tensor, config: Table | None = None, state: Table | None = None
) -> tuple[Tensor, list[Any]]:
    """Make a step of Adadelta (Zeiler, 2012).

    Parameters
    ----------
    opfunc, x, state
        As of :func:`sgd`.
    config
        ``rho`` (0.9), ``eps`` (1e-6) and ``weightDecay`` (0).

    Returns
    -------
    x : Tensor
        The point.
    values : list
        The function's value before the step.
    """
    settings, memory = tables(config, state)
    rho, eps = settings.get("rho", 0.9), settings.get("eps", 1e-6)
    fx, gradient = evaluate(opfunc, x)
    gradient = decayed(gradient, x, settings)
    variance = memory.setdefault("paramVariance", candelabra.zeros_like(x))
    steps = memory.setdefault("accDelta", candelabra.zeros_like(x))
    variance.mul_(rho).addcmul_(gradient, gradient, value=1 - rho)
    step = (steps + eps).sqrt() / (variance + eps).sqrt() * gradient
    x.sub_(step)
    steps.mul_(rho).addcmul_(step, step, value=1 - rho)
    memory["evalCounter"] = memory.get("evalCounter", 0) + 1
    return x, [fx]


@candelabra.no_grad()
def rmsprop(
    opfunc: Opfunc, x: Tensor, config: Table | None = None, state: Table | None = None
) -> tuple[Tensor, list[Any]]:
    """Make a step of RMSprop.

    Parameters
    ----------
    opfunc, x, state
        As of :func:`sgd`.
    config
        ``learningRate`` (1e-2), ``alpha`` (0.99), ``epsilon`` (1e-8), ``weightDecay`` (0), and
        ``initialMean`` (0), with which the mean of squared gradients starts.

    Returns
    -------
    x : Tensor
        The point.
    values : list
        The function's value before the step.
    """
    settings, memory = tables(config, state)
    alpha = settings.get("alpha", 0.99)
    fx, gradient = evaluate(opfunc, x)
    gradient = decayed(gradient, x, settings)
    mean = memory.setdefault("m", candelabra.full_like(x, settings.get("initialMean", 0)))
    mean.mul_(alpha).addcmul_(gradient, gradient, value=1 - alpha)
    x.addcdiv_(gradient, mean.sqrt().add_(settings.get("epsilon", 1e-8)), value=-settings.get("learningRate", 1e-2))
    return x, [fx]


@candelabra.no_grad()
def rprop(
    opfunc: Opfunc, x: Tensor, config: Table | None = None, state: Table | None = None
) -> tuple[Tensor, list[Any]]:
    """Make steps of resilient propagation: of the gradient the signs alone matter.

    Parameters
    ----------
    opfunc, x, state
        As of :func:`sgd`.
    config
        ``stepsize`` (0.1), ``etaplus`` (1.2), ``etaminus`` (0.5), ``stepsizemax`` (50),
        ``stepsizemin`` (1e-6) and ``niter`` (1), the number of steps.

    Returns
    -------
    x : Tensor
        The point.
    values : list
        The function's value before each step.
    """
    settings, memory = tables(config, state)
    grow, shrink = settings.get("etaplus", 1.2), settings.get("etaminus", 0.5)
    values = []
    for _ in range(settings.get("niter", 1)):
        fx, gradient = evaluate(opfunc, x)
        last = memory.setdefault("delta", candelabra.zeros_like(x))
        # One dict can be both; it has the first size as `stepsize`.
        sizes = memory.setdefault("stepsizes", candelabra.full_like(x, settings.get("stepsize", 0.1)))
        agreement = gradient * last
        sizes.mul_(candelabra.ones_like(x).masked_fill_(agreement > 0, grow).masked_fill_(agreement < 0, shrink))
        sizes.clamp_(settings.get("stepsizemin", 1e-6), settings.get("stepsizemax", 50.0))
        kept = gradient.masked_fill(agreement < 0, 0)
        x.sub_(kept.sign() * sizes)
        last.copy_(kept)
        values.append(fx)
    return x, values


@candelabra.no_grad()
def asgd(
    opfunc: Opfunc, x: Tensor, config: Table | None = None, state: Table | None = None
) -> tuple[Tensor, list[Any], Tensor]:
    """Make a step of averaged stochastic gradient descent (Bottou's sgd-2.0).

    Parameters
    ----------
    opfunc, x, state
        As of :func:`sgd`.
    config
        ``eta0`` (1e-4), the first learning rate; ``lambda`` (1e-4), the decay; ``alpha`` (0.75),
        the power with which the rate decreases; ``t0`` (1e6), the step after which points are
        averaged.

    Returns
    -------
    x : Tensor
        The point.
    values : list
        The function's value before the step.
    average : Tensor
        The mean of the points.
    """
    settings, memory = tables(config, state)
    eta0: float = settings.get("eta0", 1e-4)
    decay: float = settings.get("lambda", 1e-4)
    rate: float = memory.get("eta_t", eta0)
    weight: float = memory.get("mu_t", 1)
    fx, gradient = evaluate(opfunc, x)
    x.mul_(1 - decay * rate).add_(gradient, alpha=-rate)
    average = memory.setdefault("ax", candelabra.zeros_like(x))
    average.add_(x - average, alpha=weight) if weight != 1 else average.copy_(x)
    memory["t"] = t = memory.get("t", 0) + 1
    memory["eta_t"] = eta0 / (1 + decay * eta0 * t) ** settings.get("alpha", 0.75)
    memory["mu_t"] = 1 / max(1, t - settings.get("t0", 1e6))
    return x, [fx], average
