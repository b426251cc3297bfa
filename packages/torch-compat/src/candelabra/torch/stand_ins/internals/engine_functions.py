"""``torch._C._functions``: nodes that PyTorch's engine makes itself."""

from __future__ import annotations

from typing import Any, NoReturn

from candelabra import Tensor
from candelabra.autograd import Function
from candelabra.autograd.node import AccumulateGrad

__all__ = ["AccumulateGrad", "DelayedError"]


class _Raising(Function):
    @staticmethod
    def forward(ctx: Any, message: str, *tensors: Tensor) -> Any:
        ctx.message = message
        return tuple(tensor.view_as(tensor) for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> NoReturn:
        raise RuntimeError(ctx.message)


class DelayedError:
    """Returns tensors as they are, whose gradients raise an error.

    Parameters
    ----------
    msg
        The text of the RuntimeError.
    num_inputs
        The number of tensors.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.torch.stand_ins.internals.engine_functions import DelayedError
    >>> x = candelabra.ones(1, requires_grad=True)
    >>> DelayedError("not differentiable", 1)(x).backward()
    Traceback (most recent call last):
    ...
    RuntimeError: not differentiable
    """

    def __init__(self, msg: str, num_inputs: int) -> None:
        self.msg, self.num_inputs = msg, num_inputs

    def __call__(self, *tensors: Tensor) -> Any:
        if len(tensors) != self.num_inputs:
            raise RuntimeError(f"DelayedError: expected {self.num_inputs} tensors, but got {len(tensors)}")
        results = _Raising.apply(self.msg, *tensors)
        return results[0] if len(results) == 1 else results
