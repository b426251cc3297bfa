"""Implement hooks that run before or after `forward` and around the gradients.

A hook belongs to one module, or to all modules.
"""

from __future__ import annotations

import importlib.util
from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import candelabra
from candelabra import _C, Tensor, is_grad_enabled, ops
from candelabra.hooks import RemovableHandle

if TYPE_CHECKING:
    from ..module import Module


class Hooked:
    """Say for `Module` whether a call has to look for hooks."""

    #: Set on an instance, or here for all modules, if calls must check for hooks.
    _hooked: bool = False


#: Hooks of all modules.
global_forward_pre: OrderedDict[int, Callable[..., Any]] = OrderedDict()
global_forward: OrderedDict[int, Callable[..., Any]] = OrderedDict()
global_forward_with_kwargs: OrderedDict[int, bool] = OrderedDict()
global_forward_always: OrderedDict[int, bool] = OrderedDict()
global_backward_pre: OrderedDict[int, Callable[..., Any]] = OrderedDict()
global_backward: OrderedDict[int, Callable[..., Any]] = OrderedDict()
global_registration: dict[str, OrderedDict[int, Callable[..., Any]]] = {
    kind: OrderedDict() for kind in ("parameter", "buffer", "module")
}


def any_global() -> bool:
    """Return whether any global hook is registered."""
    return bool(global_forward_pre or global_forward or global_backward_pre or global_backward)


