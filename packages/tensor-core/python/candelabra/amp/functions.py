"""Functions of the tape with formulas of their own, within autocast blocks."""

from __future__ import annotations

import functools

from candelabra import _C

from .autocasting import autocast, get_autocast_dtype, is_autocast_enabled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: Any = None
) -> Callable[..., Any]:
    """Decorate the ``forward`` of a custom autograd function, so that it knows what it was called
    in.

    Parameters
    ----------
    fwd : callable, optional
        The function; without it a decorator is returned.
    device_type : str
        Whose autocast state counts.
    cast_inputs : dtype, optional
        Within an autocast block floating-point tensors come in this dtype, and the function itself
        is not autocast.

    Examples
    --------
    >>> import candelabra
    >>> @candelabra.amp.custom_fwd(device_type="cpu", cast_inputs=candelabra.float32)
    ... def forward(ctx, x):
    ...     return x.dtype
    >>> with candelabra.autocast("cpu"):
    ...     forward(type("Context", (), {})(), candelabra.ones(2, dtype=candelabra.bfloat16))
    candelabra.float32
    """
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    forward = fwd

    @functools.wraps(forward)
    def decorated(*arguments: Any, **names: Any) -> Any:
        context = arguments[0]
        context._dtype = get_autocast_dtype(device_type)
        enabled = is_autocast_enabled(device_type)
        context._fwd_used_autocast = enabled and cast_inputs is None
        if cast_inputs is None or not enabled:
            return forward(*arguments, **names)
        with autocast(device_type, enabled=False):
            return forward(*_cast(arguments, device_type, cast_inputs), **_cast(names, device_type, cast_inputs))

    return decorated


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Callable[..., Any]:
    """Decorate the ``backward`` of a custom autograd function: it is autocast as its ``forward``
    was.

    Parameters
    ----------
    bwd : callable, optional
        The function; without it a decorator is returned.
    device_type : str
        Whose operators.

    Examples
    --------
    >>> import candelabra
    >>> @candelabra.amp.custom_bwd(device_type="cpu")
    ... def backward(ctx, grad):
    ...     return (grad @ grad).dtype
    >>> context = type("Context", (), {"_fwd_used_autocast": True, "_dtype": candelabra.float16})()
    >>> backward(context, candelabra.ones(2, 2))
    candelabra.float16
    """
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    backward = bwd

    @functools.wraps(backward)
    def decorated(*arguments: Any, **names: Any) -> Any:
        context = arguments[0]
        with autocast(device_type, enabled=context._fwd_used_autocast, dtype=context._dtype):
            return backward(*arguments, **names)

    return decorated


def _cast(value: Any, device_type: str, dtype: Any) -> Any:
    """All floating-point tensors of a device in nested lists and dicts, but float64, in another
    dtype.
    """
    if isinstance(value, _C.Tensor):
        fits = value.dtype.is_floating_point and value.device.type == device_type and value.dtype != _C.float64
        return value.to(dtype) if fits else value
    if isinstance(value, dict):
        return {key: _cast(entry, device_type, dtype) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(entry, device_type, dtype) for entry in value)
    return value
