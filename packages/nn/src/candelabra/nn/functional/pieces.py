"""A tensor taken apart into all its pieces at once, whose gradient is put together at once.

Each view made by itself has a gradient of the size of the whole, zeros but for its part: a recurrence that reads a tensor step by step
would take time that grows with the square of the steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import candelabra
from candelabra import Tensor, is_grad_enabled

_function: Any = None


def _pieces() -> Any:
    """The custom function. Made on first use, since candelabra.autograd may be absent."""
    global _function
    if _function is None:
        from candelabra.autograd import Function

        class Pieces(Function):
            generate_vmap_rule = True

            @staticmethod
            def forward(whole: Tensor, dim: int, sizes: Any) -> tuple[Tensor, ...]:
                return _views(whole, dim, sizes)

            @staticmethod
            def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
                whole, ctx.dim, ctx.sizes = inputs
                ctx.shapes = [tuple(piece.shape) for piece in output]
                ctx.like = whole.dtype, whole.device
                ctx.set_materialize_grads(False)

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
                if all(grad is None for grad in grads):
                    return None, None, None
                dtype, device = ctx.like
                parts = [
                    candelabra.zeros(shape, dtype=dtype, device=device) if grad is None else grad
                    for grad, shape in zip(grads, ctx.shapes, strict=True)
                ]
                return (candelabra.stack if ctx.sizes is None else candelabra.cat)(parts, ctx.dim), None, None

            @staticmethod
            def jvp(ctx: Any, tangent: Tensor, *_: Any) -> tuple[Tensor, ...]:
                return _views(tangent, ctx.dim, ctx.sizes)

        _function = Pieces.apply
    return _function


def _views(whole: Tensor, dim: int, sizes: Any) -> tuple[Tensor, ...]:
    return whole.unbind(dim) if sizes is None else whole.split(list(sizes), dim)


def pieces(whole: Tensor, dim: int, sizes: Sequence[int] | None = None) -> tuple[Tensor, ...]:
    """Return views of `whole` along `dim`: of these sizes or, without any, one for each index, without the dimension.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn.functional.pieces import pieces
    >>> x = candelabra.arange(3.0).requires_grad_()
    >>> first, rest = pieces(x, 0, (1, 2))
    >>> (rest * 2).sum().backward()
    >>> x.grad
    tensor([0., 2., 2.])
    """
    if not (whole.requires_grad and is_grad_enabled()):
        return _views(whole, dim, sizes)
    result: tuple[Tensor, ...] = _pieces()(whole, dim, sizes)
    return result


__all__ = ["pieces"]
