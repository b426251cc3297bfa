"""Tensors that a module owns: `Parameter` is trained, `Buffer` is only kept with it."""

from __future__ import annotations

import copy
from typing import Any

import candelabra
from candelabra import Tensor


class Parameter(Tensor):
    """A tensor that becomes a parameter of the module it is assigned to.

    Parameters
    ----------
    data
        Any tensor; its memory is shared. Empty when not given.
    requires_grad
        Whether gradients are computed for it. Only tensors of a floating or complex dtype can have this.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.Parameter(candelabra.ones(2), requires_grad=False)
    Parameter containing:
    tensor([1., 1.])
    """

    #: Read by candelabra.printing: the numbers are printed as those of a plain tensor.
    _prints_as_tensor = True

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = candelabra.empty(0)
        elif not isinstance(data, Tensor):
            raise TypeError(f"Parameter data must be a Tensor, not {type(data).__name__}; make one with candelabra.tensor(data)")
        return Tensor._make_subclass(cls, data.detach(), requires_grad)

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
    """Make a parameter again from what `Parameter.__reduce_ex__` kept of it."""
    result = cls(data, requires_grad)
    result.__dict__.update(attributes)
    return result


class _BufferMeta(type(Tensor)):  # type: ignore[misc]
    """A buffer is an ordinary tensor with a mark, so that what is computed in place on it stays one; `isinstance` looks at the mark."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if cls is Buffer:
            return isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)
        return super().__instancecheck__(instance)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that becomes a buffer of the module it is assigned to: kept, moved and saved with it, but not trained.

    Parameters
    ----------
    data
        Any tensor; its memory is shared. Empty when not given.
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


__all__ = ["Buffer", "Parameter"]
