"""One optimizer step over all parameters. The lists are changed in place; there is no output."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_numpy.kernels import KERNELS, array, memory

Lists = Any


def _gradients(params: Lists, grads: Lists, decay: float, maximize: bool) -> Any:
    """Each parameter with its gradient and its number in the lists."""
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


KERNELS["fused_sgd_"] = _sgd
KERNELS["fused_adam_"] = _adam
KERNELS["fused_rmsprop_"] = _rmsprop
KERNELS["fused_adagrad_"] = _adagrad
