"""Whether operations are recorded on the tape: switches that are context managers and decorators
alike, one state a thread.
"""

from __future__ import annotations

import functools

from candelabra import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class _Decorator:
    """A context manager that decorates functions: they run inside of another one like it."""

    __slots__ = ()

    def _again(self) -> Any:
        return type(self)()

    def __call__(self, function: Decorated) -> Decorated:
        if isinstance(function, type):
            # As in PyTorch, this gives a function that makes instances within the mode.
            _C.warn(
                "Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions or "
                "methods. To preserve the current behavior of class decoration, you can directly decorate the `__init__` method and "
                "nothing else.",
                FutureWarning,
            )
        return _decorated(self._again, function)

    @classmethod
    def _decorate(cls, function: Any) -> Any:
        return _decorated(cls, function)


class _Switch(_Decorator):
    """A state that is entered and left; one instance may be entered again inside of itself."""

    __slots__ = ("_previous",)

    def __init__(self) -> None:
        self._previous: list[Any] = []

    def _enter(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not say what it switches")

    def _leave(self, previous: Any) -> None:
        _C.set_grad_enabled(previous)

    def __enter__(self) -> None:
        self._previous.append(self._enter())

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._leave(self._previous.pop())


def _decorated(make: Callable[[], Any], function: Any) -> Any:
    if _is_generator_function(function):
        return _decorated_generator(make, function)

    @functools.wraps(function)
    def switched(*arguments: Any, **keywords: Any) -> Any:
        with make():
            return function(*arguments, **keywords)

    return switched


def _is_generator_function(function: Any) -> bool:
    code = getattr(function, "__code__", None)
    return code is not None and bool(code.co_flags & 0x20)


def _decorated_generator(make: Callable[[], Any], function: Any) -> Any:
    # The state holds while the generator runs, and not between, while its caller does.
    @functools.wraps(function)
    def switched(*arguments: Any, **keywords: Any) -> Any:
        generator = function(*arguments, **keywords)
        resume, value = generator.send, None
        while True:
            try:
                with make():
                    made = resume(value)
            except StopIteration as stop:
                return stop.value
            try:
                resume, value = generator.send, (yield made)
            except GeneratorExit:
                with make():
                    generator.close()
                raise
            except BaseException as error:
                resume, value = generator.throw, error

    return switched


class no_grad(_C.RecordingOff, _Decorator):
    """Records nothing: results never require grad, whatever they are made from.

    A context manager and a decorator (with or without parentheses).

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.ones(1, requires_grad=True)
    >>> with candelabra.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    __slots__ = ()


class enable_grad(_C.RecordingOn, _Decorator):
    """Records again inside of :class:`no_grad`. A context manager and a decorator (with or without
    parentheses).

    Examples
    --------
    >>> import candelabra
    >>> with candelabra.no_grad():
    ...     with candelabra.enable_grad():
    ...         candelabra.is_grad_enabled()
    True
    """

    __slots__ = ()


class set_grad_enabled(_Switch):
    """Switches recording on or off at once, until the end of the ``with`` block where it is used in
    one.

    Parameters
    ----------
    mode
        Whether to record.

    Examples
    --------
    >>> import candelabra
    >>> with candelabra.set_grad_enabled(False):
    ...     candelabra.is_grad_enabled()
    False
    """

    __slots__ = ("_before", "mode")

    def __init__(self, mode: bool) -> None:
        super().__init__()
        if not isinstance(mode, bool):
            raise TypeError(f"set_grad_enabled(): argument 'mode' (position 1) must be bool, not {type(mode).__name__}")
        self.mode = mode
        self._before: bool | None = _C.set_grad_enabled(self.mode)

    def _enter(self) -> bool:
        before, self._before = self._before, None
        current = _C.set_grad_enabled(self.mode)
        return current if before is None else before

    def _again(self) -> _Switch:
        return set_grad_enabled(self.mode)

    def __call__(self, function: Decorated) -> Decorated:
        if self._before is not None:
            _C.set_grad_enabled(self._before)
            self._before = None
        return super().__call__(function)


class inference_mode(_Switch):
    """Records nothing, and marks what is made: such tensors can never become part of a tape.

    Parameters
    ----------
    mode
        Whether inference mode is on inside; or the function to decorate.

    Examples
    --------
    >>> import candelabra
    >>> with candelabra.inference_mode():
    ...     y = candelabra.ones(1)
    >>> y.is_inference()
    True
    """

    __slots__ = ("mode",)

    def __new__(cls, mode: Any = True) -> Any:
        return super().__new__(cls) if isinstance(mode, bool) else _decorated(cls, mode)

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self.mode = mode

    def _enter(self) -> tuple[bool, bool]:
        return _C.set_inference_mode(self.mode), _C.set_grad_enabled(not self.mode)

    def _leave(self, previous: tuple[bool, bool]) -> None:
        _C.set_inference_mode(previous[0])
        _C.set_grad_enabled(previous[1])

    def _again(self) -> _Switch:
        return inference_mode(self.mode)


def is_grad_enabled() -> bool:
    """Return whether operations are recorded now, in this thread.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.is_grad_enabled()
    True
    """
    return _C.is_grad_enabled()


def is_inference_mode_enabled() -> bool:
    """Return whether inference mode is on now, in this thread.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.is_inference_mode_enabled()
    False
    """
    return _C.is_inference_mode_enabled()
