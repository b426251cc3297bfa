"""The switches of recording, under PyTorch's path; they live in the core, for they work without the
tape, too.
"""

from __future__ import annotations

from candelabra.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)

__all__ = [
    "enable_grad", "inference_mode", "is_grad_enabled", "is_inference_mode_enabled", "no_grad", "set_grad_enabled", "set_multithreading_enabled",
]  # fmt: skip


class set_multithreading_enabled:
    """Accepted for compatibility: a walk back over the tape is always the calling thread's, and
    kernels have threads of their own.

    Parameters
    ----------
    mode
        Whether PyTorch would walk with a thread for each device.

    Examples
    --------
    >>> import candelabra
    >>> with candelabra.autograd.set_multithreading_enabled(False):
    ...     candelabra.ones(1, requires_grad=True).sum().backward()
    """

    def __init__(self, mode: bool) -> None:
        self.mode = bool(mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass
