"""``torch.profiler``: names of the parts of PyTorch's own profiler."""

from __future__ import annotations

from typing import Any, NoReturn

from candelabra.autograd import profiler as _profiler

__all__ = ["ExecutionTraceObserver", "KinetoStepTracker", "kineto_available", "record_function"]

record_function = _profiler.record_function


def kineto_available() -> bool:
    """Return True: `torch.profiler.profile` works. Its implementation is Candelabra's."""
    return True


class KinetoStepTracker:
    """Counts steps, by who counts them.

    Examples
    --------
    >>> from candelabra.torch.stand_ins.operators.profiler_names import KinetoStepTracker
    >>> KinetoStepTracker.init_step_count("docs")
    >>> KinetoStepTracker.increment_step("docs")
    1
    """

    _steps: dict[str, int] = {}
    _current = 0

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """Begin to count for someone."""
        cls._steps[requester] = cls._current

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """End to count for someone; return whether it was counted."""
        return cls._steps.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """Count one step for someone; return the largest count."""
        cls._steps[requester] = cls._steps.get(requester, cls._current) + 1
        cls._current = max(cls._steps.values())
        return cls._current

    @classmethod
    def current_step(cls) -> int:
        """Return the largest count."""
        return cls._current


class ExecutionTraceObserver:
    """Not available: PyTorch's traces of execution are for its own tools."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise NotImplementedError(
            "torch.profiler.ExecutionTraceObserver: there are no execution traces on Candelabra; torch.profiler.profile exports traces of time"
        )
