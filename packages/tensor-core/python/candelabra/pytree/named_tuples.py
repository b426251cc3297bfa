"""Tests for named tuples, and for the named results that C code defines (``PyStructSequence``)."""

from __future__ import annotations

from typing import Any

#: CPython's type flag of classes that may be subclassed.
_BASETYPE = 1 << 10
_STRUCTSEQ_COUNTS = ("n_fields", "n_sequence_fields", "n_unnamed_fields")


def is_namedtuple_class(cls: Any) -> bool:
    """Return whether a class is a named tuple, or derived from one."""
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(fields := getattr(cls, "_fields", None), tuple)
        and all(type(field) is str for field in fields)
        and callable(getattr(cls, "_make", None))
        and callable(getattr(cls, "_asdict", None))
    )


def is_namedtuple_instance(obj: object) -> bool:
    """Return whether an object is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: object) -> bool:
    """Return whether an object, or a class, is a named tuple."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls: Any) -> bool:
    """Return whether a class is a ``PyStructSequence``, such as ``time.struct_time``."""
    return (
        isinstance(cls, type)
        and cls.__bases__ == (tuple,)
        and all(isinstance(getattr(cls, count, None), int) for count in _STRUCTSEQ_COUNTS)
        and not cls.__flags__ & _BASETYPE
    )


def is_structseq_instance(obj: object) -> bool:
    """Return whether an object is a ``PyStructSequence``."""
    return is_structseq_class(type(obj))


def is_structseq(obj: object) -> bool:
    """Return whether an object, or a class, is a ``PyStructSequence``."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))
