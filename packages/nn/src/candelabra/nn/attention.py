"""Which way `functional.scaled_dot_product_attention` goes, and causal masks for queries and keys
of different lengths.
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
    """Ways to compute attention: with the whole matrix of scores (MATH), or fused (all others,
    which are one here).
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
    """Allow only these ways to compute attention in this thread, as long as the context lasts.

    Parameters
    ----------
    backends
        One `SDPBackend`, or a list of them.
    set_priority
        Whether an earlier entry is taken before a later one, where both can; else the fused way is
        taken where it can.

    Raises
    ------
    AssertionError
        When it is none of these.
    RuntimeError
        By attention itself, when no way that is allowed can do it.

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
    """The causal mask (L, S) whose diagonal starts in the upper left corner: query i sees the keys
    up to i.

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
    """The causal mask (L, S) whose diagonal ends in the lower right corner: the last query sees all
    keys.

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
