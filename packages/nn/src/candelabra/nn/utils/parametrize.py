"""Implement parametrizations: tensors that are recomputed from others on each read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

from candelabra import Tensor, no_grad

from ..modules.containers import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter

_cache_depth = 0
_cache: dict[tuple[int, str], Tensor] = {}


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrized tensor only once while the context is active.

    Examples
    --------
    >>> from candelabra import nn
    >>> from candelabra.nn.utils import parametrizations, parametrize
    >>> layer = parametrizations.weight_norm(nn.Linear(2, 2))
    >>> with parametrize.cached():
    ...     layer.weight is layer.weight
    True
    """
    global _cache_depth
    _cache_depth += 1
    try:
        yield
    finally:
        _cache_depth -= 1
        if not _cache_depth:
            _cache.clear()


def _register(module: Module, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _set(tensor: Tensor, value: Tensor) -> None:
    """Make `tensor` share the data of `value`.

    The object stays the same, so optimizers that hold it remain valid.
    """
    if tensor is not value:
        tensor.data = value.detach()


class ParametrizationList(ModuleList):
    """Hold the parametrizations of one tensor, in order, and their inputs.

    The inputs are ``original``, or ``original0``, ``original1`` and so on.

    Created by `register_parametrization`, and available as ``module.parametrizations.weight``.
    """

    original: Tensor

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        new: Any = original
        with no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    # A parametrization without an inverse starts from the tensor itself.
                    with contextlib.suppress(NotImplementedError):
                        new = module.right_inverse(new)
        if not isinstance(new, Tensor | Sequence):
            raise ValueError(
                f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if isinstance(new, Tensor):
            for what in ("dtype", "device"):
                if getattr(original, what) != getattr(new, what):
                    raise ValueError(
                        f"When `right_inverse` outputs one tensor, it may not change the {what}.\noriginal.{what}: "
                        f"{getattr(original, what)}\nright_inverse(original).{what}: {getattr(new, what)}"
                    )
            with no_grad():
                _set(original, new)
            _register(self, "original", original)
        else:
            for number, part in enumerate(new):
                if not isinstance(part, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got element "
                        f"{number} of the sequence with type {type(part).__name__}."
                    )
                if isinstance(original, Parameter):
                    part = Parameter(part, original.requires_grad)
                _register(self, f"original{number}", part.requires_grad_(original.requires_grad))
        if not unsafe:
            result = self()
            if not isinstance(result, Tensor):
                raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
            for what, before, after in (("dtype", dtype, result.dtype), ("shape", shape, result.shape)):
                if before != after:
                    raise ValueError(
                        f"Registering a parametrization may not change the {what} of the tensor, unless `unsafe` flag is enabled.\n"
                        f"unparametrized {what}: {before}\nparametrized {what}: {after}"
                    )

    def right_inverse(self, value: Any) -> None:
        """Set the originals so that the parametrized tensor becomes `value`.

        Applies the ``right_inverse`` of each parametrization.

        Raises
        ------
        RuntimeError
            If a parametrization has no ``right_inverse``.
        ValueError
            If the result of a ``right_inverse`` is incompatible with the originals.
        """
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
                if value.dtype != self.original.dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {value.dtype} while `original` has dtype {self.original.dtype}"
                    )
                _set(self.original, value)
                return
            if isinstance(value, Tensor) or not isinstance(value, Sequence):
                raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}.")
            if len(value) != self.ntensors:
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence of length {len(value)}."
                )
            for number, tensor in enumerate(value):
                if not isinstance(tensor, Tensor):
                    raise ValueError(
                        f"'right_inverse' must return a sequence of tensors. Got element {number} of type {type(tensor).__name__}"
                    )
                own = getattr(self, f"original{number}")
                if own.dtype != tensor.dtype:
                    raise ValueError(
                        f"Tensor {number} returned by `right_inverse` has dtype {tensor.dtype} while `original{number}` has dtype {own.dtype}"
                    )
                _set(own, tensor)

    def forward(self) -> Any:
        first, *others = list(self)
        originals = [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]
        x = first(*originals)
        for module in others:
            x = module(x)
        return x


def _inject_class(module: Module) -> None:
    """Give the module its own subclass of its class, to hold the properties."""
    cls = type(module)

    def copied(self: Module, memo: dict[int, Any]) -> Module:
        if id(self) in memo:
            return memo[id(self)]
        replica = type(self).__new__(type(self))
        memo[id(self)] = replica
        replica.__setstate__(deepcopy(self.__dict__, memo))
        return replica

    def state(self: Module) -> Any:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(): the class of the module is made at run time, "
            "and a process that loads it would not have it."
        )

    members: dict[str, Any] = {"__getstate__": state}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = copied
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def _inject_property(module: Module, name: str) -> None:
    """Make ``module.name`` a property of the module's own class."""

    def get(self: Any) -> Any:
        parametrization = self.parametrizations[name]
        if not _cache_depth:
            return parametrization()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = parametrization()
        return _cache[key]

    def put(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(get, put))


