"""``torch.futures``: results that are set later."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """The result of a call that may still run.

    Parameters
    ----------
    devices
        The devices of the result; results here are complete when they are set.

    Examples
    --------
    >>> from candelabra.torch.stand_ins.futures import Future
    >>> future = Future()
    >>> doubled = future.then(lambda done: 2 * done.value())
    >>> future.set_result(3)
    >>> doubled.wait()
    6
    """

    def __init__(self, *, devices: Sequence[Any] | None = None) -> None:
        self._devices = list(devices or ())
        self._changed = threading.Condition()
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[T]], Any]] = []

    def done(self) -> bool:
        """Return whether there is a result or an exception."""
        return self._done

    def wait(self) -> T:
        """Wait for the result and return it, or raise the exception."""
        with self._changed:
            self._changed.wait_for(lambda: self._done)
        return self.value()

    def value(self) -> T:
        """Return the result, which must be there, or raise the exception."""
        if not self._done:
            raise RuntimeError("value() is called on a future that is not done; wait() waits for it")
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[no-any-return]

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """Return the future of a function of this future, which is called when this one is done."""
        found: Future[S] = Future(devices=self._devices)

        def run(done: Future[T]) -> None:
            try:
                result = callback(done)
            except Exception as error:
                found.set_exception(error)
            else:
                found.set_result(result)

        self.add_done_callback(run)
        return found

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call a function of this future when it is done; at once if it is."""
        with self._changed:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback(self)

    def set_result(self, result: T) -> None:
        """Set the result.

        Raises
        ------
        RuntimeError
            If the future is done.
        """
        self._finish(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Set an exception, which `wait` and `value` raise."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._finish(None, result)

    def _finish(self, value: Any, error: BaseException | None) -> None:
        with self._changed:
            if self._done:
                raise RuntimeError("Future can only be set with a value once: it is done")
            self._value, self._error, self._done = value, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._changed.notify_all()
        for callback in callbacks:
            callback(self)


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """Return a future of the list of futures, which is done when they all are.

    Examples
    --------
    >>> from candelabra.torch.stand_ins.futures import Future, collect_all
    >>> first, second = Future(), Future()
    >>> both = collect_all([first, second])
    >>> first.set_result(1), both.done()
    (None, False)
    >>> second.set_result(2), [future.value() for future in both.wait()]
    (None, [1, 2])
    """
    found: Future[list[Future[Any]]] = Future()
    left = len(futures)
    lock = threading.Lock()

    def one_done(future: Future[Any]) -> None:
        nonlocal left
        with lock:
            left -= 1
            last = left == 0
        if last:
            found.set_result(futures)

    if not futures:
        found.set_result(futures)
    for future in futures:
        future.add_done_callback(one_done)
    return found


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """Wait for all futures and return their results."""
    return [future.wait() for future in collect_all(futures).wait()]
