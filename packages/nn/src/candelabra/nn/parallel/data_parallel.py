"""A module whose batches are spread over several devices."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import candelabra
from candelabra import backends

from ..modules.module import Module
from .parallel_apply import parallel_apply
from .replicate import as_device, replicate
from .scatter_gather import gather, scatter_kwargs


def _cuda_devices() -> list[candelabra.device]:
    """All CUDA devices there are; none where no backend for them is installed."""
    if not backends.is_available("cuda"):
        return []
    return [candelabra.device(f"cuda:{number}") for number in range(backends.device_count("cuda"))]


def _check_place(module: Module, device: Any) -> None:
    for tensor in itertools.chain(module.parameters(), module.buffers()):
        if tensor.device != device:
            raise RuntimeError(
                f"module must have its parameters and buffers on device {device} (device_ids[0]) but found one of them on device: "
                f"{tensor.device}"
            )


class DataParallel(Module):
    """Cuts the batch along `dim`, calls copies of `module` on all devices at the same time, and
    joins the results.

    The state dict has the names of `module` with ``module.`` before them. Without any device the
    module is simply called.

    Parameters
    ----------
    module
        The module, on the first of the devices.
    device_ids
        Devices, or numbers of CUDA devices; all CUDA devices there are when not given.
    output_device
        Where the results are joined: the first device when not given.
    dim
        The dimension that is cut.

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
        self.device_ids = [as_device(device) for device in (_cuda_devices() if device_ids is None else device_ids)]
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
            # Nothing to cut: called once.
            pieces, named = ((),), ({},)
        if len(self.device_ids) == 1:
            return self.module(*pieces[0], **named[0])
        replicas = self.replicate(self.module, self.device_ids[: len(pieces)])
        return self.gather(self.parallel_apply(replicas, pieces, named), self.output_device)

    def replicate(self, module: Module, device_ids: Sequence[Any]) -> list[Module]:
        """Return copies of the module on the devices."""
        return replicate(module, device_ids, not candelabra.is_grad_enabled())

    def scatter(self, inputs: tuple[Any, ...], kwargs: dict[str, Any], device_ids: Sequence[Any]) -> Any:
        """Cut the arguments."""
        return scatter_kwargs(inputs, kwargs, device_ids, self.dim)

    def parallel_apply(self, replicas: Sequence[Module], inputs: Sequence[Any], kwargs: Any) -> list[Any]:
        """Call the copies."""
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])

    def gather(self, outputs: Any, output_device: Any) -> Any:
        """Join the results."""
        return gather(outputs, output_device, self.dim)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Call `module` once as `DataParallel` does."""
    if not isinstance(inputs, tuple):
        inputs = () if inputs is None else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*inputs, **(module_kwargs or {}))


__all__ = ["DataParallel", "data_parallel"]
