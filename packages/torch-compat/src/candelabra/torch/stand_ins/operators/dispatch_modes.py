"""``torch.utils._python_dispatch.TorchDispatchMode``: its ``__torch_dispatch__`` is given ATen's
overloads, such as ``torch.ops.aten.addmm.default``, with ATen's arguments.

Candelabra's own modes are given overloads of its operators, with the arguments of these.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import candelabra
import candelabra.library
from candelabra import python_dispatch
from candelabra.library.aten_dispatch import operator_of

__all__ = ["BaseTorchDispatchMode", "TorchDispatchMode"]

#: A call by ATen's names: the operator, its overload, the arguments, and what converts the mode's
#: result to the operator's.
Call = tuple[str, str, tuple[Any, ...], dict[str, Any], Callable[[Any], Any] | None]


def _convolution(x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Call:  # fmt: skip
    dims = weight.ndim - 2
    windows = [list(each) if isinstance(each, (tuple, list)) else [each] * dims for each in (stride, padding, dilation)]
    return "convolution", "default", (x, weight, bias, *windows, False, [0] * dims, groups), {}, None


def _linear(x: Any, weight: Any, bias: Any = None) -> Call:
    rows = x if x.ndim == 2 else x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
    finish = None if x.ndim == 2 else lambda result: result.view(*x.shape[:-1], weight.shape[0])
    if bias is None:
        return "mm", "default", (rows, weight.t()), {}, finish
    return "addmm", "default", (bias, rows, weight.t()), {}, finish


def _max_pool(x: Any, kernel_size: Any, *rest: Any) -> Call:
    return f"max_pool{len(kernel_size)}d_with_indices", "default", (x, kernel_size, *rest), {}, None


def _max_pool_values(x: Any, kernel_size: Any, *rest: Any) -> Call:
    return *_max_pool(x, kernel_size, *rest)[:-1], lambda result: result[0]


def _max(x: Any, *rest: Any) -> Call:
    return "max", "dim", (x, *rest), {}, None


def _min(x: Any, *rest: Any) -> Call:
    return "min", "dim", (x, *rest), {}, None


def _narrow(x: Any, dim: int, start: int, length: int) -> Call:
    return "slice", "Tensor", (x, dim, start, start + length), {}, None


def _slice(*args: Any) -> Call:
    return "slice", "Tensor", args, {}, None


def _reshape(x: Any, shape: Any) -> Call:
    return "view", "default", (x, list(shape)), {}, None


def _copy(x: Any, source: Any, non_blocking: bool = False) -> Call:
    return "copy_", "default", (x, source, non_blocking)[: 3 if non_blocking else 2], {}, None


def _to(x: Any, *targets: Any) -> Call:
    changes: dict[str, Any] = {}
    for target in targets:
        if isinstance(target, candelabra.Tensor):
            changes.update(dtype=target.dtype, device=target.device)
        elif isinstance(target, candelabra.dtype):
            changes["dtype"] = target
        elif target is not None:
            changes["device"] = candelabra.device(target)
    if all(getattr(x, name) == value for name, value in changes.items()):
        return "to", "device", (x, *targets), {}, None
    return "_to_copy", "default", (x,), changes, None


def _dropout(x: Any, p: float) -> Call:
    return "native_dropout", "default", (x, p, True), {}, None


def _group_norm(x: Any, weight: Any, bias: Any, groups: int, eps: float) -> Call:
    samples, channels = x.shape[:2]
    sizes = (samples, channels, math.prod(x.shape[2:]))
    return "native_group_norm", "default", (x, weight, bias, *sizes, groups, eps), {}, None


#: By Candelabra's operators whose names or arguments are others than ATen's.
_OTHERS: dict[str, Callable[..., Call]] = {
    "convolution": _convolution,
    "copy_": _copy,
    "linear": _linear,
    "max_pool": _max_pool,
    "max_pool_values": _max_pool_values,
    "max_with_indices": _max,
    "min_with_indices": _min,
    "narrow": _narrow,
    "native_dropout": _dropout,
    "native_group_norm": _group_norm,
    "reshape": _reshape,
    "slice": _slice,
    "to": _to,
}
#: The arguments of ATen's operators of the same names, where they are more: these calls are ATen's.
_OF_ATEN = {"convolution": 9, "native_dropout": 3, "native_group_norm": 8}
#: The overloads that reduce a list of dimensions.
_OF_DIMS = {"dim_IntList", "dim", "dims", "correction"}
#: Reductions that take a list of dimensions.
_OF_SEVERAL_DIMS = {"amax", "amin", "logsumexp", "mean", "nansum", "std", "sum", "var"}


def _by_aten(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return ATen's overload, its arguments, and the conversion of the result, or None where the
    call is ATen's already.
    """
    operator = operator_of(func)
    name = getattr(operator, "name", None)
    aten = candelabra.ops.aten
    if name in _OTHERS and not kwargs and len(args) != _OF_ATEN.get(name):
        name, overload, args, kwargs, finish = _OTHERS[name](*args)
        return getattr(getattr(aten, name), overload), args, kwargs, finish
    if name == "sub" and not isinstance(args[0], candelabra.Tensor):
        return aten.rsub.Scalar, (args[1], args[0]), kwargs, None
    if name in _OF_SEVERAL_DIMS and len(args) > 1 and isinstance(args[1], int) and func._overloadname in _OF_DIMS:
        return func, (args[0], [args[1]], *args[2:]), kwargs, None
    return None


def _given_overloads(dispatch: Callable[..., Any]) -> Callable[..., Any]:
    """Return a ``__torch_dispatch__`` that gives another one ATen's overloads."""

    @functools.wraps(dispatch)
    def given(self: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        call = _by_aten(func, args, kwargs or {})
        if call is None:
            return dispatch(self, func, types, args, kwargs)
        overload, args, kwargs, finish = call
        result = dispatch(self, overload, types, args, kwargs)
        return result if finish is None or result is NotImplemented else finish(result)

    return given


class TorchDispatchMode(python_dispatch.TorchDispatchMode):
    """A context in which all operators go to ``__torch_dispatch__`` of the mode, of this thread.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.torch.stand_ins.operators.dispatch_modes import TorchDispatchMode
    >>> class Names(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func)
    ...         return func(*args, **(kwargs or {}))
    >>> x = candelabra.ones(2, 2)
    >>> with Names():
    ...     y = (x + 1).sum(0)
    aten.add.Tensor
    aten.sum.dim_IntList
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        found = vars(cls).get("__torch_dispatch__")
        if isinstance(found, classmethod):
            cls.__torch_dispatch__ = classmethod(_given_overloads(found.__func__))  # type: ignore[assignment, method-assign]
        elif found is not None:
            cls.__torch_dispatch__ = _given_overloads(found)  # type: ignore[method-assign]


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that calls every operator as it is."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))
