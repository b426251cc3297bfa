"""Clip gradients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import candelabra
from candelabra import _C, Tensor, no_grad, ops

_vector_norm = ops.linalg_vector_norm


def _tensors(parameters: Any) -> list[Tensor]:
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Return the norm of all `tensors`, viewed as one vector.

    Raises
    ------
    RuntimeError
        If `error_if_nonfinite` is set and the norm is NaN or infinite.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn.utils import get_total_norm
    >>> get_total_norm([candelabra.tensor([3.0]), candelabra.tensor([4.0])])
    tensor(5.)
    """
    norm_type = float(norm_type)
    with no_grad():
        norms = [_vector_norm(tensor, norm_type) for tensor in _tensors(tensors)]
        if not norms:
            return candelabra.tensor(0.0)
        device = norms[0].device
        total = _vector_norm(candelabra.stack([norm.to(device) for norm in norms]), norm_type)
    if error_if_nonfinite and not bool(total.isfinite()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be clipped. To disable this "
            "error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale the gradients, whose norm is `total_norm`, in place to at most `max_norm`."""
    with no_grad():
        # As in PyTorch, 1e-6 avoids a division by a zero norm.
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        moved: dict[Any, Tensor] = {}
        for parameter in _tensors(parameters):
            grad = parameter.grad
            if grad is not None:
                device = grad.device
                if device not in moved:
                    moved[device] = factor.to(device)
                grad.mul_(moved[device])


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients of `parameters` in place to a total norm of at most `max_norm`.

    The norm is that of all gradients, viewed as one vector.

    Parameters
    ----------
    parameters
        Tensors; those without a gradient are ignored.
    max_norm
        The maximum norm.
    norm_type
        Order of the norm; may be infinite.
    error_if_nonfinite
        Whether to raise an error if the norm is NaN or infinite.
    foreach
        Accepted for PyTorch compatibility; has no effect.

    Returns
    -------
    Tensor
        The norm before clipping.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> weight = candelabra.zeros(2)
    >>> weight.grad = candelabra.tensor([3.0, 4.0])
    >>> nn.utils.clip_grad_norm_([weight], 1.0)
    tensor(5.)
    >>> weight.grad
    tensor([0.6000, 0.8000])
    """
    owners = _tensors(parameters)
    grads = [parameter.grad for parameter in owners if parameter.grad is not None]
    total = get_total_norm(grads, norm_type, error_if_nonfinite)
    clip_grads_with_norm_(owners, max_norm, total)
    return total


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Call `clip_grad_norm_`, which replaces this function."""
    _C.warn(
        "`nn.utils.clip_grad_norm` is now deprecated in favor of `nn.utils.clip_grad_norm_`.",
        FutureWarning,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Clamp the gradients of `parameters` in place to [-clip_value, clip_value]."""
    bound = float(clip_value)
    with no_grad():
        for parameter in _tensors(parameters):
            if parameter.grad is not None:
                parameter.grad.clamp_(-bound, bound)


__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]
