"""Gradients that are too large."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import candelabra


def clip_gradients(
    parameters: Iterable[Any], norm: float | None = None, value: float | None = None, norm_type: float = 2.0
) -> Any:
    """Bound gradients in place: each element by `value`, then all of them together by their norm.

    Parameters
    ----------
    parameters : iterable of Tensor
        Those without a gradient are left out.
    norm : float, optional
        The largest norm that all gradients have together, as if they were one vector: where it is
        larger, all are scaled down.
    value : float, optional
        The largest magnitude of an element.
    norm_type : float
        Which norm: 2, another number, or infinity.

    Returns
    -------
    Tensor
        The norm of all gradients before it was bounded, as a tensor of one element.

    Raises
    ------
    ValueError
        If a bound is not positive.

    Notes
    -----
    Scaling by the norm is of Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent
    neural networks", 2013.

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
