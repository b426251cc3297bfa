"""Accumulate gradients of partial views into one buffer.

The gradient of a partial view (a row, a slice, a diagonal) covers only that part. Zero-padding each
one to the full shape costs one full pass per view. A loop over a sequence would then take quadratic
time. This module writes the parts into one buffer as they arrive.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

import candelabra
from candelabra import _C

from .leaves import computes_operators, zeros_for
from .node import Node

if TYPE_CHECKING:
    from candelabra import Tensor

    from .node import Edge

#: Minimum number of elements for which the covered ranges are tracked. For smaller buffers, zeroing
#: everything first is cheaper.
_WORTH_TRACKING = 1 << 14


class PartNode(Node):
    """A node for a view of part of a tensor. Subclasses define where the part is."""

    __slots__ = ("_edge", "value_self_shape")

    _edge: Edge
    value_self_shape: tuple[int, ...]

    _is_part = True

    def look(self, whole: Tensor) -> Tensor:
        """Return the same part of another tensor of the same shape."""
        raise NotImplementedError(f"{type(self).__name__} does not say where its part is")

    def span(self) -> tuple[int, int, int] | None:
        """Return ``(dim, start, end)`` if the part is a slice along one dimension, else None."""
        return None

    def all_edges(self) -> tuple[Edge, ...]:
        return (self._edge,)

    def place(self, grad: Tensor) -> Tensor:
        """Return a tensor of zeros in the full shape, with `grad` written to the part."""
        whole = zeros_for(grad, self.value_self_shape)
        self.look(whole).copy_(grad)
        return whole

    def backward(self, grad: Tensor, _edges: Any) -> tuple[Tensor]:
        return (self.place(grad),)


_C.set_edge_slot(PartNode, "_edge", False)


class Assembly:
    """The gradient of a tensor, accumulated from parts.

    While all parts are disjoint slices along one dimension, each is copied once. Only the gaps are
    zeroed at the end. After the first part that overlaps or lies along another dimension, parts are
    added.
    """

    __slots__ = ("_covered", "_dim", "_whole")

    def __init__(self, node: PartNode, part: Tensor) -> None:
        shape = node.value_self_shape
        self._dim = -1
        #: Sorted, merged bounds of the covered ranges: start, end, start, end, ...
        self._covered: list[int] = []
        if computes_operators(part):
            self._whole = node.place(part)
            return
        self._whole = whole = candelabra.empty(shape, dtype=part.dtype, device=part.device)
        span = node.span() if whole.numel() >= _WORTH_TRACKING else None
        if span is None:
            whole.zero_()
        else:
            self._dim, start, end = span
            self._covered += (start, end)
        node.look(whole).copy_(part)

    def add(self, node: PartNode, part: Tensor) -> None:
        """Add one part."""
        if self._dim >= 0:
            span = node.span()
            if span is not None and span[0] == self._dim and self._cover(span[1], span[2]):
                node.look(self._whole).copy_(part)
                return
        node.look(self.finish()).add_(part)

    def finish(self) -> Tensor:
        """Return the full gradient, with zeros where no part arrived."""
        if self._dim >= 0:
            size = self._whole.shape[self._dim]
            bounds = [0, *self._covered, size]
            for start, end in zip(bounds[::2], bounds[1::2], strict=True):
                if start < end:
                    self._whole.narrow(self._dim, start, end - start).zero_()
            self._dim = -1
        return self._whole

    def _cover(self, start: int, end: int) -> bool:
        """Mark the range from start to end as covered; return False if it overlaps another part."""
        covered = self._covered
        at = bisect_left(covered, end)
        if start >= end:
            return True
        # An even index means that `end` is in a gap; the part must also start in that gap.
        if at % 2 or (at and covered[at - 1] > start):
            return False
        joins_before = at > 0 and covered[at - 1] == start
        joins_after = at < len(covered) and covered[at] == end
        covered[at - joins_before : at + joins_after] = ([] if joins_before else [start]) + (
            [] if joins_after else [end]
        )
        return True


class RecordedAssembly:
    """The same for ``create_graph=True``, where no in-place writes are allowed.

    Disjoint slices are concatenated at the end.
    """

    __slots__ = ("_parts",)

    def __init__(self, node: PartNode, part: Tensor) -> None:
        self._parts: list[tuple[PartNode, Tensor]] = [(node, part)]

    def add(self, node: PartNode, part: Tensor) -> None:
        """Add one part."""
        self._parts.append((node, part))

    def finish(self) -> Tensor:
        """Return the full gradient, with zeros where no part arrived."""
        joined = self._joined() if len(self._parts) > 1 else None
        if joined is not None:
            return joined
        node, part = self._parts[0]
        whole = node.place(part)
        for node, part in self._parts[1:]:
            whole = whole + node.place(part)
        return whole

    def _joined(self) -> Tensor | None:
        """Concatenate the parts, or return None unless they are disjoint slices along one dim."""
        spans = [node.span() for node, _ in self._parts]
        dims = {-1 if span is None else span[0] for span in spans}
        dim = dims.pop()
        if dims or dim < 0:
            return None
        shape = self._parts[0][0].value_self_shape
        pieces: list[Tensor] = []
        reached = 0
        for number in sorted(range(len(spans)), key=lambda number: spans[number] or ()):
            _, start, end = spans[number] or (dim, 0, 0)
            if start >= end:
                continue
            if start < reached:
                return None
            part = self._parts[number][1]
            if start > reached:
                pieces.append(_zeros(shape, dim, start - reached, part))
            pieces.append(part if part.ndim == len(shape) else part.unsqueeze(dim))
            reached = end
        if reached < shape[dim]:
            pieces.append(_zeros(shape, dim, shape[dim] - reached, self._parts[0][1]))
        return candelabra.cat(pieces, dim)


def _zeros(shape: tuple[int, ...], dim: int, size: int, like: Tensor) -> Tensor:
    return zeros_for(like, (*shape[:dim], size, *shape[dim + 1 :]))


__all__ = ["Assembly", "PartNode", "RecordedAssembly"]
