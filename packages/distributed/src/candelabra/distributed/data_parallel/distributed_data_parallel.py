"""`DistributedDataParallel`: each process trains a copy of a module on its part of the data."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import candelabra
from candelabra import Tensor
from candelabra.nn import Module
from candelabra.nn.parallel.scatter_gather import gather, scatter_kwargs
from candelabra.optim import Optimizer

from ..device_mesh import DeviceMesh
from ..functional_optimizers import as_functional_optim
from ..join_context import Join, Joinable
from ..process_group import ProcessGroup
from . import agreement
from .arguments import buffer_options, check_devices, check_parameters, device_of, group_of, refuse
from .averaging import BuiltinCommHookType, averaged_in
from .delayed import DelayedReduction
from .grad_bucket import GradBucket
from .joining import DataParallelJoinHook, JoinContext
from .mixed_precision import _MixedPrecision, call_converted, convert_buffers, mapped_tensors
from .reducer import CommHook, Reducer, unused_parameters
from .stepping import _apply_optim_in_backward_hook, _hook_then_optimizer, _OptimizerHookState

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
    broadcast_buffers : bool, optional
        Deprecated as in PyTorch: `forward_sync_buffers`; False leaves buffers as they are at the
        construction, too.
    init_sync : bool
        Whether to compare the ranks' modules and to copy rank 0's values.
    process_group : ProcessGroup, optional
        The world by default.
    bucket_cap_mb : float, optional
        The size of a bucket, 25 by default.
    find_unused_parameters : bool
        Look after each forward pass for parameters that the outputs do not depend on.
    check_reduction : bool
        Deprecated; has no effect.
    gradient_as_bucket_view : bool
        Gradients are views of the buckets, which saves memory and a copy.
    static_graph : bool
        The module uses the same parameters in each iteration, as often as in the first.
    delay_all_reduce_named_params : list of (str, Parameter), optional
        Gradients that are reduced together when that of `param_to_hook_all_reduce` is there, which
        comes after theirs. No other argument concerns them.
    param_to_hook_all_reduce : Parameter, optional
        See `delay_all_reduce_named_params`.
    mixed_precision : _MixedPrecision, optional
        The dtypes of the forward and the backward pass and of the reduction. No communication hook
        can be registered then.
    device_mesh : DeviceMesh, optional
        Of one dimension, instead of `process_group`.
    skip_all_reduce_unused_params : bool
        Must be False: unused parameters are reduced with the others of their bucket.
    bucket_cap_mb_list : list of float, optional
        Must be None: all buckets but the first have the size `bucket_cap_mb`.
    batched_grad_copy : bool
        Has no effect: gradients are copied to a bucket when all are there.
    forward_sync_buffers : bool, optional
        Whether buffers are copied from rank 0 before each forward pass in training; True by
        default.

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
        delay_all_reduce_named_params: Sequence[tuple[str, Tensor]] | None = None,
        param_to_hook_all_reduce: Tensor | None = None,
        mixed_precision: _MixedPrecision | None = None,
        device_mesh: DeviceMesh | None = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: list[float] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ) -> None:
        super().__init__()
        if (delay_all_reduce_named_params is None) != (param_to_hook_all_reduce is None):
            raise ValueError(
                "delay_all_reduce_named_params and param_to_hook_all_reduce need to be set at the same time."
            )
        refuse(bucket_cap_mb, bucket_cap_mb_list, skip_all_reduce_unused_params, check_reduction)
        group = group_of(device_mesh, process_group)
        delayed = list(delay_all_reduce_named_params or ())
        ignored = {*getattr(module, "_ddp_params_and_buffers_to_ignore", ()), *(name for name, _ in delayed)}
        named = [(name, each) for name, each in module.named_parameters() if each.requires_grad and name not in ignored]
        check_parameters(named, bool(delayed))
        check_devices(module, device_ids, output_device, dim)
        self.module = module
        self.process_group = group
        self.device_ids = None if not device_ids else [device_of(device_ids[0])]
        self.output_device = output_device
        self.dim = dim
        self.forward_sync_buffers, syncs_buffers_at_start = buffer_options(broadcast_buffers, forward_sync_buffers)
        self.mixed_precision = mixed_precision
        self._ignored = ignored
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
            buffers = self._buffers_to_copy if syncs_buffers_at_start else []
            agreement.copy_from(0, [*(each for _, each in everything), *buffers], group)
        self._delayed: DelayedReduction | None = None
        if param_to_hook_all_reduce is not None:
            late = [each for _, each in delayed]
            agreement.copy_from(0, late, group)
            self._delayed = DelayedReduction(late, param_to_hook_all_reduce, group)
        self.reducer = Reducer(
            named, group, self.bucket_bytes_cap, find_unused_parameters, gradient_as_bucket_view, static_graph
        )
        self._has_looked_for_optimizers = False
        if mixed_precision is not None:
            self._start_mixed_precision(mixed_precision)

    def _start_mixed_precision(self, dtypes: _MixedPrecision) -> None:
        if dtypes.buffer_dtype is not None:
            convert_buffers(self.module, dtypes.buffer_dtype, self._ignored)
        reduces_in = dtypes.reduce_dtype if dtypes.reduce_dtype is not None else dtypes.param_dtype
        self.register_comm_hook(self.process_group, partial(averaged_in, reduces_in))

    def _take_optimizers(self) -> None:
        """Let optimizers that step in the backward pass do so after the reduction."""
        self._has_looked_for_optimizers = True
        stepped = [each for each in self.reducer.parameters if hasattr(each, "_in_backward_optimizers")]
        for parameter in stepped:
            hook = getattr(parameter, "_in_backward_hook", None)
            if hook is not None:
                hook.remove()
        if stepped:
            self.register_comm_hook(weakref.ref(self), _apply_optim_in_backward_hook(self.gradient_as_bucket_view))

    @property
    def broadcast_buffers(self) -> bool:
        """The same as `forward_sync_buffers`."""
        return self.forward_sync_buffers

    @broadcast_buffers.setter
    def broadcast_buffers(self, value: bool) -> None:
        self.forward_sync_buffers = value

    # ---- forward

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module."""
        reduces = candelabra.is_grad_enabled() and self.require_backward_grad_sync
        if not self._has_looked_for_optimizers:
            self._take_optimizers()
        if self._delayed is not None:
            self._delayed.is_enabled = reduces
        if reduces:
            self.reducer.check_finished()
        Join.notify_join_context(self)
        join = self._active_join()
        if join is not None:
            join.notify()
        if reduces and self.reducer.parameters:
            self.reducer.rebuild()
        if self.training and self.will_sync_module_buffers():
            self._copy_buffers()
        if self.device_ids:
            where = self.device_ids[0]
            inputs, kwargs = mapped_tensors((inputs, kwargs), lambda each: each.to(where))
        if self.mixed_precision is not None and self.mixed_precision.param_dtype is not None:
            output = call_converted(self.module, self.mixed_precision.param_dtype, self._ignored, inputs, kwargs)
        else:
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

    def will_sync_module_buffers(self) -> bool:
        """Return whether the next forward pass in training copies buffers from rank 0."""
        return self.require_forward_param_sync and self.forward_sync_buffers and bool(self._buffers_to_copy)

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
        return next(self.module.parameters()).device

    @property
    def join_process_group(self) -> ProcessGroup:
        """The ranks."""
        return self.process_group

    def _register_fused_optim(
        self, optim: type[Optimizer], *args: Any, optim_params: Iterable[Tensor] | None = None, **kwargs: Any
    ) -> None:
        """Step parameters as soon as their gradients are averaged, by a communication hook.

        Parameters
        ----------
        optim : type
            An optimizer that `candelabra.distributed.optim.as_functional_optim` takes.
        optim_params : iterable of Tensor, optional
            All parameters by default.
        *args, **kwargs
            The optimizer's arguments after the parameters.
        """
        state = _OptimizerHookState(as_functional_optim(optim, *args, **kwargs), optim_params)
        self.register_comm_hook(self.process_group, _hook_then_optimizer(partial(averaged_in, None), state))

    def _register_builtin_comm_hook(self, comm_hook_type: BuiltinCommHookType) -> None:
        """Average gradients as they are, or in float16."""
        self.register_comm_hook(self.process_group, partial(averaged_in, comm_hook_type.value))

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(
        module: Module, params_and_buffers_to_ignore: Sequence[str]
    ) -> None:
        """Name parameters and buffers of a module that are neither copied nor reduced."""
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore

    def scatter(self, inputs: Any, kwargs: Any, device_ids: Sequence[Any]) -> Any:
        """Divide arguments among devices; see `candelabra.nn.parallel.scatter`."""
        return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim)

    def to_kwargs(self, inputs: Any, kwargs: Any, device_id: Any) -> Any:
        """Return the arguments on a device, each kind in a list."""
        where = device_of(device_id)
        return tuple([mapped_tensors(each, lambda tensor: tensor.to(where))] for each in (inputs, kwargs))

    def gather(self, outputs: Any, output_device: Any) -> Any:
        """Join outputs of several devices; see `candelabra.nn.parallel.gather`."""
        return gather(outputs, output_device, dim=self.dim)

    def _set_static_graph(self) -> None:
        """Declare the graph static after the construction."""
        self.static_graph = self.reducer.is_static = True

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("DistributedDataParallel cannot be pickled; pickle its module")
