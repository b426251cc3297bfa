"""How a kernel of this package is written: a function of NumPy arrays that returns the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import candelabra

#: The kernels by operator name, as the core is to call them.
KERNELS: dict[str, Callable[..., None]] = {}


def array(value: Any) -> Any:
    """The NumPy array on a tensor's memory; tensors in lists too; anything else as it is."""
    if isinstance(value, candelabra.Tensor):
        if value.dtype is candelabra.bfloat16:
            raise NotImplementedError("the numpy backend has no bfloat16, since NumPy has none; use float32")
        return value.detach().numpy()
    if isinstance(value, tuple):
        return tuple(array(element) for element in value)
    return value


def kernel(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register ``f(*arguments) -> result`` under these operator names. It gets arrays; what it returns is written to the output."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(out: Any, *arguments: Any, **keywords: Any) -> None:
            with np.errstate(all="ignore"):
                results = function(*map(array, arguments), **keywords)
                if isinstance(out, tuple):
                    for target, result in zip(out, results, strict=True):
                        array(target)[...] = result
                else:
                    array(out)[...] = results

        for name in names:
            KERNELS[name] = call
        return function

    return register


def matrix_kernel(name: str, inner: tuple[int, ...] = (2,)) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register ``f(*arguments) -> results`` for one matrix; it is called for each of the batch.

    `inner` has, for each of the tensors that come first, how many of its last dimensions are one item of the batch, which is the same
    for all. A result that is None belongs to an output that nobody asked for.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(out: Any, *arguments: Any) -> None:
            outputs = array(out) if isinstance(out, tuple) else (array(out),)
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
