"""Results that are there once a collective has ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Future:
    """The result of collectives that may still run.

    Parameters
    ----------
    wait : callable, optional
        Waits and returns the result; None for a future whose result is set by `set_result`.
    is_done : callable, optional
        Returns whether `wait` would return at once.

    Examples
    --------
    >>> from candelabra.distributed.futures import Future
    >>> future = Future()
    >>> future.set_result(3)
    >>> future.then(lambda done: 2 * done.value()).wait()
    6
    """

    def __init__(self, wait: Callable[[], Any] | None = None, is_done: Callable[[], bool] | None = None) -> None:
        self._wait = wait
        self._is_done = is_done
        self._has_result = False
        self._result: Any = None

    def set_result(self, result: Any) -> None:
        """Set the result."""
        self._result = result
        self._has_result = True

    def done(self) -> bool:
        """Return whether `wait` returns at once."""
        return self._has_result or (self._is_done is not None and self._is_done())

    def wait(self) -> Any:
        """Wait for the result and return it."""
        if not self._has_result:
            if self._wait is None:
                raise RuntimeError("the future has no result, and nothing will set one")
            self.set_result(self._wait())
        return self._result

    def value(self) -> Any:
        """Return the result, which must be there."""
        return self.wait()

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """Return the future of a function of this future. The function is called when the result is
        waited for.
        """

        def follow() -> Any:
            self.wait()
            return callback(self)

        return Future(follow, self.done)