def _check_next(module: Module, name: str, parametrization: Any) -> None:
    """Raise unless an additional parametrization preserves shape and dtype in both directions."""
    now = getattr(module, name)
    then = parametrization(now)
    if not isinstance(then, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(then).__name__}.")
    for what in ("dtype", "shape"):
        if getattr(now, what) != getattr(then, what):
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless the `unsafe` flag is enabled.\n"
                f"module.{name}.{what}: {getattr(now, what)}\nparametrization(module.{name}).{what}: {getattr(then, what)}"
            )
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        back = parametrization.right_inverse(then)
    except NotImplementedError:
        return
    if not isinstance(back, Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}")
    for what in ("dtype", "shape"):
        if getattr(now, what) != getattr(back, what):
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {what} as module.{name}, unless the `unsafe` flag is "
                f"enabled.\nmodule.{name}.{what}: {getattr(now, what)}\nreturned {what}: {getattr(back, what)}"
            )


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Compute a parameter or buffer of `module` as ``parametrization(original)`` on each read.

    Parameters
    ----------
    module, tensor_name
        The tensor. Several parametrizations may be registered on it, and are applied in order.
    parametrization
        A module that takes one tensor or several. Its optional method ``right_inverse(X)`` returns
        the originals for a tensor, as one tensor or a sequence. It initializes the originals and
        enables ``module.weight = X``.
    unsafe
        Whether to skip the checks, so that shape and dtype may change.

    Returns
    -------
    Module
        The module, whose class is now a subclass of the previous one. The originals are
        ``module.parametrizations.weight.original``.

    Raises
    ------
    ValueError
        If there is no such tensor or the parametrization changes shape or dtype.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> from candelabra.nn.utils import parametrize
    >>> class Symmetric(nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).t()
    >>> layer = parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.t()).all())
    True
    >>> [name for name, _ in layer.named_parameters()]
    ['bias', 'parametrizations.weight.original']
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_next(module, tensor_name, parametrization)
        parametrizations = module.parametrizations[tensor_name]
        parametrizations.append(parametrization)
        parametrizations.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        parametrizations = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _inject_class(module)
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        module.parametrizations[tensor_name] = parametrizations
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'"
        )
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return whether this tensor, or any tensor of the module, is parametrized."""
    parametrizations = module.__dict__.get("parametrizations")
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Turn a parametrized tensor back into an ordinary one.

    Parameters
    ----------
    leave_parametrized
        Whether to keep the computed value rather than the original.

    Raises
    ------
    ValueError
        If it is not parametrized, or the original is requested and there are several.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module.parametrizations[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with no_grad():
                _set(original, getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        first = parametrizations.original0
        original = Parameter(value, first.requires_grad) if isinstance(first, Parameter) else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a sequence of tensors."
        )
    # Copies of this module may share its class, so do not remove the property from it.
    own = type(module)
    parent = own.__bases__[0]
    remaining = [name for name in module.parametrizations if name != tensor_name]
    del module.parametrizations[tensor_name]
    module.__class__ = parent
    if remaining:
        _inject_class(module)
        for name in remaining:
            _inject_property(module, name)
    else:
        del module.parametrizations
    _register(module, tensor_name, original)
    return module


def type_before_parametrizations(module: Module) -> type:
    """Return the class of the module before it was parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Register the parametrizations of one module on another and copy their originals.

    Parameters
    ----------
    tensor_name
        Name of one tensor. Default: all parametrized tensors.
    """
    if not is_parametrized(from_module):
        return to_module
    names = list(from_module.parametrizations) if tensor_name is None else [tensor_name]
    for name in names:
        theirs = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            _register(to_module, name, deepcopy(theirs.original if theirs.is_tensor else getattr(from_module, name)))
        for parametrization in theirs:
            register_parametrization(to_module, name, parametrization)
        ours = to_module.parametrizations[name]
        with no_grad():
            for suffix in [""] if theirs.is_tensor else range(theirs.ntensors):
                _set(getattr(ours, f"original{suffix}"), getattr(theirs, f"original{suffix}").clone())
    return to_module


__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
    "transfer_parametrizations_and_params", "type_before_parametrizations",
]  # fmt: skip
