"""Make inputs of workloads: the same NumPy random numbers for each framework, in a given layout."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

#: The dtype that NumPy draws if it lacks the requested one. The framework then converts.
DRAWN_AS = {"bfloat16": "float32", "float16": "float32"}
ITEM_BYTES = {
    "float32": 4, "float64": 8, "bfloat16": 2, "float16": 2, "int64": 8, "int32": 4, "uint8": 1, "bool": 1, "complex64": 8, "complex128": 16,
}  # fmt: skip


@functools.lru_cache(maxsize=8)
def drawn(kind: str, shape: tuple[int, ...], dtype: str, low: float, high: float, number: int) -> np.ndarray[Any, Any]:
    """Return numbers determined by the arguments. A cache keeps the last few for the other side."""
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

    `layout` is "contiguous", "transposed" (the last two dimensions are exchanged in memory),
    "strided" (every second element of the last dimension of a larger tensor), "channels_last" or
    "expanded" (one row with stride 0).
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
        """Return the bytes of memory that reading it touches. A stride of two touches every cache
        line.
        """
        shape = self.shape[1:] if self.layout == "expanded" else self.shape
        return math.prod(shape) * ITEM_BYTES[self.dtype] * (2 if self.layout == "strided" else 1)

    def make(self, xp: Any) -> Any:
        """Return the tensor, in new memory."""
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
    """Return an input of normally distributed numbers."""
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
    """Return an input of numbers between `low` and `high`."""
    return Input("uniform", shape, dtype, layout, low, high, grad, number)


def integers(
    high: int, *shape: int, low: int = 0, dtype: str = "int64", layout: str = "contiguous", number: int = 0
) -> Input:
    """Return an input of integers from `low` up to, but not including, `high`."""
    return Input("integers", shape, dtype, layout, low, high, number=number)


def booleans(*shape: int, layout: str = "contiguous", number: int = 0) -> Input:
    """Return an input of bools, each with probability one half."""
    return Input("booleans", shape, "bool", layout, number=number)


def fill(xp: Any, model: Any) -> Any:
    """Set the same parameters in either framework: uniform, within 1 / sqrt(fan_in)."""
    with xp.no_grad():
        for number, parameter in enumerate(model.parameters()):
            if parameter.ndim < 2:
                values = drawn("uniform", tuple(parameter.shape), "float32", 0.9, 1.1, number)
            else:
                bound = (parameter.numel() / parameter.shape[0]) ** -0.5
                values = drawn("uniform", tuple(parameter.shape), "float32", -bound, bound, number)
            parameter.copy_(xp.from_numpy(values))
    return model
