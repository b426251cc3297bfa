"""References of the fused optimizer steps: the updates of their papers and PyTorch's documentation,
one parameter at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from candelabra.testing.sampling import Input, Reference, Sample, numbers

Array = np.ndarray
Arrays = list[Array]
_SHAPES = ((3, 4), (7,), (65,))


def _lists(rng: np.random.Generator, dtype: str, *present: bool) -> tuple[list[Input], ...]:
    """Return parameters and gradients, then a list per state (nonnegative)."""
    lists = [[Input(numbers(rng, dtype, shape, -1, 1), dtype) for shape in _SHAPES] for _ in range(2)]
    for there in present:
        lists.append([Input(rng.uniform(0.1, 1, shape), dtype) for shape in _SHAPES] if there else [])
    return tuple(lists)


def _directed(g: Array, p: Array, decay: float, maximize: bool) -> Array:
    """Return the gradient to descend, with weight decay. Without weight decay, infinite parameters
    have no effect.
    """
    g = -g if maximize else g
    return g + decay * p if decay else g


def _decayed(p: Array, g: Array, lr: float, decay: float, decoupled: bool, maximize: bool) -> tuple[Array, Array]:
    """Return parameter and gradient, with the weight decay in one of them."""
    return p * (1 - lr * decay) if decoupled else p, _directed(g, p, 0 if decoupled else decay, maximize)


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
        g = _directed(g, p, decay, maximize)
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
        yield Sample(
            (*_lists(rng, dtype, True, True, amsgrad), 0.01, 0.9, 0.99, 1e-8, decay, decoupled, amsgrad, maximize, step)
        )


def adam(
    params: Arrays, grads: Arrays, firsts: Arrays, seconds: Arrays, largest: Arrays, lr: float, beta1: float, beta2: float, eps: float,
    decay: float, decoupled: bool, amsgrad: bool, maximize: bool, step: int,
) -> tuple[Any, ...]:  # fmt: skip
    new, m_new, v_new, top = [], [], [], []
    for i, (p, g, m, v) in enumerate(zip(params, grads, firsts, seconds, strict=True)):
        p, g = _decayed(p, g, lr, decay, decoupled, maximize)
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
        if centered:  # a mean of squares is at least the square of the mean
            lists[3] = [Input(a.values * 0.2, dtype) for a in lists[3]]
            lists[2] = [Input(a.values + 1, dtype) for a in lists[2]]
        yield Sample((*lists, 0.01, 0.9, 1e-6, decay, momentum, centered, maximize))


def rmsprop(
    params: Arrays, grads: Arrays, squares: Arrays, means: Arrays, buffers: Arrays, lr: float, alpha: float, eps: float, decay: float,
    momentum: float, centered: bool, maximize: bool,
) -> tuple[Any, ...]:  # fmt: skip
    new, v_new, m_new, b_new = [], [], [], []
    for i, (p, g, v) in enumerate(zip(params, grads, squares, strict=True)):
        g = _directed(g, p, decay, maximize)
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
    params: Arrays,
    grads: Arrays,
    sums: Arrays,
    lr: float,
    lr_decay: float,
    decay: float,
    eps: float,
    maximize: bool,
    step: int,
) -> tuple[Any, ...]:
    new, kept = [], []
    for p, g, s in zip(params, grads, sums, strict=True):
        g = _directed(g, p, decay, maximize)
        kept.append(s + g * g)
        new.append(p - lr / (1 + (step - 1) * lr_decay) * g / (np.sqrt(kept[-1]) + eps))
    return new, grads, kept


def _adamax_calls(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for decay, maximize, step in ((0.0, False, 1), (0.1, False, 3), (0.0, True, 4)):
        yield Sample((*_lists(rng, dtype, True, True), 0.01, 0.9, 0.99, 1e-8, decay, maximize, step))


def adamax(
    params: Arrays, grads: Arrays, means: Arrays, largest: Arrays, lr: float, beta1: float, beta2: float, eps: float, decay: float,
    maximize: bool, step: int,
) -> tuple[Any, ...]:  # fmt: skip
    new, m_new, u_new = [], [], []
    for p, g, m, u in zip(params, grads, means, largest, strict=True):
        g = _directed(g, p, decay, maximize)
        m_new.append(m + (1 - beta1) * (g - m))
        u_new.append(np.maximum(beta2 * u, np.abs(g) + eps))
        new.append(p - lr / (1 - beta1**step) * m_new[-1] / u_new[-1])
    return new, grads, m_new, u_new


def _nadam_calls(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for decay, decoupled, maximize, step in ((0.0, False, False, 1), (0.1, False, False, 3), (0.1, True, True, 3)):
        yield Sample(
            (*_lists(rng, dtype, True, True), 0.01, 0.9, 0.99, 1e-8, decay, 0.5, 0.6, 0.3, decoupled, maximize, step)
        )


def nadam(
    params: Arrays, grads: Arrays, firsts: Arrays, seconds: Arrays, lr: float, beta1: float, beta2: float, eps: float, decay: float,
    momentum: float, next_momentum: float, product: float, decoupled: bool, maximize: bool, step: int,
) -> tuple[Any, ...]:  # fmt: skip
    new, m_new, v_new = [], [], []
    for p, g, m, v in zip(params, grads, firsts, seconds, strict=True):
        p, g = _decayed(p, g, lr, decay, decoupled, maximize)
        m_new.append(m + (1 - beta1) * (g - m))
        v_new.append(beta2 * v + (1 - beta2) * g * g)
        ahead = (1 - momentum) * g / (1 - product) + next_momentum * m_new[-1] / (1 - product * next_momentum)
        new.append(p - lr * ahead / (np.sqrt(v_new[-1] / (1 - beta2**step)) + eps))
    return new, grads, m_new, v_new


def _radam_calls(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    # With beta2 = 0.99, steps are rectified from the sixth on.
    for decay, decoupled, maximize, step in (
        (0.0, False, False, 1),
        (0.1, False, False, 5),
        (0.1, False, False, 6),
        (0.1, True, True, 9),
    ):
        yield Sample((*_lists(rng, dtype, True, True), 0.01, 0.9, 0.99, 1e-8, decay, decoupled, maximize, step))


def radam(
    params: Arrays, grads: Arrays, firsts: Arrays, seconds: Arrays, lr: float, beta1: float, beta2: float, eps: float, decay: float,
    decoupled: bool, maximize: bool, step: int,
) -> tuple[Any, ...]:  # fmt: skip
    new, m_new, v_new = [], [], []
    most = 2 / (1 - beta2) - 1
    length = most - 2 * step * beta2**step / (1 - beta2**step)
    for p, g, m, v in zip(params, grads, firsts, seconds, strict=True):
        p, g = _decayed(p, g, lr, decay, decoupled, maximize)
        m_new.append(m + (1 - beta1) * (g - m))
        v_new.append(beta2 * v + (1 - beta2) * g * g)
        change = lr * m_new[-1] / (1 - beta1**step)
        if length > 5:
            rectified = np.sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length))
            change = change * rectified * np.sqrt(1 - beta2**step) / (np.sqrt(v_new[-1]) + eps)
        new.append(p - change)
    return new, grads, m_new, v_new


def _adadelta_calls(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for decay, maximize in ((0.0, False), (0.1, False), (0.1, True)):
        yield Sample((*_lists(rng, dtype, True, True), 0.5, 0.9, 1e-6, decay, maximize))


def adadelta(
    params: Arrays,
    grads: Arrays,
    squares: Arrays,
    changes: Arrays,
    lr: float,
    rho: float,
    eps: float,
    decay: float,
    maximize: bool,
) -> tuple[Any, ...]:
    new, v_new, u_new = [], [], []
    for p, g, v, u in zip(params, grads, squares, changes, strict=True):
        g = _directed(g, p, decay, maximize)
        v_new.append(rho * v + (1 - rho) * g * g)
        change = np.sqrt(u + eps) / np.sqrt(v_new[-1] + eps) * g
        u_new.append(rho * u + (1 - rho) * change * change)
        new.append(p - lr * change)
    return new, grads, v_new, u_new


def _rprop_calls(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for least, most, maximize in ((1e-6, 50.0, False), (0.3, 0.6, True)):
        lists = list(_lists(rng, dtype, True, True))
        # Earlier gradients had either sign or were zero.
        lists[2] = [Input(rng.integers(-1, 2, shape).astype(float), dtype) for shape in _SHAPES]
        yield Sample((*lists, 0.5, 1.25, least, most, maximize))


def rprop(
    params: Arrays,
    grads: Arrays,
    before: Arrays,
    sizes: Arrays,
    shrink: float,
    grow: float,
    least: float,
    most: float,
    maximize: bool,
) -> tuple[Any, ...]:
    new, g_new, s_new = [], [], []
    for p, g, b, s in zip(params, grads, before, sizes, strict=True):
        g = -g if maximize else g
        agreement = np.sign(g) * np.sign(b)
        s_new.append(np.clip(s * np.select([agreement > 0, agreement < 0], [grow, shrink], 1.0), least, most))
        g_new.append(np.where(agreement < 0, 0.0, g))
        new.append(p - np.sign(g_new[-1]) * s_new[-1])
    return new, grads, g_new, s_new


def _asgd_calls(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for mu, decay, maximize in ((1.0, 0.0, False), (0.25, 0.1, False), (0.5, 0.0, True)):
        yield Sample((*_lists(rng, dtype, True), 0.1, 0.05, mu, decay, maximize))


def asgd(
    params: Arrays, grads: Arrays, means: Arrays, lambd: float, eta: float, mu: float, decay: float, maximize: bool
) -> tuple[Any, ...]:
    new, kept = [], []
    for p, g, a in zip(params, grads, means, strict=True):
        g = _directed(g, p, decay, maximize)
        new.append(p * (1 - lambd * eta) - eta * g)
        kept.append(a + mu * (new[-1] - a))
    return new, grads, kept


# An optimizer returns nothing: its lists are compared after the call, in order.
_DTYPES = ("float32", "float64")
REFERENCES: dict[str, Reference] = {
    "_fused_sgd_": Reference(sgd, _sgd_calls, _DTYPES, 10),
    "_fused_adam_": Reference(adam, _adam_calls, _DTYPES, 40),
    "_fused_rmsprop_": Reference(rmsprop, _rmsprop_calls, _DTYPES, 40),
    "_fused_adagrad_": Reference(adagrad, _adagrad_calls, _DTYPES, 40),
    "_fused_adamax_": Reference(adamax, _adamax_calls, _DTYPES, 40),
    "_fused_nadam_": Reference(nadam, _nadam_calls, _DTYPES, 40),
    "_fused_radam_": Reference(radam, _radam_calls, _DTYPES, 40),
    "_fused_adadelta_": Reference(adadelta, _adadelta_calls, _DTYPES, 40),
    "_fused_rprop_": Reference(rprop, _rprop_calls, _DTYPES, 10),
    "_fused_asgd_": Reference(asgd, _asgd_calls, _DTYPES, 10),
}
