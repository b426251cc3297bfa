"""Anomaly detection: find the forward call whose gradient fails or becomes NaN."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from candelabra import _C, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .node import Node


class _State(threading.local):
    enabled = False
    check_nan = True


_state: _State = _State()
_users = 0
_lock = threading.Lock()


def is_anomaly_enabled() -> bool:
    """Return whether anomaly detection is on in this thread.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.autograd.is_anomaly_enabled()
    False
    """
    return _state.enabled


def is_anomaly_check_nan_enabled() -> bool:
    """Return whether anomaly detection checks gradients for NaN.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.autograd.is_anomaly_check_nan_enabled()
    True
    """
    return _state.check_nan


def _switch(enabled: bool, check_nan: bool) -> None:
    """Turn anomaly detection on or off in this thread.

    Autograd functions record tracebacks as long as any thread has detection on.
    """
    global _users
    from .recording import enter_mode, leave_mode

    with _lock:
        if enabled and not _state.enabled:
            _users += 1
            if _users == 1:
                enter_mode(_tracing)
        elif _state.enabled and not enabled:
            _users -= 1
            if _users == 0:
                leave_mode(_tracing)
        _state.enabled, _state.check_nan = enabled, check_nan


def _tracing(record: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap an autograd function so that its node records the traceback of the forward call."""

    def traced(result: Any, *arguments: Any) -> Any:
        recorded = record(result, *arguments)
        if _state.enabled:
            first = recorded[0] if isinstance(recorded, tuple) else recorded
            if first.grad_fn is not None:
                annotate(first.grad_fn)
        return recorded

    return traced


def annotate(node: Node) -> None:
    """Store the current traceback of the user's program on a node."""
    import traceback

    node.metadata["traceback_"] = traceback.format_stack()[:-2]


class set_detect_anomaly:
    """Turn anomaly detection on or off; as a context manager, restore the old state on exit.

    Parameters
    ----------
    mode
        Whether to turn detection on.
    check_nan
        Whether NaN in a gradient raises an error.

    Examples
    --------
    >>> import candelabra
    >>> with candelabra.autograd.set_detect_anomaly(False):
    ...     candelabra.autograd.is_anomaly_enabled()
    False
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.before = (_state.enabled, _state.check_nan)
        _switch(bool(mode), bool(check_nan))

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        _switch(*self.before)


class detect_anomaly:
    """Turn on anomaly detection within the block.

    If a gradient fails, a warning shows the forward call it belongs to. NaN in a gradient raises an
    error. Run both the forward and the backward pass within the block. Detection slows down every
    operation.

    Parameters
    ----------
    check_nan
        Whether NaN in a gradient raises an error.

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.zeros(1, requires_grad=True)
    >>> with candelabra.autograd.detect_anomaly():
    ...     y = (x * 0).sqrt() * 0
    ...     y.backward()
    Traceback (most recent call last):
    ...
    RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        self.before = (_state.enabled, _state.check_nan)

    def __enter__(self) -> None:
        self.before = (_state.enabled, _state.check_nan)
        _switch(True, self.check_nan)

    def __exit__(self, *error: object) -> None:
        _switch(*self.before)


def report_failure(node: Node) -> None:
    """Warn with the traceback of the forward call whose gradient failed."""
    lines = node.metadata.get("traceback_")
    if lines is None:
        _C.warn(
            f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly during forward pass for "
            "more information.",
        )
    else:
        _C.warn(
            f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{''.join(lines)}",
        )


def tell_where(error: BaseException, node: Node | None) -> None:
    """Add a note to an exception that names the failing node and its forward call, if known."""
    if node is None or not hasattr(node, "metadata"):
        return
    lines = node.metadata.get("traceback_")
    made = (
        f"The forward call that made it:\n{''.join(lines)}"
        if lines is not None
        else "candelabra.autograd.detect_anomaly() around the forward call shows the line that made it."
    )
    error.add_note(f"Raised in the backward walk at {node.name()}. {made}")


def check_gradients(node: Node, gradients: Iterable[Any]) -> None:
    """Raise an error if a gradient contains NaN."""
    if not _state.check_nan:
        return
    for number, gradient in enumerate(gradients):
        if isinstance(gradient, Tensor) and (gradient != gradient).any().item():
            report_failure(node)
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {number}th output.")
