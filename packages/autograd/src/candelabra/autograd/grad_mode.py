"""Grad mode switches under PyTorch's module name.

The implementation is in the core, because the switches also work without this package.
"""

from __future__ import annotations

import threading

from candelabra.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)

__all__ = [
    "enable_grad", "inference_mode", "is_grad_enabled", "is_inference_mode_enabled", "is_multithreading_enabled", "no_grad", "set_grad_enabled", "set_multithreading_enabled",
]  # fmt: skip


class _Multithreading(threading.local):
    """The setting of a thread."""

    enabled = True


_multithreading = _Multithreading()


def is_multithreading_enabled() -> bool:
    """Return what :class:`set_multithreading_enabled` has set on this thread.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.autograd.is_multithreading_enabled()
    True
    """
    return _multithreading.enabled


class set_multithreading_enabled:
    """Accept PyTorch's setting, as a function or for a block; it changes nothing.

    The backward pass always runs on the calling thread. Kernels use threads of their own.

    Parameters
    ----------
    mode
        In PyTorch: whether to use one backward thread per device.

    Examples
    --------
    >>> import candelabra
    >>> with candelabra.autograd.set_multithreading_enabled(False):
    ...     candelabra.ones(1, requires_grad=True).sum().backward()
    """

    def __init__(self, mode: bool) -> None:
        self._before, _multithreading.enabled = _multithreading.enabled, bool(mode)
        self.mode = bool(mode)

    def __enter__(self) -> None:
        _multithreading.enabled = self.mode

    def __exit__(self, *error: object) -> None:
        _multithreading.enabled = self._before
