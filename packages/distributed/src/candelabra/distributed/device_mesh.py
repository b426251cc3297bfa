"""Meshes of devices: ranks in an n-dimensional grid, with a process group along each dimension."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import candelabra
from candelabra import Tensor

from .groups import get_rank, get_world_size, init_process_group, is_initialized, new_group, world
from .process_group import ProcessGroup

__all__ = ["DeviceMesh", "init_device_mesh"]

_active: list[DeviceMesh] = []


class DeviceMesh:
    """Ranks in a grid of one or more dimensions. All ranks of the world must make it.

    Parameters
    ----------
    device_type : str
        Where its tensors are, without an index.
    mesh : Tensor or nested list of int
        The ranks of the world.
    mesh_dim_names : tuple of str, optional
        The dimensions' names.
    backend_override : sequence, optional
        For each dimension the backend of its groups, or None.

    Examples
    --------
    >>> import candelabra.distributed as dist
    >>> from candelabra.distributed.device_mesh import DeviceMesh
    >>> dist.init_process_group("fake", rank=1, world_size=4)
    >>> mesh = DeviceMesh("cpu", [[0, 1], [2, 3]], mesh_dim_names=("dp", "tp"))
    >>> mesh.get_coordinate(), mesh["dp"].mesh.tolist()
    ((0, 1), [1, 3])
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        device_type: str,
        mesh: Any,
        *,
        mesh_dim_names: Sequence[str] | None = None,
        backend_override: Sequence[Any] | None = None,
        _init_backend: bool = True,
    ) -> None:
        grid = (mesh.detach() if isinstance(mesh, Tensor) else candelabra.tensor(mesh)).to("cpu", candelabra.int32)
        if grid.ndim == 0:
            grid = grid.view(1)
        ranks = tuple(grid.flatten().tolist())
        if _init_backend:
            _start(ranks)
        self._set_up(device_type, tuple(grid.shape), ranks, mesh_dim_names)
        if len(set(self._ranks)) != len(self._ranks):
            raise ValueError(f"DeviceMesh has a rank twice: {self._ranks}")
        self._root = self
        self._root_dims: tuple[tuple[int, ...], ...] = tuple((dim,) for dim in range(self.ndim))
        self._flattened: dict[str, DeviceMesh] = {}
        self._groups: list[ProcessGroup | None] = [None] * self.ndim
        if not _init_backend:
            return
        overrides = list(backend_override or [None] * self.ndim)
        if len(overrides) != self.ndim:
            raise ValueError(
                "backend_override should have the same length as the number of mesh dimensions, "
                f"but got {len(overrides)} and {self.ndim}."
            )
        self._groups = [
            self._group_along((dim,), backend, None if self._names is None else f"mesh_{self._names[dim]}")
            for dim, backend in enumerate(overrides)
        ]

    def _set_up(
        self, device_type: str, shape: tuple[int, ...], ranks: tuple[int, ...], names: Sequence[str] | None
    ) -> None:
        self._device_type = device_type
        self._shape = shape
        self._ranks = ranks
        self._names = None if names is None else tuple(names)
        self._coordinate: tuple[int, ...] | None = None
        if self._names is not None and len(self._names) != len(shape):
            raise RuntimeError(
                "mesh_shape and mesh_dim_names should have same length! "
                f"Found len(mesh_dim_names): {len(self._names)} and len(mesh_shape):{len(shape)}."
            )
        if is_initialized() and get_rank() in ranks:
            self._coordinate = _unravel(ranks.index(get_rank()), shape)

    # ---- groups

    def _group_along(self, dims: tuple[int, ...], backend: Any, description: str | None) -> ProcessGroup | None:
        """Make the groups of the ranks that differ only in some dimensions; return this rank's.

        All ranks of the world call `new_group` for each, so that the groups' numbers agree.
        """
        mine = None
        if isinstance(backend, tuple):
            backend = backend[0]
        for ranks in self._lines(dims):
            if backend is None and ranks == list(range(get_world_size())):
                return world()
            made = new_group(ranks, backend=backend, group_desc=description, sort_ranks=False)
            if get_rank() in ranks:
                mine = made
        return mine  # type: ignore[return-value]

    def _lines(self, dims: tuple[int, ...]) -> Iterator[list[int]]:
        """Yield the ranks that differ only in some dimensions, for each place in the others."""
        others = [dim for dim in range(self.ndim) if dim not in dims]
        for fixed in itertools.product(*(range(self._shape[dim]) for dim in others)):
            place = [0] * self.ndim
            for dim, at in zip(others, fixed, strict=True):
                place[dim] = at
            line = []
            for moving in itertools.product(*(range(self._shape[dim]) for dim in dims)):
                for dim, at in zip(dims, moving, strict=True):
                    place[dim] = at
                line.append(self._ranks[_ravel(place, self._shape)])
            yield line

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """Return the process group along a dimension, which a mesh of one dimension needs not name.

        Raises
        ------
        RuntimeError
            The mesh has several dimensions and none is named, or this rank is outside of it.
        KeyError
            There is no dimension of this name.
        """
        if mesh_dim is None:
            if self.ndim > 1:
                raise RuntimeError(
                    f"Found the DeviceMesh have {self.ndim} dimensions. Optional kwarg `mesh_dim` needs to be specified "
                    "when device_mesh.ndim > 1. If you want to get the list of all the ProcessGroups in the DeviceMesh, "
                    "please use `get_all_groups()` instead."
                )
            mesh_dim = 0
        elif isinstance(mesh_dim, str) and self._names is not None and mesh_dim not in self._names:
            return self[mesh_dim].get_group()
        found = self._groups[self._dim(mesh_dim)]
        if found is None:
            raise RuntimeError("DeviceMesh process groups not initialized!")
        return found

    def get_all_groups(self) -> list[ProcessGroup]:
        """Return the process groups along all dimensions."""
        return [self.get_group(dim) for dim in range(self.ndim)]

    def _dim(self, given: int | str) -> int:
        if isinstance(given, str):
            if self._names is None:
                raise KeyError("No `mesh_dim_names` found.")
            if given not in self._names:
                raise KeyError(
                    f"Mesh dimension '{given}' does not exist. Available mesh dimensions are: mesh_dim_names={self._names}"
                )
            return self._names.index(given)
        if not -self.ndim <= given < self.ndim:
            raise IndexError(f"DeviceMesh: there is no dimension {given} in a mesh of {self.ndim}")
        return given % self.ndim

    # ---- what it is

    @property
    def device_type(self) -> str:
        """Where the tensors are."""
        return self._device_type

    @property
    def mesh(self) -> Tensor:
        """The ranks, as a tensor of the mesh's shape."""
        return candelabra.tensor(self._ranks, dtype=candelabra.int32, device="cpu").view(self._shape)

    @property
    def mesh_dim_names(self) -> tuple[str, ...] | None:
        """The names of the dimensions."""
        return self._names

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of ranks along each dimension."""
        return self._shape

    def size(self, mesh_dim: int | None = None) -> int:
        """Return the number of ranks, of all or along a dimension."""
        return math.prod(self._shape) if mesh_dim is None else self._shape[mesh_dim]

    def numel(self) -> int:
        """Return the number of ranks."""
        return math.prod(self._shape)

    def get_rank(self) -> int:
        """Return this process's rank in the world."""
        return get_rank()

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Return this process's place along a dimension."""
        if mesh_dim is None and self.ndim > 1:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions. Optional kwarg `mesh_dim` needs to be specified when "
                "device_mesh.ndim > 1."
            )
        if self._coordinate is None:
            raise RuntimeError(f"rank {get_rank()} is not in the DeviceMesh {self._ranks}")
        return self._coordinate[self._dim(0 if mesh_dim is None else mesh_dim)]

    def get_coordinate(self) -> tuple[int, ...] | None:
        """Return this process's place along all dimensions, or None if it is not in the mesh."""
        return self._coordinate

    def __repr__(self) -> str:
        names = self._names or [None] * self.ndim
        sizes = ", ".join(
            f"{name}={size}" if name else str(size) for name, size in zip(names, self._shape, strict=True)
        )
        return f"DeviceMesh(({sizes}), '{self._device_type}', ranks={list(self._ranks)})"

    def _key(self) -> tuple[Any, ...]:
        return self._device_type, self._shape, self._ranks, self._names

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, DeviceMesh) and self._key() == other._key())

    def __hash__(self) -> int:
        return hash(self._key())

    def __enter__(self) -> DeviceMesh:
        _active.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _active.pop()

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a DeviceMesh has process groups and cannot be pickled: make it again on each rank")

    # ---- parts

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """Return the part of the mesh along some dimensions, in which this rank is.

        Examples
        --------
        >>> import candelabra.distributed as dist
        >>> from candelabra.distributed.device_mesh import init_device_mesh
        >>> dist.init_process_group("fake", rank=5, world_size=8)
        >>> mesh = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("pp", "dp", "tp"))
        >>> mesh["dp", "tp"].mesh.tolist()
        [[4, 5], [6, 7]]
        >>> dist.destroy_process_group()
        """
        if self._names is None:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if names == self._names:
            return self
        own = {name: dims for dims in self._root_dims for name in dims}
        parts = []
        for name in names:
            if name in self._names:
                at = self._names.index(name)
                parts.append((self._root_dims[at], self._shape[at], self._groups[at]))
                continue
            flat = self._root._flattened.get(name)
            if flat is None or not all(dim in own for dim in flat._root_dims[0]):
                valid = [*self._names, *self._root._flattened]
                raise KeyError(f"Invalid mesh_dim_names {mesh_dim_names} specified. Valid mesh_dim_names are {valid}.")
            parts.append((flat._root_dims[0], flat._shape[0], flat._groups[0]))
        used = [dim for dims, _, _ in parts for dim in dims]
        if len(set(used)) != len(used):
            raise RuntimeError(f"Slicing overlapping dim_names {names} is not allowed.")
        if used != sorted(used):
            raise KeyError(
                f"Invalid mesh_dim_names {mesh_dim_names} specified. Mesh dim indices should be in ascending order."
            )
        return self._root._part(parts, names)

    def _part(self, parts: list[tuple[tuple[int, ...], int, Any]], names: Sequence[str] | None) -> DeviceMesh:
        """Return the part of a root mesh along dimensions, at this rank's place in the others."""
        made = DeviceMesh.__new__(DeviceMesh)
        dims = [dim for part, _, _ in parts for dim in part]
        place = list(self._coordinate or [0] * self.ndim)
        ranks = []
        for moving in itertools.product(*(range(self._shape[dim]) for dim in dims)):
            for dim, at in zip(dims, moving, strict=True):
                place[dim] = at
            ranks.append(self._ranks[_ravel(place, self._shape)])
        made._set_up(self._device_type, tuple(size for _, size, _ in parts), tuple(ranks), names)
        if self._coordinate is None:
            made._coordinate = None
        made._root = self
        made._root_dims = tuple(part for part, _, _ in parts)
        made._flattened = {}
        made._groups = [group for _, _, group in parts]
        return made

    def _flatten(self, mesh_dim_name: str | None = None, backend_override: Any = None) -> DeviceMesh:
        """Return a mesh of one dimension with the same ranks; `mesh[name]` gives it again.

        All ranks of the world must call it.
        """
        if self._names is None:
            raise RuntimeError("Cannot flatten a DeviceMesh without mesh_dim_names!")
        name = mesh_dim_name or "_".join(self._names)
        root = self._root
        dims = tuple(dim for part in self._root_dims for dim in part)
        found = root._flattened.get(name)
        if found is not None:
            if found._root_dims == (dims,):
                return found
            raise ValueError(
                f"Flatten mesh with mesh_dim_name {name} has been created before, Please specify another valid mesh_dim_name."
            )
        if self.ndim == 1 and name == self._names[0]:
            return self
        if root._names is not None and name in root._names:
            raise ValueError(
                f"{name} already exists for submesh of the {root}. The mesh_dim_names of submesh and flattened mesh are "
                f"{list(root._names)}. Please specify another valid mesh_dim_name."
            )
        group = root._group_along(dims, backend_override, f"mesh_{name}")
        made = root._part([(dims, math.prod(root._shape[dim] for dim in dims), group)], (name,))
        root._flattened[name] = made
        return made

    @staticmethod
    def _concatenate(device_mesh_list: Sequence[DeviceMesh]) -> DeviceMesh:
        """Return the mesh with the dimensions of several parts of one root."""
        root = device_mesh_list[0]._root
        if any(mesh._root is not root for mesh in device_mesh_list):
            raise RuntimeError("Cannot concatenate DeviceMeshes derived from different device meshs")
        parts = [
            part for mesh in device_mesh_list for part in zip(mesh._root_dims, mesh._shape, mesh._groups, strict=True)
        ]
        names = [name for mesh in device_mesh_list for name in mesh._names or ()]
        made = root._part(parts, names if len(names) == len(parts) else None)
        return root if made._key() == root._key() else made

    @staticmethod
    def from_group(
        group: ProcessGroup | Sequence[ProcessGroup],
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: Sequence[str] | None = None,
    ) -> DeviceMesh:
        """Return a mesh over process groups that exist, one for each dimension.

        Parameters
        ----------
        group : ProcessGroup or list of ProcessGroup
            The group along each dimension in which this rank is.
        device_type : str
            Where the tensors are.
        mesh : Tensor or nested list of int, optional
            The ranks; needed for several groups.
        mesh_dim_names : tuple of str, optional
            The names of the dimensions; needed for several groups.
        """
        given = mesh.tolist() if isinstance(mesh, Tensor) else mesh
        if isinstance(group, ProcessGroup):
            if given is not None and list(given) != group.ranks:
                raise ValueError(f"Invalid mesh {mesh} for ProcessGroup with ranks {group.ranks}")
            made = DeviceMesh(device_type, group.ranks, mesh_dim_names=mesh_dim_names, _init_backend=False)
            made._groups = [group]
            return made
        groups = list(group)
        if not groups:
            raise ValueError("Expects at least one ProcessGroup to be passed")
        if given is None:
            raise ValueError("Must pass mesh if passing multiple ProcessGroups")
        if mesh_dim_names is None:
            raise ValueError("Must pass mesh_dim_names if passing multiple ProcessGroups")
        made = DeviceMesh(device_type, given, mesh_dim_names=mesh_dim_names, _init_backend=False)
        if made.ndim != len(groups):
            raise ValueError(
                f"Expects mesh with ndim equal to number of ProcessGroups but got mesh {given} and {len(groups)} ProcessGroups"
            )
        made._groups = list(groups)
        return made


