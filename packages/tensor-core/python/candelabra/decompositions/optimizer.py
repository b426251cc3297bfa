"""Steps of gradient descent, and what all optimizer steps share."""

from __future__ import annotations

import candelabra

from .registration import decomposes, wide, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from candelabra import Tensor

    Lists = tuple[Tensor, ...]


def gradients(params: Lists, grads: Lists, decay: float, maximize: bool) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Yield the number of each parameter in the lists, the parameter, and its gradient with
    decay.
    """
    for i, (param, grad) in enumerate(zip(params, grads, strict=True)):
        p, g = wide(param), wide(grad)
        g = -g if maximize else g
        yield i, p, g + decay * p if decay else g


@decomposes("_fused_sgd_")
def _fused_sgd_(
    params: Lists,
    grads: Lists,
    momentum_buffers: Lists,
    lr: float,
    weight_decay: float,
    momentum: float,
    dampening: float,
    nesterov: bool,
    maximize: bool,
    first: bool,
) -> None:
    for i, p, g in gradients(params, grads, weight_decay, maximize):
        if momentum:
            buffer = g if first else momentum * wide(momentum_buffers[i]) + (1 - dampening) * g
            write(momentum_buffers[i], buffer)
            g = g + momentum * buffer if nesterov else buffer
        write(params[i], p - lr * g)


@decomposes("_fused_asgd_")
def _fused_asgd_(
    params: Lists,
    grads: Lists,
    axs: Lists,
    lambd: float,
    eta: float,
    mu: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    for i, p, g in gradients(params, grads, weight_decay, maximize):
        p = p * (1 - lambd * eta) - eta * g
        mean = wide(axs[i])
        write(params[i], p)
        write(axs[i], p if mu == 1 else mean + mu * (p - mean))


@decomposes("_fused_rprop_")
def _fused_rprop_(
    params: Lists,
    grads: Lists,
    prevs: Lists,
    step_sizes: Lists,
    eta_minus: float,
    eta_plus: float,
    step_size_min: float,
    step_size_max: float,
    maximize: bool,
) -> None:
    where = candelabra.where
    for i, p, g in gradients(params, grads, 0, maximize):
        agreement, size = g * wide(prevs[i]), wide(step_sizes[i])
        factor = where(agreement > 0, size * eta_plus, where(agreement < 0, size * eta_minus, size))
        size = candelabra.clamp(factor, step_size_min, step_size_max)
        last = where(agreement < 0, g.new_zeros(()), g)
        write(step_sizes[i], size)
        write(prevs[i], last)
        write(params[i], p - candelabra.sign(last) * size)
