"""Operators computed in another precision while a block lasts.

Two kinds of operators have their floating-point arguments cast: products and convolutions to the
fast dtype, where precision is not lost by it, and those that lose it (factorizations, transforms,
logarithmic losses) to float32. All others compute in the dtypes that they are given, promoted as
usual. float64 is never cast, nor is anything in place or with ``out=``. Source: Micikevicius et
al., "Mixed precision training", 2017.
"""

from __future__ import annotations

import functools
import threading
from contextlib import suppress

from candelabra import _C, backends, dispatch_hooks
from candelabra.catalogue import FACTS, OPERATORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from candelabra._C import Tensor, dtype

#: What each device type computes in unless told otherwise.
FAST = {"cpu": _C.bfloat16}
SUPPORTED = (_C.bfloat16, _C.float16)


#: Custom operators with the dtype that they are computed in, by device type.
_CUSTOM: dict[int, dict[str, dtype]] = {}
#: Functions that are called in place of custom operators, by device type.
_FUNCTIONS: dict[int, dict[str, Callable[..., Any]]] = {}
#: What a row of the catalogue says of casts: the dtype (None: the fast one of the device), and
#: whether on the CPU too. None for the widest dtype among the arguments.
_POLICIES: dict[str, tuple[dtype | None, bool] | None] = {
    "lower": (None, True),
    "float32": (_C.float32, True),
    "lower on accelerators": (None, False),
    "float32 on accelerators": (_C.float32, False),
    "widest on accelerators": None,
}
#: The policies of the operators that are cast, by identity.
_BY_OPERATOR = {id(OPERATORS[name]): _POLICIES[facts.autocast] for name, facts in FACTS.items() if facts.autocast}


class _Thread(threading.local):
    def __init__(self) -> None:
        self.enabled: dict[str, bool] = {}
        self.dtypes: dict[str, dtype] = {}
        self.nesting = 0
        self.caching = True
        #: Parameters that were cast in this block: the tensor, its version, and what it became.
        self.cache: dict[tuple[int, dtype], tuple[Tensor, int, Tensor]] = {}


_thread = _Thread()


def _cast(value: Any, goal: dtype | None, is_anywhere: bool = True) -> Any:
    """An argument in the dtype that its operator is computed in: the fast one of its device where
    `goal` is None.
    """
    if isinstance(value, (list, tuple)):
        entries = [_cast(entry, goal, is_anywhere) for entry in value]
        return value if all(a is b for a, b in zip(entries, value)) else tuple(entries)
    if not isinstance(value, _C.Tensor) or not value.dtype.is_floating_point or value.dtype == _C.float64:
        return value
    kind = value.device.type
    if not _thread.enabled.get(kind) or (kind == "cpu" and not is_anywhere):
        return value
    goal = get_autocast_dtype(kind) if goal is None else goal
    if value.dtype == goal:
        return value
    if not (
        _thread.caching and value.requires_grad and value.is_leaf and value.dtype == _C.float32 and _C.is_grad_enabled()
    ):
        return value.to(goal)
    key = (id(value), goal)
    known = _thread.cache.get(key)
    if known is not None and known[0] is value and known[1] == value._version:
        return known[2]
    made = value.to(goal)
    _thread.cache[key] = (value, value._version, made)
    return made


def _casting(operator: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...] | Callable[[], Any] | None:
    number = id(operator)
    if number in _FUNCTIONS:
        call = _replaced(operator, arguments)
        if call is not None:
            return call
    if number in _BY_OPERATOR:
        policy = _BY_OPERATOR[number]
        if policy is None:
            return _widest(arguments)
        goal, is_anywhere = policy
        changed = tuple([_cast(value, goal, is_anywhere) for value in arguments])
    elif number in _CUSTOM:
        goals = _CUSTOM[number]
        changed = tuple([_cast_by_device(value, goals) for value in arguments])
    else:
        return None
    return None if all(a is b for a, b in zip(changed, arguments)) else changed


def _replaced(operator: Any, arguments: tuple[Any, ...]) -> Callable[[], Any] | None:
    """Return the call that a registered function makes of a call, or None if none is registered for
    the device.
    """
    kinds = {value.device.type for value in arguments if isinstance(value, _C.Tensor)}
    for kind, function in _FUNCTIONS[id(operator)].items():
        if kind in kinds and _thread.enabled.get(kind):
            count = operator.positional_count
            names = dict(zip(operator.parameters[count:], arguments[count:]))
            return functools.partial(function, *arguments[:count], **names)
    return None


