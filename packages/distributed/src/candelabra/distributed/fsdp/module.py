"""`fully_shard`: each rank keeps a part of a module's parameters, gradients and optimizer
states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from candelabra import _C, Tensor, nn

from ..device_mesh import DeviceMesh, init_device_mesh
from ..groups import get_world_size, init_process_group, is_initialized
from ..tensor.dtensor import DTensor
from ..tensor.placements import Shard
from .communication import AllGather, ReduceScatter
from .group import ParameterGroup
from .named_dimensions import DataParallelMeshDims, data_parallel_mesh, without_dimensions
from .parameter import ShardedParameter
from .policies import MixedPrecisionPolicy, OffloadPolicy
from .post_forward import group_for_reductions, smaller_group
from .state import ModuleState

_classes: dict[type, type] = {}


class FSDPModule:
    """What modules have after `fully_shard`, besides what they had."""

    _fsdp_state: ModuleState

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        # A container that makes another one of its class, for a slice, makes it of its modules
        # alone.
        plain: Any = cls.__mro__[2]
        made = plain.__new__(plain, *args, **kwargs)
        made.__init__(*args, **kwargs)
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._fsdp_state.call(self, super().__call__, args, kwargs)  # type: ignore[arg-type,misc]

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Any:
        self.reshard()
        made = super()._apply(fn, recurse)  # type: ignore[misc]
        state = self._fsdp_state
        for each in state.group.parameters:
            each.refresh(state.mixed)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        raise AssertionError("FSDP does not support deepcopy. Please use state dict for serialization.")

    def _states(self, recurse: bool = True) -> list[ModuleState]:
        modules = self.modules() if recurse else [self]  # type: ignore[attr-defined]
        return list(dict.fromkeys(each._fsdp_state for each in modules if isinstance(each, FSDPModule)))

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Gather the parameters of this module, but not of modules in it that are sharded apart.

        Parameters
        ----------
        async_op : bool
            Return a handle, whose `wait` makes the module hold the whole parameters.
        """
        handle = UnshardHandle(self._fsdp_state.group)
        self._fsdp_state.group.unshard()
        if async_op:
            return handle
        handle.wait()
        return None

    def reshard(self) -> None:
        """Free the whole parameters of this module, which then holds their shards."""
        self._fsdp_state.group.reshard()
        self._fsdp_state.group.forget_kept()

    def reset_iter_state(self) -> None:
        """Forget a pass in which an exception was raised; for the root module."""
        state = self._fsdp_state
        if state.context is not None and not state.is_root:
            raise RuntimeError("reset_iter_state is for the root FSDP module")
        if state.context is not None:
            state.context.reset()

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Set whether backward passes reduce gradients; without, they accumulate in whole."""
        for state in self._states(recurse):
            state.group.reduces = state.group.all_reduces = requires_gradient_sync

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Set whether gradients are reduced over the dimension of the mesh that replicates."""
        for state in self._states(recurse):
            state.group.all_reduces = requires_all_reduce

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Have no effect: each backward pass waits for its reductions."""

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Set whether the whole parameters are freed between forward and backward."""
        if not isinstance(reshard_after_forward, bool):
            raise ValueError(f"reshard_after_forward should be a bool, got {type(reshard_after_forward)}")
        for state in self._states(recurse):
            state.chooses_reshard = False
            state.group.reshard_after_forward = reshard_after_forward
            state.group.post_forward = None

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """Set whether the whole parameters are freed after backward."""
        for state in self._states(recurse):
            state.group.reshard_after_backward = reshard_after_backward

    def set_modules_to_forward_prefetch(self, modules: Sequence[FSDPModule]) -> None:
        """Set which modules are gathered while this one computes; by default the one that was next
        in the last forward pass.
        """
        self._fsdp_state.forward_prefetch = _states_of(modules)

    def set_modules_to_backward_prefetch(self, modules: Sequence[FSDPModule]) -> None:
        """Set which modules are gathered while this one computes gradients; by default the one that
        was called before it.
        """
        self._fsdp_state.backward_prefetch = _states_of(modules)

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Set whether the parameters are gathered before the backward pass of this module, such as
        an embedding that does not need them. What is needed is gathered in any case.
        """
        self._fsdp_state.group.gathers_in_backward = unshard_in_backward

    def set_gradient_divide_factor(self, factor: float) -> None:
        """Set by what the sum of the ranks' gradients is divided; by default their number."""
        self._fsdp_state.group.divide_factor = factor

    def set_reduce_scatter_divide_factor(self, factor: float) -> None:
        """Do the same as `set_gradient_divide_factor`."""
        self.set_gradient_divide_factor(factor)

    def set_force_sum_reduction_for_comms(self, enable: bool) -> None:
        """Set whether collectives add gradients, and their division is apart."""
        self._fsdp_state.group.only_adds = enable

    def set_reduce_scatter_unused_params(self, reduce_scatter_unused_params: bool, *, recurse: bool = True) -> None:
        """Set whether parameters without a gradient take part in the reduction, with zeros, for
        ranks that use different ones. All ranks must call the same modules.
        """
        for state in self._states(recurse):
            state.group.reduces_unused = reduce_scatter_unused_params

    def set_reduce_scatter_max_input_buffers(self, max_input_buffers: int, *, recurse: bool = True) -> None:
        """Set how many reductions run at a time; each has a buffer of a block's gradients. The
        default is 1.
        """
        if isinstance(max_input_buffers, bool) or not isinstance(max_input_buffers, int):
            raise TypeError(f"max_input_buffers must be an int, got {type(max_input_buffers).__name__}")
        if max_input_buffers < 1:
            raise ValueError(f"max_input_buffers must be a positive int, got {max_input_buffers}")
        for state in self._states(recurse):
            state.group.most_reductions = max_input_buffers

    def set_separate_reduce_scatter_group(self, enable: bool = True, *, recurse: bool = True) -> None:
        """Set whether reductions have process groups of their own, so that they do not wait for
        gathers. All ranks must call it.
        """
        for state in self._states(recurse):
            shards = state.group.shards
            state.group.reducing_shards = group_for_reductions(shards) if enable else shards

    def set_custom_all_gather(self, comm: AllGather) -> None:
        """Set what gathers the parameters of this module."""
        self._fsdp_state.group.all_gather_comm = comm

    def set_custom_reduce_scatter(self, comm: ReduceScatter) -> None:
        """Set what reduces the gradients of this module."""
        self._fsdp_state.group.reduce_scatter_comm = comm

    def set_all_reduce_hook(self, hook: Callable[[Tensor], None], *, stream: Any = None) -> None:
        """Set a function that changes this rank's part of the reduced gradients, in place.

        Parameters
        ----------
        hook : callable
            Called with the parts of all parameters in one tensor, before the division of a sum.
        stream : Stream, optional
            Has no effect: it is called on the current stream.
        """
        if stream is not None and self._fsdp_state.group.replicas is not None:
            raise ValueError("stream cannot be set when using native HSDP")
        self._fsdp_state.group.all_reduce_hook = hook

    def set_post_optim_event(self, event: Any) -> None:
        """Have no effect: parameters are gathered on the stream on which the optimizer steps."""

    def set_allocate_memory_from_process_group_for_comm(self, enable: bool) -> None:
        """Raise NotImplementedError if it is enabled."""
        if enable:
            raise NotImplementedError(
                "set_allocate_memory_from_process_group_for_comm: process groups allocate no memory; an AllGather for "
                "set_custom_all_gather may"
            )

    def set_symm_mem_for_comm(self, backend: str = "NCCL") -> None:
        """Raise NotImplementedError."""
        raise NotImplementedError(
            "set_symm_mem_for_comm: there is no symmetric memory; an AllGather for set_custom_all_gather may allocate its own"
        )


