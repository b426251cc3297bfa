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
