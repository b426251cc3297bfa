"""Convert parameters to one vector and back."""

from __future__ import annotations

from collections.abc import Iterable

import candelabra
from candelabra import Tensor


def _one_device(parameters: list[Tensor]) -> None:
    devices = {parameter.device for parameter in parameters}
    if len(devices) > 1:
        raise TypeError(
            f"Found two parameters on different devices, this is currently not supported: {sorted(map(str, devices))}"
        )


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Concatenate parameters into one vector. Gradients flow back to the parameters.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn.utils import parameters_to_vector
    >>> parameters_to_vector([candelabra.ones(2, 2), candelabra.zeros(1)])
    tensor([1., 1., 1., 1., 0.])
    """
    every = list(parameters)
    _one_device(every)
    return candelabra.cat([parameter.reshape(-1) for parameter in every])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Make the parameters slices of one vector, in order.

    Raises
    ------
    TypeError
        If `vec` is not a tensor or the parameters are on several devices.
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected candelabra.Tensor, but got: {type(vec).__name__}")
    every = list(parameters)
    _one_device(every)
    slices, position = [], 0
    for parameter in every:
        count = parameter.numel()
        slices.append(vec[position : position + count].view_as(parameter).data)
        position += count
    # A vector that is too short changes nothing.
    for parameter, data in zip(every, slices):
        parameter.data = data


__all__ = ["parameters_to_vector", "vector_to_parameters"]