def init_device_mesh(
    device_type: str,
    mesh_shape: Sequence[int],
    *,
    mesh_dim_names: Sequence[str] | None = None,
    backend_override: dict[int | str, Any] | None = None,
) -> DeviceMesh:
    """Return a mesh of the world's first ranks; starts the world if there is none.

    Parameters
    ----------
    device_type : str
        Where the tensors are, without an index.
    mesh_shape : tuple of int
        The number of ranks along each dimension, the same on all ranks.
    mesh_dim_names : tuple of str, optional
        The names of the dimensions.
    backend_override : dict, optional
        The backends of some dimensions, by number or name.

    Examples
    --------
    >>> import candelabra.distributed as dist
    >>> from candelabra.distributed.device_mesh import init_device_mesh
    >>> dist.init_process_group("fake", rank=0, world_size=4)
    >>> init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    DeviceMesh((dp=2, tp=2), 'cpu', ranks=[0, 1, 2, 3])
    >>> dist.destroy_process_group()
    """
    shape = tuple(mesh_shape)
    names = None if mesh_dim_names is None else tuple(mesh_dim_names)
    if names is not None and len(set(names)) != len(names):
        raise RuntimeError(f"Each mesh_dim_name must be unique. Found repeated mesh_dim_name in mesh_dim_names {names}")
    if names is not None and len(shape) != len(names):
        raise RuntimeError(
            "mesh_shape and mesh_dim_names should have same length! "
            f"Found len(mesh_dim_names): {len(names)} and len(mesh_shape):{len(shape)}."
        )
    if not device_type.isalpha():
        raise RuntimeError(
            f"Device type with index is not supported but got {device_type}. "
            "If you maintained a 'torch.device' object, it's recommended to pass in 'device.type'."
        )
    overrides: list[Any] = [None] * len(shape)
    for key, backend in (backend_override or {}).items():
        if isinstance(key, str):
            if names is None or key not in names:
                raise RuntimeError(f"backend_override has the dimension {key!r}, which is none of {names}")
            key = names.index(key)
        if not 0 <= key < len(shape):
            raise RuntimeError(f"backend_override has the dimension {key} for a mesh of {len(shape)}")
        overrides[key] = backend
    ranks = candelabra.arange(math.prod(shape), dtype=candelabra.int32, device="cpu").view(shape)
    return DeviceMesh(device_type, ranks, mesh_dim_names=names, backend_override=overrides)


def current_mesh() -> DeviceMesh:
    """Return the mesh of the innermost ``with mesh:``.

    Raises
    ------
    RuntimeError
        There is none.
    """
    if not _active:
        raise RuntimeError("No device mesh is currently active!")
    return _active[-1]


def _start(ranks: Sequence[int]) -> None:
    """Start the world unless there is one; check that the mesh fits into it."""
    if not is_initialized():
        init_process_group()
    if max(ranks) >= get_world_size() or len(ranks) > get_world_size():
        raise RuntimeError(
            f"Mesh should not be bigger than default world size {get_world_size()}, but found {len(ranks)} ranks!"
        )


def _ravel(place: Sequence[int], shape: Sequence[int]) -> int:
    number = 0
    for at, size in zip(place, shape, strict=True):
        number = number * size + at
    return number


def _unravel(number: int, shape: Sequence[int]) -> tuple[int, ...]:
    place = []
    for size in reversed(shape):
        place.append(number % size)
        number //= size
    return tuple(reversed(place))
