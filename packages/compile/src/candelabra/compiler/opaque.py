"""Objects that may change without a guard that notices it."""

from __future__ import annotations

import datetime
import re
import struct
import threading
import types
from array import array
from collections import deque
from decimal import Decimal
from typing import Any

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
    Decimal,
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
    slots = [vars(base)["__slots__"] for base in kind.__mro__ if "__slots__" in vars(base)]
    if slots:
        named = {name for entry in slots for name in ((entry,) if isinstance(entry, str) else entry)}
        return not names.isdisjoint(named)
    if hasattr(value, "__dict__") or kind.__module__ in ("operator", "typing"):
        return False
    # An object of an extension has its state elsewhere.
    return (
        kind is not object and not isinstance(value, _CONSTANT[1:]) and not isinstance(value, tuple | str | int | float)
    )
