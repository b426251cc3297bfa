"""`fully_shard` along some dimensions of the mesh on which parameters are DTensors."""

from __future__ import annotations

from dataclasses import dataclass

from candelabra import nn

from ..device_mesh import DeviceMesh
from ..tensor.dtensor import DTensor
from ..tensor.layout import Layout
from ..tensor.placements import Replicate


@dataclass
class DataParallelMeshDims:
    """The dimensions of a mesh along which the data is divided.

    Attributes
    ----------
    shard : str or tuple of str
        Along which parameters are sharded. Several count as one.
    replicate : str or tuple of str, optional
        Along which the shards are replicated. Several count as one.

    Raises
    ------
    ValueError
        Neither is given.
    """

    shard: str | tuple[str, ...] | None = None
    replicate: str | tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.shard is None and self.replicate is None:
            raise ValueError("At least one of shard or replicate must be set in DataParallelMeshDims")

    @property
    def shard_names(self) -> tuple[str, ...]:
        """The names in `shard`."""
        return _names(self.shard)

    @property
    def replicate_names(self) -> tuple[str, ...]:
        """The names in `replicate`."""
        return _names(self.replicate)


def _names(given: str | tuple[str, ...] | None) -> tuple[str, ...]:
    if given is None:
        return ()
    return (given,) if isinstance(given, str) else tuple(given)


def data_parallel_mesh(mesh: DeviceMesh, dims: DataParallelMeshDims) -> DeviceMesh:
    """Return the part of a mesh that divides the data: of one dimension, or of two, of which the
    first replicates.

    Raises
    ------
    ValueError
        A name is not one of the mesh's.
    NotImplementedError
        No dimension shards.
    """
    if mesh.mesh_dim_names is None:
        raise ValueError("mesh must have mesh_dim_names when dp_mesh_dims is provided")
    for name in (*dims.shard_names, *dims.replicate_names):
        if name not in mesh.mesh_dim_names:
            raise ValueError(f"Mesh dim name '{name}' not found in mesh.mesh_dim_names {mesh.mesh_dim_names}")
    if not dims.shard_names:
        raise NotImplementedError(
            "fully_shard: dp_mesh_dims without shard replicates only; DistributedDataParallel(device_mesh=...) does that"
        )
    shards = _flat(mesh, dims.shard_names)
    return DeviceMesh._concatenate([_flat(mesh, dims.replicate_names), shards]) if dims.replicate_names else shards


def _flat(mesh: DeviceMesh, names: tuple[str, ...]) -> DeviceMesh:
    return mesh[names] if len(names) == 1 else mesh[names]._flatten("_".join(names))


def without_dimensions(
    parameter: nn.Parameter, name: str, mesh: DeviceMesh, dims: DataParallelMeshDims
) -> nn.Parameter:
    """Return a parameter as it is on the other dimensions of a mesh: a DTensor, or a plain tensor
    if there are none.

    Raises
    ------
    ValueError
        The parameter is no DTensor on the mesh, or not replicated along the dimensions.
    """
    left_out = {*dims.shard_names, *dims.replicate_names}
    rest = tuple(dim for dim in mesh.mesh_dim_names or () if dim not in left_out)
    if not isinstance(parameter, DTensor) or parameter.device_mesh != mesh:
        raise ValueError(
            f"fully_shard with dp_mesh_dims expects parameters that are DTensors on {mesh}: {name} is none"
        )
    layout = parameter._layout
    names = mesh.mesh_dim_names or ()
    for dim, placement in zip(names, layout.placements, strict=True):
        if dim not in rest and not isinstance(placement, Replicate):
            raise ValueError(f"fully_shard: {name} must be Replicate() along {dim}, but is {placement}")
    local = parameter._local_tensor
    if not rest:
        return nn.Parameter(local, parameter.requires_grad)
    placements = tuple(each for dim, each in zip(names, layout.placements, strict=True) if dim in rest)
    return nn.Parameter(
        DTensor(local, Layout(mesh[rest], placements, layout.shape, layout.stride, layout.dtype)),
        parameter.requires_grad,
    )
