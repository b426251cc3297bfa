"""``Variable``, the former class of tensors that require grad."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from candelabra import Tensor

from . import engine

__all__ = ["Variable", "VariableMeta"]


class _Engine:
    """The backward engine, by PyTorch's name."""

    def queue_callback(self, callback: Callable[[], object]) -> None:
        """Call a function at the end of the backward pass that runs on this thread."""
        engine.queue_callback(callback)


class VariableMeta(type):
    """The type of `Variable`, whose instances are all tensors."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)

    def __call__(cls, data: Tensor, requires_grad: bool = False) -> Any:
        made = data.detach()
        return made.requires_grad_() if requires_grad else made


class Variable(metaclass=VariableMeta):
    """Return a detached tensor; kept for old programs, since every tensor is now a variable.

    Parameters
    ----------
    data
        The tensor.
    requires_grad
        Whether to record operations on the result.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.autograd.Variable(candelabra.ones(1), requires_grad=True)
    tensor([1.], requires_grad=True)
    """

    _execution_engine = _Engine()
