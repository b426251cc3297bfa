"""Inputs of workloads: the same numbers for each framework, drawn by NumPy, in a given layout."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

#: What NumPy draws before the framework converts it, where NumPy lacks the dtype.
DRAWN_AS = {"bfloat16": "float32", "float16": "float32"}
ITEM_BYTES = {
    "float32": 4, "float64": 8, "bfloat16": 2, "float16": 2, "int64": 8, "int32": 4, "uint8": 1, "bool": 1, "complex64": 8, "complex128": 16,
}  # fmt: skip


@functools.lru_cache(maxsize=8)
def drawn(kind: str, shape: tuple[int, ...], dtype: str, low: float, high: float, number: int) -> np.ndarray[Any, Any]:
    """Numbers that follow from the arguments alone; the last few are kept for the other side."""
    generator = np.random.default_rng(number + 1)
    if kind == "integers":
        return generator.integers(int(low), int(high), shape).astype(dtype)
    if kind == "booleans":
        return generator.random(shape, np.float32) < 0.5
    if dtype == "complex64":
        return (
            generator.standard_normal(shape, np.float32) + 1j * generator.standard_normal(shape, np.float32)
        ).astype(dtype)
    as_drawn = np.float64 if dtype == "float64" else np.float32
    if kind == "normal":
        return generator.standard_normal(shape, as_drawn)
    values = generator.random(shape, as_drawn)
    values *= high - low
    values += low
    return values


@dataclass(frozen=True)
class Input:
    """A tensor that a workload reads.

    `layout` is "contiguous"; "transposed": the memory is that of the last two dimensions exchanged;
    "strided": every second element of the last dimension of a larger tensor; "channels_last";
    "expanded": one row, repeated without memory.
    """

    kind: str
    shape: tuple[int, ...]
    dtype: str = "float32"
    layout: str = "contiguous"
    low: float = 0
    high: float = 1
    grad: bool = False
    number: int = field(default=0)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that reading it touches: a step of two elements touches every cache
        line.
        """
        shape = self.shape[1:] if self.layout == "expanded" else self.shape
        return math.prod(shape) * ITEM_BYTES[self.dtype] * (2 if self.layout == "strided" else 1)

    def make(self, xp: Any) -> Any:
        """The tensor, in memory of its own."""
        shape = self.shape
        if self.layout == "transposed":
            shape = (*shape[:-2], shape[-1], shape[-2])
        elif self.layout == "strided":
            shape = (*shape[:-1], 2 * shape[-1])
        elif self.layout == "expanded":
            shape = (1, *shape[1:])
        values = drawn(self.kind, shape, DRAWN_AS.get(self.dtype, self.dtype), self.low, self.high, self.number)
        tensor = xp.from_numpy(values).clone().to(getattr(xp, self.dtype))
        if self.layout == "transposed":
            tensor = tensor.transpose(-1, -2)
        elif self.layout == "strided":
            tensor = tensor[..., ::2]
        elif self.layout == "channels_last":
            tensor = tensor.contiguous(memory_format=xp.channels_last)
        elif self.layout == "expanded":
            tensor = tensor.expand(self.shape)
        return tensor.requires_grad_() if self.grad else tensor


def normal(
    *shape: int, dtype: str = "float32", layout: str = "contiguous", grad: bool = False, number: int = 0
) -> Input:
    """Normal numbers."""
    return Input("normal", shape, dtype, layout, grad=grad, number=number)


def uniform(
    *shape: int,
    low: float = 0.5,
    high: float = 1.5,
    dtype: str = "float32",
    layout: str = "contiguous",
    grad: bool = False,
    number: int = 0,
) -> Input:
    """Numbers between `low` and `high`."""
    return Input("uniform", shape, dtype, layout, low, high, grad, number)


def integers(
    high: int, *shape: int, low: int = 0, dtype: str = "int64", layout: str = "contiguous", number: int = 0
) -> Input:
    """Whole numbers from `low` to below `high`."""
    return Input("integers", shape, dtype, layout, low, high, number=number)


def booleans(*shape: int, layout: str = "contiguous", number: int = 0) -> Input:
    """True and false, half of each."""
    return Input("booleans", shape, "bool", layout, number=number)


def fill(xp: Any, model: Any) -> Any:
    """The same parameters in either framework: uniform, within the reciprocal square root of the
    inputs of a unit.
    """
    with xp.no_grad():
        for number, parameter in enumerate(model.parameters()):
            if parameter.ndim < 2:
                values = drawn("uniform", tuple(parameter.shape), "float32", 0.9, 1.1, number)
            else:
                bound = (parameter.numel() / parameter.shape[0]) ** -0.5
                values = drawn("uniform", tuple(parameter.shape), "float32", -bound, bound, number)
            parameter.copy_(xp.from_numpy(values))
    return model
