"""In-place operations on the tape.

``x.mul_(y)`` is recorded as ``x = mul(old x, y)``: the tensor object stays the same and gets a new
history. If a derivative formula needs the overwritten value, it is copied first.

A view shares memory with its base, so changing the view changes the base and every other view. The
base then gets a ``CopySlices`` node. Outside the view, its gradient goes to the old base; inside
the view, to the new value. The core compares a counter when a view's ``grad_fn`` is read. If the
history of the base has changed, it calls :func:`history_of_view`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import candelabra
from candelabra import Tensor, ops
from candelabra.catalogue import OPERATORS

from .hooks import keep_retaining
from .node import MultiNode, SingleNode, next_sequence
from .recording import AUTOGRAD_FUNCTIONS, inputs_that_need_self, only_changes
from .table import ROWS

if TYPE_CHECKING:
    from collections.abc import Callable

    #: Shape, strides and storage offset in elements, and a kind: "real" for a view of complex
    #: numbers as pairs, "complex" for a view of pairs as complex numbers, else "".
    Geometry = tuple[tuple[int, ...], tuple[int, ...], int, str]


def inplace_autograd_function(name: str) -> Callable[..., Any]:
    """Return the function that the core calls instead of an in-place kernel."""
    positions: tuple[int, ...] | None = None
    keyword_only: tuple[str, ...] = ()

    def record_in_place(operator: Any, self: Tensor, *arguments: Any, **keywords: Any) -> Tensor:
        nonlocal positions, keyword_only
        if positions is None:
            positions = inputs_that_need_self(name) if name in ROWS else ()
            keyword_only = operator.parameters[operator.positional_count :]
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
    """Raise for in-place operations on leaves that require grad, and on views of them."""
    if self.requires_grad and self.grad_fn is None:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    base = self._base
    if base is not None and base.requires_grad and base.grad_fn is None:
        raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")


def _may_share(argument: Any, self: Tensor, base: Tensor | None) -> bool:
    """Return whether an argument may share memory with the overwritten tensor."""
    if argument is self:
        return True
    if not isinstance(argument, Tensor):
        return False
    root = argument._base
    return (argument if root is None else root) is (self if base is None else base)


# ---- views


def geometry_in(base: Tensor, view: Tensor) -> Geometry:
    """Return the geometry of a view relative to `base`."""
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
    """Return the view of `tensor` with this geometry.

    `tensor` must have the shape and strides of the base.
    """
    sizes, strides, offset, kind = geometry
    if kind == "real":
        tensor = candelabra.view_as_real(tensor)
    elif kind == "complex":
        tensor = candelabra.view_as_complex(tensor)
    return tensor.as_strided(sizes, strides, tensor.storage_offset() + offset)


def laid_out(grad: Tensor, sizes: tuple[int, ...], strides: tuple[int, ...], copy: bool) -> Tensor:
    """Return `grad` with these strides; in new memory if `copy` is set."""
    if not copy and grad.stride() == strides:
        return grad
    return ops.empty_strided(sizes, strides, dtype=grad.dtype, device=grad.device).copy_(grad)


class CopySlices(MultiNode):
    """The history of a base after a view of it was changed in place.

    It has two edges: the old base, and the new value of the view.
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
    """Record on `base` that `value` was written to `view`.

    `value` is a tensor whose history is that of the view's new contents.
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
    """The history of a view, recomputed from its base."""

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
    """Return whether several elements of a view may share one element of the base."""
    reached = 0
    for stride, size in sorted(
        (stride, size) for size, stride in zip(geometry[0], geometry[1], strict=True) if size > 1
    ):
        if stride <= reached:
            return True
        reached += stride * (size - 1)
    return False


def summed_overlapping(grad: Tensor, zeros: Tensor, geometry: Geometry) -> Tensor:
    """Sum the gradients of view elements that share an element of the base."""
    positions = candelabra.arange(zeros.numel(), device=zeros.device).reshape(zeros.shape)
    positions = look_at(laid_out(positions, tuple(zeros.shape), zeros.stride(), copy=False), geometry)
    return zeros.contiguous().reshape(-1).index_add(0, positions.reshape(-1), grad.reshape(-1)).reshape(zeros.shape)


def history_of_view(view: Tensor) -> None:
    """Set the history of a view from its base; the core calls this after the base's changed."""
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
    """Install the autograd functions of in-place operators, and register
    :func:`history_of_view`.
    """
    for name in AUTOGRAD_FUNCTIONS:
        operator = OPERATORS[name]
        changing = operator if only_changes(operator) else operator.inplace
        if changing is not None:
            changing.inplace_autograd_function = inplace_autograd_function(name)
    candelabra._C.set_view_history(history_of_view)
