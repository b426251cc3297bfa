"""Grad mode switches under PyTorch's module name.

The implementation is in the core, because the switches also work without this package.
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
    """Accept PyTorch's setting and ignore it.

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
        self.mode = bool(mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass
