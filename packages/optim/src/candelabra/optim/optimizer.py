"""`Optimizer`, the base class: parameter groups with options, and a state per parameter."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

from candelabra import _C, Tensor

from . import hooks
from .hooks import RemovableHandle, register_optimizer_step_post_hook, register_optimizer_step_pre_hook


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


#: Default of an option that every group has to specify.
required = _Required()


def typename(value: Any) -> str:
    """Return the name of the type of `value`, for error messages."""
    return "candelabra.Tensor" if isinstance(value, Tensor) else type(value).__qualname__


class Optimizer:
    """Base class of all optimizers.

    A subclass passes the defaults of its options to `__init__` and defines `step`.

    Parameters
    ----------
    params
        Tensors, (name, tensor) pairs, or dicts with a key ``"params"`` and options for that group.
    defaults
        Options for groups that do not specify them.

    Raises
    ------
    TypeError, ValueError
        If `params` is empty, is a tensor, or holds something that cannot be optimized.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import optim
    >>> class Descent(optim.Optimizer):
    ...     def __init__(self, params, lr):
    ...         super().__init__(params, {"lr": lr})
    ...     def step(self):
    ...         for group in self.param_groups:
    ...             for parameter in group["params"]:
    ...                 parameter.sub_(parameter.grad * group["lr"])
    >>> weight = candelabra.ones(2)
    >>> weight.grad = candelabra.ones(2)
    >>> Descent([weight], lr=0.5).step()
    >>> weight
    tensor([0.5000, 0.5000])
    """

    param_groups: list[dict[str, Any]]
    state: defaultdict[Tensor, Any]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        step = cls.__dict__.get("step")
        if step is not None and not hasattr(step, "hooked"):
            cls.step = hooks.with_hooks(step)  # type: ignore[method-assign]

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._make_tables()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + typename(params)
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _make_tables(self) -> None:
        for name in _HOOK_TABLES:
            self.__dict__.setdefault(name, OrderedDict())

    # ---- pickling and printing

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_tables()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        groups = [
            f"Parameter Group {number}\n"
            + "".join(f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params")
            for number, group in enumerate(self.param_groups)
        ]
        return f"{type(self).__name__} (\n" + "\n".join(groups) + ")"

    # ---- groups

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a parameter group: a dict with the key ``"params"`` and any options.

        Examples
        --------
        >>> import candelabra
        >>> from candelabra import optim
        >>> optimizer = optim.SGD([candelabra.zeros(1)], lr=0.1)
        >>> optimizer.add_param_group({"params": [candelabra.zeros(1)], "lr": 0.01})
        >>> [group["lr"] for group in optimizer.param_groups]
        [0.1, 0.01]
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets will change between "
                "runs. Please use a list instead."
            )
        else:
            params = list(params)
        named = [isinstance(entry, tuple) for entry in params]
        if any(named):
            if not all(named):
                raise ValueError("all optimizer params should be with/without names. Some param names are missing")
            param_group["param_names"] = [name for name, _ in params]
            params = [parameter for _, parameter in params]
        param_group["params"] = params
        for parameter in params:
            if not isinstance(parameter, Tensor):
                raise TypeError("optimizer can only optimize Tensors, but one of the params is " + typename(parameter))
            if not self.defaults.get("differentiable") and not (parameter.is_leaf or parameter.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        if len(params) != len(set(params)):
            _C.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error",
            )
        seen = set(chain.from_iterable(group["params"] for group in self.param_groups))
        if not seen.isdisjoint(params):
            raise ValueError("some parameters appear in more than one parameter group")
        if self.param_groups and ("param_names" in param_group) != ("param_names" in self.param_groups[0]):
            having, lacking = ("with", "without") if "param_names" in param_group else ("without", "with")
            raise ValueError(
                "all optimizer param groups should be with/without names. "
                f"cannot add param group {having} names to the optimizer, whose groups are {lacking} names"
            )
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None, or to zero with ``set_to_none=False``."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if set_to_none:
                    parameter.grad = None
                    continue
                grad = parameter.grad
                if grad is not None:
                    if grad.grad_fn is not None:
                        parameter.grad = grad = grad.detach()
                    else:
                        grad.requires_grad_(False)
                    grad.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters from their gradients.

        `closure` recomputes the loss and the gradients, and returns the loss.
        """
        raise NotImplementedError(f"{type(self).__name__} defines no step()")

    # ---- state dicts

    def _state_out(self, state: Any) -> Any:
        """Return the state of one parameter in the form that a state dict holds."""
        return state

    def _state_in(self, parameter: Tensor, state: Any) -> Any:
        """Convert one state of a state dict to the device and dtype of its parameter."""
        return _cast(parameter, state, None)

    def state_dict(self) -> dict[str, Any]:
        """Return states and options in PyTorch's format.

        Parameters are numbered in the order of the groups.

        Examples
        --------
        >>> import candelabra
        >>> from candelabra import optim
        >>> sorted(optim.SGD([candelabra.zeros(1)], lr=0.1).state_dict())
        ['param_groups', 'state']
        """
        for hook in self._optimizer_state_dict_pre_hooks.values():  # type: ignore[attr-defined]
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for parameter in group["params"]:
                numbers.setdefault(id(parameter), len(numbers))
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [numbers[id(parameter)] for parameter in group["params"]]
            groups.append(packed)
        state = {
            (numbers[id(key)] if isinstance(key, Tensor) else key): (
                self._state_out(value) if isinstance(key, Tensor) else value
            )
            for key, value in self.state.items()
            if not isinstance(key, Tensor) or id(key) in numbers
        }
        result: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():  # type: ignore[attr-defined]
            changed = hook(self, result)
            if changed is not None:
                result = changed
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a state dict of this library or of PyTorch.

        Raises
        ------
        ValueError
            If the number of groups, or of parameters in a group, differs.
        """
        state_dict = dict(state_dict)
        for hook in self._optimizer_load_state_dict_pre_hooks.values():  # type: ignore[attr-defined]
            changed = hook(self, state_dict)
            if changed is not None:
                state_dict = changed
        saved_groups = deepcopy(state_dict["param_groups"])
        if len(saved_groups) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(
            len(mine["params"]) != len(saved["params"])
            for mine, saved in zip(self.param_groups, saved_groups, strict=True)
        ):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        parameters = dict(
            zip(
                chain.from_iterable(group["params"] for group in saved_groups),
                chain.from_iterable(group["params"] for group in self.param_groups),
                strict=True,
            )
        )
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in parameters:
                state[parameters[key]] = self._state_in(parameters[key], value)
            else:
                state[key] = value
        groups = []
        for mine, saved in zip(self.param_groups, saved_groups, strict=True):
            saved["params"] = mine["params"]
            if "param_names" in mine and "param_names" not in saved:
                saved["param_names"] = mine["param_names"]
            groups.append(saved)
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():  # type: ignore[attr-defined]
            hook(self)

    # ---- hooks

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step; it may return new arguments.

        New arguments are a tuple ``(args, kwargs)``.
        """
        return hooks.add(self._optimizer_step_pre_hooks, hook)  # type: ignore[attr-defined]

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step.

        Examples
        --------
        >>> import candelabra
        >>> from candelabra import optim
        >>> optimizer = optim.SGD([candelabra.zeros(1)], lr=0.1)
        >>> handle = optimizer.register_step_post_hook(lambda optimizer, args, kwargs: print("stepped"))
        >>> optimizer.step()
        stepped
        """
        return hooks.add(self._optimizer_step_post_hooks, hook)  # type: ignore[attr-defined]

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` before `state_dict` builds its result."""
        return hooks.add(self._optimizer_state_dict_pre_hooks, hook, prepend)  # type: ignore[attr-defined]

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` after a state dict was built.

        If the hook returns a value other than None, that value replaces the state dict.
        """
        return hooks.add(self._optimizer_state_dict_post_hooks, hook, prepend)  # type: ignore[attr-defined]

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` before a state dict is loaded.

        If the hook returns a value other than None, that value is loaded instead.
        """
        return hooks.add(self._optimizer_load_state_dict_pre_hooks, hook, prepend)  # type: ignore[attr-defined]

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` after a state dict was loaded."""
        return hooks.add(self._optimizer_load_state_dict_post_hooks, hook, prepend)  # type: ignore[attr-defined]


_HOOK_TABLES = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


def _cast(parameter: Tensor, value: Any, key: Any) -> Any:
    """Copy all tensors in `value` to the device and dtype of `parameter`.

    Step counts keep their device and dtype.
    """
    if isinstance(value, Tensor):
        if key == "step":
            return value.clone()
        if parameter.is_floating_point():  # a complex parameter has some real states
            return value.detach().to(dtype=parameter.dtype, device=parameter.device, copy=True)
        return value.detach().to(device=parameter.device, copy=True)
    if isinstance(value, dict):
        return {name: _cast(parameter, entry, name) for name, entry in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return type(value)(_cast(parameter, entry, None) for entry in value)  # type: ignore[call-arg]
    return value


__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook", "required"]
