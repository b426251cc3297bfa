"""Inputs of the conformance suite: small tensors of every dtype and layout, created on any device
without a kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import candelabra

#: Names of dtypes by kind, in which references state what they support.
BOOLEAN = ("bool",)
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
FLOATS = ("float32", "float64", "bfloat16", "float16")
COMPLEX = ("complex64", "complex128")
REAL = INTEGERS + FLOATS
NUMBERS = REAL + COMPLEX
ALL = BOOLEAN + NUMBERS

#: Allowed relative error by dtype: a few units in the last place.
TOLERANCES = {
    "float64": 1e-12, "float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2, "complex64": 2e-5, "complex128": 1e-12,
}  # fmt: skip


@dataclass
class Input:
    """A tensor argument: its values before rounding to the dtype, and its memory layout."""

    values: np.ndarray
    dtype: str
    layout: str = "contiguous"

    def tensor(self, device: str) -> candelabra.Tensor:
        """Return a tensor on `device` with the layout's strides. Views need no kernel, and the host
        converts the data.
        """
        dtype = getattr(candelabra, self.dtype)
        values = self.values
        if self.layout == "transposed":
            return _plain(np.swapaxes(values, 0, -1), dtype, device).transpose(0, -1)
        if self.layout == "strided":
            spread = np.repeat(values, 2, axis=-1)
            return _plain(spread, dtype, device)[..., ::2]
        if self.layout == "expanded":
            return _plain(values[:1], dtype, device).expand(values.shape)
        if self.layout == "offset":
            padded = np.concatenate([values[:1], values], axis=0)
            return _plain(padded, dtype, device)[1:]
        return _plain(values, dtype, device)


def _plain(values: np.ndarray, dtype: candelabra.dtype, device: str) -> candelabra.Tensor:
    tensor = candelabra._C.tensor_from_data(np.ascontiguousarray(values).tolist(), dtype, candelabra.device(device))
    return tensor.view(values.shape)  # nested lists lose the sizes behind a zero


def values_of(tensor: candelabra.Tensor) -> np.ndarray:
    """Return the exact values of a tensor, in the widest dtype of their kind."""
    wide: type[np.generic] = (
        np.complex128 if tensor.dtype.is_complex else np.float64 if tensor.dtype.is_floating_point else np.int64
    )
    if tensor.dtype is candelabra.bool:
        wide = np.bool_
    return np.array(tensor.tolist(), dtype=wide).reshape(tuple(tensor.shape))


@dataclass
class Sample:
    """One call: positional arguments (`Input` for tensors) and keyword arguments."""

    arguments: tuple[Any, ...]
    keywords: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        def show(value: Any) -> str:
            if isinstance(value, Input):
                return f"{value.dtype}{list(value.values.shape)}" + (
                    "" if value.layout == "contiguous" else f" {value.layout}"
                )
            if isinstance(value, (list, tuple)):
                return "[" + ", ".join(map(show, value)) + "]"
            return repr(value)

        parts = [show(value) for value in self.arguments] + [
            f"{name}={show(value)}" for name, value in self.keywords.items()
        ]
        return ", ".join(parts)


Samples = Callable[[np.random.Generator, str], Iterator[Sample]]


@dataclass
class Reference:
    """The expected results of an operator."""

    expected: Callable[
        ..., Any
    ]  # a function of NumPy arrays in the widest dtype; returns an array or a tuple of arrays
    samples: Samples
    dtypes: tuple[str, ...] = FLOATS
    tolerance: float = 1.0  # factor on the dtype's tolerance
    compare: Callable[..., str | None] | None = (
        None  # replaces the comparison by value: returns a message, or None if correct
    )
    #: dtypes that a backend may reject (NotImplementedError)
    optional: tuple[str, ...] = ("float16", "bfloat16")


def numbers(
    rng: np.random.Generator, dtype: str, shape: tuple[int, ...], low: float = -4, high: float = 4
) -> np.ndarray:
    """Return values that the dtype represents."""
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in INTEGERS:
        least = max(low, 0) if dtype == "uint8" else low
        return rng.integers(int(np.ceil(least)), int(high) + 1, shape)
    if dtype in COMPLEX:
        return rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape)
    return rng.uniform(low, high, shape)


SHAPES: tuple[tuple[int, ...], ...] = ((), (1,), (7,), (33,), (3, 5), (2, 3, 4), (0,), (3, 0, 2))


def layouts(rng: np.random.Generator, dtype: str, low: float = -4, high: float = 4) -> Iterator[Input]:
    """Yield tensors of many shapes, and of one shape in many layouts."""
    for shape in SHAPES:
        yield Input(numbers(rng, dtype, shape, low, high), dtype)
    for layout in ("transposed", "strided", "offset"):
        yield Input(numbers(rng, dtype, (4, 6), low, high), dtype, layout)
    row = numbers(rng, dtype, (1, 5), low, high)
    yield Input(np.broadcast_to(row, (4, 5)), dtype, "expanded")


def special_values(dtype: str) -> Iterator[Input]:
    """Yield NaN, infinities and signed zeros, for dtypes that have them."""
    if dtype in FLOATS:
        yield Input(np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5]), dtype)


def pairs(rng: np.random.Generator, dtype: str, low: float = -4, high: float = 4) -> Iterator[tuple[Input, Input]]:
    """Yield two tensors that broadcast, in many shapes and layouts."""
    for a, b in (
        ((), ()), ((5,), (5,)), ((3, 4), (3, 4)), ((3, 1), (1, 4)), ((4,), (3, 4)), ((2, 3, 4), (3, 1)), ((), (3,)), ((0,), (1,)),
        ((2, 0), (2, 0)), ((65,), (65,)),
    ):  # fmt: skip
        yield Input(numbers(rng, dtype, a, low, high), dtype), Input(numbers(rng, dtype, b, low, high), dtype)
    for first, second in (
        ("transposed", "contiguous"),
        ("strided", "transposed"),
        ("transposed", "transposed"),
        ("offset", "strided"),
    ):
        yield (
            Input(numbers(rng, dtype, (4, 6), low, high), dtype, first),
            Input(numbers(rng, dtype, (4, 6), low, high), dtype, second),
        )
