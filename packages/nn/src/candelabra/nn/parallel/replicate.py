"""Copy a module to several devices, with gradients that flow back to the original."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import candelabra
from candelabra import Tensor, no_grad

from ..modules.module import Module


def as_device(device: Any) -> candelabra.device:
    """Convert an index of the accelerator's devices or a device name to a device."""
    return candelabra.device(device) if isinstance(device, int | str) else device


def _copy(tensor: Tensor, device: Any, detach: bool) -> Tensor:
    """Copy the tensor to the device, or return a view if it is already there.

    The view keeps in-place updates of buffers in the first copy.
    """
    with no_grad() if detach else candelabra.enable_grad():
        return tensor.view_as(tensor) if tensor.device == device else tensor.to(device)


def replicate(network: Module, devices: Sequence[Any], detach: bool = False) -> list[Module]:
    """Return copies of a module, one for each device.

    The parameters of a copy are computed from those of `network`. They are plain tensors, and their
    gradients flow to `network`.

    Parameters
    ----------
    network
        The module, with all its tensors on ``devices[0]``.
    devices
        Devices, or indices of the accelerator's devices.
    detach
        Whether to detach the copies, so that no gradients flow.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> layer = nn.Linear(2, 1)
    >>> copies = nn.parallel.replicate(layer, ["cpu", "cpu"])
    >>> copies[1](candelabra.ones(2)).sum().backward()
    >>> layer.weight.grad
    tensor([[1., 1.]])
    """
    targets = [as_device(device) for device in devices]
    modules = list(network.modules())
    copies: list[Module] = []
    for device in targets:
        made = {id(module): module._replicate_for_data_parallel() for module in modules}
        tensors: dict[int, Tensor] = {}

        def moved(tensor: Tensor, stop: bool, device: Any = device, tensors: dict[int, Tensor] = tensors) -> Tensor:
            # A tensor that the module shares between names is also shared in the copy.
            if id(tensor) not in tensors:
                tensors[id(tensor)] = _copy(tensor, device, stop)
            return tensors[id(tensor)]

        for module in modules:
            replica = made[id(module)]
            former: dict[str, Tensor] = {}
            for name, parameter in module._parameters.items():
                if parameter is None:
                    replica._parameters[name] = None
                else:
                    former[name] = replica.__dict__[name] = moved(parameter, detach)
            replica.__dict__["_former_parameters"] = former
            for name, buffer in module._buffers.items():
                replica._buffers[name] = None if buffer is None else moved(buffer, detach or not buffer.requires_grad)
            for name, child in module._modules.items():
                replica._modules[name] = None if child is None else made[id(child)]
        copies.append(made[id(network)])
    return copies


__all__ = ["replicate"]
