"""Implement `Parameter`, `Buffer` and their uninitialized forms."""

from __future__ import annotations

import copy
from typing import Any, cast

import candelabra
from candelabra import Tensor


class _ParameterMeta(type(Tensor)):  # type: ignore[misc]
    """Make `isinstance` check the `_is_param` mark of tensors of other classes."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if super().__instancecheck__(instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """Mark a tensor as a parameter of the module it is assigned to.

    A tensor of a class of one's own keeps its class, and is a parameter for `isinstance`.

    Parameters
    ----------
    data
        Any tensor; the parameter shares its memory. Default: an empty tensor.
    requires_grad
        Whether to compute its gradient. Requires a floating or complex dtype.

    Raises
    ------
    RuntimeError
        If `detach()` of the class of `data` returns another class.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.Parameter(candelabra.ones(2), requires_grad=False)
    Parameter containing:
    tensor([1., 1.])
    """

    #: Read by candelabra.printing: the values print like those of a plain tensor.
    _prints_as_tensor = True
    __torch_function__ = candelabra._C._disabled_torch_function_impl

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = candelabra.empty(0)
        elif not isinstance(data, Tensor):
            raise TypeError(
                f"Parameter data must be a Tensor, not {type(data).__name__}; make one with candelabra.tensor(data)"
            )
        kind = type(data)
        if kind is Tensor or issubclass(kind, Parameter):
            return Tensor._make_subclass(cls, data.detach(), requires_grad)
        kept = data.detach().requires_grad_(requires_grad)
        if type(kept) is not kind:
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {kind.__name__} requires that detach() returns an instance of the same "
                f"type, but it returned {type(kept).__name__}. To use the type as a Parameter, correct the detach() semantics defined by its "
                "__torch_dispatch__() or __torch_function__() implementation."
            )
        kept._is_param = True
        return cast(Parameter, kept)

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) in memo:
            return memo[id(self)]
        result = type(self)(self.detach().clone(), self.requires_grad)
        memo[id(self)] = result
        if self.grad is not None:
            result.grad = copy.deepcopy(self.grad, memo)
        result.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return result

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return rebuild_parameter, (type(self), self.detach(), self.requires_grad, dict(self.__dict__))


def rebuild_parameter(cls: type[Parameter], data: Tensor, requires_grad: bool, attributes: dict[str, Any]) -> Parameter:
    """Rebuild a parameter from the result of `Parameter.__reduce_ex__`."""
    result = cls(data, requires_grad)
    result.__dict__.update(attributes)
    return result


class _BufferMeta(type(Tensor)):  # type: ignore[misc]
    """Make `isinstance` check the `_is_buffer` mark.

    A buffer is a plain tensor with this mark, so that in-place operations preserve it.
    """

    def __instancecheck__(cls, instance: Any) -> bool:
        if cls is Buffer:
            return isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)
        return super().__instancecheck__(instance)


class Buffer(Tensor, metaclass=_BufferMeta):
    """Mark a tensor as a buffer of the module it is assigned to.

    A buffer is moved and saved with the module, but not trained.

    Parameters
    ----------
    data
        Any tensor; the buffer shares its memory. Default: an empty tensor.
    persistent
        Whether the buffer is part of the module's state dict.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> module = nn.Module()
    >>> module.count = nn.Buffer(candelabra.zeros(1))
    >>> module.state_dict()
    OrderedDict([('count', tensor([0.]))])
    """

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = candelabra.empty(0)
        result = data.detach().requires_grad_(data.requires_grad)
        result.persistent = persistent
        result._is_buffer = True
        return result


#: Methods that an uninitialized tensor supports, as in PyTorch.
_SHAPELESS = frozenset({
    "bfloat16", "char", "copy_", "cpu", "cuda", "data_ptr", "detach", "double", "float", "get_device", "half", "int", "is_complex",
    "is_floating_point", "long", "materialize", "register_hook", "requires_grad_", "share_memory_", "short", "size", "to", "type",
    "untyped_storage",
})  # fmt: skip


def _refused(name: str) -> Any:
    def operator(self: Any, *_: Any) -> Any:
        raise ValueError(_attempt(self, name))

    operator.__name__ = name
    return operator


def _attempt(tensor: Any, what: str) -> str:
    return (
        f"Attempted to use an uninitialized parameter in {what}. This error happens when you are using a `LazyModule` or explicitly "
        f"manipulating `candelabra.nn.parameter.{type(tensor).__name__}` objects. When using LazyModules Call `forward` with a dummy batch "
        "to initialize the parameters before calling candelabra functions"
    )


class UninitializedTensorMixin:
    """Share the behaviour of tensors whose shape is not known yet.

    They have a dtype and a device but no data, and support no computation.
    """

    cls_to_become: type

    def materialize(self: Any, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become an ordinary parameter or tensor of `shape`, with uninitialized memory.

        Dtype and device default to the current ones.
        """
        device = self.data.device if device is None else device
        dtype = self.data.dtype if dtype is None else dtype
        self.data = candelabra.empty(tuple(shape), device=device, dtype=dtype)
        self.__class__ = self.cls_to_become

    def __getattribute__(self, name: str) -> Any:
        # Operators are methods of Tensor, and none is supported here.
        if not name.startswith("_") and name not in _SHAPELESS and callable(getattr(Tensor, name, None)):
            raise ValueError(_attempt(self, name))
        return super().__getattribute__(name)

    @property
    def shape(self) -> Any:
        """Raise RuntimeError: the shape is not known yet."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in `load_state_dict` when trying to "
            "load an uninitialized parameter into an initialized one. Call `forward` to initialize the parameters before accessing their "
            "attributes."
        )

    def share_memory_(self) -> Any:
        """Raise RuntimeError: there is no memory to share yet."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters before calling "
            "`module.share_memory()`."
        )

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self: Any, protocol: Any) -> tuple[Any, ...]:
        return _rebuild_uninitialized, (type(self), self.requires_grad, self.device, self.dtype)


