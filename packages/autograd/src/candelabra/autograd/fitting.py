"""Bringing a gradient back to the sizes, dtype and device of the input it is for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from candelabra import Tensor

#: Sizes, dtype and device of a tensor.
Like = Any


def like(tensor: Tensor) -> Like:
    """Note what :func:`fit` needs to know of an input."""
    return (tensor.shape, tensor.dtype, tensor.device)


def fit(grad: Tensor, to: Like) -> Tensor:
    """Undo broadcasting and promotion.

    Parameters
    ----------
    grad
        A gradient of the sizes and dtype of a result.
    to
        Sizes, dtype and device of the input.

    Returns
    -------
    Tensor
        `grad` summed over the dimensions that were broadcast; its real part where the input is
        real; converted.
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
    """Sum `grad` to `shape`, from which it was broadcast."""
    leading = grad.ndim - len(shape)
    dims = [*range(leading)]
    dims += [leading + dim for dim, size in enumerate(shape) if size == 1 and grad.shape[leading + dim] != 1]
    if dims:
        grad = grad.sum(dims, True)
    if leading:
        grad = grad.reshape(shape)
    return grad
