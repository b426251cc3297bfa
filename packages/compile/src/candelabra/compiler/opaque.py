"""Objects that may change without a guard that notices it."""

from __future__ import annotations

import datetime
import re
import struct
import sys
import threading
import types
from array import array
from collections import deque
from typing import Any

from .frames import is_inside

#: Containers that change in place, and that no guard watches.
_CONTAINERS = (set, deque, bytearray, memoryview, array, threading.local)
#: Objects of extensions without attributes that do not change, or whose state no result shows.
_CONSTANT = (
    object,
    range,
    slice,
    frozenset,
    type(Ellipsis),
    type(NotImplemented),
    re.Pattern,
    re.Match,
    struct.Struct,
    datetime.date,
    datetime.time,
    datetime.timedelta,
    datetime.tzinfo,
    type(threading.Lock()),
    type(threading.RLock()),
    types.CodeType,
    types.GenericAlias,
    types.UnionType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.MethodWrapperType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
)


def is_unwatched(value: Any, names: set[str]) -> bool:
    """Return whether an object may change without a guard that notices it.

    `names` are those that the code uses.
    """
    kind = type(value)
    # Generators of random numbers are compared by their state.
    if kind.__module__.split(".")[0] == "candelabra" or kind.__module__.startswith("numpy.random"):
        return False
    if isinstance(value, _CONTAINERS) or hasattr(kind, "__next__") or kind.__module__ == "numpy":
        return kind.__name__ != "ufunc"
    slots = [base for base in kind.__mro__ if "__slots__" in vars(base)]
    if slots:
        return not names.isdisjoint(name for base in slots if not is_of_python(base) for name in _slots_of(base))
    if hasattr(value, "__dict__") or kind.__module__ in ("operator", "typing"):
        return False
    # An object of an extension has its state elsewhere.
    return (
        kind is not object
        and not isinstance(value, _CONSTANT[1:])
        and not isinstance(value, tuple | str | int | float)
        and not is_decimal(value)
    )


def is_of_python(kind: type) -> bool:
    """Return whether a class is defined in a module of Python's library."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return kind.__module__ != "__main__" and is_inside(file) and kind.__module__.split(".")[0] != "candelabra"


def is_decimal(value: Any) -> bool:
    """Return whether an object is a `decimal.Decimal`."""
    # Importing the module takes as long as recording a step.
    decimal = sys.modules.get("decimal")
    return decimal is not None and isinstance(value, decimal.Decimal)


def _slots_of(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def slots_of_library(value: Any) -> list[Any]:
    """Return the descriptors of the slots that classes of Python's library give an object, and that
    are set. Their code reads them by names that the program does not use.
    """
    kinds = [base for base in type(value).__mro__ if "__slots__" in vars(base) and is_of_python(base)]
    found = [vars(base).get(name) for base in kinds for name in _slots_of(base)]
    return [slot for slot in found if isinstance(slot, types.MemberDescriptorType) and _is_set(slot, value)]


def _is_set(slot: Any, value: Any) -> bool:
    try:
        slot.__get__(value)
    except AttributeError:
        return False
    return True


def values_of_slots(value: Any, slots: list[Any]) -> tuple[Any, ...]:
    """Return what the slots of an object hold."""
    return tuple([slot.__get__(value) for slot in slots])


def decimal_settings(with_flags: bool) -> tuple[Any, ...]:
    """Return the numbers of the current context of `decimal`, and its traps."""
    *numbers, flags, traps = sys.modules["decimal"].getcontext().__reduce__()[1]
    return (*numbers, tuple(traps), tuple(flags) if with_flags else ())
