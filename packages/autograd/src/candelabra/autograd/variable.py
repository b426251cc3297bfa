"""``Variable``, which tensors were called that require grad, before all tensors could."""

from __future__ import annotations

from typing import Any

from candelabra import Tensor

__all__ = ["Variable"]


class _VariableMeta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)

    def __call__(cls, data: Tensor, requires_grad: bool = False) -> Any:
        made = data.detach()
        return made.requires_grad_() if requires_grad else made


class Variable(metaclass=_VariableMeta):
    """Gives its tensor, apart from the tape; tensors are what it was. Kept for old programs.

    Parameters
    ----------
    data
        A tensor.
    requires_grad
        Whether operations on it are recorded.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.autograd.Variable(candelabra.ones(1), requires_grad=True)
    tensor([1.], requires_grad=True)
    """
