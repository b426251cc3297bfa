"""Implement `Module`, the base class of layers and models."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from candelabra import _C, Tensor

from ..parameter import Buffer, Parameter
from .base import hooks
from .base.conversion import Conversion
from .base.hooks import Hooked, RemovableHandle
from .base.hooks import register_module_backward_hook as register_module_backward_hook
from .base.hooks import register_module_buffer_registration_hook as register_module_buffer_registration_hook
from .base.hooks import register_module_forward_hook as register_module_forward_hook
from .base.hooks import register_module_forward_pre_hook as register_module_forward_pre_hook
from .base.hooks import register_module_full_backward_hook as register_module_full_backward_hook
from .base.hooks import register_module_full_backward_pre_hook as register_module_full_backward_pre_hook
from .base.hooks import register_module_module_registration_hook as register_module_module_registration_hook
from .base.hooks import register_module_parameter_registration_hook as register_module_parameter_registration_hook
from .base.registry import Registry
from .base.state_dict import StateDict
from .base.tree import Tree


def typename(value: Any) -> str:
    """Return the qualified name of the type of `value`, for messages."""
    if isinstance(value, Tensor):
        return "candelabra.Tensor"
    kind = type(value)
    return kind.__qualname__ if kind.__module__ in ("", "builtins", None) else f"{kind.__module__}.{kind.__qualname__}"


def _missing_attribute(module: Module, name: str) -> Any:
    """Return a registered member, or raise AttributeError.

    Used as `Module.__getattr__`: subclasses whose own `__getattr__` falls back to it, and programs
    that call it.
    """
    for table in ("_parameters", "_buffers", "_modules"):
        if name in module.__dict__.get(table, ()):
            return module.__dict__[table][name]
    raise AttributeError(f"'{type(module).__name__}' object has no attribute '{name}'")


def define_getattr() -> None:
    """Define `Module.__getattr__`, for programs that call it; lookups of attributes are slower
    then.
    """
    Module.__getattr__ = _missing_attribute  # type: ignore[method-assign]


class Module(Tree, StateDict, Conversion, Hooked):
    """Serve as the base class of all layers and models.

    A subclass calls ``super().__init__()`` in its `__init__`, then assigns its parts, and computes
    in `forward`. Assigned parameters, buffers and modules are registered, so that `parameters`,
    `state_dict`, `to` and others find them.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> class Model(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.hidden = nn.Linear(4, 8)
    ...         self.out = nn.Linear(8, 2)
    ...     def forward(self, x):
    ...         return self.out(self.hidden(x).relu())
    >>> model = Model()
    >>> model
    Model(
      (hidden): Linear(in_features=4, out_features=8, bias=True)
      (out): Linear(in_features=8, out_features=2, bias=True)
    )
    >>> model(candelabra.ones(3, 4)).shape
    candelabra.Size([3, 2])
    """

    training: bool

    #: Set in a class that also derives from a class other than Module: `Module.__init__` then
    #: passes its arguments to the next class in the MRO.
    call_super_init: bool = False

    #: Accepted for compatibility; modules store their own version.
    dump_patches: bool = False

    #: Set on the copies that `candelabra.nn.parallel.replicate` makes.
    _is_replica: bool = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if (args or kwargs) and not self.call_super_init:
            name = next(iter(kwargs)) if kwargs else None
            got = f"an unexpected keyword argument '{name}'" if name else f"but {len(args) + 1} were given"
            raise TypeError(
                f"{type(self).__name__}.__init__() got {got}"
                if name
                else f"{type(self).__name__}.__init__() takes 1 positional argument {got}"
            )
        state = self.__dict__
        state["training"] = True
        state["_parameters"] = Registry(self)
        state["_buffers"] = Registry(self)
        state["_non_persistent_buffers_set"] = set()
        for name in _HOOK_TABLES:
            state[name] = OrderedDict()
        state["_modules"] = Registry(self)
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    # ---- calling

    if TYPE_CHECKING:
        # Subclasses have parameters of their own in `forward`, and parts that are assigned by name.
        forward: Callable[..., Any]

        def __getattr__(self, name: str) -> Any: ...

    else:

        def forward(self, *args: Any) -> Any:
            """Compute the output. Every subclass defines this method."""
            raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._hooked:
            return self._call_hooked(args, kwargs)
        return self.forward(*args, **kwargs)

    def _call_hooked(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        # Of a module that candelabra.compile replays as a part of another function.
        unit = self.__dict__.get("_compiled_unit")
        if unit is not None and unit.is_wanted(self):
            return unit.call(args, kwargs)
        if not hooks.any_global():
            # An assignment makes all classes of modules new to the guards of compiled functions.
            if Hooked._hooked:
                Hooked._hooked = False
            if not hooks.has_hooks(self):
                # All hooks were removed: later calls skip the check again.
                if unit is None:
                    self.__dict__.pop("_hooked", None)
                return self.forward(*args, **kwargs)
        return hooks.call_with_hooks(self, args, kwargs)

    def _add_hook(
        self, table: OrderedDict[int, Any], hook: Any, prepend: bool, *flags: OrderedDict[int, bool]
    ) -> RemovableHandle:
        handle = RemovableHandle(table, extra_dict=[*flags])
        table[handle.id] = hook
        for flag in flags:
            flag[handle.id] = True
        if prepend:
            table.move_to_end(handle.id, last=False)
        self.__dict__["_hooked"] = True
        return handle

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before `forward`.

        If the hook returns a value other than None, it replaces args.

        With `with_kwargs` the call is ``hook(module, args, kwargs)``, which returns None or
        ``(args, kwargs)``.
        """
        flags = (self._forward_pre_hooks_with_kwargs,) if with_kwargs else ()
        return self._add_hook(self._forward_pre_hooks, hook, prepend, *flags)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after `forward`.

        If the hook returns a value other than None, it replaces output.

        With `with_kwargs` the call is ``hook(module, args, kwargs, output)``. With `always_call`
        the hook also runs after an exception.

        Examples
        --------
        >>> import candelabra
        >>> from candelabra import nn
        >>> layer = nn.ReLU()
        >>> handle = layer.register_forward_hook(lambda module, args, output: output + 1)
        >>> layer(candelabra.zeros(2))
        tensor([1., 1.])
        >>> handle.remove()
        >>> layer(candelabra.zeros(2))
        tensor([0., 0.])
        """
        flags = [self._forward_hooks_with_kwargs] if with_kwargs else []
        if always_call:
            flags.append(self._forward_hooks_always_called)
        return self._add_hook(self._forward_hooks, hook, prepend, *flags)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` before the gradients of this module are computed.

        If the hook returns a value other than None, it replaces grad_output.
        """
        hooks.require_autograd("register_full_backward_pre_hook")
        return self._add_hook(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` after the input gradients are computed.

        Both are tuples, with None for missing gradients. If the hook returns a value other than
        None, it replaces grad_input.

        Raises
        ------
        RuntimeError
            If candelabra.autograd is not installed.
        """
        hooks.require_autograd("register_full_backward_hook")
        self._set_kind_of_backward_hooks(True)
        return self._add_hook(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Register a hook like `register_full_backward_hook`, which is preferred.

        A module cannot have hooks of both kinds.
        """
        hooks.require_autograd("register_backward_hook")
        self._set_kind_of_backward_hooks(False)
        return self._add_hook(self._backward_hooks, hook, False)

    def _set_kind_of_backward_hooks(self, full: bool) -> None:
        if self._backward_hooks and self.__dict__.get("_is_full_backward_hook", full) is not full:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only one of them."
            )
        self.__dict__["_is_full_backward_hook"] = full

    # ---- registration

    def _check_name(self, kind: str, name: Any, table: str) -> None:
        if table not in self.__dict__:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
        if "." in name:
            raise KeyError(
                f'{kind} name can\'t contain "."'
                if kind != "module"
                else f'module name can\'t contain ".", got: {name}'
            )
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if name not in self.__dict__[table] and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Register a parameter. None reserves the name.

        Raises
        ------
        KeyError
            If the name is taken or invalid.
        TypeError
            If it is not a `Parameter`.
        ValueError
            If it was computed from other tensors, and is therefore not a leaf.
        """
        self._check_name("parameter", name, "_parameters")
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{typename(param)}' object to parameter '{name}' (candelabra.nn.Parameter or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To express "
                    f"'{name}' as a function of another Tensor, compute the value in the forward() method."
                )
            for hook in hooks.global_registration["parameter"].values():
                new = hook(self, name, param)
                param = param if new is None else new
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Register a buffer: a tensor that moves with the module but is not trained.

        If `persistent`, it is part of the state dict.

        Examples
        --------
        >>> import candelabra
        >>> from candelabra import nn
        >>> module = nn.Module()
        >>> module.register_buffer("mean", candelabra.zeros(2))
        >>> module.mean
        tensor([0., 0.])
        """
        self._check_name("buffer", name, "_buffers")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (candelabra.Tensor or None required)"
            )
        for hook in hooks.global_registration["buffer"].values():
            new = hook(self, name, tensor)
            tensor = tensor if new is None else new
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Register a submodule. None reserves the name."""
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_name("module", name, "_modules")
        for hook in hooks.global_registration["module"].values():
            new = hook(self, name, module)
            module = module if new is None else new
        self._modules[name] = module

    def register_module(self, name: str, module: Module | None) -> None:
        """Register a submodule like `add_module`."""
        self.add_module(name, module)

    # ---- attributes

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        # Registered members are in the instance dictionary, so Module needs no __getattr__.
        # Defining one would slow down every attribute lookup of its subclasses. It is added only
        # when a subclass defines one, which may call that of its base.
        if hasattr(cls, "__getattr__") and "__getattr__" not in Module.__dict__:
            Module.__getattr__ = _missing_attribute  # type: ignore[method-assign]

    def _forget(self, name: str, *tables: str) -> None:
        for table in tables:
            self.__dict__[table].pop(name, None)
        self._non_persistent_buffers_set.discard(name)
        self.__dict__.pop(name, None)

    def __setattr__(self, name: str, value: Any) -> None:
        state = self.__dict__
        parameters = state.get("_parameters")
        # Most values are no tensors, and only Parameter's check runs Python.
        if isinstance(value, Tensor) and isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            if name not in parameters:
                self._forget(name, "_buffers", "_modules")
            self.register_parameter(name, value)
            return
        if parameters is None:
            if isinstance(value, Module):
                raise AttributeError("cannot assign module before Module.__init__() call")
            if isinstance(value, Buffer):
                raise AttributeError("cannot assign buffer before Module.__init__() call")
            object.__setattr__(self, name, value)
            return
        if name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' (candelabra.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
            return
        modules = state["_modules"]
        if isinstance(value, Module):
            if name not in modules:
                self._forget(name, "_parameters", "_buffers")
            for hook in hooks.global_registration["module"].values():
                new = hook(self, name, value)
                value = value if new is None else new
            modules[name] = value
        elif name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as child module '{name}' (candelabra.nn.Module or None expected)"
                )
            modules[name] = value
        elif name in state["_buffers"] or isinstance(value, Buffer):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{typename(value)}' as buffer '{name}' (candelabra.nn.Buffer, candelabra.Tensor or None expected)"
                )
            persistent = value.persistent if isinstance(value, Buffer) else name not in self._non_persistent_buffers_set
            register = type(self).register_buffer
            if register is Module.register_buffer or "persistent" in register.__code__.co_varnames:
                self.register_buffer(name, value, persistent)
            elif persistent:
                self.register_buffer(name, value)
            else:
                raise RuntimeError(
                    "Registering a non-persistent buffer on a Module subclass that implements register_buffer() without the persistent "
                    "argument is not allowed."
                )
        else:
            object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        for table in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__.get(table, ()):
                del self.__dict__[table][name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__}
        return sorted(name for name in names if not name[:1].isdigit())

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in ("_parameters", "_buffers", "_modules"):
            self.__dict__[name] = Registry(self, self.__dict__.get(name))
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        for name in _HOOK_TABLES:
            self.__dict__.setdefault(name, OrderedDict())
        if hooks.has_hooks(self):
            self.__dict__["_hooked"] = True

    def _replicate_for_data_parallel(self) -> Self:
        """Return a copy that shares everything with this module, for another device.

        `nn.parallel.replicate` then sets its parameters.
        """
        replica = type(self).__new__(type(self))
        replica.__dict__.update(self.__dict__)
        for name in ("_parameters", "_buffers", "_modules"):
            replica.__dict__[name] = Registry(replica, {} if name == "_parameters" else self.__dict__[name])
        replica.__dict__["_is_replica"] = True
        return replica

    # ---- modes

    def train(self, mode: bool = True) -> Self:
        """Set training mode for this module and its submodules.

        The mode affects layers such as dropout and batch normalization.

        Examples
        --------
        >>> from candelabra import nn
        >>> nn.Dropout().train(False).training
        False
        """
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Set evaluation mode: ``train(False)``."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set whether gradients are computed for the parameters."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset the gradients of all parameters to None or to zero."""
        if self._is_replica:
            _C.warn(
                "Calling .zero_grad() from a module created with nn.DataParallel() has no effect. The parameters are copied (in a "
                "differentiable manner) from the original module.",
            )
        if set_to_none and self._names_parameters_itself() and _C.clear_gradients(self, Tree.named_modules):
            return
        for parameter in self.parameters():
            grad = parameter.grad
            if grad is None:
                continue
            if set_to_none:
                parameter.grad = None
            elif grad.grad_fn is not None:
                parameter.grad = grad.detach().zero_()
            else:
                grad.requires_grad_(False)
                grad.zero_()

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call ``fn(module)`` for all submodules, then for this module.

        Examples
        --------
        >>> from candelabra import nn
        >>> seen = []
        >>> _ = nn.Sequential(nn.ReLU(), nn.Tanh()).apply(lambda module: seen.append(type(module).__name__))
        >>> seen
        ['ReLU', 'Tanh', 'Sequential']
        """
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    # ---- printing

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """Return the text between the parentheses of the repr. Subclasses may override it."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {indent(repr(module))}" for name, module in self._modules.items()]
        name = self._get_name()
        if not children and len(lines) < 2:
            return f"{name}({extra})"
        return f"{name}(\n  " + "\n  ".join(lines + children) + "\n)"

    def _repr_html_(self) -> str:
        from .base.notebook import module_html  # of no use outside of notebooks

        return module_html(self)


_HOOK_TABLES = (
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


def indent(text: str, spaces: int = 2) -> str:
    """Indent all lines of `text` but the first."""
    return text.replace("\n", "\n" + " " * spaces)


__all__ = [
    "Module", "register_module_backward_hook", "register_module_buffer_registration_hook", "register_module_forward_hook",
    "register_module_forward_pre_hook", "register_module_full_backward_hook", "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook", "register_module_parameter_registration_hook",
]  # fmt: skip
