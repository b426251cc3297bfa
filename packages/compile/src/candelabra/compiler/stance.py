"""Switches: where nothing is compiled."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any, Self

from candelabra import _C

#: What `set_stance` takes, and whether programs are replayed, and made.
_STANCES = {
    "default": (True, True),
    "force_eager": (False, False),
    "eager_on_recompile": (True, False),
    "fail_on_recompile": (True, True),
}


class _Thread(threading.local):
    stance = "default"
    disabled = 0
    exporting = 0


_thread = _Thread()


def may_record() -> bool:
    """Return whether this thread records calls of compiled functions."""
    return _thread.disabled == 0 and _STANCES[_thread.stance][1]


def check_recording_allowed(name: str) -> None:
    """Raise RuntimeError if a call would be recorded where that is an error."""
    if _thread.stance == "fail_on_recompile":
        raise RuntimeError(f"{name} has no program for this call, and the stance is 'fail_on_recompile'")


def _apply() -> None:
    _C.set_replaying(_thread.disabled == 0 and _STANCES[_thread.stance][0])


class set_stance:
    """Set how compiled functions are called, for this thread.

    With ``"force_eager"`` all calls run as written. With ``"eager_on_recompile"`` programs are
    replayed and none is made; with ``"fail_on_recompile"`` a call that would be recorded raises.
    The class is called as a function, a context manager or a decorator.

    Raises
    ------
    ValueError
        If there is no such stance, or one that is not supported.

    Examples
    --------
    >>> import candelabra
    >>> with candelabra.compiler.set_stance("force_eager"):
    ...     candelabra.compile(lambda x: x + 1)(candelabra.ones(1))
    tensor([2.])
    """

    def __init__(
        self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None
    ) -> None:
        if stance not in _STANCES:
            raise ValueError(f"invalid stance {stance!r}; there are {', '.join(_STANCES)}")
        if skip_guard_eval_unsafe:
            raise ValueError("skip_guard_eval_unsafe=True is not supported: guards are always checked")
        if force_backend is not None:
            raise ValueError("force_backend is not supported: there is one backend")
        self._stance = stance
        self._before = _thread.stance
        _thread.stance = stance
        _apply()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        _thread.stance = self._before
        _apply()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        _thread.stance = self._before
        _apply()

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            with set_stance(self._stance):
                return function(*args, **kwargs)

        return called


def disable(fn: Callable[..., Any] | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Return a function that is never compiled, and that ends the recording of one that calls it.

    Also usable as a decorator with options.

    Examples
    --------
    >>> import candelabra
    >>> @candelabra.compiler.disable
    ... def show(x):
    ...     return x.tolist()
    >>> show(candelabra.ones(1))
    [1.0]
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    if hasattr(fn if isinstance(fn, type) else type(fn), "named_parameters"):
        # A module stays what it is; its calls are disabled.
        fn.forward = disable(fn.forward, recursive, reason=reason)  # type: ignore[attr-defined]
        return fn

    @functools.wraps(fn)
    def called(*args: Any, **kwargs: Any) -> Any:
        if _C.is_recording():
            _C.refuse_recording(f"{getattr(fn, '__qualname__', fn)} is marked by candelabra.compiler.disable")
        _thread.disabled += 1
        _apply()
        try:
            return fn(*args, **kwargs)
        finally:
            _thread.disabled -= 1
            _apply()

    called._candelabra_disabled = True  # type: ignore[attr-defined]
    return called


def is_compiling() -> bool:
    """Return whether the caller runs inside a call that is recorded or exported."""
    return _thread.exporting > 0 or bool(_C.is_recording())


def is_exporting() -> bool:
    """Return whether the caller runs inside a call that is exported."""
    return _thread.exporting > 0


@contextlib.contextmanager
def exporting() -> Iterator[None]:
    """Let `is_exporting` return True on this thread, and compile nothing."""
    _thread.exporting += 1
    _thread.disabled += 1
    _apply()
    try:
        yield
    finally:
        _thread.exporting -= 1
        _thread.disabled -= 1
        _apply()


def allow_in_graph(fn: Any) -> Any:
    """Return the function unchanged: every operator that it calls is recorded."""
    return fn


def cudagraph_mark_step_begin() -> None:
    """Do nothing: results of replays are always new tensors."""
