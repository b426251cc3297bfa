"""The ranges of numbers that dtypes hold, for random integers."""

from __future__ import annotations

from candelabra import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from candelabra._C import dtype

# The C++ types as PyTorch's messages name them, of dtypes that do not hold all of int64.
_C_NAMES = {
    _C.bool: "bool", _C.uint8: "unsigned char", _C.int8: "signed char", _C.int16: "short int", _C.int32: "int",
    _C.uint16: "short unsigned int", _C.uint32: "unsigned int", _C.float16: "c10::Half",
}  # fmt: skip
_C_LIMITS = {_C.float16: 65504}
# The largest numbers.
LARGEST = {_C.float16: 65504.0, _C.float32: (2 - 2.0**-23) * 2.0**127, _C.float64: (2 - 2.0**-52) * 2.0**1023}
# The dtype represents all integers up to these.
EXACT = {_C.bool: 1, _C.float16: 2**11, _C.bfloat16: 2**8, _C.float32: 2**24, _C.float64: 2**53}


def check_bounds(dtype: dtype, low: int, high: int) -> None:
    """Raise unless the integers from `low` up to, but not including, `high` are in the dtype's
    range.
    """
    name = _C_NAMES.get(dtype)
    if name is None:  # all of int64 is in its range
        return
    if dtype is _C.bool:
        least, most = 0, 1
    elif dtype.is_floating_point:
        most = _C_LIMITS[dtype]
        least = -most
    else:
        bits = 8 * dtype.itemsize
        least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if dtype.is_signed else (0, 2**bits - 1)
    if not least <= low <= most:
        raise RuntimeError(f"from is out of bounds for {name}")
    if not least <= high - 1 <= most:
        raise RuntimeError(f"to - 1 is out of bounds for {name}")


def warn_of_precision(dtype: dtype, low: int, high: int) -> None:
    """Warn where a floating dtype does not hold all the integers of a range."""
    if not dtype.is_floating_point:
        return
    most = EXACT[dtype]
    for name, bound in (("from", low), ("to - 1", high - 1)):
        if not -most <= bound <= most:
            digits = most.bit_length() - 1
            _C.warn(
                f"{name} is out of bounds [-(2^{digits}), 2^{digits}]. Due to precision limitations {dtype} can support discrete uniform "
                "distribution only within this range."
            )
