"""Plain objects of the standard library and of NumPy in files: dates, namespaces, arrays, scalars.

NumPy and `argparse` are imported when a file or a call needs them. Arrays of Python objects are
refused: they could hold anything.
"""

from __future__ import annotations

import base64
import datetime
import math
import re

from candelabra import _C

from .errors import FileError
from .limits import Budget
from .places import whole
from .unpickler import ATTRIBUTED, BUILDERS, EXTRA_LEAVES, Named, set_attributes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

EXTRA_LEAVES.update((datetime.datetime, datetime.date, datetime.time, datetime.timedelta, datetime.timezone))

#: NumPy's codes of dtypes without Python objects: kind, size, and the unit of a time.
_DTYPE = re.compile(r"[<>=|]?(?:[biufc?SUV][0-9]{0,9}|[mM]8(?:\[[0-9]{0,9}[a-zA-Z]{1,7}\])?)")
_BYTES_OF_TIMES = {"datetime": 10, "date": 4, "time": 6}


def numpy() -> Any:
    """Return NumPy's module, or raise an error that says what needs it."""
    try:
        import numpy as module
    except ImportError as error:
        raise FileError("it holds an array or a number of NumPy, which is not installed: pip install numpy") from error
    return module


def is_array(value: Any) -> bool:
    """Return whether a value is an array of NumPy itself, not of a subclass."""
    return type(value).__module__ == "numpy" and type(value).__name__ == "ndarray"


def is_scalar(value: Any) -> bool:
    """Return whether a value is a NumPy scalar whose value a Python number or text can have."""
    kind = type(value)
    return kind.__module__ == "numpy" and kind.__name__ != "ndarray" and hasattr(value, "item")


# ---- pickles of PyTorch


def _checked_dtype(code: Any) -> Any:
    if not isinstance(code, str) or not _DTYPE.fullmatch(code):
        raise FileError(f"an array of the dtype {str(code)[:40]}, which is not plain data")
    try:
        return numpy().dtype(code, copy=True)
    except TypeError as error:
        raise FileError(f"an array of the unknown dtype {code}") from error


def _dtype(code: Any, align: Any = False, copy: Any = False) -> Any:
    made = _checked_dtype(code)
    BUILDERS[type(made)] = _set_dtype
    EXTRA_LEAVES.add(type(made))
    return made


def _set_dtype(made: Any, state: Any, budget: Budget) -> None:
    # The state is that of numpy.dtype.__reduce__. NumPy does not check it, so only the byte order
    # and the unit of a time are taken from it.
    is_time = made.kind in "mM"
    if not isinstance(state, tuple) or len(state) != (9 if is_time else 8) or state[2:5] != (None, None, None):
        raise FileError("an array of a dtype with fields")
    if state[1] not in (("|",) if made.itemsize == 1 or made.kind in "SV" else ("<", ">")):
        raise FileError("an array of a dtype with an unknown byte order")
    if not is_time:
        sizes = (made.itemsize, made.alignment) if made.kind in "SUV" else (-1, -1)
        made.__setstate__((3, state[1], None, None, None, *sizes, 0))
        return
    unit = state[8][1] if isinstance(state[8], tuple) and len(state[8]) == 2 else None
    if (
        not isinstance(unit, tuple)
        or len(unit) != 4
        or not isinstance(unit[0], bytes)
        or type(unit[1]) is not int
        or not 0 < unit[1] < 1 << 31
        or unit[2:] != (1, 1)
    ):
        raise FileError("an array of times without a unit")
    _checked_dtype(f"{made.kind}8[{unit[1]}{unit[0].decode('ascii')}]")
    made.__setstate__((4, state[1], None, None, None, -1, -1, 0, ({}, (unit[0], unit[1], 1, 1))))


def _is_dtype(value: Any) -> bool:
    return isinstance(value, numpy().dtype) and value.kind in "biufcSUVmM" and value.fields is None


def _shape(shape: Any, dtype: Any, data: Any) -> tuple[int, ...]:
    if not isinstance(shape, tuple) or len(shape) > 32 or not _is_dtype(dtype):
        raise FileError("an array without a shape and a dtype")
    sizes = tuple(whole(n) for n in shape)
    if not isinstance(data, (bytes, bytearray)) or math.prod(sizes) * dtype.itemsize != len(data):
        raise FileError("an array whose bytes are not as many as its shape needs")
    return sizes


def _reconstruct(cls: Any, shape: Any, code: Any) -> Any:
    if not isinstance(cls, Named) or cls.name != "numpy.ndarray":
        raise FileError("an array of a subclass of numpy.ndarray")
    made = numpy().empty(0, "i1")
    EXTRA_LEAVES.add(type(made))
    BUILDERS[type(made)] = _set_array
    return made


def _set_array(made: Any, state: Any, budget: Budget) -> None:
    if not isinstance(state, tuple) or len(state) != 5 or made.size:
        raise FileError("an array without its elements")
    _, shape, dtype, fortran, data = state
    if isinstance(data, str):
        data = data.encode("latin1")
    budget.allocate(2 * len(data) if isinstance(data, (bytes, bytearray)) else 0)
    made.__setstate__((1, _shape(shape, dtype, data), dtype, bool(fortran), bytes(data)))


