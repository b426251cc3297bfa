"""Custom functions whose gradients cannot be differentiated again."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NoReturn

import candelabra
from candelabra import Tensor

from .node import MultiNode, next_sequence

if TYPE_CHECKING:
    from collections.abc import Callable

    from .function import FunctionNode


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a ``backward`` that is not differentiable itself.

    Its gradients are computed without recording. Differentiating twice raises a RuntimeError.

    Examples
    --------
    >>> import candelabra
    >>> class Square(candelabra.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     @candelabra.autograd.function.once_differentiable
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return grad * 2 * x
    >>> x = candelabra.ones(1, requires_grad=True)
    >>> (first,) = candelabra.autograd.grad(Square.apply(x), x, create_graph=True)
    >>> first.backward()
    Traceback (most recent call last):
    ...
    RuntimeError: trying to differentiate twice a function that was marked with @once_differentiable
    """

    @functools.wraps(backward)
    def once(ctx: Any, *gradients: Any) -> Any:
        with candelabra.no_grad():
            made = backward(ctx, *gradients)
        if not candelabra.is_grad_enabled():
            return made
        if not any(isinstance(part, Tensor) and part.requires_grad for part in gradients):
            tensors = [part for part in gradients if isinstance(part, Tensor)]
            if not any(edge is not None for edge in ctx._edges) or not tensors:
                return made
        several = made if isinstance(made, tuple) else (made,)
        refused = [_refuse(part, gradients, ctx) for part in several]
        return tuple(refused) if isinstance(made, tuple) else refused[0]

    return once


class _Refusal(MultiNode):
    """The history of a gradient that cannot be differentiated again."""

    __slots__ = ()

    def backward(self, grad: Any, edges: tuple[Any, ...]) -> NoReturn:
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


def _refuse(part: Any, gradients: tuple[Any, ...], ctx: FunctionNode) -> Any:
    if not isinstance(part, Tensor) or not (part.is_floating_point() or part.is_complex()):
        return part
    node = _Refusal()
    node._sequence, node._hooks = next_sequence(), None
    node._edges = (*(part._edge for part in gradients if isinstance(part, Tensor)), *ctx._edges)
    result = part._detached()
    result._set_history(node)
    return result
