"""Split the batch of a module over several devices."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import candelabra
from candelabra import accelerator

from ..modules.module import Module
from .parallel_apply import parallel_apply
from .replicate import as_device, replicate
from .scatter_gather import gather, scatter_kwargs


def _accelerator_devices() -> list[candelabra.device]:
    """Return all devices of the accelerator; the list is empty without one."""
    return [candelabra.device(number) for number in range(accelerator.device_count())]


def _check_place(module: Module, device: Any) -> None:
    for tensor in itertools.chain(module.parameters(), module.buffers()):
        if tensor.device != device:
            raise RuntimeError(
                f"module must have its parameters and buffers on device {device} (device_ids[0]) but found one of them on device: "
                f"{tensor.device}"
            )


class DataParallel(Module):
    """Split the batch along `dim`, run copies of `module` in parallel, and gather the results.

    The state dict has the names of `module` with the prefix ``module.``. If there are no devices,
    `module` is called directly.

    Parameters
    ----------
    module
        The module, with all its tensors on the first device.
    device_ids
        Devices, or indices of the accelerator's devices. Default: all of them.
    output_device
        Device of the gathered result. Default: the first device.
    dim
        The batch dimension.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> model = nn.DataParallel(nn.Linear(3, 2), device_ids=["cpu", "cpu"])
    >>> model(candelabra.ones(5, 3)).shape
    candelabra.Size([5, 2])
    """

    def __init__(
        self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        self.module = module
        self.dim = dim
        self.device_ids = [
            as_device(device) for device in (_accelerator_devices() if device_ids is None else device_ids)
        ]
        if not self.device_ids:
            return
        self.output_device = as_device(self.device_ids[0] if output_device is None else output_device)
        self.src_device_obj = self.device_ids[0]
        if len(self.device_ids) == 1:
            self.module.to(self.src_device_obj)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        _check_place(self.module, self.src_device_obj)
        pieces, named = self.scatter(inputs, kwargs, self.device_ids)
        if not pieces:
            # There is nothing to split: call the module once.
            pieces, named = ((),), ({},)
        if len(self.device_ids) == 1:
            return self.module(*pieces[0], **named[0])
        replicas = self.replicate(self.module, self.device_ids[: len(pieces)])
        return self.gather(self.parallel_apply(replicas, pieces, named), self.output_device)

    def replicate(self, module: Module, device_ids: Sequence[Any]) -> list[Module]:
        """Return one copy of the module per device."""
        return replicate(module, device_ids, not candelabra.is_grad_enabled())

    def scatter(self, inputs: tuple[Any, ...], kwargs: dict[str, Any], device_ids: Sequence[Any]) -> Any:
        """Split the arguments over the devices."""
        return scatter_kwargs(inputs, kwargs, device_ids, self.dim)

    def parallel_apply(self, replicas: Sequence[Module], inputs: Sequence[Any], kwargs: Any) -> list[Any]:
        """Call the copies in parallel."""
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])

    def gather(self, outputs: Any, output_device: Any) -> Any:
        """Gather the results on one device."""
        return gather(outputs, output_device, self.dim)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Call `module` once, split over devices as in `DataParallel`."""
    if not isinstance(inputs, tuple):
        inputs = () if inputs is None else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*inputs, **(module_kwargs or {}))


__all__ = ["DataParallel", "data_parallel"]