class UnshardHandle:
    """Parameters that are being gathered."""

    def __init__(self, group: ParameterGroup) -> None:
        self._group: ParameterGroup | None = group

    def wait(self) -> None:
        """Wait until the module holds the whole parameters."""
        if self._group is not None:
            self._group.wait()
            self._group = None


def _states_of(modules: Iterable[FSDPModule]) -> list[ModuleState]:
    made = []
    for each in modules:
        if not isinstance(each, FSDPModule):
            raise ValueError(f"Expects FSDPModule but got {type(each)}: {each}")
        made.append(each._fsdp_state)
    return made


def fully_shard(
    module: nn.Module | list[nn.Module],
    *,
    mesh: DeviceMesh | None = None,
    reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable[[nn.Parameter], Shard | None] | None = None,
    mp_policy: MixedPrecisionPolicy | None = None,
    offload_policy: OffloadPolicy | None = None,
    ignored_params: set[nn.Parameter] | None = None,
    dp_mesh_dims: DataParallelMeshDims | None = None,
) -> Any:
    """Let each rank keep a part of a module's parameters, in place.

    Call it on the blocks of a model first, and then on the model, which gets what is left. A
    block's parameters are gathered before its forward pass, and again before its backward pass; its
    gradients are averaged after it. Make the optimizer after it, of `module.parameters()`.

    Parameters
    ----------
    module : Module or list of Module
        Of the same values on all ranks. Those of a list are gathered together.
    mesh : DeviceMesh, optional
        Of one dimension, or of two, of which the first replicates and the second shards. By default
        all ranks.
    reshard_after_forward : bool or int, optional
        Whether the whole parameters are freed between forward and backward. By default all but
        those of the root are. A number of ranks, a divisor of those that shard: so many consecutive
        ranks keep the parameters together, and gather them before the backward pass among
        themselves.
    shard_placement_fn : callable, optional
        Returns for a parameter along which dimension it is sharded, or None for the first.
    mp_policy : MixedPrecisionPolicy, optional
        The dtypes of the computation.
    offload_policy : OffloadPolicy, optional
        Where shards are kept.
    ignored_params : set of Parameter, optional
        Those that stay as they are.
    dp_mesh_dims : DataParallelMeshDims, optional
        The dimensions of `mesh` that replicate and shard. Parameters are DTensors on `mesh` then,
        and replicated along them.

    Returns
    -------
    Module or list of Module
        The same; its class has the methods of `FSDPModule`, too.

    Examples
    --------
    >>> import candelabra, candelabra.distributed as dist
    >>> from candelabra import nn
    >>> from candelabra.distributed.fsdp import fully_shard
    >>> dist.init_process_group("fake", rank=0, world_size=2)
    >>> model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    >>> for layer in model:
    ...     _ = fully_shard(layer)
    >>> _ = fully_shard(model)
    >>> model[0].weight.shape, model[0].weight.to_local().shape
    (candelabra.Size([4, 4]), candelabra.Size([2, 4]))
    >>> dist.destroy_process_group()
    """
    modules = _checked(module)
    given = used = mesh or _default_mesh(modules)
    if dp_mesh_dims is not None:
        used = data_parallel_mesh(given, dp_mesh_dims)
    if used.ndim not in (1, 2):
        raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {used}")
    kept_by = _ranks_that_keep(reshard_after_forward, used.shape[-1])
    mixed, offload = mp_policy or MixedPrecisionPolicy(), offload_policy or OffloadPolicy()
    managed = _managed(modules, ignored_params or set())
    if dp_mesh_dims is not None:
        managed = [(without_dimensions(each[0], each[1], given, dp_mesh_dims), *each[1:]) for each in managed]
    parameters = [
        ShardedParameter(parameter, name, owners, used, _dim_of(parameter, shard_placement_fn), mixed, offload)
        for parameter, name, owners in managed
    ]
    group = ParameterGroup(parameters, used, mixed)
    group.reshard_after_forward = reshard_after_forward is not False and kept_by != 1
    if kept_by is not None and kept_by > 1:
        group.post_forward = smaller_group(group.shards, kept_by)
    state = ModuleState(modules, group, mixed)
    state.chooses_reshard = reshard_after_forward is None
    for each in modules:
        _move_buffers(each, used.device_type)
        each.__dict__["_fsdp_state"] = state
        each.register_state_dict_pre_hook(_reshard_before)
        each.register_load_state_dict_pre_hook(_reshard_before)
        kind = type(each)
        made = _classes.get(kind)
        if made is None:
            made = _classes[kind] = type(f"FSDP{kind.__name__}", (FSDPModule, kind), {"__doc__": kind.__doc__})
        each.__class__ = made
    return module


