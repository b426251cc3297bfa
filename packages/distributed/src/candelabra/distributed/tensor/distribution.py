"""Makes distributed tensors and modules of whole ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import candelabra
from candelabra import Tensor, nn

from ..collectives.reductions import broadcast
from ..device_mesh import DeviceMesh, current_mesh
from .dtensor import DTensor, settled
from .layout import Layout, local_part, normalized
from .placements import Partial, Placement
from .redistribution import redistribute


def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """Return a tensor whose values are spread over a mesh. All ranks of the mesh must call it.

    Parameters
    ----------
    tensor : Tensor
        A leaf, of the same shape on all ranks.
    device_mesh : DeviceMesh, optional
        By default that of ``with mesh:``.
    placements : sequence of Placement, optional
        One for each dimension of the mesh; by default all replicated.
    src_data_rank : int or None
        The place, along each dimension of the mesh, of the rank whose values count. None if all
        ranks have the same.

    Examples
    --------
    >>> import candelabra, candelabra.distributed as dist
    >>> from candelabra.distributed.device_mesh import init_device_mesh
    >>> from candelabra.distributed.tensor import Shard, distribute_tensor
    >>> dist.init_process_group("fake", rank=1, world_size=2)
    >>> mesh = init_device_mesh("cpu", (2,))
    >>> distribute_tensor(candelabra.arange(4), mesh, [Shard(0)]).to_local()
    tensor([2, 3])
    >>> dist.destroy_process_group()
    """
    mesh = device_mesh or current_mesh()
    places = normalized(placements, mesh, tensor.ndim)
    if isinstance(tensor, DTensor):
        if tensor.device_mesh != mesh:
            raise ValueError(
                f"Cannot distribute a DTensor with device mesh {tensor.device_mesh} to a different device mesh {mesh}."
            )
        if tensor.placements != places:
            raise ValueError(
                f"Cannot distribute a DTensor with placements {tensor.placements} to a different placements {places}. do "
                "you want to call `redistribute` instead?"
            )
        return tensor
    if not tensor.is_leaf:
        raise RuntimeError("`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf tensor!")
    with candelabra.no_grad():
        values = tensor.detach()
        if values.device.type != mesh.device_type and values.device.type != "meta":
            values = values.to(mesh.device_type)
        if src_data_rank is not None and mesh.get_coordinate() is not None and values.device.type != "meta":
            values = values.clone(memory_format=candelabra.contiguous_format)
            for mesh_dim in reversed(range(mesh.ndim)):
                broadcast(values, group=mesh.get_group(mesh_dim), group_src=src_data_rank)
        local = local_part(values, mesh, places)
        if local.shape != values.shape or src_data_rank is None:
            local = local.clone(memory_format=candelabra.contiguous_format)
        if any(isinstance(each, Partial) for each in places):
            local = redistribute(local, values.shape, mesh, settled(places), places)
    layout = Layout(mesh, places, tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)
    made = DTensor(local, layout, requires_grad=tensor.requires_grad)
    if isinstance(tensor, nn.Parameter):
        made._is_param = True  # type: ignore[attr-defined]
    return made


def distribute_module(
    module: nn.Module,
    device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[[str, nn.Module, DeviceMesh], None] | None = None,
    input_fn: Callable[[nn.Module, Any, DeviceMesh], Any] | None = None,
    output_fn: Callable[[nn.Module, Any, DeviceMesh], Any] | None = None,
) -> nn.Module:
    """Make a module's parameters and buffers distributed tensors, in place.

    Parameters
    ----------
    module : Module
        Of the same values on all ranks.
    device_mesh : DeviceMesh, optional
        By default that of ``with mesh:``.
    partition_fn : callable, optional
        Called with the name, the module and the mesh, for each module in it, to replace parameters.
        All that remain are replicated.
    input_fn, output_fn : callable, optional
        Called with the module, its positional inputs (or its output) and the mesh, to return what
        replaces them.

    Examples
    --------
    >>> import candelabra, candelabra.distributed as dist
    >>> from candelabra.distributed.device_mesh import init_device_mesh
    >>> from candelabra.distributed.tensor import distribute_module
    >>> dist.init_process_group("fake", rank=1, world_size=2)
    >>> layer = distribute_module(candelabra.nn.Linear(2, 2), init_device_mesh("cpu", (2,)))
    >>> layer.weight.placements
    (Replicate(),)
    >>> dist.destroy_process_group()
    """
    mesh = device_mesh or current_mesh()
    for name, each in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, each, mesh)
        replicate_module(each, mesh)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda owner, inputs: input_fn(owner, inputs, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda owner, inputs, outputs: output_fn(owner, outputs, mesh))
    return module


def replicate_module(module: nn.Module, mesh: DeviceMesh) -> None:
    """Replicate the parameters and buffers of one module that are no DTensors."""
    for name, parameter in list(module._parameters.items()):
        if parameter is not None and not isinstance(parameter, DTensor):
            module.register_parameter(
                name, nn.Parameter(distribute_tensor(parameter.detach(), mesh), parameter.requires_grad)
            )
    for name, buffer in list(module._buffers.items()):
        if buffer is not None and not isinstance(buffer, DTensor):
            module._buffers[name] = distribute_tensor(buffer, mesh)
