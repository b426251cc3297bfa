"""Questions about sizes that could be symbolic. Sizes are Python's integers here, so that all
answers are known.
"""

from __future__ import annotations

from typing import Any

import candelabra

__all__ = [
    "GuardOnDataDependentSymNode", "free_symbols", "free_unbacked_symbols", "guard_bool", "guard_float", "guard_int", "guard_or_false",
    "guard_or_true", "guard_scalar", "guard_size_oblivious", "has_free_symbols", "has_free_unbacked_symbols", "has_symbolic_sizes_strides",
    "hint_int", "is_concrete_bool", "is_concrete_float", "is_concrete_int", "is_symbolic", "statically_known_false",
    "statically_known_true", "sym_eq",
]  # fmt: skip


class GuardOnDataDependentSymNode(RuntimeError):
    """A program branches on a number that is not known while it is traced; nothing here raises
    it.
    """


def guard_bool(a: Any) -> bool:
    """Return a truth value."""
    return bool(a)


guard_or_false = guard_or_true = guard_size_oblivious = statically_known_true = guard_bool


def statically_known_false(a: Any) -> bool:
    """Return whether a truth value is False."""
    return not a


def guard_int(a: Any) -> int:
    """Return an integer."""
    return int(a)


def guard_float(a: Any) -> float:
    """Return a floating-point number."""
    return float(a)


def guard_scalar(a: Any) -> Any:
    """Return a number.

    Raises
    ------
    AssertionError
        If it is none.
    """
    if isinstance(a, bool | int | float):
        return a
    raise AssertionError(f"unrecognized scalar {a}")


def hint_int(a: Any, fallback: int | None = None) -> int:
    """Return an integer."""
    return int(a)


def _is_known(a: Any) -> bool:
    return True


is_concrete_bool = is_concrete_int = is_concrete_float = _is_known


def is_symbolic(val: Any) -> bool:
    """Return False, because numbers are known.

    Examples
    --------
    >>> from candelabra import fx
    >>> fx.experimental.symbolic_shapes.is_symbolic(3)
    False
    """
    return False


has_free_symbols = has_free_unbacked_symbols = has_symbolic_sizes_strides = is_symbolic


def free_symbols(val: Any) -> set[Any]:
    """Return an empty set, because numbers and sizes are known."""
    return set()


free_unbacked_symbols = free_symbols


def sym_eq(x: Any, y: Any) -> bool:
    """Return whether two sizes, or numbers, are equal.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import fx
    >>> fx.experimental.symbolic_shapes.sym_eq(candelabra.ones(2, 3).shape, (2, 3))
    True
    """
    if isinstance(x, tuple | list | candelabra.Size):
        return len(x) == len(y) and all(sym_eq(a, b) for a, b in zip(x, y, strict=True))
    return bool(x == y)