def _checked(module: nn.Module | list[nn.Module]) -> list[nn.Module]:
    """Return the modules of a call of `fully_shard`, if it can take them."""
    modules = list(module) if isinstance(module, (list, tuple)) else [module]
    for each in modules:
        if isinstance(each, (nn.ModuleList, nn.ModuleDict)):
            raise ValueError(f"fully_shard does not support containers that do not implement forward: {each}")
        if isinstance(each, FSDPModule):
            raise AssertionError(f"fully_shard was called on {type(each).__name__} before")
    return modules


def _ranks_that_keep(given: bool | int | None, size: int) -> int | None:
    """Return how many ranks keep whole parameters together after a forward pass, or None if they do
    not.
    """
    if given is None or isinstance(given, bool):
        return None
    if not isinstance(given, int):
        raise ValueError(
            f"reshard_after_forward should be a bool or an int representing the group size to reshard to, not {given}"
        )
    if given < 1 or size % given:
        raise ValueError(f"If passing reshard_after_forward as an int, it should be a factor of {size}, not {given}")
    if given == 1:
        _C.warn(
            "reshard_after_forward=1 (int) means resharding parameters to world size 1, instead of "
            "reshard_after_forward=True (bool)",
        )
    return None if given == size else given


def _reshard_before(module: Any, *_arguments: Any) -> None:
    module.reshard()


