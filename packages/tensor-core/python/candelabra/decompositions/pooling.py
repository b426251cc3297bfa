"""Pooling: each window is read through a table of positions in each dimension."""

from __future__ import annotations

import math

import candelabra

from .registration import decomposes, wide

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from candelabra import Tensor

    Ints = tuple[int, ...]
    # For each output of a dimension the positions that its window reads, None for those outside.
    Table = list[list[int | None]]


def _table(size: int, outputs: int, width: int, stride: int, padding: int, dilation: int) -> Table:
    def position(place: int) -> int | None:
        return place if 0 <= place < size else None

    return [[position(o * stride - padding + k * dilation) for k in range(width)] for o in range(outputs)]


def _adaptive_table(size: int, outputs: int) -> Table:
    spans = [(o * size // outputs, -(-(o + 1) * size // outputs)) for o in range(outputs)]
    width = max((end - begin for begin, end in spans), default=0)
    return [[begin + k if begin + k < end else None for k in range(width)] for begin, end in spans]


def _outputs(sizes: Ints, window: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool) -> list[int]:
    result = []
    for n, k, s, p, d in zip(sizes, window, stride, padding, dilation, strict=True):
        reach = n + 2 * p - d * (k - 1) - 1
        size = (-(-reach // s) if ceil_mode else reach // s) + 1
        # A window must not begin in the padding behind the input.
        result.append(size - 1 if ceil_mode and (size - 1) * s >= n + p else size)
    return result


def _tables(
    sizes: Ints, outputs: Sequence[int], window: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> list[Table]:
    return [_table(*row) for row in zip(sizes, outputs, window, stride, padding, dilation, strict=True)]


class _Windows:
    """Reads the windows of planes: (N, C, outputs..., elements of a window)."""

    def __init__(self, tables: list[Table], like: Tensor) -> None:
        self.tables, self.device = tables, like.device
        self.outputs = [len(table) for table in tables]
        self.widths = [len(table[0]) if table else 0 for table in tables]

    def _ordered(self, x: Tensor) -> Tensor:
        """Return (..., output, place, output, place, ...) as (..., outputs, places of a window)."""
        count, before = len(self.tables), x.ndim - 2 * len(self.tables)
        order = [*range(before), *(before + 2 * d for d in range(count)), *(before + 2 * d + 1 for d in range(count))]
        return x.permute(order).reshape(*x.shape[:before], *self.outputs, math.prod(self.widths))

    def _by_dimension(self, values: list[list[float]]) -> list[Tensor]:
        return [candelabra.tensor(value, device=self.device) for value in values]

    def read(self, x: Tensor) -> Tensor:
        """Return the windows of `x`; a position outside reads any element."""
        for d, table in enumerate(self.tables):
            places = candelabra.tensor(
                [p or 0 for row in table for p in row], dtype=candelabra.int64, device=self.device
            )
            dim = x.ndim - len(self.tables) + d
            x = candelabra.index_select(x, dim, places)
        shape = list(x.shape[: x.ndim - len(self.tables)])
        for n, k in zip(self.outputs, self.widths, strict=True):
            shape += [n, k]
        return self._ordered(x.reshape(shape))

    def inside(self) -> Tensor:
        """Return which elements of the windows are inside: (outputs..., elements)."""
        result = candelabra.ones((), dtype=candelabra.bool, device=self.device)
        for table in self.tables:
            truths = candelabra.tensor(
                [[p is not None for p in row] for row in table], dtype=candelabra.bool, device=self.device
            )
            result = result.unsqueeze(-1).unsqueeze(-1) & truths.reshape(len(table), -1)
        return self._ordered(result)

    def positions(self, sizes: Ints) -> Tensor:
        """Return the row-major positions that the windows read: (outputs..., elements)."""
        plane = candelabra.arange(math.prod(sizes), device=self.device).reshape(sizes)
        return self.read(plane)


def _maxima(self: Tensor, windows: _Windows) -> tuple[Tensor, Tensor]:
    sizes = self.shape[2:]
    read, inside = windows.read(self), windows.inside()
    if read.numel() == 0:
        empty = read.new_empty((*self.shape[:2], *windows.outputs))
        return empty, empty.to(candelabra.int64)
    lowest = -math.inf if self.dtype.is_floating_point else candelabra.iinfo(self.dtype).min
    read = candelabra.where(inside, read, read.new_full((), lowest))
    best = candelabra.amax(read, -1, True)
    # The first of the largest inside; NaN is larger than all.
    is_best = ((read == best) | (read != read)) & inside
    chosen = candelabra.argmax(is_best.to(candelabra.uint8), -1, True)
    positions = windows.positions(sizes)
    positions = positions.expand(*self.shape[:2], *positions.shape)
    return best.squeeze(-1), candelabra.gather(positions, -1, chosen).squeeze(-1)


@decomposes("max_pool")
def max_pool(
    self: Tensor, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
) -> tuple[Tensor, Tensor]:
    sizes = self.shape[2:]
    outputs = _outputs(sizes, kernel_size, stride, padding, dilation, ceil_mode)
    return _maxima(self, _Windows(_tables(sizes, outputs, kernel_size, stride, padding, dilation), self))


@decomposes("adaptive_max_pool")
def adaptive_max_pool(self: Tensor, output_size: Ints) -> tuple[Tensor, Tensor]:
    tables = [_adaptive_table(n, m) for n, m in zip(self.shape[2:], output_size, strict=True)]
    return _maxima(self, _Windows(tables, self))


def _scattered(values: Tensor, positions: Tensor, input_size: Ints) -> Tensor:
    """Return a tensor of these sizes with the values, (N, C, count), added at positions."""
    flat = values.new_zeros((*input_size[:2], math.prod(input_size[2:])))
    return candelabra.scatter_add(flat, 2, positions, values).reshape(input_size)


@decomposes("max_pool_backward")
def max_pool_backward(grad: Tensor, indices: Tensor, input_size: Ints) -> Tensor:
    g, count = wide(grad), math.prod(grad.shape[2:])
    planes, places = math.prod(input_size[2:]), indices.reshape(*input_size[:2], count)
    if places.numel():
        low, high = int(places.amin()), int(places.amax())
        if low < 0 or high >= planes:
            wrong = low if low < 0 else high
            raise IndexError(f"max_pool_backward(): index {wrong} is out of bounds for a plane of {planes} elements")
    return _scattered(g.reshape(*input_size[:2], count), places, input_size)


def _divided(sums: Tensor, divisors: list[list[int]], override: int | None = None) -> Tensor:
    """Divide by the products of a divisor for each output of each dimension."""
    if override is not None:
        return sums / override
    ndim = len(divisors)
    for d, column in enumerate(divisors):
        divisor = candelabra.tensor(column, dtype=sums.dtype, device=sums.device)
        sums = sums / divisor.reshape(-1, *(1,) * (ndim - 1 - d))
    return sums


def _averages(self: Tensor, windows: _Windows, divisors: list[list[int]], override: int | None = None) -> Tensor:
    read = windows.read(wide(self))
    sums = candelabra.where(windows.inside(), read, read.new_zeros(())).sum(-1)
    return _divided(sums, divisors, override)


def _spread(
    grad: Tensor, windows: _Windows, input_size: Ints, divisors: list[list[int]], override: int | None = None
) -> Tensor:
    shares = _divided(wide(grad), divisors, override).unsqueeze(-1)
    inside, positions = windows.inside(), windows.positions(input_size[2:])
    values = candelabra.where(inside, shares, shares.new_zeros(()))
    count = math.prod(values.shape[2:])
    places = positions.reshape(count).expand(*input_size[:2], count)
    return _scattered(values.reshape(*input_size[:2], count), places, input_size)


def _divisors(
    sizes: Ints, outputs: Sequence[int], window: Ints, stride: Ints, padding: Ints, count_include_pad: bool
) -> list[list[int]]:
    result = []
    for n, m, k, s, p in zip(sizes, outputs, window, stride, padding, strict=True):
        spans = [(o * s - p, min(o * s - p + k, n + p)) for o in range(m)]
        result.append([end - begin if count_include_pad else min(end, n) - max(begin, 0) for begin, end in spans])
    return result


@decomposes("avg_pool")
def avg_pool(
    self: Tensor,
    kernel_size: Ints,
    stride: Ints,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    sizes, dilation = self.shape[2:], (1,) * len(kernel_size)
    outputs = _outputs(sizes, kernel_size, stride, padding, dilation, ceil_mode)
    windows = _Windows(_tables(sizes, outputs, kernel_size, stride, padding, dilation), self)
    divisors = _divisors(sizes, outputs, kernel_size, stride, padding, count_include_pad)
    return _averages(self, windows, divisors, divisor_override)


@decomposes("avg_pool_backward")
def avg_pool_backward(
    grad: Tensor,
    input_size: Ints,
    kernel_size: Ints,
    stride: Ints,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    sizes, outputs, dilation = input_size[2:], grad.shape[2:], (1,) * len(kernel_size)
    windows = _Windows(_tables(sizes, outputs, kernel_size, stride, padding, dilation), grad)
    divisors = _divisors(sizes, outputs, kernel_size, stride, padding, count_include_pad)
    return _spread(grad, windows, input_size, divisors, divisor_override)


def _adaptive(sizes: Ints, outputs: Sequence[int], like: Tensor) -> tuple[_Windows, list[list[int]]]:
    tables = [_adaptive_table(n, m) for n, m in zip(sizes, outputs, strict=True)]
    counts = [[sum(place is not None for place in row) for row in table] for table in tables]
    return _Windows(tables, like), counts


@decomposes("adaptive_avg_pool")
def adaptive_avg_pool(self: Tensor, output_size: Ints) -> Tensor:
    return _averages(self, *_adaptive(self.shape[2:], output_size, self))


@decomposes("adaptive_avg_pool_backward")
def adaptive_avg_pool_backward(grad: Tensor, input_size: Ints) -> Tensor:
    if grad.numel() == 0:
        return grad.new_zeros(input_size)
    windows, counts = _adaptive(input_size[2:], grad.shape[2:], grad)
    return _spread(grad, windows, input_size, counts)
