"""The arguments of `DistributedDataParallel`: which are refused, and what others mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import candelabra
from candelabra import _C, Tensor
from candelabra.nn import Module
from candelabra.nn.parameter import UninitializedParameter

from ..device_mesh import DeviceMesh
from ..groups import member, world
from ..process_group import ProcessGroup


def group_of(mesh: DeviceMesh | None, group: ProcessGroup | None) -> ProcessGroup:
    """Return the group of a mesh of one dimension, the given one, or the world."""
    if mesh is not None:
        if group is not None:
            raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
        if mesh.ndim != 1:
            raise RuntimeError(f"Only 1D device mesh is supported, but got {mesh}.")
        return mesh.get_group(0)
    found = member(group) if group is not None else world()
    if found is None:
        raise ValueError("DistributedDataParallel: this rank does not belong to the process group")
    return found


def check_devices(module: Module, device_ids: Sequence[Any] | None, output_device: Any, dim: int) -> None:
    """Raise an error unless a module is on the devices that are named."""
    if device_ids is not None and len(device_ids) > 1:
        raise ValueError("device_ids can only be None or contain a single element.")
    devices = {each.device for each in module.parameters()}
    if (device_ids or output_device is not None) and {each.type for each in devices} == {"cpu"}:
        raise ValueError(
            "DistributedDataParallel device_ids and output_device arguments only work with "
            "single-device/multiple-device GPU modules or CPU modules, but got device_ids "
            f"{device_ids}, output_device {output_device}, and module parameters {devices}."
        )
    if dim != 0:
        raise ValueError("DistributedDataParallel does not split inputs: dim must be 0")


def check_parameters(named: Sequence[tuple[str, Tensor]], are_others_delayed: bool) -> None:
    """Raise an error unless there are parameters to reduce, which have values."""
    if not named and not are_others_delayed:
        raise RuntimeError(
            "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."
        )
    for name, each in named:
        if isinstance(each, UninitializedParameter):
            raise RuntimeError(
                f"Modules with uninitialized parameters can't be used with `DistributedDataParallel`: {name}. "
                "Run a dummy forward pass to correctly initialize the modules"
            )


def refuse(
    bucket_cap_mb: float | None,
    bucket_cap_mb_list: Sequence[float] | None,
    skip_all_reduce_unused_params: bool,
    check_reduction: bool,
) -> None:
    """Raise an error for what is not supported, and warn of what is deprecated."""
    if bucket_cap_mb is not None and not bucket_cap_mb > 0:
        raise ValueError(f"bucket_cap_mb must be positive, but got {bucket_cap_mb}")
    if bucket_cap_mb_list:
        raise NotImplementedError(
            "DistributedDataParallel(bucket_cap_mb_list=...) is not supported: give one size as bucket_cap_mb"
        )
    if skip_all_reduce_unused_params:
        raise NotImplementedError(
            "DistributedDataParallel(skip_all_reduce_unused_params=True) is not supported: set requires_grad=False for "
            "parameters that are never used, or find_unused_parameters=True"
        )
    if check_reduction:
        _C.warn(
            "The `check_reduction` argument in `DistributedDataParallel` module is deprecated. Please avoid using it.",
            FutureWarning,
        )


def buffer_options(broadcast_buffers: bool | None, forward_sync_buffers: bool | None) -> tuple[bool, bool]:
    """Return whether buffers are copied before forward passes, and at the construction."""
    if forward_sync_buffers is not None:
        if broadcast_buffers is not None:
            _C.warn(
                "Both `broadcast_buffers` and `forward_sync_buffers` were specified. `broadcast_buffers` is deprecated and "
                "its value is ignored when `forward_sync_buffers` is provided.",
                FutureWarning,
            )
        return forward_sync_buffers, True
    if broadcast_buffers is None:
        return True, True
    _C.warn(
        "`broadcast_buffers` is deprecated. Use `forward_sync_buffers` instead. IMPORTANT: unlike "
        "`broadcast_buffers=False`, `forward_sync_buffers=False` still syncs buffers at init. If you rely on buffers NOT "
        "being synced at init (e.g. rank-local buffers), keep using `broadcast_buffers=False` until `init_sync_buffers` is "
        "available.",
        FutureWarning,
    )
    return broadcast_buffers, broadcast_buffers


def device_of(given: Any) -> candelabra.device:
    """Return a device; a number is one of CUDA's."""
    if isinstance(given, Tensor):
        raise TypeError("device_ids has devices, not tensors")
    return candelabra.device("cuda", given) if isinstance(given, int) else candelabra.device(given)
