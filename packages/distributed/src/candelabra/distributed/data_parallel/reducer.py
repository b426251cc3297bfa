"""Reduces gradients while the backward pass goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import candelabra
import candelabra.autograd as _autograd  # noqa: F401
from candelabra import _C, Tensor
from candelabra.autograd.engine import queue_callback
from candelabra.autograd.hooks import add_slot

from ..collectives.reductions import all_reduce, broadcast
from ..process_group import ProcessGroup
from ..reduce_op import ReduceOp
from .buckets import FIRST_BUCKET_BYTES, Bucket, assign
from .grad_bucket import GradBucket

#: A communication hook: called with its state and a bucket, returns a future of the reduced buffer.
CommHook = Callable[[Any, GradBucket], Any]


class Reducer:
    """The gradients of a module's parameters, which all ranks reduce together.

    A full bucket of gradients is reduced while the backward pass computes the next ones: small ones
    together, in the memory of the bucket, large ones where they are. The end of the backward pass
    waits for the results. The core takes the gradients to their buckets, and calls `on_start`,
    `on_full` and `on_repeated`.

    Parameters
    ----------
    named : list of pairs
        Names and parameters that require grad.
    group : ProcessGroup
        The ranks.
    limit : int
        The bytes of a bucket.
    finds_unused : bool
        Parameters without a gradient are found after each forward pass.
    are_views : bool
        Gradients are views of the buckets, which saves a copy.
    is_static : bool
        The graph is the same in each iteration: what the first finds stays.
    """

    def __init__(
        self,
        named: list[tuple[str, Tensor]],
        group: ProcessGroup,
        limit: int,
        finds_unused: bool,
        are_views: bool,
        is_static: bool,
    ) -> None:
        self.names = [name for name, _ in named]
        self.parameters = [parameter for _, parameter in named]
        self.group = group
        self._limit = limit
        self.finds_unused = finds_unused
        self._are_views = are_views
        self.is_static = is_static
        self._hook: CommHook | None = None
        self._hook_state: Any = None
        self._is_rebuilt = finds_unused and not is_static
        self._is_first = True
        #: The parameters that this forward pass did not reach, and whether they are marked.
        self._unused: set[int] = set()
        self._are_unused_marked = False
        #: Those that the first iteration of a static graph did not reach.
        self._static_unused: set[int] = set()
        #: The divisor of the sums, fewer ranks than the group has after some have joined.
        self.divisor = group.size()
        self.buckets: list[Bucket] = []
        self._native = _C.GradientBuckets(self.parameters, self)
        # Autograd nodes are made in the order of the forward pass, so gradients come in reverse.
        self._build(list(reversed(range(len(named)))))
        for index, parameter in enumerate(self.parameters):
            add_slot(parameter, self._native.slot(index))

    # ---- buckets

    def _build(self, order: list[int]) -> None:
        assigned = assign(self.parameters, order, self._limit, min(FIRST_BUCKET_BYTES, self._limit))
        is_joined = self._are_views or self._hook is not None
        self.buckets = [Bucket(indices, self.parameters, is_joined) for indices in assigned]
        numbers = [0] * len(self.parameters)
        views: list[Tensor | None] = [None] * len(self.parameters)
        for number, bucket in enumerate(self.buckets):
            for place, index in enumerate(bucket.indices):
                numbers[index] = number
                views[index] = bucket.views[place]
        self._native.assign(numbers, views, self._are_views)

    def rebuild(self) -> bool:
        """Order the buckets once as the gradients came on rank 0. All ranks must call it.

        Returns
        -------
        bool
            Whether the buckets were built again.
        """
        if self._is_rebuilt:
            return False
        arrived = self._native.order
        if len(arrived) != len(self.parameters):
            return False
        self._is_rebuilt = True
        order = candelabra.tensor(arrived, dtype=candelabra.int64)
        where = self.group.host_or_only_device()
        order = order.to(where)
        broadcast(order, group=self.group, group_src=0)
        if self._are_views:
            self._detach_gradients()
        self._build([int(index) for index in order.tolist()])
        return True

    def _detach_gradients(self) -> None:
        for bucket in self.buckets:
            for parameter, view in zip(bucket.parameters, bucket.views, strict=True):
                if parameter.grad is None or view is None:
                    continue
                if parameter.grad.data_ptr() == view.data_ptr():
                    parameter.grad = parameter.grad.clone()

    def register_hook(self, state: Any, hook: CommHook) -> None:
        """Replace the reduction of a bucket by a function."""
        if self._hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self._hook = hook
        self._hook_state = state
        # A hook sees all gradients of a bucket in one tensor.
        self._build([index for bucket in self.buckets for index in bucket.indices])

    # ---- one iteration

    def check_finished(self) -> None:
        """Raise an error if parameters of the last iteration got no gradient.

        Raises
        ------
        RuntimeError
            Names them.
        """
        if not self._native.is_expecting:
            return
        ready = set(self._native.order)
        missing = [name for index, name in enumerate(self.names) if index not in ready]
        if not ready or not missing:
            return
        raise RuntimeError(
            "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates "
            "that your module has parameters that were not used in producing loss. You can enable unused parameter "
            "detection by passing the keyword argument `find_unused_parameters=True` to "
            "`torch.nn.parallel.DistributedDataParallel`, and by making sure all `forward` function outputs participate "
            "in calculating loss. Parameters which did not receive grad for "
            f"rank {self.group.job.rank}: {', '.join(missing)}"
        )

    def prepare(self, unused: Iterable[int]) -> None:
        """Expect a backward pass, without gradients of some parameters."""
        for bucket in self.buckets:
            bucket.forget()
        self._unused = set(unused) | self._static_unused
        self._are_unused_marked = False
        # The end of a static graph's first pass reduces, when it is known what the graph has.
        self._native.expect(self.is_static and self._is_first)

    def pause(self) -> None:
        """Let gradients accumulate: the next backward pass reduces none."""
        self._native.pause()

    def on_start(self) -> None:
        """Note the first gradient of a backward pass."""
        queue_callback(self._finish)
        if not self._are_unused_marked:
            self._are_unused_marked = True
            self._native.mark(tuple(self._unused))

    def on_repeated(self, index: int) -> None:
        """Refuse a gradient that was there already."""
        raise RuntimeError(
            f"Expected to mark a variable ready only once: the parameter {self.names[index]} got a gradient twice. "
            "It is used in several backward passes of one iteration, or by a reentrant checkpoint; "
            "static_graph=True allows that"
        )

    def on_full(self, number: int) -> None:
        """Start the collectives of a full bucket. Their order is equal on all ranks."""
        bucket = self.buckets[number]
        with candelabra.no_grad():
            self._fill(bucket)
        self._start(number)

    def _fill(self, bucket: Bucket) -> None:
        """Take the gradients that are reduced where they are, and divide all that have to be."""
        for number in bucket.separate:
            parameter = bucket.parameters[number]
            grad = parameter.grad
            if grad is None:
                bucket.views[number] = candelabra.zeros(parameter.shape, dtype=parameter.dtype, device=parameter.device)
            elif _can_be_reduced(grad):
                bucket.views[number] = grad
            else:
                bucket.views[number] = grad.contiguous()
        if self._hook is None and not self._engine_divides(bucket):
            for tensor in bucket.flats():
                tensor.div_(self.divisor)

    def _engine_divides(self, bucket: Bucket) -> bool:
        """Return whether the collective computes the mean. In float16 a sum might overflow."""
        return self.divisor == self.group.size() and bucket.parameters[0].dtype is not candelabra.float16

    def _start(self, number: int) -> None:
        bucket = self.buckets[number]
        if self._hook is not None:
            given = GradBucket(number, bucket.flat, bucket.parameters, number == len(self.buckets) - 1)
            bucket.works = [self._hook(self._hook_state, given)]
            return
        op = ReduceOp.AVG if self._engine_divides(bucket) else ReduceOp.SUM
        bucket.works = [all_reduce(tensor, op, self.group, async_op=True) for tensor in bucket.flats()]

    def _finish(self) -> None:
        """Wait for the collectives at the end of the backward pass, and write the gradients."""
        if self.is_static and self._is_first:
            self._static_unused = {index for index, count in enumerate(self._native.uses) if not count}
            self._native.mark(range(len(self.parameters) - 1, -1, -1))
        if not self._native.end():
            return  # parameters without a gradient: the next forward pass names them
        used = self._used_anywhere()
        for bucket in self.buckets:
            self._complete(bucket)
        self._native.write_back(used)
        with candelabra.no_grad():
            for bucket in self.buckets:
                self._write_separate(bucket, used)
                bucket.forget()
        self._is_first = False
        self._native.pause()

    def _write_separate(self, bucket: Bucket, used: list[bool] | None) -> None:
        """Make the results of gradients that are reduced where they are the gradients."""
        for place in bucket.separate:
            parameter, view = bucket.parameters[place], bucket.views[place]
            assert view is not None
            if parameter.grad is not None:
                if parameter.grad.data_ptr() != view.data_ptr():
                    parameter.grad.copy_(view)
            elif used is not None and used[bucket.indices[place]]:
                parameter.grad = view

    def _complete(self, bucket: Bucket) -> None:
        for work in bucket.works:
            result = work.wait()
            if self._hook is None:
                continue
            if isinstance(result, (list, tuple)):
                result = result[0]
            if result.data_ptr() != bucket.flat.data_ptr():
                with candelabra.no_grad():
                    bucket.flat.copy_(result.view(-1))
        bucket.works = []

    def _used_anywhere(self) -> list[bool] | None:
        """Return which parameters got a gradient on any rank; None if no rank looks for unused
        ones.
        """
        if not self.finds_unused and not self.is_static:
            return None
        used = [int(each.grad is not None and index not in self._unused) for index, each in enumerate(self.parameters)]
        return self._anywhere(used)

    def _anywhere(self, used: list[int]) -> list[bool]:
        marks = candelabra.tensor(used, dtype=candelabra.int32, device=self.group.host_or_only_device())
        all_reduce(marks, group=self.group)
        return [bool(mark) for mark in marks.tolist()]

    # ---- ranks without input

    def shadow(self, keeps_gradients: bool = False) -> None:
        """Take part in the collectives of a backward pass of the other ranks, with zeros; their
        averages become the gradients if `keeps_gradients`.
        """
        self.prepare(())
        for number, bucket in enumerate(self.buckets):
            bucket.flat.zero_()
            for place in bucket.separate:
                parameter = bucket.parameters[place]
                bucket.views[place] = candelabra.zeros(parameter.shape, dtype=parameter.dtype, device=parameter.device)
            self._start(number)
        if self.finds_unused or self.is_static:
            self._anywhere([0] * len(self.parameters))
        for bucket in self.buckets:
            self._complete(bucket)
            for parameter, view in zip(bucket.parameters, bucket.views, strict=True):
                if keeps_gradients and view is not None:
                    parameter.grad = view if self._are_views else view.clone()
            bucket.forget()
        self._native.pause()


def _can_be_reduced(grad: Tensor) -> bool:
    """Return whether a collective may write to a gradient itself."""
    return grad.__class__ is Tensor and grad.is_contiguous() and not grad.requires_grad


def unused_parameters(outputs: Any, parameters: list[Tensor]) -> list[int]:
    """Return the indices of the parameters that the graph of a module's outputs does not reach."""
    reached: set[int] = set()
    seen: set[int] = set()
    stack = [tensor._edge for tensor in tensors_in(outputs)]
    while stack:
        edge = stack.pop()
        if edge is None:
            continue
        if isinstance(edge, Tensor):
            reached.add(id(edge))
            continue
        node = edge[0] if isinstance(edge, tuple) else edge
        if node._sequence in seen:
            continue
        seen.add(node._sequence)
        stack.extend(node.all_edges())
    return [index for index, parameter in enumerate(parameters) if id(parameter) not in reached]


def tensors_in(value: Any) -> Iterable[Tensor]:
    """Yield the tensors in nested lists, tuples, dicts and data classes."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from tensors_in(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from tensors_in(each)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from tensors_in(getattr(value, name))
