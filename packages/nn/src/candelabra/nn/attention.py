"""Select the implementation of scaled dot-product attention, and build causal masks.

The masks support queries and keys of different lengths. See
`functional.scaled_dot_product_attention`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from enum import IntEnum
from typing import Any

import candelabra
from candelabra import Tensor

from .functional import attention as _attention


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


def _size(name: str, size: tuple[Any, ...]) -> tuple[int, int]:
    if len(size) != 2:
        raise AssertionError(f"{name} only supports 2D tensors")
    return size[0], size[1]


def causal_upper_left(*size: int) -> Tensor:
    """Return a causal mask (L, S) aligned to the upper left corner.

    Query i attends to keys 0 to i.

    Examples
    --------
    >>> from candelabra.nn.attention import causal_upper_left
    >>> causal_upper_left(2, 3)
    tensor([[ True, False, False],
            [ True,  True, False]])
    """
    rows, columns = _size("causal_upper_left", size)
    return candelabra.ones(rows, columns, dtype=candelabra.bool).tril()


def causal_lower_right(*size: int) -> Tensor:
    """Return a causal mask (L, S) aligned to the lower right corner.

    The last query attends to all keys.

    Examples
    --------
    >>> from candelabra.nn.attention import causal_lower_right
    >>> causal_lower_right(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """
    rows, columns = _size("causal_lower_right", size)
    return candelabra.ones(rows, columns, dtype=candelabra.bool).tril(columns - rows)


__all__ = ["SDPBackend", "causal_lower_right", "causal_upper_left", "sdpa_kernel"]