def _widest(arguments: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return the arguments in the widest dtype among them where they are on accelerators whose
    calls are autocast.
    """
    tensors = [value for value in arguments if isinstance(value, _C.Tensor) and value.dtype.is_floating_point]
    if not tensors or not all(
        value.device.type != "cpu" and _thread.enabled.get(value.device.type) for value in tensors
    ):
        return None
    goal = functools.reduce(_C.promote_types, [value.dtype for value in tensors])
    return tuple([_cast(value, goal) for value in arguments])


def cast_as(policy: str, arguments: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return the arguments of a function made of operators as `dispatch_hooks.computed` has them
    cast, or None where it does not.
    """
    if policy == "widest on accelerators":
        return _widest(arguments)
    everywhere = policy == "lower"
    kinds = {value.device.type for value in arguments if isinstance(value, _C.Tensor)}
    if not any(_thread.enabled.get(kind) and (kind != "cpu" or everywhere) for kind in kinds):
        return None
    return (
        arguments
        if policy == "as given on accelerators"
        else tuple([_cast(value, None, everywhere) for value in arguments])
    )


def _cast_by_device(value: Any, goals: dict[str, dtype]) -> Any:
    if isinstance(value, (list, tuple)):
        entries = [_cast_by_device(entry, goals) for entry in value]
        return value if all(a is b for a, b in zip(entries, value)) else tuple(entries)
    goal = goals.get(value.device.type) if isinstance(value, _C.Tensor) else None
    return value if goal is None else _cast(value, goal)


def register_operator(operator: _C.Operator, device_type: str, goal: dtype) -> None:
    """Have a custom operator computed in a dtype where calls are autocast on a device type."""
    _CUSTOM.setdefault(id(operator), {})[device_type] = goal


def register_function(operator: _C.Operator, device_type: str, function: Callable[..., Any]) -> None:
    """Have a function called in place of a custom operator where calls are autocast on a device
    type.
    """
    _FUNCTIONS.setdefault(id(operator), {})[device_type] = function


def _refresh() -> None:
    dispatch_hooks.set_casting(_casting if any(_thread.enabled.values()) else None, cast_as)


# ---- the state of this thread


def is_autocast_available(device_type: str) -> bool:
    """Tell whether operators of a device type can be autocast.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.amp.is_autocast_available("cpu")
    True
    """
    if device_type in FAST or device_type == "meta":
        return device_type in FAST
    return device_type in _C.loaded_device_types() or device_type in backends.installed()


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Tell whether operators of a device type (of any, where none is said) are autocast on this
    thread.

    Examples
    --------
    >>> import candelabra
    >>> with candelabra.autocast("cpu"):
    ...     candelabra.is_autocast_enabled("cpu")
    True
    """
    return any(_thread.enabled.values()) if device_type is None else _thread.enabled.get(device_type, False)


def set_autocast_enabled(device_type: str, enabled: bool) -> None:
    """Say whether operators of a device type are autocast on this thread; `autocast` does it for a
    block.
    """
    _thread.enabled[device_type] = bool(enabled)
    _refresh()


def get_autocast_dtype(device_type: str) -> dtype:
    """Give the fast dtype of a device type on this thread.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.get_autocast_dtype("cpu")
    candelabra.bfloat16
    """
    return _thread.dtypes.get(device_type) or FAST.get(device_type, _C.float16)


def set_autocast_dtype(device_type: str, dtype: dtype) -> None:
    """Set the fast dtype of a device type on this thread."""
    _thread.dtypes[device_type] = dtype


def is_autocast_cache_enabled() -> bool:
    """Tell whether parameters are cast once a block instead of at each use."""
    return _thread.caching


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Say whether parameters are cast once a block instead of at each use."""
    _thread.caching = bool(enabled)


def clear_autocast_cache() -> None:
    """Forget the parameters that were cast in this block."""
    _thread.cache.clear()


class autocast:
    """Compute matrix products and convolutions in a fast dtype within a block, and what loses
    precision by that in float32.

    A context manager, and a decorator of functions. Blocks may lie within each other; each holds
    for its thread alone.

    Parameters
    ----------
    device_type : str
        Whose operators: ``"cpu"``.
    dtype : dtype, optional
        ``bfloat16`` (the CPU's default) or ``float16``. Others are not autocast to: a warning says
        so.
    enabled : bool
        False leaves dtypes alone within the block, inside of another one as well.
    cache_enabled : bool, optional
        Whether a parameter is cast once in the outermost block instead of at each use.

    Raises
    ------
    ValueError
        When `device_type` is no text.
    RuntimeError
        When there is no such device.

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.ones(2, 2)
    >>> with candelabra.autocast("cpu"):
    ...     (x @ x).dtype
    candelabra.bfloat16
    """

    def __init__(
        self, device_type: str, dtype: dtype | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if device_type == "cuda" and not is_autocast_available(device_type):
            # Programs say it on machines without a GPU as well.
            if enabled:
                _C.warn("User provided device_type of 'cuda', but CUDA is not available. Disabling")
            enabled = False
        elif not is_autocast_available(device_type):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self.device = device_type
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self._cache_enabled = is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        if enabled and self.fast_dtype not in SUPPORTED:
            name = device_type.upper()
            _C.warn(
                f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{name} Autocast only supports dtypes of {', '.join(map(str, SUPPORTED))} currently.",
            )
            enabled = False
        self._enabled = enabled
        #: What held before each block that is open: enabled, fast dtype, caching.
        self._before: list[tuple[bool, Any, bool]] = []

    def __enter__(self) -> autocast:
        thread = _thread
        self._before.append((thread.enabled.get(self.device, False), thread.dtypes.get(self.device), thread.caching))
        thread.nesting += 1
        thread.caching = self._cache_enabled
        set_autocast_dtype(self.device, self.fast_dtype)
        set_autocast_enabled(self.device, self._enabled)
        return self

    def __exit__(self, *error: object) -> None:
        thread = _thread
        enabled, fast, caching = self._before.pop()
        thread.nesting -= 1
        if thread.nesting == 0:
            clear_autocast_cache()
        thread.caching = caching
        if fast is None:
            with suppress(KeyError):
                del thread.dtypes[self.device]
        else:
            thread.dtypes[self.device] = fast
        set_autocast_enabled(self.device, enabled)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate a function: its calls are done within a block."""

        @functools.wraps(function)
        def decorated(*arguments: Any, **names: Any) -> Any:
            with self:
                return function(*arguments, **names)

        return decorated
