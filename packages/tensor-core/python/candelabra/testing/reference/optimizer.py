"""References of the fused optimizer steps: the updates as their papers and PyTorch's documentation give them, one parameter at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from candelabra.testing.sampling import Input, Reference, Sample, numbers

Array = np.ndarray
Arrays = list[Array]
_SHAPES = ((3, 4), (7,), (65,))


def _lists(rng: np.random.Generator, dtype: str, *present: bool) -> tuple[list[Input], ...]:
    """Parameters and gradients, then one list of state (not negative) for each that is there."""
    lists = [[Input(numbers(rng, dtype, shape, -1, 1), dtype) for shape in _SHAPES] for _ in range(2)]
    for there in present:
        lists.append([Input(rng.uniform(0.1, 1, shape), dtype) for shape in _SHAPES] if there else [])
    return tuple(lists)


def _sgd_calls(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for decay, momentum, dampening, nesterov, maximize, first in (
        (0.0, 0.0, 0.0, False, False, False), (0.1, 0.0, 0.0, False, True, False), (0.0, 0.9, 0.1, False, False, False),
        (0.1, 0.9, 0.0, True, False, False), (0.0, 0.9, 0.5, False, False, True),
    ):  # fmt: skip
        yield Sample((*_lists(rng, dtype, momentum != 0), 0.1, decay, momentum, dampening, nesterov, maximize, first))


def sgd(
    params: Arrays, grads: Arrays, buffers: Arrays, lr: float, decay: float, momentum: float, dampening: float, nesterov: bool,
    maximize: bool, first: bool,
) -> tuple[Any, ...]:  # fmt: skip
    new, kept = [], []
    for i, (p, g) in enumerate(zip(params, grads, strict=True)):
        g = (-g if maximize else g) + decay * p
        if momentum:
            buffer = g if first else momentum * buffers[i] + (1 - dampening) * g
            kept.append(buffer)
            g = g + momentum * buffer if nesterov else buffer
        new.append(p - lr * g)
    return new, grads, kept


def _adam_calls(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for decay, decoupled, amsgrad, maximize, step in (
        (0.0, False, False, False, 1), (0.1, False, False, False, 3), (0.1, True, False, True, 3), (0.0, False, True, False, 5),
    ):  # fmt: skip
        yield Sample((*_lists(rng, dtype, True, True, amsgrad), 0.01, 0.9, 0.99, 1e-8, decay, decoupled, amsgrad, maximize, step))


def adam(
    params: Arrays, grads: Arrays, firsts: Arrays, seconds: Arrays, largest: Arrays, lr: float, beta1: float, beta2: float, eps: float,
    decay: float, decoupled: bool, amsgrad: bool, maximize: bool, step: int,
) -> tuple[Any, ...]:  # fmt: skip
    new, m_new, v_new, top = [], [], [], []
    for i, (p, g, m, v) in enumerate(zip(params, grads, firsts, seconds, strict=True)):
        g = -g if maximize else g
        if decoupled:
            p = p * (1 - lr * decay)
        else:
            g = g + decay * p
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
        bound = v
        if amsgrad:
            bound = np.maximum(largest[i], v)
            top.append(bound)
        m_new.append(m)
        v_new.append(v)
        new.append(p - lr / (1 - beta1**step) * m / (np.sqrt(bound) / np.sqrt(1 - beta2**step) + eps))
    return new, grads, m_new, v_new, top


def _rmsprop_calls(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for decay, momentum, centered, maximize in (
        (0.0, 0.0, False, False),
        (0.1, 0.9, False, False),
        (0.0, 0.0, True, True),
        (0.1, 0.5, True, False),
    ):
        lists = list(_lists(rng, dtype, True, centered, momentum > 0))
        if centered:  # a mean of squares is no less than the square of the mean
            lists[3] = [Input(a.values * 0.2, dtype) for a in lists[3]]
            lists[2] = [Input(a.values + 1, dtype) for a in lists[2]]
        yield Sample((*lists, 0.01, 0.9, 1e-6, decay, momentum, centered, maximize))


def rmsprop(
    params: Arrays, grads: Arrays, squares: Arrays, means: Arrays, buffers: Arrays, lr: float, alpha: float, eps: float, decay: float,
    momentum: float, centered: bool, maximize: bool,
) -> tuple[Any, ...]:  # fmt: skip
    new, v_new, m_new, b_new = [], [], [], []
    for i, (p, g, v) in enumerate(zip(params, grads, squares, strict=True)):
        g = (-g if maximize else g) + decay * p
        v = alpha * v + (1 - alpha) * g * g
        v_new.append(v)
        spread = v
        if centered:
            m_new.append(alpha * means[i] + (1 - alpha) * g)
            spread = v - m_new[-1] ** 2
        step = g / (np.sqrt(spread) + eps)
        if momentum > 0:
            b_new.append(momentum * buffers[i] + step)
            step = b_new[-1]
        new.append(p - lr * step)
    return new, grads, v_new, m_new, b_new


def _adagrad_calls(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for lr_decay, decay, maximize, step in ((0.0, 0.0, False, 1), (0.1, 0.1, False, 4), (0.0, 0.0, True, 2)):
        yield Sample((*_lists(rng, dtype, True), 0.1, lr_decay, decay, 1e-10, maximize, step))


def adagrad(
    params: Arrays, grads: Arrays, sums: Arrays, lr: float, lr_decay: float, decay: float, eps: float, maximize: bool, step: int
) -> tuple[Any, ...]:
    new, kept = [], []
    for p, g, s in zip(params, grads, sums, strict=True):
        g = (-g if maximize else g) + decay * p
        kept.append(s + g * g)
        new.append(p - lr / (1 + (step - 1) * lr_decay) * g / (np.sqrt(kept[-1]) + eps))
    return new, grads, kept


# An optimizer returns nothing: what is compared is its lists after the call, in their order.
_DTYPES = ("float32", "float64")
REFERENCES: dict[str, Reference] = {
    "fused_sgd_": Reference(sgd, _sgd_calls, _DTYPES, 10),
    "fused_adam_": Reference(adam, _adam_calls, _DTYPES, 40),
    "fused_rmsprop_": Reference(rmsprop, _rmsprop_calls, _DTYPES, 40),
    "fused_adagrad_": Reference(adagrad, _adagrad_calls, _DTYPES, 40),
}
