"""Data types of the array API standard 2024.12: what promotes to what, casts, and the limits of
each.
"""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from typing import Any

import candelabra
from candelabra.types import Device

from .array_object import Array, as_array

Dtype = candelabra.dtype

#: Data types by the names that the standard gives their kinds.
KINDS: dict[str, tuple[Dtype, ...]] = {
    "bool": (candelabra.bool,),
    "signed integer": (candelabra.int8, candelabra.int16, candelabra.int32, candelabra.int64),
    "unsigned integer": (candelabra.uint8, candelabra.uint16, candelabra.uint32, candelabra.uint64),
    "real floating": (candelabra.float32, candelabra.float64),
    "complex floating": (candelabra.complex64, candelabra.complex128),
}
KINDS["integral"] = KINDS["signed integer"] + KINDS["unsigned integer"]
KINDS["numeric"] = KINDS["integral"] + KINDS["real floating"] + KINDS["complex floating"]

_FAMILIES = (KINDS["bool"], KINDS["integral"], (*KINDS["real floating"], *KINDS["complex floating"]))


@dataclass(frozen=True)
class finfo_object:
    """What the standard says about a floating-point data type: see `finfo`."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: Dtype


@dataclass(frozen=True)
class iinfo_object:
    """What the standard says about an integer data type: see `iinfo`."""

    bits: int
    max: int
    min: int
    dtype: Dtype


def astype(x: Array, dtype: Dtype, /, *, copy: builtins.bool = True, device: Device | None = None) -> Array:
    """Cast an array to a data type.

    Parameters
    ----------
    x : Array
        Any shape.
    dtype : dtype
        The data type of the result.
    copy : bool
        Whether to copy also where the data type is already the right one.
    device : device, optional
        Where the result goes; that of `x` by default.

    Raises
    ------
    TypeError
        If a complex array would lose its imaginary part: take `real` or `imag` of it.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.astype(xp.asarray([1.5, -2.5]), xp.int32)
    Array([ 1, -2], dtype=candelabra.int32)
    """
    if x.dtype.is_complex and not dtype.is_complex and dtype is not candelabra.bool:
        raise TypeError(f"astype(): {x.dtype} cannot be cast to {dtype}: take real() or imag() of the array first")
    return as_array(candelabra.Tensor.to(x, device=x.device if device is None else device, dtype=dtype, copy=copy), x)


def can_cast(from_: Dtype | Array, to: Dtype, /) -> builtins.bool:
    """Whether the promotion table of the standard leads from one data type to another.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.can_cast(xp.int8, xp.int32), xp.can_cast(xp.float64, xp.float32), xp.can_cast(xp.int32, xp.float64)
    (True, False, False)
    """
    source = from_ if isinstance(from_, Dtype) else from_.dtype
    if source is to:
        return True
    for family in _FAMILIES:
        if source in family and to in family:
            return _promoted(source, to) is to
    return False


def _promoted(first: Dtype, second: Dtype) -> Dtype | None:
    signed = KINDS["signed integer"]
    if candelabra.uint64 in (first, second) and (first in signed or second in signed):
        return None  # the standard leaves it open
    return candelabra.promote_types(first, second)


def finfo(type: Dtype | Array, /) -> finfo_object:
    """Limits of a floating-point data type, or of the components of a complex one.

    Raises
    ------
    TypeError
        If the data type is neither real nor complex floating-point.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.finfo(xp.float64).eps == 2.0**-52
    True
    """
    dtype = type if isinstance(type, Dtype) else type.dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise TypeError(f"finfo(): {dtype} is not a floating-point data type; use iinfo()")
    component = candelabra.empty(0, dtype=dtype, device="cpu").real.dtype if dtype.is_complex else dtype
    limits = candelabra.finfo(component)
    return finfo_object(limits.bits, limits.eps, limits.max, limits.min, limits.smallest_normal, component)


def iinfo(type: Dtype | Array, /) -> iinfo_object:
    """Limits of an integer data type.

    Raises
    ------
    TypeError
        If the data type is not an integer one.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.iinfo(xp.uint16).max
    65535
    """
    dtype = type if isinstance(type, Dtype) else type.dtype
    if dtype not in KINDS["integral"]:
        raise TypeError(f"iinfo(): {dtype} is not an integer data type; use finfo()")
    limits = candelabra.iinfo(dtype)
    return iinfo_object(limits.bits, limits.max, limits.min, dtype)


def isdtype(dtype: Dtype, kind: Dtype | str | tuple[Dtype | str, ...]) -> builtins.bool:
    """Whether a data type is of a kind: a data type, one of the standard's names of kinds, or a
    tuple of these.

    Raises
    ------
    ValueError
        If a name is not one of ``"bool"``, ``"signed integer"``, ``"unsigned integer"``,
        ``"integral"``, ``"real floating"``, ``"complex floating"`` and ``"numeric"``.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.isdtype(xp.uint8, "integral"), xp.isdtype(xp.float32, ("integral", xp.float64))
    (True, False)
    """
    if isinstance(kind, tuple):
        # Every kind is looked at, so that a misspelt one is not passed over.
        return True in [isdtype(dtype, one) for one in kind]
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(f"isdtype(): unknown kind {kind!r}; known are {', '.join(map(repr, KINDS))}")
        if kind == "real floating" or kind == "numeric":
            return dtype in KINDS[kind] or dtype.is_floating_point
        return dtype in KINDS[kind]
    if not isinstance(kind, Dtype):
        raise TypeError(
            f"isdtype(): a kind must be a dtype, a string or a tuple of these, not {builtins.type(kind).__name__}"
        )
    return dtype is kind


def result_type(*arrays_and_dtypes: Array | Dtype | complex) -> Dtype:
    """The data type that an operation on these arrays, data types and Python numbers gives.

    The shapes do not matter: a zero-dimensional array counts as any other. A Python number takes
    the data type of the arrays, where it is of their kind.

    Raises
    ------
    ValueError
        If there is neither an array nor a data type.
    RuntimeError
        If the promotion table has no entry (uint64 with a signed integer).

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.result_type(xp.int8, xp.uint8), xp.result_type(xp.ones(2), 3)
    (candelabra.int16, candelabra.float32)
    """
    dtypes = [
        x if isinstance(x, Dtype) else x.dtype for x in arrays_and_dtypes if isinstance(x, (Dtype, candelabra.Tensor))
    ]
    numbers = [x for x in arrays_and_dtypes if not isinstance(x, (Dtype, candelabra.Tensor))]
    if not dtypes:
        raise ValueError("result_type(): at least one argument must be an array or a dtype")
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = candelabra.promote_types(result, dtype)
    for number in numbers:
        result = with_number(result, number, "result_type")
    return result


def with_number(dtype: Dtype, number: Any, name: str) -> Dtype:
    """The data type of an operation between arrays of a data type and a Python number.

    That of the arrays, unless the number is of a higher kind; this the standard leaves open, and
    PyTorch's rule is followed.
    """
    if isinstance(number, builtins.bool):
        return dtype
    if isinstance(number, int):
        return candelabra.int64 if dtype is candelabra.bool else dtype
    if isinstance(number, float):
        return dtype if dtype.is_floating_point or dtype.is_complex else candelabra.get_default_dtype()
    if isinstance(number, complex):
        real = dtype if dtype.is_floating_point else candelabra.get_default_dtype()
        return dtype if dtype.is_complex else candelabra.promote_types(real, candelabra.complex64)
    raise TypeError(f"{name}(): expected an array or a Python number, not {type(number).__name__}")
