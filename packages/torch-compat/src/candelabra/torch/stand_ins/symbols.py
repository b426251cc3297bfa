"""Symbolic numbers, the sizes of programs that are compiled: nothing here is one, because there is
no compiler. Programs ask whether numbers are instances of these classes.
"""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["SymBool", "SymFloat", "SymInt"]


class _Symbol:
    def __new__(cls, *arguments: Any) -> NoReturn:
        raise RuntimeError(f"torch.{cls.__name__}: Candelabra has no symbolic numbers; sizes are Python's integers")


class SymInt(_Symbol):
    """A symbolic integer; there are none."""


class SymFloat(_Symbol):
    """A symbolic floating-point number; there are none."""


class SymBool(_Symbol):
    """A symbolic truth value; there are none."""
