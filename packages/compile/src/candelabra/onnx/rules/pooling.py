"""Rules of pooling."""

from __future__ import annotations

from collections.abc import Sequence

import candelabra

from ..builder import Builder, Value
from .table import rule

Ints = Sequence[int]


def _max_pool(b: Builder, count: int, self: Value, arguments: tuple[Ints, Ints, Ints, Ints, bool]) -> list[str]:
    kernel, stride, padding, dilation, ceil_mode = arguments
    return b.several(
        "MaxPool", count, self, kernel_shape=list(kernel), strides=list(stride or kernel), pads=list(padding) * 2,
        dilations=list(dilation), ceil_mode=int(ceil_mode),
    )  # fmt: skip


@rule("max_pool_values")
def _max_pool_values(
    b: Builder, self: Value, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
) -> str:
    return _max_pool(b, 1, self, (kernel_size, stride, padding, dilation, ceil_mode))[0]


@rule("max_pool")
def _max_pool_with_indices(
    b: Builder, self: Value, kernel_size: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
) -> list[str]:
    values, places = _max_pool(b, 2, self, (kernel_size, stride, padding, dilation, ceil_mode))
    # ONNX counts over all planes.
    return [values, b.op("Mod", places, b.number(b.times(self.shape[2:])))]


@rule("avg_pool")
def _avg_pool(
    b: Builder, self: Value, kernel_size: Ints, stride: Ints, padding: Ints, ceil_mode: bool = False, count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> str:  # fmt: skip
    counts_all = count_include_pad or divisor_override is not None
    if ceil_mode and divisor_override is not None:
        b.refuse("ceil_mode with divisor_override")
    found = b.op(
        "AveragePool", self, kernel_shape=list(kernel_size), strides=list(stride or kernel_size), pads=list(padding) * 2,
        ceil_mode=int(ceil_mode), count_include_pad=int(counts_all),
    )  # fmt: skip
    if divisor_override is None:
        return found
    factor = candelabra.Size(kernel_size).numel() / divisor_override
    return b.op("Mul", found, b.constant(factor, self.dtype))


@rule("adaptive_avg_pool", sizes="output_size")
def _adaptive_avg_pool(b: Builder, self: Value, output_size: Ints) -> str:
    if all(size == 1 for size in output_size):
        return b.op("GlobalAveragePool", self)
    name = b.name(self)
    for dim, new in enumerate(output_size, 2):
        if new != self.shape[dim]:
            name = _averaged(b, name, self, dim, b.static(new, "the output size"))
    return name


def _averaged(b: Builder, name: str, self: Value, dim: int, new: int) -> str:
    """Return the averages of windows along one dimension, as a product with a matrix."""
    old = b.static(self.shape[dim], "a size of the input")
    matrix = candelabra.zeros(old, new, dtype=candelabra.float64)
    for k in range(new):
        first, end = k * old // new, -(-(k + 1) * old // new)
        matrix[first:end, k] = 1 / (end - first)
    order = list(range(self.rank))
    order[dim], order[-1] = order[-1], order[dim]
    product = b.op("MatMul", b.transpose(name, order), b.tensor(matrix.to(self.dtype)))
    return b.transpose(product, order)


@rule("adaptive_max_pool", sizes="output_size")
def _adaptive_max_pool(b: Builder, self: Value, output_size: Ints) -> list[str | None]:
    if all(size == 1 for size in output_size):
        return [b.op("GlobalMaxPool", self), None]
    old = [b.static(size, "a size of the input") for size in self.shape[2:]]
    new = [b.static(size, "the output size") for size in output_size]
    if any(a % c for a, c in zip(old, new, strict=True)):
        return [_largest(b, self, old, new), None]
    kernel = [a // c for a, c in zip(old, new, strict=True)]
    values, places = _max_pool(b, 2, self, (kernel, kernel, [0] * len(old), [1] * len(old), False))
    return [values, b.op("Mod", places, b.constant(candelabra.Size(old).numel()))]


def _largest(b: Builder, self: Value, old: list[int], new: list[int]) -> str:
    """Return the maxima of windows of several lengths, one dimension after another."""
    name = b.name(self)
    for dim, (size, count) in enumerate(zip(old, new, strict=True), 2):
        windows = [(k * size // count, -(-(k + 1) * size // count)) for k in range(count)]
        parts = [
            b.op("ReduceMax", b.slice(name, dim, first, end), b.constant([dim]), keepdims=1) for first, end in windows
        ]
        name = b.op("Concat", *parts, axis=dim)
    return name
