"""Reading and writing at indices. The kernels of gather and scatter check the indices."""

from __future__ import annotations

import math
from contextlib import contextmanager

import candelabra

from .registration import decomposes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from candelabra import Tensor
    from candelabra.types import Number

    Indices = tuple[Tensor | None, ...]

where = candelabra.where


@contextmanager
def _index_errors(name: str) -> Iterator[None]:
    """Raise IndexError for the RuntimeError of gather and scatter, as the operators on slices
    do.
    """
    try:
        yield
    except RuntimeError as error:
        message = str(error)
        if "out of bounds" not in message:
            raise
        raise IndexError(f"{name}(): index {message.rpartition('index ')[2]}") from None


def _along(index: Tensor, sizes: tuple[int, ...], dim: int) -> Tensor:
    """Return an index of slices as one for each element of tensors of these sizes."""
    shape = [1] * len(sizes)
    shape[dim] = index.numel()
    return index.reshape(shape).expand(*sizes[:dim], index.numel(), *sizes[dim + 1 :])


@decomposes("index_select")
def index_select(self: Tensor, dim: int, index: Tensor) -> Tensor:
    with _index_errors("index_select"):
        return candelabra.gather(self, dim, _along(index, self.shape, dim))


@decomposes("index_add")
def index_add(self: Tensor, dim: int, index: Tensor, source: Tensor, alpha: Number) -> Tensor:
    added = source if alpha == 1 else source * candelabra.tensor(alpha, dtype=source.dtype, device=source.device)
    with _index_errors("index_add"):
        return candelabra.scatter_add(self, dim, _along(index, self.shape, dim), added)


@decomposes("index_copy")
def index_copy(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    with _index_errors("index_copy"):
        return candelabra.scatter(self, dim, _along(index, self.shape, dim), source)


@decomposes("index_fill")
def index_fill(self: Tensor, dim: int, index: Tensor, value: Number) -> Tensor:
    with _index_errors("index_fill"):
        return candelabra.scatter(self, dim, _along(index, self.shape, dim), value)


@decomposes("take")
def take(self: Tensor, index: Tensor) -> Tensor:
    count, wrong = self.numel(), _outside(index, self.numel())
    if wrong is not None:
        raise IndexError(f"take(): out of range: tried to access index {wrong} on a tensor of {count} elements.")
    return candelabra.gather(self.reshape(-1), 0, _wrapped(index, count).reshape(-1)).reshape(index.shape)


# ---- several dimensions at once


def _outside(index: Tensor, size: int) -> int | None:
    """Return an index that is out of range, or None. This waits for the device."""
    if index.numel() == 0:
        return None
    least, most = int(index.amin()), int(index.amax())
    return least if least < -size else most if most >= size else None


def _wrapped(index: Tensor, size: int) -> Tensor:
    return where(index < 0, index + size, index)


def _rows(self: Tensor, indices: Indices, name: str) -> tuple[list[int], Tensor, tuple[int, ...]]:
    """Return the order of dimensions with the indexed ones first, the number of each row in this
    order, and the sizes of the indices.
    """
    indexed = [d for d, index in enumerate(indices) if index is not None]
    order = indexed + [d for d in range(self.ndim) if d not in indexed]
    rows: Tensor | None = None
    for d in indexed:
        index = indices[d]
        assert index is not None
        size, wrong = self.shape[d], _outside(index, self.shape[d])
        if wrong is not None:
            raise IndexError(f"{name}index {wrong} is out of bounds for dimension {d} with size {size}")
        wrapped = _wrapped(index, size)
        rows = wrapped if rows is None else rows * size + wrapped
    assert rows is not None
    return order, rows.reshape(-1), tuple(rows.shape)


def _front(indices: Indices) -> int:
    """Return the dimension of the result from which the indices count: that of the first one if
    the indexed dimensions are adjacent, else 0.
    """
    indexed = [d for d, index in enumerate(indices) if index is not None]
    return indexed[0] if indexed[-1] - indexed[0] + 1 == len(indexed) else 0


def _matrix(self: Tensor, order: list[int], count: int) -> Tensor:
    """Return the rows that indices count, without gaps."""
    moved = self.permute(order)
    rows = math.prod(moved.shape[:count])
    return moved.reshape(rows, math.prod(moved.shape[count:]))


@decomposes("index")
def index(self: Tensor, indices: Indices) -> Tensor:
    if all(index is None for index in indices):
        return self
    order, rows, sizes = _rows(self, indices, "")
    count = sum(index is not None for index in indices)
    rest = [self.shape[d] for d in order[count:]]
    read = candelabra.index_select(_matrix(self, order, count), 0, rows).reshape(*sizes, *rest)
    front = _front(indices)
    return read.movedim(tuple(range(len(sizes))), tuple(range(front, front + len(sizes)))) if front else read


@decomposes("index_put")
def index_put(self: Tensor, indices: Indices, values: Tensor, accumulate: bool) -> Tensor:
    if all(index is None for index in indices):
        return self + values if accumulate else values.expand(self.shape)
    order, rows, sizes = _rows(self, indices, "index_put(): ")
    count, front, places = sum(index is not None for index in indices), _front(indices), len(sizes)
    rest = [self.shape[d] for d in order[count:]]
    # The values have the sizes of what indexing returns.
    shape = [*rest[:front], *sizes, *rest[front:]]
    given = values.expand(shape)
    if front:
        given = given.movedim(tuple(range(front, front + places)), tuple(range(places)))
    matrix = _matrix(self, order, count)
    given = given.reshape(rows.numel(), matrix.shape[1])
    write = candelabra.index_add if accumulate else candelabra.index_copy
    written = write(matrix, 0, rows, given).reshape([self.shape[d] for d in order])
    back = [0] * self.ndim
    for position, d in enumerate(order):
        back[d] = position
    return written.permute(back)