def _default_mesh(modules: list[nn.Module]) -> DeviceMesh:
    if not is_initialized():
        init_process_group()
    kinds = {each.device.type for module in modules for each in module.parameters()} - {"meta"}
    return init_device_mesh(kinds.pop() if len(kinds) == 1 else "cpu", (get_world_size(),))


def _dim_of(parameter: nn.Parameter, choose: Callable[[nn.Parameter], Shard | None] | None) -> int:
    chosen = choose(parameter) if choose is not None else None
    if chosen is None:
        return 0
    if not isinstance(chosen, Shard):
        raise ValueError(f"shard_placement_fn returns a Shard or None, but returned {chosen!r}")
    return chosen.dim % parameter.ndim


def _managed(
    modules: list[nn.Module], ignored: set[nn.Parameter]
) -> list[tuple[nn.Parameter, str, list[tuple[nn.Module, str]]]]:
    """Return the parameters that no earlier call has sharded, with where they are registered."""
    found: dict[int, tuple[nn.Parameter, str, list[tuple[nn.Module, str]]]] = {}
    skipped = {id(each) for each in ignored}

    # Not a recursive closure: its cycle would keep the whole parameters until the next collection.
    stack = [(module, "" if len(modules) == 1 else f"{number}.") for number, module in enumerate(modules)][::-1]
    while stack:
        module, prefix = stack.pop()
        for name, parameter in module._parameters.items():
            if parameter is None or id(parameter) in skipped:
                continue
            if isinstance(parameter, nn.parameter.UninitializedParameter):
                raise ValueError(f"fully_shard: the parameter {prefix}{name} is not initialized yet")
            entry = found.setdefault(id(parameter), (parameter, prefix + name, []))
            if (module, name) not in entry[2]:
                entry[2].append((module, name))
        children = [(child, f"{prefix}{name}.") for name, child in module._modules.items() if child is not None]
        stack.extend(each for each in reversed(children) if not isinstance(each[0], FSDPModule))
    return list(found.values())


def _move_buffers(module: nn.Module, device_type: str) -> None:
    for each in module.modules():
        for name, buffer in each._buffers.items():
            if (
                buffer is not None
                and buffer.device.type not in (device_type, "meta")
                and not isinstance(buffer, DTensor)
            ):
                each._buffers[name] = buffer.to(device_type)


def share_comm_ctx(modules: Sequence[FSDPModule]) -> None:
    """Have no effect: modules have no streams of their own.

    Parameters
    ----------
    modules : sequence of FSDPModule
        Roots.
    """
    for module in modules:
        if not isinstance(module, FSDPModule):
            raise ValueError(f"Expects list of FSDPModules but got {module}")


def register_fsdp_forward_method(module: nn.Module, method_name: str) -> None:
    """Gather a module's parameters for another method than `forward`, too.

    Parameters
    ----------
    module : Module
        If it is not sharded, nothing happens.
    method_name : str
        The method's name.
    """
    if not isinstance(module, FSDPModule):
        return
    if not hasattr(module, method_name):
        raise ValueError(f"{type(module)} does not have a method {method_name}")
    method = getattr(module, method_name)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return module._fsdp_state.call(module, method, args, kwargs)

    setattr(module, method_name, wrapped)
