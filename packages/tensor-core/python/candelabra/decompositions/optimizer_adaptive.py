"""Optimizer steps with a rate for each element."""

from __future__ import annotations

import math

import candelabra

from .optimizer import gradients
from .registration import decomposes, wide, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from candelabra import Tensor

    Lists = tuple[Tensor, ...]


@decomposes("_fused_adam_")
def _fused_adam_(
    params: Lists,
    grads: Lists,
    exp_avgs: Lists,
    exp_avg_sqs: Lists,
    max_exp_avg_sqs: Lists,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    decoupled: bool,
    amsgrad: bool,
    maximize: bool,
    step: int,
) -> None:
    root = math.sqrt(1 - beta2**step)
    for i, p, g in gradients(params, grads, 0 if decoupled else weight_decay, maximize):
        if decoupled:
            p = p * (1 - lr * weight_decay)
        mean, square = _moments(exp_avgs, exp_avg_sqs, i, g, beta1, beta2)
        if amsgrad:
            square = candelabra.maximum(wide(max_exp_avg_sqs[i]), square)
            write(max_exp_avg_sqs[i], square)
        write(params[i], p - lr / (1 - beta1**step) * mean / (square.sqrt() / root + eps))


def _moments(means: Lists, squares: Lists, i: int, g: Tensor, beta1: float, beta2: float) -> tuple[Tensor, Tensor]:
    """Return the running means of the gradient and of its square, updated with this gradient."""
    before = wide(means[i])
    mean, square = before + (1 - beta1) * (g - before), beta2 * wide(squares[i]) + (1 - beta2) * g * g
    write(means[i], mean)
    write(squares[i], square)
    return mean, square


@decomposes("_fused_rmsprop_")
def _fused_rmsprop_(
    params: Lists,
    grads: Lists,
    square_avgs: Lists,
    grad_avgs: Lists,
    momentum_buffers: Lists,
    lr: float,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
    maximize: bool,
) -> None:
    for i, p, g in gradients(params, grads, weight_decay, maximize):
        square = alpha * wide(square_avgs[i]) + (1 - alpha) * g * g
        write(square_avgs[i], square)
        if centered:
            mean = wide(grad_avgs[i])
            mean = mean + (1 - alpha) * (g - mean)
            write(grad_avgs[i], mean)
            square = square - mean * mean
        change = g / (square.sqrt() + eps)
        if momentum > 0:
            change = momentum * wide(momentum_buffers[i]) + change
            write(momentum_buffers[i], change)
        write(params[i], p - lr * change)


@decomposes("_fused_adagrad_")
def _fused_adagrad_(
    params: Lists,
    grads: Lists,
    state_sums: Lists,
    lr: float,
    lr_decay: float,
    weight_decay: float,
    eps: float,
    maximize: bool,
    step: int,
) -> None:
    rate = lr / (1 + (step - 1) * lr_decay)
    for i, p, g in gradients(params, grads, weight_decay, maximize):
        total = wide(state_sums[i]) + g * g
        write(state_sums[i], total)
        write(params[i], p - rate * g / (total.sqrt() + eps))


@decomposes("_fused_adamax_")
def _fused_adamax_(
    params: Lists,
    grads: Lists,
    exp_avgs: Lists,
    exp_infs: Lists,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
    step: int,
) -> None:
    for i, p, g in gradients(params, grads, weight_decay, maximize):
        mean = wide(exp_avgs[i])
        mean = mean + (1 - beta1) * (g - mean)
        most = candelabra.maximum(beta2 * wide(exp_infs[i]), g.abs() + eps)
        write(exp_avgs[i], mean)
        write(exp_infs[i], most)
        write(params[i], p - lr / (1 - beta1**step) * mean / most)


@decomposes("_fused_nadam_")
def _fused_nadam_(
    params: Lists,
    grads: Lists,
    exp_avgs: Lists,
    exp_avg_sqs: Lists,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    next_momentum: float,
    mu_product: float,
    decoupled: bool,
    maximize: bool,
    step: int,
) -> None:
    now, later = (1 - momentum) / (1 - mu_product), next_momentum / (1 - mu_product * next_momentum)
    for i, p, g in gradients(params, grads, 0 if decoupled else weight_decay, maximize):
        if decoupled:
            p = p * (1 - lr * weight_decay)
        mean, square = _moments(exp_avgs, exp_avg_sqs, i, g, beta1, beta2)
        ahead = now * g + later * mean
        write(params[i], p - lr * ahead / ((square / (1 - beta2**step)).sqrt() + eps))


@decomposes("_fused_radam_")
def _fused_radam_(
    params: Lists,
    grads: Lists,
    exp_avgs: Lists,
    exp_avg_sqs: Lists,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    decoupled: bool,
    maximize: bool,
    step: int,
) -> None:
    missing, most = 1 - beta2**step, 2 / (1 - beta2) - 1
    length = most - 2 * step * beta2**step / missing
    for i, p, g in gradients(params, grads, 0 if decoupled else weight_decay, maximize):
        if decoupled:
            p = p * (1 - lr * weight_decay)
        mean, square = _moments(exp_avgs, exp_avg_sqs, i, g, beta1, beta2)
        change = lr / (1 - beta1**step) * mean
        if length > 5:
            rectified = math.sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length))
            change = change * (rectified * math.sqrt(missing)) / (square.sqrt() + eps)
        write(params[i], p - change)


@decomposes("_fused_adadelta_")
def _fused_adadelta_(
    params: Lists,
    grads: Lists,
    square_avgs: Lists,
    acc_deltas: Lists,
    lr: float,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    for i, p, g in gradients(params, grads, weight_decay, maximize):
        square, before = rho * wide(square_avgs[i]) + (1 - rho) * g * g, wide(acc_deltas[i])
        change = ((before + eps) / (square + eps)).sqrt() * g
        write(square_avgs[i], square)
        write(acc_deltas[i], rho * before + (1 - rho) * change * change)
        write(params[i], p - lr * change)
