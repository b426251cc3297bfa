"""Registration of this package's kernels: functions of NumPy arrays that return the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import candelabra

#: The kernels by operator name, in the form that the core calls.
KERNELS: dict[str, Callable[..., None]] = {}


def array(value: Any) -> Any:
    """Return the NumPy array on a tensor's memory, also for tensors in lists; other values are
    returned unchanged. NumPy has no bfloat16: the result for such a tensor is a float32 copy, which
    `store` rounds back.

    NumPy has no bfloat16: what is returned of such a tensor is a copy in float32, which `store`
    rounds back.
    """
    if isinstance(value, candelabra.Tensor):
        if value.dtype is candelabra.bfloat16:
            # A shifted zero-dimensional array is a scalar.
            return np.asarray(bits(value).astype(np.uint32) << 16).view(np.float32)
        return value.detach().numpy()
    if isinstance(value, tuple):
        return tuple(array(element) for element in value)
    return value


def bits(tensor: candelabra.Tensor) -> Any:
    """Return the upper halves of float32 numbers, which are a bfloat16 tensor's memory."""
    return tensor.detach().view(candelabra.int16).numpy().view(np.uint16)


def store(tensor: candelabra.Tensor, values: Any) -> None:
    """Write values into a tensor; bfloat16 is rounded to nearest, ties to even."""
    if tensor.dtype is not candelabra.bfloat16:
        array(tensor)[...] = values
        return
    wide = np.asarray(values, np.float32)
    words = wide.view(np.uint32).astype(np.uint64)
    rounded = (words + 0x7FFF + (words >> 16 & 1)) >> 16
    bits(tensor)[...] = np.where(np.isnan(wide), 0x7FC0, rounded).astype(np.uint16)


def memory(value: Any) -> Any:
    """Return the arrays of tensors that are changed in place."""
    tensors = value if isinstance(value, tuple) else (value,)
    if any(tensor.dtype is candelabra.bfloat16 for tensor in tensors):
        raise NotImplementedError(
            "the numpy backend does not change bfloat16 in place, since NumPy has none; use float32"
        )
    return array(value)


def kernel(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register ``f(*arguments) -> result`` under these operator names. It gets arrays; its result
    is written to the output.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(out: Any, *arguments: Any, **keywords: Any) -> None:
            with np.errstate(all="ignore"):
                results = function(*map(array, arguments), **keywords)
                if isinstance(out, tuple):
                    for target, result in zip(out, results, strict=True):
                        store(target, result)
                else:
                    store(out, results)

        for name in names:
            KERNELS[name] = call
        return function

    return register


def matrix_kernel(name: str, inner: tuple[int, ...] = (2,)) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register ``f(*arguments) -> results`` for one matrix; it is called for each of the batch.

    `inner` has, for each of the tensors that come first, how many of its last dimensions are one
    item of the batch, which is the same for all. A result that is None belongs to an output that
    nobody asked for.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(out: Any, *arguments: Any) -> None:
            outputs = memory(out) if isinstance(out, tuple) else (memory(out),)
            tensors, options = [array(a) for a in arguments[: len(inner)]], arguments[len(inner) :]
            with np.errstate(all="ignore"):
                for place in np.ndindex(tensors[0].shape[: tensors[0].ndim - inner[0]]):
                    results = function(*(tensor[place] for tensor in tensors), *options)
                    for output, result in zip(outputs, results if isinstance(out, tuple) else (results,), strict=True):
                        if result is not None:
                            output[place] = result

        KERNELS[name] = call
        return function

    return register
