"""Gradient clipping."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import candelabra


def clip_gradients(
    parameters: Iterable[Any], norm: float | None = None, value: float | None = None, norm_type: float = 2.0
) -> Any:
    """Clip gradients in place: first each element by `value`, then all by their joint norm.

    Parameters
    ----------
    parameters : iterable of Tensor
        Parameters. Those without a gradient are skipped.
    norm : float, optional
        Maximum norm of all gradients as one vector. Larger gradients are scaled down.
    value : float, optional
        Maximum magnitude of an element.
    norm_type : float
        Order of the norm: a number, or infinity.

    Returns
    -------
    Tensor
        Joint norm of the gradients before the scaling, as a one-element tensor.

    Raises
    ------
    ValueError
        If a bound is not positive.

    Notes
    -----
    Source of the scaling by norm: Pascanu, Mikolov and Bengio, "On the difficulty of training
    recurrent neural networks", 2013.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.utils.trainer import clip_gradients
    >>> weight = candelabra.zeros(2)
    >>> weight.grad = candelabra.tensor([3.0, 4.0])
    >>> clip_gradients([weight], norm=1.0)
    tensor(5.)
    >>> weight.grad
    tensor([0.6000, 0.8000])
    """
    for name, bound in (("norm", norm), ("value", value)):
        if bound is not None and not bound > 0:
            raise ValueError(f"clip_gradients(): {name} must be positive, but got {bound}")
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    with candelabra.no_grad():
        if value is not None:
            for gradient in gradients:
                gradient.clamp_(-value, value)
        if not gradients:
            return candelabra.tensor(0.0)
        norms = [candelabra.linalg.vector_norm(gradient, norm_type).to(gradients[0].device) for gradient in gradients]
        total = candelabra.linalg.vector_norm(candelabra.stack(norms), norm_type)
        if norm is not None:
            factor = (norm / (total + 1e-6)).clamp(max=1.0)
            for gradient in gradients:
                gradient.mul_(factor.to(gradient.device))
    return total
