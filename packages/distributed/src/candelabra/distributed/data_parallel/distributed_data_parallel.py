"""`DistributedDataParallel`: each process trains a copy of a module on its part of the data."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import candelabra
from candelabra import Tensor
from candelabra.nn import Module
from candelabra.nn.parameter import UninitializedParameter

from ..device_mesh import DeviceMesh
from ..groups import member, world
from ..join_context import Join, Joinable
from ..process_group import ProcessGroup
from . import agreement
from .grad_bucket import GradBucket
from .joining import DataParallelJoinHook, JoinContext
from .reducer import CommHook, Reducer, unused_parameters

_BUCKET_MB = 25


class DistributedDataParallel(Module, Joinable):
    """Train copies of a module in several processes; their gradients are averaged.

    The gradients are reduced in buckets while the backward pass goes on. Each process needs its own
    part of the data, for which `candelabra.utils.data.DistributedSampler` is made.

    Parameters
    ----------
    module : Module
        Of the same parameters on all ranks; they start with rank 0's values.
    device_ids : list, optional
        The device of the module, to which inputs are moved.
    output_device : device, optional
        Has no effect without `device_ids`.
    dim : int
        Must be 0.
    broadcast_buffers : bool
        Whether buffers are copied from rank 0 before each forward pass in training; True by
        default.
    init_sync : bool
        Whether to compare the ranks' modules and to copy rank 0's values.
    process_group : ProcessGroup, optional
        The world by default.
    bucket_cap_mb : float, optional
        The size of a bucket, 25 by default.
    find_unused_parameters : bool
        Look after each forward pass for parameters that the outputs do not depend on.
    gradient_as_bucket_view : bool
        Gradients are views of the buckets, which saves memory and a copy.
    static_graph : bool
        The module uses the same parameters in each iteration, as often as in the first.
    device_mesh : DeviceMesh, optional
        Of one dimension, instead of `process_group`.

    Raises
    ------
    RuntimeError
        No parameter requires grad, or the ranks' modules differ.

    Examples
    --------
    >>> import candelabra, candelabra.distributed as dist
    >>> from candelabra.distributed.data_parallel import DistributedDataParallel
    >>> dist.init_process_group("fake", rank=0, world_size=1)
    >>> model = DistributedDataParallel(candelabra.nn.Linear(2, 1))
    >>> model(candelabra.ones(3, 2)).sum().backward()
    >>> model.module.weight.grad
    tensor([[3., 3.]])
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: ProcessGroup | None = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        device_mesh: DeviceMesh | None = None,
    ) -> None:
        super().__init__()
        if device_mesh is not None:
            process_group = _group_of(device_mesh, process_group)
        group = member(process_group) if process_group is not None else world()
        if group is None:
            raise ValueError("DistributedDataParallel: this rank does not belong to the process group")
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = [(name, each) for name, each in module.named_parameters() if each.requires_grad and name not in ignored]
        if not named:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."
            )
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        if dim != 0:
            raise ValueError("DistributedDataParallel does not split inputs: dim must be 0")
        if bucket_cap_mb is not None and not bucket_cap_mb > 0:
            raise ValueError(f"bucket_cap_mb must be positive, but got {bucket_cap_mb}")
        for name, each in named:
            if isinstance(each, UninitializedParameter):
                raise RuntimeError(
                    f"Modules with uninitialized parameters can't be used with `DistributedDataParallel`: {name}. "
                    "Run a dummy forward pass to correctly initialize the modules"
                )
        self.module = module
        self.process_group = group
        self.device_ids = None if not device_ids else [_device(device_ids[0])]
        self.output_device = output_device
        self.dim = dim
        self.broadcast_buffers = True if broadcast_buffers is None else broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True
        self.bucket_bytes_cap = int((_BUCKET_MB if bucket_cap_mb is None else bucket_cap_mb) * 1024 * 1024)
        self._buffers_to_copy = [each for name, each in module.named_buffers() if name not in ignored]
        self._join: JoinContext | None = None
        #: The same in a `Join` with other joinables.
        self._shared_join: JoinContext | None = None
        everything = [(name, each) for name, each in module.named_parameters() if name not in ignored]
        if init_sync:
            agreement.verify(everything, group)
            agreement.copy_from(0, [*(each for _, each in everything), *self._buffers_to_copy], group)
        self.reducer = Reducer(
            named, group, self.bucket_bytes_cap, find_unused_parameters, gradient_as_bucket_view, static_graph
        )

    # ---- forward

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module."""
        reduces = candelabra.is_grad_enabled() and self.require_backward_grad_sync
        if reduces:
            self.reducer.check_finished()
        Join.notify_join_context(self)
        join = self._active_join()
        if join is not None:
            join.notify()
        if reduces:
            self.reducer.rebuild()
        if self.training and self.require_forward_param_sync and self.broadcast_buffers and self._buffers_to_copy:
            self._copy_buffers()
        if self.device_ids:
            inputs, kwargs = _moved(inputs, self.device_ids[0]), _moved(kwargs, self.device_ids[0])
        output = self.module(*inputs, **kwargs)
        if not reduces:
            self.reducer.pause()
            self.require_forward_param_sync = False
            return output
        self.require_forward_param_sync = True
        unused: Sequence[int] = ()
        if self.find_unused_parameters and not self.static_graph:
            unused = unused_parameters(output, self.reducer.parameters)
        self.reducer.prepare(unused)
        return output

    def _active_join(self) -> JoinContext | None:
        return self._shared_join if self._join_config.enable else self._join

    def _copy_buffers(self) -> None:
        join = self._active_join()
        source = 0 if join is None else join.source()
        agreement.copy_from(source, self._buffers_to_copy, self.process_group)

    # ---- what else PyTorch has

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Let gradients accumulate without reducing them, in forward and backward passes in the
        block.

        The first backward pass of a forward pass after the block reduces the sums.
        """
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def register_comm_hook(self, state: object, hook: CommHook) -> None:
        """Replace the reduction of gradients.

        Parameters
        ----------
        state
            Given to each call, for example a process group.
        hook : callable
            Called with the state and a `GradBucket` whose buffer has this rank's gradients. Returns
            a future of the averaged buffer. See
            `candelabra.distributed.algorithms.ddp_comm_hooks.default_hooks`.

        Raises
        ------
        TypeError, ValueError
            It cannot be called, or its bucket is declared to be something else.
        RuntimeError
            There is a hook already.
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        bucket = inspect.signature(hook).parameters.get("bucket")
        if bucket is not None and bucket.annotation not in (bucket.empty, GradBucket, GradBucket.__name__):
            raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
        self.reducer.register_hook(state, hook)

    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Any:
        """Return a context in which ranks may have different numbers of inputs.

        A rank that leaves the block takes part in the collectives of the others, with zeros, until
        all have left it. Then all get the values of the last one.

        Parameters
        ----------
        divide_by_initial_world_size : bool
            Whether gradients are divided by the number of all ranks, or of those that still have
            inputs.
        enable : bool
            False if all ranks have the same number of inputs.
        throw_on_early_termination : bool
            Raise RuntimeError on all ranks when the first one has no more inputs.

        Examples
        --------
        >>> import candelabra, candelabra.distributed as dist
        >>> from candelabra.distributed.data_parallel import DistributedDataParallel
        >>> dist.init_process_group("fake", rank=0, world_size=1)
        >>> model = DistributedDataParallel(candelabra.nn.Linear(2, 1))
        >>> with model.join():
        ...     model(candelabra.ones(3, 2)).sum().backward()
        >>> dist.destroy_process_group()
        """
        return JoinContext(self, divide_by_initial_world_size, enable, throw_on_early_termination)

    def join_hook(self, **kwargs: Any) -> DataParallelJoinHook:
        """Return what this rank does in a `candelabra.distributed.algorithms.join.Join` when it has
        no more inputs.

        Parameters
        ----------
        **kwargs
            ``divide_by_initial_world_size``, as for `join`.
        """
        return DataParallelJoinHook(self, kwargs.get("divide_by_initial_world_size", True))

    @property
    def join_device(self) -> candelabra.device:
        """The device of the first parameter."""
        return self.reducer.parameters[0].device

    @property
    def join_process_group(self) -> ProcessGroup:
        """The ranks."""
        return self.process_group

    def _set_static_graph(self) -> None:
        """Declare the graph static after the construction."""
        self.static_graph = self.reducer.is_static = True

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("DistributedDataParallel cannot be pickled; pickle its module")


def _group_of(mesh: DeviceMesh, group: ProcessGroup | None) -> ProcessGroup:
    """Return the group of a mesh of one dimension."""
    if group is not None:
        raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
    if mesh.ndim != 1:
        raise RuntimeError(f"Only 1D device mesh is supported, but got {mesh}.")
    return mesh.get_group(0)


def _device(given: Any) -> candelabra.device:
    if isinstance(given, Tensor):
        raise TypeError("device_ids has devices, not tensors")
    return candelabra.device("cuda", given) if isinstance(given, int) else candelabra.device(given)


def _moved(value: Any, where: candelabra.device) -> Any:
    if isinstance(value, Tensor):
        return value.to(where)
    if isinstance(value, dict):
        return {key: _moved(each, where) for key, each in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_moved(each, where) for each in value))
    if isinstance(value, (list, tuple)):
        return type(value)(_moved(each, where) for each in value)
    return value
