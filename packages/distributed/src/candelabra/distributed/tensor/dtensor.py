"""`DTensor`: a tensor of which each rank of a mesh holds a part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import candelabra
import candelabra.library
from candelabra import Tensor
from candelabra.autograd import Function
from candelabra.library.aten_dispatch import operator_of

from ..checkpoint.sharded import Shards
from ..device_mesh import DeviceMesh, current_mesh
from .layout import (
    Layout,
    Placements,
    compute_local_shape_and_global_offset,
    contiguous_stride,
    global_shape_and_stride,
    has_partial,
    normalized,
)
from .placements import Partial, Placement, Replicate, Shard
from .redistribution import redistribute


class DTensor(Tensor):
    """A tensor of which each rank of a mesh holds a part; operators compute on the parts.

    It is made by `distribute_tensor`, `DTensor.from_local` or a function like
    `candelabra.distributed.tensor.zeros`. Its shape is that of the whole tensor. An operator
    without a rule raises NotImplementedError: see :doc:`/sharding`.
    """

    _local_tensor: Tensor
    _layout: Layout
    #: The operator that should have made a view, and had to make a copy.
    _copied_by: str | None = None
    #: Computes operators; `dispatch` sets it, whose rules need this class.
    _compute: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
    __torch_function__ = candelabra._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, local_tensor: Tensor, layout: Layout, *, requires_grad: bool = False) -> DTensor:
        made = Tensor._make_wrapper_subclass(
            cls,
            layout.shape,
            strides=layout.stride,
            dtype=layout.dtype,
            device=local_tensor.device,
            requires_grad=requires_grad,
        )
        made._local_tensor = local_tensor
        made._layout = layout
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return cls._compute(operator_of(func), args, kwargs or {})

    # ---- what it is

    @property
    def device_mesh(self) -> DeviceMesh:
        """The ranks that hold it."""
        return self._layout.mesh

    @property
    def placements(self) -> Placements:
        """Where its values are, for each dimension of the mesh."""
        return self._layout.placements

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return (
            f"DTensor(local_tensor={self._local_tensor}, device_mesh={self.device_mesh}, placements={self.placements})"
        )

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        return ["_local_tensor"], (self._layout, self.requires_grad)

    @staticmethod
    def __tensor_unflatten__(parts: dict[str, Tensor], context: Any, size: Any, stride: Any) -> DTensor:
        layout, requires_grad = context
        return DTensor(parts["_local_tensor"], layout, requires_grad=requires_grad)

    @property
    def data(self) -> DTensor:
        """The same values, apart from the tape."""
        return self.detach()  # type: ignore[return-value]

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, DTensor):
            raise TypeError(f"the data of a DTensor must be a DTensor, but got {type(value).__name__}")
        Tensor.data.__set__(self, value)
        self._device_stood_for = value.device
        self._local_tensor, self._layout = value._local_tensor, value._layout

    # ---- to and from local tensors

    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        run_check: bool = False,
        shape: Sequence[int] | None = None,
        stride: Sequence[int] | None = None,
        grad_placements: Sequence[Placement] | None = None,
    ) -> DTensor:
        """Return the tensor of which each rank has given its part.

        Parameters
        ----------
        local_tensor : Tensor
            This rank's part. Gradients reach it.
        device_mesh : DeviceMesh, optional
            By default that of ``with mesh:``.
        placements : sequence of Placement, optional
            By default all replicated.
        run_check : bool
            Copy replicated values from the first rank.
        shape, stride : optional
            Of the whole tensor; needed if the parts are of different sizes.
        grad_placements : sequence of Placement, optional
            Where the gradient of the parts is wanted.

        Examples
        --------
        >>> import candelabra, candelabra.distributed as dist
        >>> from candelabra.distributed.device_mesh import init_device_mesh
        >>> from candelabra.distributed.tensor import DTensor, Shard
        >>> dist.init_process_group("fake", rank=0, world_size=2)
        >>> mesh = init_device_mesh("cpu", (2,))
        >>> DTensor.from_local(candelabra.ones(2, 3), mesh, [Shard(0)]).shape
        candelabra.Size([4, 3])
        >>> dist.destroy_process_group()
        """
        mesh = device_mesh or current_mesh()
        places = normalized(placements, mesh, local_tensor.ndim)
        if run_check:
            local_tensor = _checked(local_tensor, mesh, places)
        if isinstance(local_tensor, DTensor):
            raise RuntimeError("the local_tensor argument only accepts torch.Tensor but got DTensor value.")
        if (shape is None) != (stride is None):
            raise RuntimeError(
                f"Found shape:{shape}, stride:{stride}. Please pass both shape and stride at the same time."
            )
        if shape is None or stride is None:
            shape, stride = global_shape_and_stride(local_tensor, mesh, places)
        layout = Layout(mesh, places, tuple(shape), tuple(stride), local_tensor.dtype)
        wanted = None if grad_placements is None else normalized(grad_placements, mesh, local_tensor.ndim)
        return _FromLocal.apply(local_tensor, layout, wanted)

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """Return this rank's part. Gradients of it reach the DTensor.

        Parameters
        ----------
        grad_placements : sequence of Placement, optional
            Where the gradients of the parts are; by default where the parts are.
        """
        if not (candelabra.is_grad_enabled() and self.requires_grad):
            return self._local_tensor
        wanted = None if grad_placements is None else normalized(grad_placements, self.device_mesh, self.ndim)
        return _ToLocal.apply(self, wanted)

    def redistribute(
        self,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        async_op: bool = False,
        forward_dtype: Any = None,
        backward_dtype: Any = None,
    ) -> DTensor:
        """Return the tensor in other places of its mesh. All ranks of the mesh must call it.

        Parameters
        ----------
        device_mesh : DeviceMesh, optional
            The tensor's own.
        placements : sequence of Placement
            Shard or Replicate.
        async_op : bool
            Has no effect: the collectives have ended on return.
        forward_dtype, backward_dtype : dtype, optional
            Those in which the values and the gradients are moved.

        Raises
        ------
        RuntimeError
            The target is Partial.
        """
        mesh = device_mesh or self.device_mesh
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        target = normalized(placements, mesh, self.ndim)
        if mesh != self.device_mesh:
            raise NotImplementedError("Cross device mesh comm not supported yet!")
        if any(isinstance(new, Partial) and new != old for old, new in zip(self.placements, target, strict=True)):
            raise RuntimeError("Can not redistribute to Partial, redistributing to Partial is for internal use only!")
        return _Redistribute.apply(self, target, forward_dtype, backward_dtype)

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """Return the whole tensor, on all ranks. All ranks of the mesh must call it."""
        everywhere = [Replicate()] * self.device_mesh.ndim
        return self.redistribute(placements=everywhere).to_local(grad_placements=grad_placements)

    # ---- values

    def item(self) -> Any:
        """Return the only value; all ranks must call it."""
        return _values(self).item()

    def tolist(self) -> Any:
        """Return the values as nested lists; all ranks must call it."""
        return _values(self).tolist()

    def __bool__(self) -> bool:
        return bool(_values(self))

    def __float__(self) -> float:
        return float(_values(self))

    def __int__(self) -> int:
        return int(_values(self))

    def numpy(self, *, force: bool = False) -> Any:
        """Raise RuntimeError: a part is not the tensor."""
        raise RuntimeError("a DTensor has no numpy array: call full_tensor() or to_local() first")

    def new_zeros(self, *size: Any, **options: Any) -> DTensor:
        """Return zeros of another shape: sharded as this tensor where the dimension is as long."""
        return _new(self, size, 0, options)

    def new_ones(self, *size: Any, **options: Any) -> DTensor:
        """Return ones, placed as by `new_zeros`."""
        return _new(self, size, 1, options)

    def new_empty(self, *size: Any, **options: Any) -> DTensor:
        """Return a tensor without values, placed as by `new_zeros`."""
        return _new(self, size, None, options)

    def new_full(self, size: Any, fill_value: Any, **options: Any) -> DTensor:
        """Return a tensor of one value, placed as by `new_zeros`."""
        return _new(self, (size,), fill_value, options)

    # ---- checkpoints and copies

    def __sharded__(self) -> Shards:
        """Return the part of this rank for `candelabra.distributed.checkpoint`."""
        if has_partial(self.placements):
            raise RuntimeError("a DTensor with Partial placements cannot be saved: redistribute it first")
        mesh = self.device_mesh
        place = mesh.get_coordinate()
        _, offset = compute_local_shape_and_global_offset(self.shape, mesh, self.placements)
        local = self._local_tensor.detach()
        is_first = place is not None and all(
            at == 0 for at, each in zip(place, self.placements, strict=True) if not isinstance(each, Shard)
        )
        pieces = [(offset, local)] if place is not None and local.numel() else []
        return Shards(tuple(self.shape), pieces, is_first)

    def __deepcopy__(self, memo: dict[int, Any]) -> DTensor:
        if id(self) in memo:
            return memo[id(self)]
        made = DTensor(self._local_tensor.detach().clone(), self._layout, requires_grad=self.requires_grad)
        memo[id(self)] = made
        if getattr(self, "_is_param", False):
            made._is_param = True  # type: ignore[attr-defined]
        if self.grad is not None:
            made.grad = self.grad.__deepcopy__(memo)
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            "a DTensor cannot be pickled: save it with candelabra.distributed.checkpoint, or pickle full_tensor() or to_local()"
        )


def _values(tensor: DTensor) -> Tensor:
    with candelabra.no_grad():
        return tensor.detach().full_tensor()


def _new(like: DTensor, size: tuple[Any, ...], value: Any, options: dict[str, Any]) -> DTensor:
    shape = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else tuple(size)
    places: list[Placement] = []
    for each in like.placements:
        fits = isinstance(each, Shard) and len(shape) == like.ndim and shape[each.dim] == like.shape[each.dim]
        places.append(each if fits else Replicate())
    dtype = options.pop("dtype", None) or like.dtype
    device = options.pop("device", None) or like._local_tensor.device
    layout = Layout(like.device_mesh, tuple(places), shape, contiguous_stride(shape), dtype)
    local_shape, _ = compute_local_shape_and_global_offset(shape, like.device_mesh, places)
    requires_grad = options.pop("requires_grad", False)
    if value is None:
        local = candelabra.empty(local_shape, dtype=dtype, device=device)
    else:
        local = candelabra.full(local_shape, value, dtype=dtype, device=device)
    return DTensor(local, layout, requires_grad=requires_grad)


def _checked(local: Tensor, mesh: DeviceMesh, placements: Placements) -> Tensor:
    """Return a part with the replicated values of the first rank."""
    from ..collectives.reductions import broadcast

    made = local.detach().clone(memory_format=candelabra.contiguous_format)
    for i, each in enumerate(placements):
        if isinstance(each, Replicate):
            broadcast(made, group=mesh.get_group(i), group_src=0)
    with candelabra.no_grad():
        local.detach().copy_(made)
    return local


def settled(placements: Placements) -> Placements:
    """Return where the gradient of a tensor belongs: pending reductions are not for gradients."""
    return tuple(Replicate() if isinstance(each, Partial) else each for each in placements)


class _FromLocal(Function):
    @staticmethod
    def forward(ctx: Any, local: Tensor, layout: Layout, wanted: Placements | None) -> DTensor:
        ctx.layout, ctx.wanted = layout, wanted
        return DTensor(local.detach(), layout)

    @staticmethod
    def backward(ctx: Any, grad: DTensor) -> tuple[Any, ...]:
        target = ctx.wanted or settled(ctx.layout.placements)
        return redistribute(grad._local_tensor, grad.shape, grad.device_mesh, grad.placements, target), None, None


class _ToLocal(Function):
    @staticmethod
    def forward(ctx: Any, tensor: DTensor, wanted: Placements | None) -> Tensor:
        ctx.layout, ctx.wanted = tensor._layout, wanted
        return tensor._local_tensor.detach()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        places = ctx.wanted or settled(ctx.layout.placements)
        layout = Layout(ctx.layout.mesh, places, ctx.layout.shape, ctx.layout.stride, grad.dtype)
        return DTensor(grad, layout), None


class _Redistribute(Function):
    @staticmethod
    def forward(ctx: Any, tensor: DTensor, target: Placements, forward_dtype: Any, backward_dtype: Any) -> DTensor:
        layout = tensor._layout
        ctx.layout, ctx.dtype = layout, backward_dtype
        return moved(tensor, target, forward_dtype)

    @staticmethod
    def backward(ctx: Any, grad: DTensor) -> tuple[Any, ...]:
        made = moved(grad, settled(ctx.layout.placements), ctx.dtype)
        return made if made.dtype == ctx.layout.dtype else made.to(ctx.layout.dtype), None, None, None


def moved(tensor: DTensor, target: Placements, dtype: Any = None) -> DTensor:
    """Return a tensor in other places, without autograd."""
    layout, local = tensor._layout, tensor._local_tensor.detach()
    if dtype is not None and dtype != local.dtype:
        local = local.to(dtype)
    local = redistribute(local, layout.shape, layout.mesh, layout.placements, target)
    return DTensor(local, Layout(layout.mesh, target, layout.shape, layout.stride, local.dtype))
