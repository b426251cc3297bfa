"""What a fully sharded module does before and after its forward and backward passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra
from candelabra import Tensor, autograd, nn

from ..data_parallel.mixed_precision import converted
from ..data_parallel.reducer import tensors_in
from ..tensor.dtensor import DTensor
from .group import ParameterGroup, Reduction
from .parameter import ShardedParameter
from .policies import MixedPrecisionPolicy


class Context:
    """What the sharded modules of one model share.

    The tape must not keep the memory of whole parameters, so that it is free between forward and
    backward: a parameter is saved as its name, and looked up when the backward pass needs it.
    """

    def __init__(self) -> None:
        self.states: list[ModuleState] = []
        #: The modules in the order of the last forward pass, to prefetch the next one.
        self.forward_order: list[ModuleState] = []
        self.seen: list[ModuleState] = []
        #: The reductions that run.
        self.reductions: list[Reduction] = []
        self.is_in_backward = False
        self.depth = 0
        self._memories: dict[int, tuple[ParameterGroup, ShardedParameter]] = {}
        self._addresses: dict[int, int] = {}

    # ---- saved parameters

    def remember(self, memory: Tensor, group: ParameterGroup, parameter: ShardedParameter) -> None:
        """Note where a whole parameter is."""
        if memory.numel():
            self._memories[memory.data_ptr()] = group, parameter
            self._addresses[id(parameter)] = memory.data_ptr()

    def forget(self, parameter: ShardedParameter) -> None:
        """Note that a whole parameter is no more."""
        self._memories.pop(self._addresses.pop(id(parameter), 0), None)

    def pack(self, tensor: Tensor) -> Any:
        """Return what is saved for a tensor: a note for one in the memory of a parameter."""
        local = tensor._local_tensor if isinstance(tensor, DTensor) else tensor
        if not local.numel():
            return tensor
        found = self._memories.get(local.data_ptr() - local.storage_offset() * local.element_size())
        if found is None or not found[0].reshard_after_forward or local.dtype != found[1].param_dtype:
            return tensor
        layout = tensor._layout if isinstance(tensor, DTensor) else None
        return Saved(*found, tuple(local.shape), tuple(local.stride()), local.storage_offset(), layout)

    @staticmethod
    def unpack(saved: Any) -> Tensor:
        """Return the tensor for what was saved."""
        return saved.look_up() if isinstance(saved, Saved) else saved

    # ---- passes

    def finish_reductions(self, left: int = 0) -> None:
        """Wait for the oldest of the reductions that run, until so many are left."""
        while len(self.reductions) > left:
            self.reductions.pop(0).wait()

    def start_backward(self) -> None:
        """Ask for the end of the backward pass."""
        if not self.is_in_backward:
            self.is_in_backward = True
            autograd.engine.queue_callback(self.finish_backward)

    def finish_backward(self) -> None:
        """Reduce what is left, and wait for all reductions."""
        self.is_in_backward = False
        for state in self.states:
            state.is_in_backward = False
            was_reduced, state.group.was_reduced = state.group.was_reduced, False
            lacks_unused = state.group.reduces_unused and state.group.reduces and not was_reduced
            if lacks_unused or any(each.has_gradient() for each in state.group.parameters):
                state.group.finish_backward()
                state.group.was_reduced = False
            elif state.group.reshard_after_backward:
                state.group.reshard()
            state.group.forget_kept()
        self.finish_reductions()

    def reset(self) -> None:
        """Forget a pass that has failed, with its gradients."""
        self.is_in_backward, self.depth, self.seen = False, 0, []
        self.finish_reductions()
        for state in self.states:
            state.is_in_backward = state.group.was_reduced = False
            state.running.clear()
            state.group.reshard()
            state.group.forget_kept()
            for each in state.group.parameters:
                each.take_gradient()


class Saved:
    """A view of a whole parameter, saved on the tape without its memory."""

    __slots__ = ("geometry", "group", "layout", "parameter")

    def __init__(self, group: ParameterGroup, parameter: ShardedParameter, *geometry: Any) -> None:
        self.group, self.parameter = group, parameter
        *self.geometry, self.layout = geometry

    def look_up(self) -> Tensor:
        """Return the view. The parameter is gathered if it is not whole."""
        self.group.unshard()
        self.group.wait()
        view = candelabra.as_strided(self.parameter.memory(), *self.geometry)
        return view if self.layout is None else DTensor(view, self.layout)


class ModuleState:
    """One call of `fully_shard`: its modules and their group of parameters."""

    def __init__(self, modules: list[nn.Module], group: ParameterGroup, mixed: MixedPrecisionPolicy) -> None:
        self.modules, self.group, self.mixed = modules, group, mixed
        self.context: Context | None = None
        self.is_root = False
        #: Whether only the root keeps its parameters between forward and backward.
        self.chooses_reshard = False
        self.is_in_backward = False
        self.forward_prefetch: list[ModuleState] | None = None
        self.backward_prefetch: list[ModuleState] | None = None
        #: Modules of a list that have run in this forward pass.
        self.running: set[int] = set()

    def start(self) -> Context:
        """Make this the root of the modules in it, before the first forward pass."""
        if self.context is not None:
            return self.context
        context = Context()
        self.is_root = True
        for top in self.modules:
            for module in top.modules():
                state = module.__dict__.get("_fsdp_state")
                if state is None or state in context.states:
                    continue
                if state.context is not None and state is not self:
                    raise RuntimeError(
                        "FSDP state has already been lazily initialized for a module in the root: call the root module "
                        "before the modules in it"
                    )
                state.context = context
                context.states.append(state)
        for state in context.states:
            if state is self and state.chooses_reshard:
                state.group.reshard_after_forward = False
            state.group.prepare(context)
        return context

    # ---- forward

    def call(
        self, module: nn.Module, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Call a module, with whole parameters."""
        context = self.start()
        # In a backward pass, a checkpoint computes the forward pass again, and takes what it saves.
        if context.depth or context.is_in_backward or not candelabra.is_grad_enabled():
            return self._call(context, module, function, args, kwargs)
        with autograd.graph.saved_tensors_hooks(context.pack, context.unpack):
            return self._call(context, module, function, args, kwargs)

    def _call(self, context: Context, module: nn.Module, function: Any, args: Any, kwargs: Any) -> Any:
        is_outermost = context.depth == 0
        context.depth += 1
        try:
            args, kwargs = self._before_forward(context, args, kwargs)
            output = function(*args, **kwargs)
            output = self._after_forward(context, module, output)
        finally:
            context.depth -= 1
        if is_outermost and not context.is_in_backward:
            self._finish_forward(context)
        return output

    def _before_forward(self, context: Context, args: Any, kwargs: Any) -> tuple[Any, Any]:
        if self.mixed.param_dtype is not None and self.mixed.cast_forward_inputs:
            args, kwargs = (converted(each, self.mixed.param_dtype) for each in (args, kwargs))
        self.group.unshard()
        self.group.wait()
        if self.is_in_backward:  # a checkpoint computes the forward pass again
            return args, kwargs
        if self not in context.seen:
            context.seen.append(self)
        for state in self._next(context):
            state.group.unshard()
        if candelabra.is_grad_enabled() and self.group.waits_for_inputs:
            self._watch_inputs((args, kwargs))
        return args, kwargs

    def _next(self, context: Context) -> list[ModuleState]:
        """Return the modules to gather while this one computes."""
        if self.forward_prefetch is not None:
            return self.forward_prefetch
        order = context.forward_order
        place = order.index(self) + 1 if self in order else len(order)
        return order[place : place + 1]

    def _watch_inputs(self, values: Any) -> None:
        """Finish the backward pass of a group when the inputs' gradients come."""

        def on_gradient(_grad: Tensor) -> None:
            if self.is_in_backward:
                self.is_in_backward = False
                self.group.finish_backward()

        watched = next((each for each in tensors_in(values) if each.grad_fn is not None), None)
        if watched is not None:
            watched.register_hook(on_gradient)

    def _after_forward(self, context: Context, module: nn.Module, output: Any) -> Any:
        if self.mixed.output_dtype is not None:
            output = converted(output, self.mixed.output_dtype)
        if candelabra.is_grad_enabled():
            for each in tensors_in(output):
                if each.requires_grad:
                    each.register_hook(self._before_backward)
        self.running.add(id(module))
        if self.is_in_backward or (len(self.modules) > 1 and len(self.running) < len(self.modules)):
            return output
        self.running.clear()
        if self.group.reshard_after_forward:
            self.group.reshard_after_pass()
        return output

    def _finish_forward(self, context: Context) -> None:
        """Note the order of the modules. What was gathered for nothing is freed."""
        order, context.seen = context.seen, []
        context.forward_order = order
        for state in context.states:
            if state.group.reshard_after_forward:
                state.group.reshard()

    # ---- backward

    def _before_backward(self, _grad: Tensor) -> None:
        assert self.context is not None
        self.context.start_backward()
        if self.is_in_backward:
            return
        self.is_in_backward = True
        if self.group.gathers_in_backward:
            self.group.unshard()
            self.group.wait()
        for state in self._previous(self.context):
            if not state.is_in_backward and state.group.gathers_in_backward:
                state.group.unshard()

    def _previous(self, context: Context) -> list[ModuleState]:
        """Return the modules to gather while this one computes its gradients."""
        if self.backward_prefetch is not None:
            return self.backward_prefetch
        order = context.forward_order
        place = order.index(self) if self in order else 0
        return order[max(place - 1, 0) : place]
