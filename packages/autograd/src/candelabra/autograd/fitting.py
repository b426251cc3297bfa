"""Reduce and convert a gradient to the shape, dtype and device of its input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from candelabra import Tensor

#: Shape, dtype and device of a tensor.
Like = Any


def like(tensor: Tensor) -> Like:
    """Return what :func:`fit` needs to know about an input."""
    return (tensor.shape, tensor.dtype, tensor.device)


def fit(grad: Tensor, to: Like) -> Tensor:
    """Undo broadcasting and type promotion.

    Parameters
    ----------
    grad
        A gradient with the shape and dtype of a result.
    to
        Shape, dtype and device of the input.

    Returns
    -------
    Tensor
        `grad` summed over the broadcast dimensions and converted. Only the real part is kept if
        the input is real.
    """
    shape, dtype, device = to
    if grad.is_complex() and not dtype.is_complex:
        grad = grad.real
    if grad.shape != shape:
        grad = sum_to(grad, shape)
    if grad.dtype is not dtype or grad.device != device:
        grad = grad.to(device=device, dtype=dtype)
    return grad


def sum_to(grad: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return `grad` summed to `shape`, which must be broadcastable to its shape."""
    leading = grad.ndim - len(shape)
    dims = [*range(leading)]
    dims += [leading + dim for dim, size in enumerate(shape) if size == 1 and grad.shape[leading + dim] != 1]
    if dims:
        grad = grad.sum(dims, True)
    if leading:
        grad = grad.reshape(shape)
    return grad
