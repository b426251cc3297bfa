"""Forward and backward passes in another dtype than that of the parameters."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from candelabra import Tensor, dtype
from candelabra.autograd import func as _func  # noqa: F401  (a package is imported before its modules)
from candelabra.autograd.func.modules import functional_call
from candelabra.nn import Module


@dataclass(frozen=True)
class _MixedPrecision:
    """The dtypes of `DistributedDataParallel`, of floating-point tensors only.

    Attributes
    ----------
    param_dtype : dtype, optional
        Of inputs and parameters in the forward and the backward pass. The parameters themselves,
        their gradients and what the optimizer does keep their dtype.
    reduce_dtype : dtype, optional
        In which gradients are averaged; `param_dtype` by default.
    buffer_dtype : dtype, optional
        Of buffers, which are converted once.
    """

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    buffer_dtype: dtype | None = None


def mapped_tensors(value: Any, function: Callable[[Tensor], Tensor]) -> Any:
    """Return nested values with another tensor for each."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, dict):
        return {key: mapped_tensors(each, function) for key, each in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped_tensors(each, function) for each in value))
    if isinstance(value, (list, tuple)):
        return type(value)(mapped_tensors(each, function) for each in value)
    return value


def converted(value: Any, dtype: Any) -> Any:
    """Return nested values with floating-point tensors of another dtype."""
    return mapped_tensors(value, lambda each: each.to(dtype) if each.is_floating_point() else each)


def call_converted(
    module: Module, dtype: Any, ignored: Collection[str], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call a module with inputs and parameters of another dtype.

    The conversions are part of the graph, so that gradients arrive in the parameters' own dtype.
    """
    values = {
        name: parameter.to(dtype)
        for name, parameter in module.named_parameters()
        if parameter.is_floating_point() and name not in ignored
    }
    return functional_call(module, values, converted(args, dtype), converted(kwargs, dtype))


def convert_buffers(module: Module, dtype: Any, ignored: Collection[str]) -> None:
    """Convert a module's floating-point buffers."""
    for name, buffer in module.named_buffers():
        if buffer.is_floating_point() and name not in ignored:
            buffer.data = buffer.to(dtype)