def _rebuild_uninitialized(cls: Any, requires_grad: bool, device: Any, dtype: Any) -> Any:
    return cls(requires_grad, device, dtype)


# The interpreter looks up operators in the type and bypasses __getattribute__.
for _name in (
    "add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift", "eq", "ne", "lt", "le", "gt",
    "ge", "neg", "abs", "invert", "bool", "int", "float", "len", "getitem", "setitem",
):  # fmt: skip
    for _prefix in ("", "r", "i"):
        if hasattr(Tensor, f"__{_prefix}{_name}__"):
            setattr(UninitializedTensorMixin, f"__{_prefix}{_name}__", _refused(f"__{_prefix}{_name}__"))
# A class that defines __eq__ must define __hash__ too: hash by identity, like tensors.
UninitializedTensorMixin.__hash__ = Tensor.__hash__  # type: ignore[assignment,method-assign]


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc,override]
    """Represent a parameter whose shape follows from the first input of a lazy module.

    See `LazyModuleMixin`.

    Examples
    --------
    >>> from candelabra.nn.parameter import UninitializedParameter
    >>> weight = UninitializedParameter()
    >>> weight
    <UninitializedParameter>
    >>> weight.materialize((2, 3))
    >>> type(weight).__name__, weight.shape
    ('Parameter', candelabra.Size([2, 3]))
    """

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        return Tensor._make_subclass(cls, candelabra.empty(0, device=device, dtype=dtype), requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return memo[id(self)]


class UninitializedBuffer(UninitializedTensorMixin, Tensor):  # type: ignore[override]
    """Represent a buffer whose shape follows from the first input of a lazy module.

    See `LazyModuleMixin`.
    """

    cls_to_become = Tensor

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> UninitializedBuffer:
        result = Tensor._make_subclass(cls, candelabra.empty(0, device=device, dtype=dtype), requires_grad)
        result.persistent = persistent
        result._is_buffer = True
        return result

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype, self.persistent)
        return memo[id(self)]


def is_lazy(param: Any) -> bool:
    """Return whether `param` is an uninitialized parameter or buffer."""
    return isinstance(param, UninitializedTensorMixin)


__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter"]
