"""One parameter of a sharded module: its shard, and the whole one while a module computes."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Tensor, nn

from ..device_mesh import DeviceMesh
from ..tensor.dtensor import DTensor, moved
from ..tensor.layout import Layout, contiguous_stride
from ..tensor.placements import Placement, Replicate, Shard, _StridedShard
from .policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy


class ShardedParameter:
    """A parameter of which each rank keeps a shard.

    Modules hold `sharded`, a DTensor, which the optimizer steps. While a module computes, they hold
    `whole`: the same object each time, since the tape refers to it, with new memory each time.

    Parameters
    ----------
    parameter : Parameter
        Of a module; a DTensor if tensor parallelism has sharded it.
    owners : list of (Module, str)
        Where it is registered.
    mesh : DeviceMesh
        Of one dimension, or of two, of which the first replicates.
    dim : int
        The dimension that is sharded.
    mixed, offload
        The policies.
    """

    def __init__(
        self,
        parameter: nn.Parameter,
        name: str,
        owners: list[tuple[nn.Module, str]],
        mesh: DeviceMesh,
        dim: int,
        mixed: MixedPrecisionPolicy,
        offload: OffloadPolicy,
    ) -> None:
        self.name, self.owners, self.dim = name, owners, dim
        self.count = mesh.shape[-1]
        coordinate = mesh.get_coordinate()
        assert coordinate is not None
        self.place = coordinate[-1]
        self.offload = offload
        #: The layout of tensor parallelism.
        self.layout = parameter._layout if isinstance(parameter, DTensor) else None
        local = parameter._local_tensor if isinstance(parameter, DTensor) else parameter.detach()
        if local.ndim == 0:
            raise ValueError(
                f"fully_shard doesn't support scalar parameters. Change {name} to a 1D tensor with numel equal to 1."
            )
        self.shape = tuple(local.shape)
        if dim and self.shape[dim] % self.count:
            raise NotImplementedError(
                f"FSDP does not support uneven sharding on dim {dim}: {self.shape} (world size: {self.count})"
            )
        self.device = local.device if local.device.type == "meta" else candelabra.device(mesh.device_type)
        self.set_dtypes(local.dtype, mixed)
        length, start = Shard.local_shard_size_and_offset(self.shape[dim], self.count, self.place)
        shard = self._kept(local.narrow(dim, start, length).clone(memory_format=candelabra.contiguous_format))
        self.sharded = nn.Parameter(DTensor(shard, self._sharded_layout(parameter, mesh)), parameter.requires_grad)
        self.whole: Tensor | None = None
        #: Sum of gradients that were not reduced yet.
        self.pending: Tensor | None = None
        self.register(self.sharded)

    def set_dtypes(self, dtype: Any, mixed: MixedPrecisionPolicy) -> None:
        """Choose the dtypes of the whole parameter and of the reduction of its gradient."""
        self.dtype = dtype
        is_converted = dtype.is_floating_point and mixed.param_dtype is not None
        self.param_dtype = mixed.param_dtype if is_converted else dtype
        self.reduce_dtype = mixed.reduce_dtype or self.param_dtype

    def _sharded_layout(self, parameter: Tensor, mesh: DeviceMesh) -> Layout:
        place: Placement = Shard(self.dim)
        places: list[Placement] = [Replicate()] * (mesh.ndim - 1)
        if self.layout is None:
            return Layout(mesh, (*places, place), self.shape, contiguous_stride(self.shape), self.dtype)
        parts = 1
        for i, each in enumerate(self.layout.placements):
            if each.is_shard(self.dim):
                parts *= self.layout.mesh.shape[i]
        if parts > 1:
            place = _StridedShard(self.dim, parts)  # it comes after that of tensor parallelism
        whole = DeviceMesh._concatenate([mesh, self.layout.mesh])
        shape = tuple(parameter.shape)
        return Layout(whole, (*places, place, *self.layout.placements), shape, contiguous_stride(shape), self.dtype)

    def _kept(self, shard: Tensor) -> Tensor:
        """Return a shard or its gradient where it is kept."""
        if not isinstance(self.offload, CPUOffloadPolicy):
            return shard.to(self.device) if shard.device != self.device else shard
        if shard.device.type == "meta":
            return shard
        kept = shard.to("cpu")
        return kept.pin_memory() if self.offload.pin_memory and self.device.type != "cpu" else kept

    # ---- the shard

    @property
    def shard(self) -> Tensor:
        """This rank's part."""
        return self.sharded._local_tensor  # type: ignore[attr-defined]

    @property
    def requires_grad(self) -> bool:
        """Whether it is trained."""
        return self.sharded.requires_grad

    @property
    def chunk(self) -> int:
        """The number of elements of the longest shard, which the others are padded to."""
        rest = 1
        for at, size in enumerate(self.shape):
            rest *= size if at != self.dim else -(-size // self.count)
        return rest

    def register(self, parameter: Tensor) -> None:
        """Make the modules hold a parameter."""
        for module, name in self.owners:
            module._parameters[name] = parameter  # type: ignore[assignment]

    def refresh(self, mixed: MixedPrecisionPolicy) -> None:
        """Take over what the modules hold, after a conversion has replaced it."""
        module, name = self.owners[0]
        held = module._parameters[name]
        if not isinstance(held, DTensor):
            raise RuntimeError(f"the parameter {self.name} of a fully sharded module was replaced by a plain tensor")
        self.sharded = held  # type: ignore[assignment]
        self.device = self.device if isinstance(self.offload, CPUOffloadPolicy) else held._local_tensor.device
        if held.dtype != self.dtype:
            self.whole = None
            self.set_dtypes(held.dtype, mixed)
        self.register(held)

    # ---- the whole one

    def write_shard(self, target: Tensor) -> None:
        """Copy the shard to its place in the buffer that is sent."""
        shard = self.shard
        target[: shard.numel()].copy_(shard.reshape(-1))

    def gather(self, parts: Tensor) -> Tensor:
        """Make the whole parameter of the shards of all ranks, one a row; return its memory."""
        with candelabra.no_grad():
            made = candelabra.empty(self.shape, dtype=self.param_dtype, device=self.device)
            if self.dim == 0 and self.shape[0] % self.count == 0:
                made.view(self.count, -1).copy_(parts)
            else:
                for rank in range(self.count):
                    own = self._slice(made, rank)
                    if own.numel():
                        own.copy_(parts[rank][: own.numel()].view(own.shape))
        return self._hold(made)

    def restore(self, values: Tensor) -> Tensor:
        """Make the whole parameter of its values in order; return its memory."""
        with candelabra.no_grad():
            return self._hold(values.reshape(self.shape).clone())

    def _hold(self, made: Tensor) -> Tensor:
        if self.whole is None:
            self.whole = self._wrapped(made)
        elif isinstance(self.whole, DTensor):
            self.whole._local_tensor = made
        else:
            self.whole.data = made
        if self.whole.requires_grad != self.requires_grad:
            self.whole.requires_grad_(self.requires_grad)
        self.register(self.whole)
        return made

    def _wrapped(self, made: Tensor) -> Tensor:
        if self.layout is None:
            return nn.Parameter(made, self.requires_grad)
        whole = self.layout
        layout = Layout(whole.mesh, whole.placements, whole.shape, whole.stride, made.dtype)
        return nn.Parameter(DTensor(made, layout), self.requires_grad)

    def memory(self) -> Tensor:
        """Return the local tensor of the whole parameter, which must be there."""
        assert self.whole is not None
        return self.whole._local_tensor if isinstance(self.whole, DTensor) else self.whole.detach()

    def free(self) -> None:
        """Give the memory of the whole parameter back, and make the modules hold the shard."""
        if self.whole is not None:
            # It keeps its shape, with the memory of one element, for gradients that come meanwhile.
            nothing = candelabra.empty((), dtype=self.param_dtype, device=self.device).expand(self.shape)
            if isinstance(self.whole, DTensor):
                self.whole._local_tensor = nothing
            else:
                self.whole.data = nothing
        self.register(self.sharded)

    def _slice(self, whole: Tensor, rank: int) -> Tensor:
        length, start = Shard.local_shard_size_and_offset(self.shape[self.dim], self.count, rank)
        return whole.narrow(self.dim, start, length)

    # ---- gradients

    def has_gradient(self) -> bool:
        """Return whether the whole parameter has a gradient."""
        return self.whole is not None and self.whole.grad is not None

    def take_gradient(self) -> Tensor | None:
        """Return the gradient of the whole parameter with what is pending, and forget both."""
        grad = self.whole.grad if self.whole is not None else None
        if self.whole is not None:
            self.whole.grad = None
        if isinstance(grad, DTensor):
            assert self.layout is not None
            grad = moved(grad, self.layout.placements)._local_tensor
        pending, self.pending = self.pending, None
        if pending is None:
            return grad
        return pending if grad is None else pending.add_(grad)

    def keep_gradient(self) -> None:
        """Keep the gradient of the whole parameter for a later reduction."""
        grad = self.take_gradient()
        if grad is not None:
            self.pending = grad.to(self.reduce_dtype)

    def write_gradient(self, grad: Tensor, target: Tensor) -> None:
        """Copy the slices of a gradient to the rows of the buffer that is reduced, one for each
        rank.
        """
        if self.dim == 0 and self.shape[0] % self.count == 0:
            target.copy_(grad.reshape(self.count, -1))
            return
        for rank in range(self.count):
            own = self._slice(grad, rank)
            target[rank][: own.numel()].copy_(own.reshape(-1))
            target[rank][own.numel() :].zero_()

    def accumulate(self, reduced: Tensor) -> None:
        """Add this rank's slice of the reduced gradient to the gradient of the shard."""
        shard = self.shard
        made = self._kept(reduced[: shard.numel()].view(shard.shape).to(self.dtype))
        layout = self.sharded._layout  # type: ignore[attr-defined]
        old = self.sharded.grad
        if old is None:
            self.sharded.grad = DTensor(made, layout)
        else:
            old._local_tensor.add_(made)  # type: ignore[attr-defined]
