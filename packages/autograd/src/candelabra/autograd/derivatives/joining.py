"""Gradients of concatenation and rearrangement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from candelabra import ops

from ..node import MultiNode, next_sequence
from ..table import autograd_function, derivative
from .parts import to_dtype

if TYPE_CHECKING:
    from candelabra import Tensor


class CatBackward0(MultiNode):
    """The node of cat(); each input gets its part of the gradient."""

    __slots__ = ("dim", "dtypes", "sizes")

    dim: int
    dtypes: list[Any]
    sizes: list[int]

    def backward(self, grad: Tensor, edges: tuple[Any, ...]) -> list[Tensor | None]:
        start = 0
        parts: list[Tensor | None] = []
        for edge, size, dtype in zip(edges, self.sizes, self.dtypes, strict=True):
            if edge is None:
                parts.append(None)
            elif size < 0:
                # An empty 1-D tensor, which cat() ignores.
                parts.append(grad.new_zeros((0,)))
            else:
                parts.append(to_dtype(grad.narrow(self.dim, start, size), dtype))
            start += max(size, 0)
        return parts


@autograd_function("cat")
def record_cat(result: Tensor, tensors: Any, dim: int) -> Tensor:
    """Record a call of cat()."""
    node = CatBackward0()
    node._sequence, node._hooks = next_sequence(), None
    ndim = result.ndim
    node.dim = dim = dim % ndim
    node._edges = tuple(tensor._edge for tensor in tensors)
    node.sizes = [
        tensor.shape[dim] if tensor.ndim == ndim and (ndim > 1 or tensor.numel()) else -1 for tensor in tensors
    ]
    node.dtypes = [tensor.dtype for tensor in tensors]
    result._set_history(node)
    return result


class StackBackward0(MultiNode):
    """The node of stack(); each input gets its slice of the gradient."""

    __slots__ = ("dim", "dtypes")

    dim: int
    dtypes: list[Any]

    def backward(self, grad: Tensor, edges: tuple[Any, ...]) -> list[Tensor | None]:
        return [
            None if edge is None else to_dtype(grad.select(self.dim, number), dtype)
            for number, (edge, dtype) in enumerate(zip(edges, self.dtypes, strict=True))
        ]


@autograd_function("stack")
def record_stack(result: Tensor, tensors: Any, dim: int) -> Tensor:
    """Record a call of stack()."""
    node = StackBackward0()
    node._sequence, node._hooks = next_sequence(), None
    node.dim = dim % result.ndim
    node._edges = tuple(tensor._edge for tensor in tensors)
    node.dtypes = [tensor.dtype for tensor in tensors]
    result._set_history(node)
    return result


derivative("flip", self=lambda grad, dims: grad.flip(dims))
derivative("tril", self=lambda grad, diagonal: grad.tril(diagonal))
derivative("triu", self=lambda grad, diagonal: grad.triu(diagonal))
derivative("pixel_shuffle", self=lambda grad, upscale_factor: ops.pixel_unshuffle(grad, upscale_factor))
derivative("pixel_unshuffle", self=lambda grad, downscale_factor: ops.pixel_shuffle(grad, downscale_factor))
derivative(
    "channel_shuffle", self=lambda grad, groups, self_shape: ops.channel_shuffle(grad, max(1, self_shape[1] // groups))
)