def _from_buffer(data: Any, dtype: Any, shape: Any, order: Any = "C") -> Any:
    sizes = _shape(shape, dtype, data)
    made = numpy().frombuffer(bytearray(data), dtype).reshape(sizes, order="F" if order == "F" else "C")
    EXTRA_LEAVES.add(type(made))
    return made


def _scalar(dtype: Any, data: Any = b"") -> Any:
    if isinstance(data, str):
        data = data.encode("latin1")
    _shape((), dtype, data)
    made = numpy().frombuffer(data, dtype)[0]
    EXTRA_LEAVES.add(type(made))
    return made


def _namespace(*arguments: Any) -> Any:
    import argparse

    if arguments:
        raise FileError("argparse.Namespace with arguments that it does not take")
    ATTRIBUTED.add(argparse.Namespace)
    BUILDERS[argparse.Namespace] = set_attributes
    return argparse.Namespace()


def _time(name: str) -> Callable[..., Any]:
    def make(state: Any, zone: Any = None) -> Any:
        if isinstance(state, str):
            state = state.encode("latin1")
        if not isinstance(state, bytes) or len(state) != _BYTES_OF_TIMES[name]:
            raise FileError(f"a {name} of what is none")
        if zone is not None and not isinstance(zone, datetime.timezone):
            raise FileError(f"a {name} of an unknown time zone")
        made: Any = getattr(datetime, name)
        return made(state) if zone is None else made(state, zone)

    return make


def _timedelta(*numbers: Any) -> datetime.timedelta:
    if len(numbers) > 3 or any(type(n) is not int for n in numbers):
        raise FileError("a time difference of what are no numbers")
    return datetime.timedelta(*numbers)


def _timezone(offset: Any, *name: Any) -> datetime.timezone:
    if not isinstance(offset, datetime.timedelta) or len(name) > 1 or any(not isinstance(n, str) for n in name):
        raise FileError("a time zone without an offset")
    return datetime.timezone(offset, *name)


def makers() -> dict[tuple[str, str], Any]:
    """Return what makes the objects that pickles name, by module and name."""
    found: dict[tuple[str, str], Any] = {
        ("argparse", "Namespace"): _namespace,
        ("datetime", "timedelta"): _timedelta,
        ("datetime", "timezone"): _timezone,
        ("numpy", "dtype"): _dtype,
        ("numpy", "ndarray"): None,
    }
    found.update({("datetime", name): _time(name) for name in _BYTES_OF_TIMES})
    for core in ("numpy.core", "numpy._core"):
        found[f"{core}.multiarray", "scalar"] = _scalar
        found[f"{core}.multiarray", "_reconstruct"] = _reconstruct
        found[f"{core}.numeric", "_frombuffer"] = _from_buffer
    return found


# ---- Candelabra's archives


def described_array(array: Any) -> Any:
    """Return a tensor on a copy of an array of numbers; for others, their dtype, shape and text in
    base64. None if an array cannot be stored.
    """
    dtype = array.dtype
    if dtype.kind not in "biufcSUmM":
        return None
    native = array.astype(dtype.newbyteorder("="), order="C", copy=True)
    if dtype.kind in "biufc":
        try:
            return _C.from_numpy(native)
        except TypeError:
            return None
    return [native.dtype.str, list(native.shape), base64.b64encode(native.tobytes()).decode("ascii")]


def restored_array(described: Any) -> Any:
    """Return the array of a description that is not a tensor's."""
    if not isinstance(described, list) or len(described) != 3 or not isinstance(described[1], list):
        raise FileError("an array without a shape and a dtype")
    data = base64.b64decode(described[2], validate=True)
    return _from_buffer(data, _checked_dtype(described[0]), tuple(described[1]))


def described_time(value: Any) -> list[Any] | None:
    """Return the class and the numbers of a date, a time or a difference; None for a time zone that
    is not a fixed offset.
    """
    kind = type(value)
    if kind is datetime.timedelta:
        return ["timedelta", value.days, value.seconds, value.microseconds]
    if kind is datetime.timezone:
        name = value.tzname(None)
        named = name != datetime.timezone(value.utcoffset(None)).tzname(None)
        return ["timezone", described_time(value.utcoffset(None)), *([name] if named else [])]
    state = value.__reduce_ex__(4)[1]
    text = base64.b64encode(state[0]).decode("ascii")
    if len(state) == 1:
        return [kind.__name__, text]
    zone = described_time(state[1]) if type(state[1]) is datetime.timezone else None
    return None if zone is None else [kind.__name__, text, zone]


def restored_time(described: Any) -> Any:
    """Return what `described_time` has described."""
    if not isinstance(described, list) or len(described) < 2:
        raise FileError("a time without numbers")
    name, first, *rest = described
    if name == "timedelta":
        return _timedelta(first, *rest)
    if name == "timezone":
        return _timezone(restored_time(first), *rest)
    if name not in _BYTES_OF_TIMES or not isinstance(first, str) or len(rest) > 1:
        raise FileError("a time of an unknown kind")
    return _time(name)(base64.b64decode(first, validate=True), *[restored_time(zone) for zone in rest])


#: The classes that :func:`described_time` takes.
TIMES = (datetime.datetime, datetime.date, datetime.time, datetime.timedelta, datetime.timezone)
