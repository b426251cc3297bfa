"""``torch._check`` and its relatives, by which libraries check arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra
from candelabra import Tensor

from ..symbols import SymBool

__all__ = [
    "_check", "_check_index", "_check_is_size", "_check_not_implemented", "_check_tensor_all",
    "_check_tensor_all_with", "_check_type", "_check_value", "_check_with",
]  # fmt: skip


def _check_with(error_type: type[Exception], cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise an error if a condition is false.

    Examples
    --------
    >>> from candelabra.torch.stand_ins.internals.checks import _check_with
    >>> _check_with(ValueError, 1 < 2, lambda: "the order of numbers")
    """
    if not isinstance(cond, (bool, SymBool)):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is None:
        raise error_type("Expected cond to be True, but got False.")
    if not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(str(message()))


def _check(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise RuntimeError if a condition is false."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise IndexError if a condition is false."""
    _check_with(IndexError, cond, message)


def _check_value(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise ValueError if a condition is false."""
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise TypeError if a condition is false."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise NotImplementedError if a condition is false."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: int, message: Callable[[], Any] | None = None, *, max: int | None = None) -> None:
    """Raise RuntimeError if a number is negative, or greater than `max`."""
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def _check_tensor_all_with(error_type: type[Exception], cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise an error if an element of a tensor of bools is false."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype != candelabra.bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """Raise RuntimeError if an element of a tensor of bools is false."""
    _check_tensor_all_with(RuntimeError, cond, message)
