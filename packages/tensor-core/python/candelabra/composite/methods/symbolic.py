"""Functions on sizes and conditions that PyTorch's compiler traces. On Python numbers they act as
Python's.
"""

from __future__ import annotations

import math
import operator

from ..registration import function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@function(method=False)
def sym_int(a: Any) -> int:
    """Return the number truncated towards zero.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.sym_int(-2.5)
    -2
    """
    return math.trunc(a) if isinstance(a, float) else int(a)


@function(method=False)
def sym_float(a: Any) -> float:
    """Return the number as a float.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.sym_float(2)
    2.0
    """
    return float(a)


def _check_numbers(name: str, *numbers: Any) -> None:
    for number in numbers:
        if not isinstance(number, (int, float)):
            raise AssertionError(f"{name}() is of ints and floats, but got {type(number).__name__}")


@function(method=False)
def sym_max(a: Any, b: Any) -> Any:
    """Return the larger of two numbers, as a float if one of them is a float.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.sym_max(3, 2.0)
    3.0
    """
    _check_numbers("sym_max", a, b)
    larger = max(a, b)
    return float(larger) if isinstance(a, float) or isinstance(b, float) else larger


@function(method=False)
def sym_min(a: Any, b: Any) -> Any:
    """Return the smaller of two numbers, as a float if one of them is a float.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.sym_min(3, 2.0)
    2.0
    """
    _check_numbers("sym_min", a, b)
    smaller = min(a, b)
    return float(smaller) if isinstance(a, float) or isinstance(b, float) else smaller


@function(method=False)
def sym_not(a: Any) -> bool:
    """Return the negation of a condition.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.sym_not(2 < 1)
    True
    """
    return not a


@function(method=False)
def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """Return one of two values of the same type: `t` if the condition holds, else `f`.

    Raises
    ------
    AssertionError
        If `b` is not a bool, or the values have different types.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.sym_ite(1 < 2, 10, 20)
    10
    """
    if not isinstance(b, bool):
        raise AssertionError(f"sym_ite(): the condition must be a bool, but got {type(b).__name__}")
    if type(t) is not type(f):
        raise AssertionError(
            f"sym_ite(): the values must be of one type, but got {type(t).__name__} and {type(f).__name__}"
        )
    return t if b else f


@function(method=False)
def sym_sqrt(a: Any) -> float:
    """Return the square root of a number.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.sym_sqrt(9)
    3.0
    """
    return math.sqrt(a)


@function(method=False)
def sym_sum(*args: Any) -> Any:
    """Return the sum of numbers, given one by one or as one sequence.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.sym_sum([1, 2, 3])
    6
    """
    return sum(args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args)


@function(method=False)
def sym_fresh_size(expr: Any) -> Any:
    """Raise an error: symbolic sizes exist only in PyTorch's compiler.

    Raises
    ------
    NotImplementedError
        Always.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.sym_fresh_size(3)
    Traceback (most recent call last):
    NotImplementedError: sym_fresh_size(): sizes are numbers here, nothing is traced; use the number
    """
    raise NotImplementedError("sym_fresh_size(): sizes are numbers here, nothing is traced; use the number")


@function(method=False)
def sym_constrain_range(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """Check that a size lies in a range, both ends included.

    Raises
    ------
    RuntimeError
        If it does not, or the range is empty.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.sym_constrain_range(3, min=1, max=5)
    """
    number = operator.index(size)
    if min is not None and max is not None and max < min:
        raise RuntimeError(f"Max must be greater than or equal to Min, but got max {max} and min {min}")
    if (min is not None and number < min) or (max is not None and number > max):
        low, high = "-inf" if min is None else min, "inf" if max is None else max
        raise RuntimeError(f"Invalid value range for {number} between [{low}, {high}].")


@function(method=False)
def sym_constrain_range_for_size(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """Check that a size is not negative and lies in a range, both ends included.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.sym_constrain_range_for_size(3, max=5)
    """
    sym_constrain_range(size, min=0 if min is None else min, max=max)
