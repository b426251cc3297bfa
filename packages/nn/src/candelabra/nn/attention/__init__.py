"""Select the implementation of `functional.scaled_dot_product_attention`.

`candelabra.nn.attention.bias` has causal masks for queries and keys of different lengths, and
`candelabra.nn.attention.flex_attention` has attention with scores and masks of one's own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from enum import IntEnum
from typing import Any

from ..functional import attention as _attention

#: Accepted for compatibility: which implementation applies never gives a warning here.
WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(IntEnum):
    """Enumerate the implementations of attention.

    MATH computes the whole matrix of scores. All other members select the same fused
    implementation.
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __repr__(self) -> str:
        return f"<SDPBackend.{self.name}: {self.value}>"


@contextlib.contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[None]:
    """Allow only these attention implementations in this thread while the context is active.

    Parameters
    ----------
    backends
        One `SDPBackend` or a list of them.
    set_priority
        Whether entries earlier in the list are preferred. By default the fused implementation is
        preferred wherever it is applicable.

    Raises
    ------
    AssertionError
        If `backends` is neither an `SDPBackend` nor a list of them.
    RuntimeError
        Raised by the attention call if no allowed implementation supports its arguments.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> from candelabra.nn.attention import SDPBackend, sdpa_kernel
    >>> x = candelabra.ones(1, 3, 2)
    >>> with sdpa_kernel(SDPBackend.MATH):
    ...     F.scaled_dot_product_attention(x, x, x).shape
    candelabra.Size([1, 3, 2])
    """
    if not isinstance(backends, SDPBackend | list):
        raise AssertionError(
            f"Backend must be an instance of SDPBackend or a list of SDPBackend instances, got {type(backends).__name__}"
        )
    chosen = list(dict.fromkeys([backends] if isinstance(backends, SDPBackend) else backends))
    if not all(isinstance(backend, SDPBackend) for backend in chosen):
        raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend instances")
    math, fused = SDPBackend.MATH in chosen, any(backend > SDPBackend.MATH for backend in chosen)
    before = _attention.allowed()
    _attention.allow(math, fused, math_first=set_priority and bool(chosen) and chosen[0] == SDPBackend.MATH)
    try:
        yield
    finally:
        _attention.allow(*before)


def list_flash_attention_impls() -> list[str]:
    """Return the names of further flash implementations: none can be registered.

    Examples
    --------
    >>> from candelabra.nn import attention
    >>> attention.list_flash_attention_impls()
    []
    """
    return []


def current_flash_attention_impl() -> str | None:
    """Return the name of the active flash implementation; None for the backend's own."""
    return None


def register_flash_attention_impl(impl: str, *, register_fn: Any) -> None:
    """Raise NotImplementedError: attention is an operator of the backends.

    Raises
    ------
    NotImplementedError
        Always.
    """
    raise NotImplementedError(
        "register_flash_attention_impl(): attention is an operator of the backends here; a backend can replace its kernel"
    )


def activate_flash_attention_impl(impl: str) -> None:
    """Raise ValueError: no implementation can be registered.

    Raises
    ------
    ValueError
        Always.
    """
    raise ValueError(f"Unknown flash attention impl '{impl}'. Available implementations: []")


def restore_flash_attention_impl() -> None:
    """Do nothing: the backend's own implementation is always the active one."""


__all__ = [
    "WARN_FOR_UNFUSED_KERNELS", "SDPBackend", "activate_flash_attention_impl", "current_flash_attention_impl",
    "list_flash_attention_impls", "register_flash_attention_impl", "restore_flash_attention_impl", "sdpa_kernel",
]  # fmt: skip