def _register_global(
    table: OrderedDict[int, Callable[..., Any]], hook: Callable[..., Any], *flags: OrderedDict[int, bool]
) -> RemovableHandle:
    handle = RemovableHandle(table, extra_dict=[*flags])
    table[handle.id] = hook
    for flag in flags:
        flag[handle.id] = True
    Hooked._hooked = True
    return handle


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, args)`` before the `forward` of every module.

    If the hook returns a value other than None, it replaces args.
    """
    return _register_global(global_forward_pre, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call ``hook(module, args, output)`` after the `forward` of every module.

    If the hook returns a value other than None, it replaces output.
    """
    flags = [global_forward_with_kwargs] if with_kwargs else []
    if always_call:
        flags.append(global_forward_always)
    return _register_global(global_forward, hook, *flags)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_output)`` before the gradients of every module are computed."""
    require_autograd("register_module_full_backward_pre_hook")
    return _register_global(global_backward_pre, hook)


_kinds_of_global_backward_hooks: set[bool] = set()


def _note_global_kind(full: bool) -> None:
    if global_backward and _kinds_of_global_backward_hooks and full not in _kinds_of_global_backward_hooks:
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only one of them."
        )
    _kinds_of_global_backward_hooks.clear()
    _kinds_of_global_backward_hooks.add(full)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Register a hook like `register_module_full_backward_hook`, which is preferred."""
    require_autograd("register_module_backward_hook")
    _note_global_kind(False)
    return _register_global(global_backward, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` after each module's gradients are computed."""
    require_autograd("register_module_full_backward_hook")
    _note_global_kind(True)
    return _register_global(global_backward, hook)


def _register_registration(kind: str, hook: Callable[..., Any]) -> RemovableHandle:
    handle = RemovableHandle(global_registration[kind])
    global_registration[kind][handle.id] = hook
    return handle


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, parameter)`` when any module registers a parameter.

    If the hook returns a value other than None, it replaces the parameter.
    """
    return _register_registration("parameter", hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, buffer)`` when any module registers a buffer.

    If the hook returns a value other than None, it replaces the buffer.
    """
    return _register_registration("buffer", hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, submodule)`` when any module registers a submodule.

    If the hook returns a value other than None, it replaces the submodule.
    """
    return _register_registration("module", hook)


def require_autograd(what: str) -> None:
    """Raise an error if candelabra.autograd is not installed."""
    if importlib.util.find_spec("candelabra.autograd") is None:
        raise RuntimeError(
            f"{what} needs gradients, which candelabra.autograd computes; install it: pip install candelabra-autograd"
        )


def has_hooks(module: Module) -> bool:
    """Return whether a call of `module` has hooks to run."""
    return bool(
        module._forward_pre_hooks or module._forward_hooks or module._backward_hooks or module._backward_pre_hooks
    )  # fmt: skip


def call_with_hooks(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call `module.forward` and all hooks in PyTorch's order: global hooks run first."""
    called: set[int] = set()

    def run_forward_hooks(result: Any, only_always: bool) -> Any:
        for table, with_kwargs, always in (
            (global_forward, global_forward_with_kwargs, global_forward_always),
            (module._forward_hooks, module._forward_hooks_with_kwargs, module._forward_hooks_always_called),
        ):
            for number, hook in list(table.items()):
                if only_always and (number in called or number not in always):
                    continue
                called.add(number)
                if only_always:
                    # The exception in flight takes precedence over a failure of the hook.
                    try:
                        new = (
                            hook(module, args, kwargs, result) if number in with_kwargs else hook(module, args, result)
                        )
                    except Exception as failure:
                        _C.warn(
                            f"a forward hook with always_call=True raised {failure!r} while another exception was raised",
                        )
                        continue
                else:
                    new = hook(module, args, kwargs, result) if number in with_kwargs else hook(module, args, result)
                if new is not None:
                    result = new
        return result

    result: Any = None
    try:
        for hook in list(global_forward_pre.values()):
            new = hook(module, args)
            if new is not None:
                args = new if isinstance(new, tuple) else (new,)
        for number, hook in list(module._forward_pre_hooks.items()):
            if number in module._forward_pre_hooks_with_kwargs:
                new = hook(module, args, kwargs)
                if new is not None:
                    if not isinstance(new, tuple) or len(new) != 2:
                        raise RuntimeError(
                            f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {new}."
                        )
                    args, kwargs = new
            else:
                new = hook(module, args)
                if new is not None:
                    args = new if isinstance(new, tuple) else (new,)

        around = None
        if global_backward or global_backward_pre or module._backward_hooks or module._backward_pre_hooks:
            around = BackwardHooks(module)
            args = around.watch_inputs(args)
        result = module.forward(*args, **kwargs)
        result = run_forward_hooks(result, only_always=False)
        if around is not None:
            result = around.watch_outputs(result)
        return result
    except Exception:
        run_forward_hooks(result, only_always=True)
        raise


class BackwardHooks:
    """Run the backward hooks for one call of a module.

    The tensors that enter and leave the module pass through an identity autograd function. Its
    backward receives the gradients: first those of the outputs, and those of the inputs when the
    module is done.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self.grad_outputs: tuple[Any, ...] | None = None
        self.inputs = 0
        self.input_places: list[int] = []
        self.constants: list[tuple[int, tuple[int, ...], Any, Any]] = []
        self.outputs = 0
        self.output_places: list[int] = []

    def _hooks(self) -> Iterable[Callable[..., Any]]:
        return (*global_backward.values(), *self.module._backward_hooks.values())

    def _pre_hooks(self) -> Iterable[Callable[..., Any]]:
        return (*global_backward_pre.values(), *self.module._backward_pre_hooks.values())

    def watch_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Pass the tensors in `args` that require grad through the identity."""
        self.inputs = len(args)
        self.input_places = [i for i, value in enumerate(args) if isinstance(value, Tensor) and value.requires_grad]
        if self.input_places:
            # As in PyTorch, the other tensors get zero gradients, and None marks arguments that are
            # not tensors.
            self.constants = [
                (i, tuple(value.shape), value.dtype, value.device)
                for i, value in enumerate(args)
                if isinstance(value, Tensor) and not value.requires_grad
            ]
        return self._through(args, self.input_places, self._input_gradients)

    def watch_outputs(self, result: Any) -> Any:
        """Pass the tensors that require grad through the identity.

        `result` is a tensor or a tuple. As in PyTorch, the hooks are not called for other results,
        except for those that are not full: these watch the first tensor.
        """
        if not isinstance(result, (Tensor, tuple)):
            self._watch_first_tensor(result)
            return result
        values = result if isinstance(result, tuple) else (result,)
        self.outputs = len(values)
        self.output_places = [i for i, value in enumerate(values) if isinstance(value, Tensor) and value.requires_grad]
        values = self._through(values, self.output_places, self._output_gradients)
        if not isinstance(result, tuple):
            return values[0]
        return type(result)(*values) if hasattr(result, "_fields") else values

    def _watch_first_tensor(self, result: Any) -> None:
        """Register the hooks that are not full on the node of the first tensor; warn of full
        ones.
        """
        hooks = list(global_backward.values()) if False in _kinds_of_global_backward_hooks else []
        if self.module.__dict__.get("_is_full_backward_hook") is False:
            hooks += self.module._backward_hooks.values()
        if not hooks:
            candelabra._C.warn(
                f"For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received {type(result)}"
            )
            return
        first = _first_tensor(result)
        if first is None or first.grad_fn is None:
            return
        _C.warn(
            "Using non-full backward hooks on a Module that does not return a single Tensor or a tuple of Tensors is deprecated and will be "
            "removed in future versions. This hook will be missing some of the grad_output. Please use register_full_backward_hook to get "
            "the documented behavior.",
            FutureWarning,
        )
        module = self.module
        for hook in hooks:
            first.grad_fn.register_hook(partial(hook, module))

    @staticmethod
    def _through(values: tuple[Any, ...], places: list[int], receive: Callable[..., Any]) -> tuple[Any, ...]:
        if not places or not is_grad_enabled():
            return values
        watched = _watch()(receive, *(values[i] for i in places))
        if not isinstance(watched, tuple):
            watched = (watched,)
        new = list(values)
        for place, value in zip(places, watched, strict=True):
            new[place] = value
        return tuple(new)

    def _output_gradients(self, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        grads = _spread(gradients, self.output_places, self.outputs)
        for hook in self._pre_hooks():
            grads = self._replaced(hook(self.module, grads), grads, "pre hook")
        self.grad_outputs = grads
        if not self.input_places:
            # No gradient reaches the inputs, so the hooks run now.
            nothing = (None,) * self.inputs
            for hook in self._hooks():
                if hook(self.module, nothing, grads) is not None:
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always return None or None for all gradients."
                    )
        return tuple(grads[i] for i in self.output_places)

    def _input_gradients(self, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.grad_outputs is None:
            return gradients  # they reached the inputs without passing through the outputs
        grads = _spread(gradients, self.input_places, self.inputs)
        if self.constants:
            given = list(grads)
            for i, shape, dtype, device in self.constants:
                given[i] = candelabra.zeros(shape, dtype=dtype, device=device)
            grads = tuple(given)
        for hook in self._hooks():
            grads = self._replaced(hook(self.module, grads, self.grad_outputs), grads, "hook")
        self.grad_outputs = None
        return tuple(grads[i] for i in self.input_places)

    def _replaced(self, new: Any, old: tuple[Any, ...], kind: str) -> tuple[Any, ...]:
        if new is None:
            return old
        new = new if isinstance(new, tuple) else (new,)
        if len(new) != len(old):
            raise RuntimeError(
                f"Backward {kind} returned an invalid number of grad_input, got {len(new)}, but expected {len(old)}"
            )
        return new


def _first_tensor(value: Any) -> Tensor | None:
    """Return the first tensor of nested lists, tuples and dictionaries, by PyTorch's rule."""
    while not isinstance(value, Tensor):
        if isinstance(value, dict):
            value = next((entry for entry in value.values() if isinstance(entry, Tensor)), None)
        elif isinstance(value, (tuple, list)) and value:
            value = value[0]
        else:
            return None
    return value


def _spread(gradients: tuple[Any, ...], places: list[int], count: int) -> tuple[Any, ...]:
    spread: list[Any] = [None] * count
    for place, gradient in zip(places, gradients, strict=True):
        spread[place] = gradient
    return tuple(spread)


_watch_function: Any = None


def _watch() -> Callable[..., Any]:
    """Return the identity autograd function whose backward calls a function with the gradients.

    It is created on first use, because candelabra.autograd may be missing.
    """
    global _watch_function
    if _watch_function is None:
        from candelabra.autograd import Function

        class Watch(Function):
            @staticmethod
            def forward(ctx: Any, receive: Callable[..., Any], *tensors: Tensor) -> tuple[Tensor, ...]:
                ctx.receive = receive
                ctx.set_materialize_grads(False)
                return tuple(ops.alias(tensor) for tensor in tensors)

            @staticmethod
            def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
                return (None, *ctx.receive(gradients))

        _watch_function = Watch.apply
    return _watch_function
