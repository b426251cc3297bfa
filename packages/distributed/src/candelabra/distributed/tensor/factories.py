"""Functions that make distributed tensors without a whole one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import candelabra
from candelabra import Tensor

from ..device_mesh import DeviceMesh, current_mesh
from .dtensor import DTensor
from .layout import (
    Layout,
    compute_local_shape_and_global_offset,
    contiguous_stride,
    has_partial,
    local_part,
    normalized,
)
from .placements import Placement
from .rules.randomness import same_generator


def _made(
    make: Callable[..., Tensor],
    size: tuple[Any, ...],
    is_random: bool,
    dtype: Any,
    layout: Any,
    requires_grad: bool,
    device_mesh: DeviceMesh | None,
    placements: Sequence[Placement] | None,
) -> DTensor:
    shape = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else tuple(size)
    mesh = device_mesh or current_mesh()
    places = normalized(placements, mesh, len(shape))
    if has_partial(places):
        raise ValueError("a new DTensor cannot have Partial placements")
    if layout is not None and layout is not candelabra.strided:
        raise ValueError(f"a DTensor is strided, but got the layout {layout}")
    where = candelabra.device(mesh.device_type)
    with candelabra.no_grad():
        if is_random:
            same_generator(mesh, None, where)
            local = local_part(make(shape, dtype=dtype, device=where), mesh, places)
            local = local.clone(memory_format=candelabra.contiguous_format)
        else:
            local = make(compute_local_shape_and_global_offset(shape, mesh, places)[0], dtype=dtype, device=where)
    described = Layout(mesh, places, shape, contiguous_stride(shape), local.dtype)
    return DTensor(local, described, requires_grad=requires_grad)


def zeros(
    *size: Any,
    dtype: Any = None,
    layout: Any = None,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """Return zeros, spread over a mesh.

    Parameters
    ----------
    size : int or sequence of int
        The shape of the whole tensor.
    dtype, layout, requires_grad
        As for `candelabra.zeros`.
    device_mesh : DeviceMesh, optional
        By default that of ``with mesh:``.
    placements : sequence of Placement, optional
        By default all replicated.

    Examples
    --------
    >>> import candelabra.distributed as dist
    >>> from candelabra.distributed.device_mesh import init_device_mesh
    >>> from candelabra.distributed.tensor import Shard, zeros
    >>> dist.init_process_group("fake", rank=0, world_size=2)
    >>> zeros(3, device_mesh=init_device_mesh("cpu", (2,)), placements=[Shard(0)]).to_local()
    tensor([0., 0.])
    >>> dist.destroy_process_group()
    """
    return _made(candelabra.zeros, size, False, dtype, layout, requires_grad, device_mesh, placements)


def ones(
    *size: Any,
    dtype: Any = None,
    layout: Any = None,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """Return ones, spread over a mesh; see `zeros`."""
    return _made(candelabra.ones, size, False, dtype, layout, requires_grad, device_mesh, placements)


def empty(
    *size: Any,
    dtype: Any = None,
    layout: Any = None,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """Return a tensor without values, spread over a mesh; see `zeros`."""
    return _made(candelabra.empty, size, False, dtype, layout, requires_grad, device_mesh, placements)


def full(
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """Return a tensor of one value, spread over a mesh; see `zeros`."""
    return _made(
        lambda shape, **given: candelabra.full(shape, fill_value, **given),
        (size,),
        False,
        dtype,
        layout,
        requires_grad,
        device_mesh,
        placements,
    )


def rand(
    *size: Any,
    dtype: Any = None,
    layout: Any = None,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """Return the numbers of `candelabra.rand` of the same seed, spread over a mesh; see `zeros`."""
    return _made(candelabra.rand, size, True, dtype, layout, requires_grad, device_mesh, placements)


def randn(
    *size: Any,
    dtype: Any = None,
    layout: Any = None,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:
    """Return the numbers of `candelabra.randn` of the same seed, spread over a mesh; see
    `zeros`.
    """
    return _made(candelabra.randn, size, True, dtype, layout, requires_grad, device_mesh, placements)
