"""Dispatch hooks, which see operator calls before they run: first autocasting, then the functorch
layers and the observer of candelabra.autograd.

The core has one dispatch hook per thread (``_C.set_dispatch_hook``), and this module combines
several. Without a hook, a call pays for one comparison.
"""

from __future__ import annotations

import functools
import threading

from candelabra import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    _Function = TypeVar("_Function", bound=Callable[..., Any])
    DispatchHook = Callable[[Any, tuple[Any, ...], Any, Any, bool], Any]
    Casting = Callable[[Any, tuple[Any, ...]], "tuple[Any, ...] | Callable[[], Any] | None"]
    CastingOfFunctions = Callable[[str, tuple[Any, ...]], "tuple[Any, ...] | None"]


class _Thread(threading.local):
    casting: Casting | None = None
    #: Set together with `casting`.
    cast_as: CastingOfFunctions
    inner: DispatchHook | None = None
    #: Whether a call with cast arguments is running.
    busy = False


_thread = _Thread()


def set_inner(dispatch_hook: DispatchHook | None) -> None:
    """Set the innermost hook of this thread, or None."""
    _thread.inner = dispatch_hook
    _refresh()


def set_casting(casting: Casting | None, cast_as: CastingOfFunctions) -> None:
    """Set who casts the arguments of calls on this thread.

    Parameters
    ----------
    casting
        Takes an operator and its arguments, and returns other arguments, or a call to be made
        instead, or None to leave them. None where nothing is cast.
    cast_as
        The same for functions made of operators, by the policy that :func:`computed` says.
    """
    _thread.casting, _thread.cast_as = casting, cast_as
    _refresh()


def _refresh() -> None:
    _C.set_dispatch_hook(_thread.inner if _thread.casting is None else _dispatch)


def _dispatch(operator: Any, arguments: tuple[Any, ...], out: Any, generator: Any, record: bool) -> Any:
    casting = _thread.casting
    # Calls that are not recorded are part of a call that was cast already, like those within a cast
    # call.
    if casting is not None and record and out is None and not _thread.busy:
        _thread.busy = True
        try:
            changed = casting(operator, arguments)
            if changed is not None:
                return changed() if callable(changed) else operator.again(changed, out, generator)
        finally:
            _thread.busy = False
    inner = _thread.inner
    return NotImplemented if inner is None else inner(operator, arguments, out, generator, record)


def in_full_precision(tensor: Any) -> Any:
    """Convert a tensor of half precision to float32 under autocast, for functions that do not
    support half precision.
    """
    if _thread.casting is None or tensor.dtype.itemsize != 2 or not tensor.dtype.is_floating_point:
        return tensor
    return tensor.to(_C.float32)


def full_precision(function: _Function) -> _Function:
    """Decorate a composite function that loses precision in half precision: under autocast its
    tensors are converted to float32.
    """

    @functools.wraps(function)
    def decorated(*arguments: Any, **names: Any) -> Any:
        if _thread.casting is None:
            return function(*arguments, **names)
        arguments = tuple([in_full_precision(value) if isinstance(value, _C.Tensor) else value for value in arguments])
        names = {
            name: in_full_precision(value) if isinstance(value, _C.Tensor) else value for name, value in names.items()
        }
        return function(*arguments, **names)

    return decorated  # type: ignore[return-value]


def computed(policy: str) -> Callable[[_Function], _Function]:
    """Decorate a composite function that autocast treats like an operator: its tensors are cast,
    and calls within it are not.

    Parameters
    ----------
    policy : str
        As in the rows of the catalogue: ``"lower"``, ``"lower on accelerators"`` or ``"widest on
        accelerators"``; or ``"as given on accelerators"``: nothing is cast there.
    """

    def decorate(function: _Function) -> _Function:
        @functools.wraps(function)
        def decorated(*arguments: Any, **names: Any) -> Any:
            if _thread.casting is None or _thread.busy or names.get("out") is not None:
                return function(*arguments, **names)
            cast = _thread.cast_as(policy, (*arguments, *names.values()))
            if cast is None:
                return function(*arguments, **names)
            count = len(arguments)
            named = dict(zip(names, cast[count:], strict=True))
            _thread.busy = True
            try:
                return function(*cast[:count], **named)
            finally:
                _thread.busy = False

        return decorated  # type: ignore[return-value]

    return decorate
