"""Who sees calls of operators before they run: autocasting first, then the levels and the observer
of candelabra.autograd.

The core has one place for a dispatch hook on each thread (``_C.set_dispatch_hook``); this module
shares it out. While nobody is there, a call of an operator pays for one comparison and nothing here
runs.
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
    Casting = Callable[[Any, tuple[Any, ...]], "tuple[Any, ...] | None"]


class _Thread(threading.local):
    casting: Casting | None = None
    inner: DispatchHook | None = None
    #: Whether a call is being done with arguments that were cast.
    busy = False


_thread = _Thread()


def set_inner(dispatch_hook: DispatchHook | None) -> None:
    """Set who sees calls last on this thread, or None."""
    _thread.inner = dispatch_hook
    _refresh()


def set_casting(casting: Casting | None) -> None:
    """Set the function of an operator and its arguments that returns other arguments, or None to
    leave them; or no function.
    """
    _thread.casting = casting
    _refresh()


def _refresh() -> None:
    _C.set_dispatch_hook(_thread.inner if _thread.casting is None else _dispatch)


def _dispatch(operator: Any, arguments: tuple[Any, ...], out: Any, generator: Any, record: bool) -> Any:
    casting = _thread.casting
    # What does not record is the inside of something that was looked at already; so is what a cast
    # call itself calls.
    if casting is not None and record and out is None and not _thread.busy:
        _thread.busy = True
        try:
            changed = casting(operator, arguments)
            if changed is not None:
                return operator.again(changed, out, generator)
        finally:
            _thread.busy = False
    inner = _thread.inner
    return NotImplemented if inner is None else inner(operator, arguments, out, generator, record)


def in_full_precision(tensor: Any) -> Any:
    """A tensor of a half precision as float32 where calls are autocast on this thread; for
    functions that would refuse it otherwise.
    """
    if _thread.casting is None or tensor.dtype.itemsize != 2 or not tensor.dtype.is_floating_point:
        return tensor
    return tensor.to(_C.float32)


def full_precision(function: _Function) -> _Function:
    """Decorate a function made of operators that loses precision in a half dtype: where calls are
    autocast, its tensors come as float32.
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
    """Decorate a function made of operators that autocasting takes for one: its tensors are cast,
    and nothing inside of it is.

    Parameters
    ----------
    policy : str
        ``"fast"``: to the fast dtype; ``"fast on accelerators"``: there only; ``"widest on
        accelerators"``: to the widest among them; ``"as given on accelerators"``: not at all.
    """

    def decorate(function: _Function) -> _Function:
        @functools.wraps(function)
        def decorated(*arguments: Any, **names: Any) -> Any:
            if _thread.casting is None or _thread.busy or names.get("out") is not None:
                return function(*arguments, **names)
            from candelabra.amp import autocasting

            cast = autocasting.cast_as(policy, arguments)
            if cast is None:
                return function(*arguments, **names)
            _thread.busy = True
            try:
                return function(*cast, **names)
            finally:
                _thread.busy = False

        return decorated  # type: ignore[return-value]

    return decorate
