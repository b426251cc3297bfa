"""Optimizer steps over all parameters. The lists are changed in place; there is no output."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_numpy.kernels import KERNELS, array, memory

Lists = Any


def _gradients(params: Lists, grads: Lists, decay: float, maximize: bool) -> Any:
    """Yield each parameter with its gradient and its index in the lists."""
    for i, (p, g) in enumerate(zip(memory(params), array(grads), strict=True)):
        g = -g if maximize else g
        yield i, p, g + decay * p if decay else g


def _sgd(
    _: None, params: Lists, grads: Lists, buffers: Lists, lr: float, decay: float, momentum: float, dampening: float, nesterov: bool,
    maximize: bool, first: bool,
) -> None:  # fmt: skip
    for i, p, g in _gradients(params, grads, decay, maximize):
        if momentum:
            buffer = memory(buffers)[i]
            buffer[...] = g if first else momentum * buffer + (1 - dampening) * g
            g = g + momentum * buffer if nesterov else buffer
        p -= lr * g


def _adam(
    _: None, params: Lists, grads: Lists, means: Lists, squares: Lists, largest: Lists, lr: float, beta1: float, beta2: float, eps: float,
    decay: float, decoupled: bool, amsgrad: bool, maximize: bool, step: int,
) -> None:  # fmt: skip
    for i, p, g in _gradients(params, grads, 0 if decoupled else decay, maximize):
        mean, bound = memory(means)[i], memory(squares)[i]
        if decoupled:
            p *= 1 - lr * decay
        mean[...] = beta1 * mean + (1 - beta1) * g
        bound[...] = beta2 * bound + (1 - beta2) * g * g
        if amsgrad:
            bound = np.maximum(memory(largest)[i], bound, out=memory(largest)[i])
        p -= lr / (1 - beta1**step) * mean / (np.sqrt(bound) / np.sqrt(1 - beta2**step) + eps)


def _rmsprop(
    _: None, params: Lists, grads: Lists, squares: Lists, means: Lists, buffers: Lists, lr: float, alpha: float, eps: float, decay: float,
    momentum: float, centered: bool, maximize: bool,
) -> None:  # fmt: skip
    for i, p, g in _gradients(params, grads, decay, maximize):
        square = memory(squares)[i]
        square[...] = alpha * square + (1 - alpha) * g * g
        spread = square
        if centered:
            mean = memory(means)[i]
            mean[...] = alpha * mean + (1 - alpha) * g
            spread = square - mean * mean
        step = g / (np.sqrt(spread) + eps)
        if momentum > 0:
            buffer = memory(buffers)[i]
            buffer[...] = momentum * buffer + step
            step = buffer
        p -= lr * step


def _adagrad(
    _: None,
    params: Lists,
    grads: Lists,
    sums: Lists,
    lr: float,
    lr_decay: float,
    decay: float,
    eps: float,
    maximize: bool,
    step: int,
) -> None:
    for i, p, g in _gradients(params, grads, decay, maximize):
        total = memory(sums)[i]
        total += g * g
        p -= lr / (1 + (step - 1) * lr_decay) * g / (np.sqrt(total) + eps)


def _adamax(
    _: None, params: Lists, grads: Lists, means: Lists, largest: Lists, lr: float, beta1: float, beta2: float, eps: float, decay: float,
    maximize: bool, step: int,
) -> None:  # fmt: skip
    for i, p, g in _gradients(params, grads, decay, maximize):
        mean, most = memory(means)[i], memory(largest)[i]
        mean += (1 - beta1) * (g - mean)
        np.maximum(beta2 * most, np.abs(g) + eps, out=most)
        p -= lr / (1 - beta1**step) * mean / most


def _moments(means: Lists, squares: Lists, i: int, g: Any, beta1: float, beta2: float) -> tuple[Any, Any]:
    """Return the running averages of the gradient and of its square, updated with this gradient."""
    mean, square = memory(means)[i], memory(squares)[i]
    mean += (1 - beta1) * (g - mean)
    square[...] = beta2 * square + (1 - beta2) * g * g
    return mean, square


def _nadam(
    _: None, params: Lists, grads: Lists, means: Lists, squares: Lists, lr: float, beta1: float, beta2: float, eps: float, decay: float,
    momentum: float, next_momentum: float, product: float, decoupled: bool, maximize: bool, step: int,
) -> None:  # fmt: skip
    for i, p, g in _gradients(params, grads, 0 if decoupled else decay, maximize):
        if decoupled:
            p *= 1 - lr * decay
        mean, square = _moments(means, squares, i, g, beta1, beta2)
        ahead = (1 - momentum) / (1 - product) * g + next_momentum / (1 - product * next_momentum) * mean
        p -= lr * ahead / (np.sqrt(square / (1 - beta2**step)) + eps)


def _radam(
    _: None, params: Lists, grads: Lists, means: Lists, squares: Lists, lr: float, beta1: float, beta2: float, eps: float, decay: float,
    decoupled: bool, maximize: bool, step: int,
) -> None:  # fmt: skip
    missing, most = 1 - beta2**step, 2 / (1 - beta2) - 1
    length = most - 2 * step * beta2**step / missing
    for i, p, g in _gradients(params, grads, 0 if decoupled else decay, maximize):
        if decoupled:
            p *= 1 - lr * decay
        mean, square = _moments(means, squares, i, g, beta1, beta2)
        change = lr / (1 - beta1**step) * mean
        if length > 5:
            rectified = np.sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length))
            change = change * (rectified * np.sqrt(missing)) / (np.sqrt(square) + eps)
        p -= change


def _adadelta(
    _: None,
    params: Lists,
    grads: Lists,
    squares: Lists,
    changes: Lists,
    lr: float,
    rho: float,
    eps: float,
    decay: float,
    maximize: bool,
) -> None:
    for i, p, g in _gradients(params, grads, decay, maximize):
        square, late = memory(squares)[i], memory(changes)[i]
        square[...] = rho * square + (1 - rho) * g * g
        change = np.sqrt((late + eps) / (square + eps)) * g
        late[...] = rho * late + (1 - rho) * change * change
        p -= lr * change


def _rprop(
    _: None, params: Lists, grads: Lists, before: Lists, sizes: Lists, eta_minus: float, eta_plus: float, least: float, most: float,
    maximize: bool,
) -> None:  # fmt: skip
    for i, p, g in _gradients(params, grads, 0, maximize):
        last, size = memory(before)[i], memory(sizes)[i]
        agreement = g * last
        size[...] = np.clip(
            size * np.where(agreement > 0, eta_plus, np.where(agreement < 0, eta_minus, 1)), least, most
        )
        last[...] = np.where(agreement < 0, 0, g)
        p -= ((last > 0) * 1.0 - (last < 0)) * size


def _asgd(
    _: None,
    params: Lists,
    grads: Lists,
    means: Lists,
    lambd: float,
    eta: float,
    mu: float,
    decay: float,
    maximize: bool,
) -> None:
    for i, p, g in _gradients(params, grads, decay, maximize):
        mean = memory(means)[i]
        p[...] = p * (1 - lambd * eta) - eta * g
        mean[...] = p if mu == 1 else mean + mu * (p - mean)


KERNELS["_fused_sgd_"] = _sgd
KERNELS["_fused_adam_"] = _adam
KERNELS["_fused_rmsprop_"] = _rmsprop
KERNELS["_fused_adagrad_"] = _adagrad
KERNELS["_fused_adamax_"] = _adamax
KERNELS["_fused_nadam_"] = _nadam
KERNELS["_fused_radam_"] = _radam
KERNELS["_fused_adadelta_"] = _adadelta
KERNELS["_fused_rprop_"] = _rprop
KERNELS["_fused_asgd_"] = _asgd
