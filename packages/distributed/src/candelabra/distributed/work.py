"""Collectives that may still run."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from .futures import Future
from .store.base import seconds

if TYPE_CHECKING:
    from .engines.interface import Request
    from .process_group import ProcessGroup
    from .status_memory import Operation


class Work:
    """A collective that was called with ``async_op=True``.

    It holds its tensors. Results are there after `wait`.
    """

    def __init__(
        self,
        group: ProcessGroup,
        operation: Operation,
        request: Request,
        tensors: Any,
        finish: Callable[[], object] | None = None,
    ) -> None:
        self._group = group
        self._operation = operation
        self._request = request
        self._tensors = tensors
        self._finish = finish
        self._is_finished = False
        self._error: Exception | None = None

    def wait(self, timeout: float | timedelta | None = None) -> bool:
        """Wait until the results are there.

        Parameters
        ----------
        timeout : timedelta, optional
            The group's time limit by default.

        Returns
        -------
        bool
            True

        Raises
        ------
        DistBackendError
            A rank has failed, or did not take part in time.
        """
        if self._is_finished:
            return True
        if self._error is not None:
            raise self._error
        try:
            self._request.wait(None if timeout is None or not seconds(timeout) else seconds(timeout))
        except (RuntimeError, TimeoutError) as error:
            self._error = self._group.explained(error, self._operation)
            raise self._error from self._group.job.cause(error)
        if self._finish is not None:
            self._finish()
        self._is_finished = True
        self._group.has_finished(self._operation)
        return True

    def synchronize(self) -> None:
        """Do the same as `wait`."""
        self.wait()

    def block_current_stream(self) -> None:
        """Do the same as `wait`."""
        self.wait()

    def is_completed(self) -> bool:
        """Return whether the collective has ended, well or not."""
        return self._is_finished or self._error is not None or self._request.done()

    def is_success(self) -> bool:
        """Return whether the collective has ended well."""
        if not self.is_completed():
            return False
        return self.exception() is None

    def exception(self) -> Exception | None:
        """Return the error of a collective that has ended, or None."""
        if self.is_completed() and not self._is_finished and self._error is None:
            try:
                self.wait()
            except RuntimeError as error:
                return error
        return self._error

    def source_rank(self) -> int:
        """Return the rank from which a receive from any rank got its tensor."""
        return self._group.ranks[self._request.source]

    def result(self) -> list[Any]:
        """Wait, and return the tensors with the results."""
        self.wait()
        return self._results()

    def _results(self) -> list[Any]:
        return list(self._tensors) if isinstance(self._tensors, (list, tuple)) else [self._tensors]

    def get_future(self) -> Future:
        """Return a future of the list of the tensors with the results.

        Functions given to its ``then`` are called by the thread that waits for it.
        """

        def wait() -> list[Any]:
            self.wait()
            return self._results()

        return Future(wait, self.is_completed)
