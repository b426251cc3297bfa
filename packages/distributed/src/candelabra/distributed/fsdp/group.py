"""The parameters of one module, or several, that are gathered and whose gradients are reduced
together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import candelabra
from candelabra import Tensor

from ..collectives.gathers import all_gather_into_tensor
from ..collectives.reductions import all_reduce, reduce_scatter_tensor
from ..device_mesh import DeviceMesh
from ..process_group import ProcessGroup
from ..reduce_op import ReduceOp
from .communication import AllGather, ReduceScatter
from .parameter import ShardedParameter
from .policies import MixedPrecisionPolicy
from .post_forward import KeptPart

if TYPE_CHECKING:
    from .state import Context


class Reduction:
    """A reduction of gradients that may still run."""

    def __init__(self, work: Any, finish: Callable[[], None]) -> None:
        self._work, self._finish = work, finish

    def wait(self) -> None:
        """Wait, and give the shards their gradients."""
        if self._work is not None:
            self._work.wait()
        self._finish()


class ParameterGroup:
    """Parameters with one all_gather before they are used, and one reduce_scatter after.

    There is one of each for each dtype that the parameters have.
    """

    def __init__(self, parameters: list[ShardedParameter], mesh: DeviceMesh, mixed: MixedPrecisionPolicy) -> None:
        self.parameters = parameters
        self.mesh = mesh
        self.mixed = mixed
        self.shards = mesh.get_group(mesh.ndim - 1)
        self.replicas = mesh.get_group(0) if mesh.ndim == 2 else None
        self.reshard_after_forward = True
        self.reshard_after_backward = True
        self.reduces = True
        self.all_reduces = True
        self.divide_factor: float | None = None
        self.gathers_in_backward = True
        #: Whether parameters without a gradient take part in the reduction, with zeros.
        self.reduces_unused = False
        #: Whether the gradients of this backward pass were reduced.
        self.was_reduced = False
        #: How many reductions run at a time, each with a buffer.
        self.most_reductions = 1
        #: Whether collectives add, and the division is apart.
        self.only_adds = False
        self.all_gather_comm: AllGather | None = None
        self.reduce_scatter_comm: ReduceScatter | None = None
        self.all_reduce_hook: Callable[[Tensor], None] | None = None
        #: The ranks of `shards`, with a communicator for reductions.
        self.reducing_shards = self.shards
        self.is_whole = False
        self._gathers: list[tuple[Any, Tensor, list[ShardedParameter]]] | None = None
        #: The ranks that share the whole parameters between forward and backward; None if those are
        #: freed or kept.
        self.post_forward: ProcessGroup | None = None
        self._kept: list[tuple[KeptPart, list[ShardedParameter]]] | None = None
        #: Whether the parameters that are being gathered are kept parts of whole ones.
        self._gathers_kept = False
        self._arrived = 0
        self.expected = 0
        #: Sums over the shards' group that wait for the reduction over replicas.
        self._partly: dict[Any, Tensor] = {}
        self.context: Context | None = None

    def prepare(self, context: Context) -> None:
        """Check before the first pass that all parameters have values."""
        self.context = context
        for each in self.parameters:
            if self.is_whole:  # by `unshard` of the program
                context.remember(each.memory(), self, each)
            if each.shard.device.type == "meta":
                raise RuntimeError(
                    f"FSDP parameters should be materialized from meta device before training, but {each.name} is on the "
                    "meta device: call model.to_empty(device=...) and initialize the values"
                )

    # ---- gathering

    def unshard(self) -> None:
        """Start to gather the parameters, unless they are whole."""
        if self.is_whole or self._gathers is not None or not self.parameters:
            return
        kept, self._kept = self._kept, None
        # Before a forward pass the optimizer may have stepped.
        self._gathers_kept = kept is not None and self.context is not None and self.context.is_in_backward
        if kept is not None and self._gathers_kept:
            self._gathers = [(*part.gather(), members) for part, members in kept]
            return
        self._gathers = []
        with candelabra.no_grad():
            for dtype in dict.fromkeys(each.param_dtype for each in self.parameters):
                members = [each for each in self.parameters if each.param_dtype == dtype]
                device = members[0].device
                sent = candelabra.empty(sum(each.chunk for each in members), dtype=dtype, device=device)
                for each, target in zip(members, sent.split([each.chunk for each in members]), strict=True):
                    each.write_shard(target)
                work, made = self._gather(sent)
                self._gathers.append((work, made, members))

    def _gather(self, sent: Tensor) -> tuple[Any, Tensor]:
        """Start to gather what all ranks send; return the work or None, and the ranks' rows."""
        count = self.shards.size()
        comm = self.all_gather_comm
        if comm is None:
            made = sent.new_empty((count, sent.numel()))
            return all_gather_into_tensor(made, sent, self.shards, async_op=True), made
        flat = comm.allocate((count * sent.numel(),), dtype=sent.dtype, device=sent.device)
        return comm(flat, sent, self.shards, async_op=True), flat.view(count, -1)

    def wait(self) -> None:
        """Wait for the parameters, and make the modules hold them."""
        if self._gathers is None:
            return
        gathers, self._gathers = self._gathers, None
        while gathers:
            work, made, members = gathers.pop(0)
            if work is not None:
                work.wait()
            for each, parts in self._parts(made, members):
                is_new = each.whole is None
                memory = each.restore(parts) if self._gathers_kept else each.gather(parts)
                assert each.whole is not None
                if is_new and each.whole.requires_grad:
                    each.whole.register_post_accumulate_grad_hook(self._on_gradient)
                if self.context is not None:
                    self.context.remember(memory, self, each)
            del made, parts, work
        self.is_whole = True
        self._arrived = 0
        self.expected = sum(each.requires_grad for each in self.parameters)

    def _parts(self, made: Tensor, members: list[ShardedParameter]) -> Iterator[tuple[ShardedParameter, Tensor]]:
        """Return what was gathered of each parameter."""
        if not self._gathers_kept:
            return zip(members, made.split([each.chunk for each in members], 1), strict=True)
        sizes = [math.prod(each.shape) for each in members]
        return zip(members, made[: sum(sizes)].split(sizes), strict=True)

    def reshard_after_pass(self) -> None:
        """Free the whole parameters after a forward pass, but for the parts that are kept."""
        self.wait()
        if self.is_whole and self.post_forward is not None and candelabra.is_grad_enabled():
            with candelabra.no_grad():
                by_dtype: dict[Any, list[ShardedParameter]] = {}
                for each in self.parameters:
                    by_dtype.setdefault(each.param_dtype, []).append(each)
                self._kept = [
                    (KeptPart([each.memory() for each in members], self.post_forward), members)
                    for members in by_dtype.values()
                ]
        self.reshard()

    def forget_kept(self) -> None:
        """Free what is kept of the whole parameters."""
        self._kept = None

    def reshard(self) -> None:
        """Free the whole parameters, and make the modules hold the shards."""
        self.wait()
        if not self.is_whole:
            return
        for each in self.parameters:
            if self.context is not None:
                self.context.forget(each)
            each.free()
        self.is_whole = False

    # ---- gradients

    def _on_gradient(self, _parameter: Tensor) -> None:
        assert self.context is not None
        self.context.start_backward()
        self._arrived += 1
        if self._arrived >= self.expected and self.expected == len(self.parameters) and not self.reduces_unused:
            self.finish_backward()

    @property
    def waits_for_inputs(self) -> bool:
        """Whether the backward pass of this group ends with the gradients of the module's inputs,
        since not all parameters may get one.
        """
        return self.expected < len(self.parameters) or self.reduces_unused

    def _gradient(self, parameter: ShardedParameter) -> Tensor | None:
        grad = parameter.take_gradient()
        if grad is None and self.reduces_unused and parameter.requires_grad:
            return candelabra.zeros(parameter.shape, dtype=parameter.reduce_dtype, device=parameter.device)
        return grad

    def finish_backward(self) -> None:
        """Reduce the gradients that have come, and free the whole parameters."""
        assert self.context is not None
        self._arrived = 0
        if not self.reduces:
            for each in self.parameters:
                each.keep_gradient()
            grads: list[tuple[ShardedParameter, Tensor]] = []
        else:
            self.was_reduced = True
            taken = [(each, self._gradient(each)) for each in self.parameters if each.requires_grad]
            grads = [(each, grad) for each, grad in taken if grad is not None]
        if self.reshard_after_backward:
            self.reshard()
        if grads:
            self._reduce(grads)

    def _reduce(self, grads: list[tuple[ShardedParameter, Tensor]]) -> None:
        assert self.context is not None
        kinds = list(dict.fromkeys((each.reduce_dtype, each.dtype) for each, _ in grads))
        for kind in kinds:
            members = [(each, grad) for each, grad in grads if (each.reduce_dtype, each.dtype) == kind]
            self.context.finish_reductions(self.most_reductions - 1)  # each has a buffer
            self.context.reductions.append(self._start(kind, members))

    def _start(self, kind: Any, members: list[tuple[ShardedParameter, Tensor]]) -> Reduction:
        """Start to reduce gradients of one dtype."""
        count = self.shards.size()
        chunks = [each.chunk for each, _ in members]
        comm = self.reduce_scatter_comm
        allocate = candelabra.empty if comm is None else comm.allocate
        with candelabra.no_grad():
            device = members[0][1].device
            buffer = allocate((count * sum(chunks),), dtype=kind[0], device=device).view(count, -1)
            for (each, grad), target in zip(members, buffer.split(chunks, 1), strict=True):
                each.write_gradient(grad, target)
            made = allocate((sum(chunks),), dtype=kind[0], device=device)
            op = ReduceOp.AVG if self.divide_factor is None and not self.only_adds else ReduceOp.SUM
            if comm is None:
                work = reduce_scatter_tensor(made, buffer, op, self.reducing_shards, async_op=True)
            else:
                work = comm(made, buffer.view(-1), self.reducing_shards, op, async_op=True)
        return Reduction(work, lambda: self._finish(kind, [each for each, _ in members], chunks, made, op))

    def _finish(
        self, kind: Any, members: list[ShardedParameter], chunks: list[int], made: Tensor, op: ReduceOp
    ) -> None:
        with candelabra.no_grad():
            key = kind, tuple(each.name for each in members)
            before = self._partly.pop(key, None)
            if before is not None:
                made.add_(before)
            if self.replicas is not None:
                if not self.all_reduces:
                    self._partly[key] = made
                    return
                all_reduce(made, op, self.replicas)
            if self.all_reduce_hook is not None:
                self.all_reduce_hook(made)
            if self.divide_factor is not None:
                made.div_(self.divide_factor)
            elif self.only_adds:
                made.div_(self.mesh.size())
            for each, part in zip(members, made.split(chunks), strict=True):
                each.accumulate(part)
