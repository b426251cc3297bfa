"""In-place operations on the tape.

``x.mul_(y)`` is recorded as ``x = mul(x as it was, y)``: the tensor object stays and gets another
history. Where a formula needs the value that is overwritten, a copy is made before.

A view shares the memory of its base, so changing it changes the base, and every other view. The
base then gets a node ``CopySlices``: its gradient is the base's where the view is not, and the new
value's where it is. Views notice that their base has another history (the core compares a counter
when their ``grad_fn`` is asked for) and come to :func:`history_of_view` for theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import candelabra
from candelabra import Tensor, ops

from .hooks import keep_retaining
from .node import MultiNode, SingleNode, next_sequence
from .recording import AUTOGRAD_FUNCTIONS, inputs_that_need_self, signature
from .table import ROWS

if TYPE_CHECKING:
    from collections.abc import Callable

    #: Sizes, strides and offset in elements, and whether the view shows complex numbers as pairs
    #: ("real"), pairs as complex numbers ("complex"), or neither.
    Geometry = tuple[tuple[int, ...], tuple[int, ...], int, str]


def inplace_autograd_function(name: str) -> Callable[..., Any]:
    """Make what the core calls in the place of the in-place operation of operator `name`."""
    positions: tuple[int, ...] | None = None
    keyword_only: tuple[str, ...] = ()

    def record_in_place(operator: Any, self: Tensor, *arguments: Any, **keywords: Any) -> Tensor:
        nonlocal positions, keyword_only
        if positions is None:
            positions = inputs_that_need_self(name) if name in ROWS else ()
            keyword_only = signature(operator.schema).keyword_only
        if keyword_only:
            given, named = arguments[: -len(keyword_only)], arguments[-len(keyword_only) :]
            keywords |= dict(zip(keyword_only, named, strict=True))
        else:
            given = arguments
        check_in_place(self)
        everything = (self, *arguments)
        if not (self.is_floating_point() or self.is_complex()):
            return operator.raw(self, *given, **keywords)
        base = self._base
        old = self._detached()
        shared = [position for position, argument in enumerate(arguments) if _may_share(argument, self, base)]
        if shared or any(isinstance(everything[at], Tensor) and everything[at].requires_grad for at in positions):
            with candelabra.no_grad():
                old = old.clone()
        before, number = self.grad_fn, self.output_nr
        if before is not None:
            old._set_history(before, number)
        recorded = list(arguments)
        for position in shared:
            recorded[position] = old if arguments[position] is self else arguments[position].clone()
        operator.raw(self, *given, **keywords)
        if base is None:
            AUTOGRAD_FUNCTIONS[name](self, old, *recorded)
            self._bump_history()
            if self.retains_grad and before is not None:
                keep_retaining(self, before, number)
        else:
            value = self._detached()
            AUTOGRAD_FUNCTIONS[name](value, old, *recorded)
            rebase(base, self, value)
        return self

    return record_in_place


def check_in_place(self: Tensor) -> None:
    """Refuse in-place operations on leaves that require grad, and on views of them."""
    if self.requires_grad and self.grad_fn is None:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    base = self._base
    if base is not None and base.requires_grad and base.grad_fn is None:
        raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")


def _may_share(argument: Any, self: Tensor, base: Tensor | None) -> bool:
    """Whether an argument lies in memory that the operation overwrites."""
    if argument is self:
        return True
    if not isinstance(argument, Tensor):
        return False
    root = argument._base
    return (argument if root is None else root) is (self if base is None else base)


# ---- views


def geometry_in(base: Tensor, view: Tensor) -> Geometry:
    """Say where in `base` a view of it lies."""
    kind = ""
    if base.is_complex() != view.is_complex():
        kind = "real" if base.is_complex() else "complex"
    offset = base.storage_offset()
    if kind == "real":
        offset *= 2
    elif kind == "complex":
        offset //= 2
    return (tuple(view.shape), view.stride(), view.storage_offset() - offset, kind)


def look_at(tensor: Tensor, geometry: Geometry) -> Tensor:
    """Make the view of `tensor` that lies as `geometry` says; `tensor` has the sizes and strides of
    the base.
    """
    sizes, strides, offset, kind = geometry
    if kind == "real":
        tensor = candelabra.view_as_real(tensor)
    elif kind == "complex":
        tensor = candelabra.view_as_complex(tensor)
    return tensor.as_strided(sizes, strides, tensor.storage_offset() + offset)


def laid_out(grad: Tensor, sizes: tuple[int, ...], strides: tuple[int, ...], copy: bool) -> Tensor:
    """Give `grad` these strides, in memory of its own where `copy` is set."""
    if not copy and grad.stride() == strides:
        return grad
    return ops.empty_strided(sizes, strides, dtype=grad.dtype, device=grad.device).copy_(grad)


class CopySlices(MultiNode):
    """The history of a base after a view of it was changed in place. Edges: the base as it was, the
    new value of the view.
    """

    __slots__ = ("geometry", "sizes", "strides")

    geometry: Geometry
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    def backward(self, grad: Tensor, edges: tuple[Any, Any]) -> tuple[Tensor | None, Tensor | None]:
        of_base = of_value = None
        if edges[0] is not None:
            of_base = laid_out(grad, self.sizes, self.strides, copy=True)
            look_at(of_base, self.geometry).fill_(0)
        if edges[1] is not None:
            of_value = look_at(laid_out(grad, self.sizes, self.strides, copy=False), self.geometry)
        return of_base, of_value


def rebase(base: Tensor, view: Tensor, value: Tensor) -> None:
    """Give `base` the history of having `value` (the tape's name of the view's new contents)
    written to `view`.
    """
    node = CopySlices()
    node._sequence = next_sequence()
    node._hooks = None
    node._edges = (base._edge, value._edge)
    node.geometry = geometry_in(base, view)
    node.sizes, node.strides = tuple(base.shape), base.stride()
    before, number = base.grad_fn, base.output_nr
    base._set_history(node)
    base._bump_history()
    if base.retains_grad and before is not None:
        keep_retaining(base, before, number)


class AsStridedBackward0(SingleNode):
    """The history of a view, worked out anew from its base."""

    __slots__ = ("geometry", "like", "sizes", "strides")

    geometry: Geometry
    like: Any
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    def backward(self, grad: Tensor) -> Tensor:
        dtype, device = self.like
        of_base = ops.empty_strided(self.sizes, self.strides, dtype=dtype, device=device).fill_(0)
        target = look_at(of_base, self.geometry)
        if overlaps(self.geometry):
            return summed_overlapping(grad, of_base, self.geometry)
        target.copy_(grad)
        return of_base


def overlaps(geometry: Geometry) -> bool:
    """Whether several elements of a view may be one element of the base."""
    reached = 0
    for stride, size in sorted(
        (stride, size) for size, stride in zip(geometry[0], geometry[1], strict=True) if size > 1
    ):
        if stride <= reached:
            return True
        reached += stride * (size - 1)
    return False


def summed_overlapping(grad: Tensor, zeros: Tensor, geometry: Geometry) -> Tensor:
    """Sum the gradients of elements that are one in the base."""
    positions = candelabra.arange(zeros.numel(), device=zeros.device).reshape(zeros.shape)
    positions = look_at(laid_out(positions, tuple(zeros.shape), zeros.stride(), copy=False), geometry)
    return zeros.contiguous().reshape(-1).index_add(0, positions.reshape(-1), grad.reshape(-1)).reshape(zeros.shape)


def history_of_view(view: Tensor) -> None:
    """Give a view the history that follows from its base's. Called by the core when the base's has
    changed.
    """
    base = view._base
    if not base.requires_grad or not (view.is_floating_point() or view.is_complex()):
        return
    before, number = view.grad_fn, view.output_nr
    node = AsStridedBackward0()
    node._sequence = next_sequence()
    node._hooks = None
    node._edge = base._edge
    node.geometry = geometry_in(base, view)
    node.like = (base.dtype, base.device)
    node.sizes, node.strides = tuple(base.shape), base.stride()
    view._set_history(node)
    if view.retains_grad and before is not None:
        keep_retaining(view, before, number)


def install() -> None:
    """Tell the core whom to ask for the history of a view."""
    candelabra._C.set_view_history(history_of_view)
