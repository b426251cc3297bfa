"""The ranges of dtypes: finfo and iinfo."""

from __future__ import annotations

from candelabra import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from candelabra._C import dtype

# By dtype: bits of the significand (the hidden one included), largest exponent, smallest normal
# exponent, decimal digits of resolution. The core describes the float8 formats.
_FORMATS = {
    "float16": (11, 16, -14, 3),
    "bfloat16": (8, 128, -126, 2),
    "float32": (24, 128, -126, 6),
    "float64": (53, 1024, -1022, 15),
}


def _format(type: dtype) -> tuple[float, float, float, float] | None:
    """Return the largest number, the distance from 1 to the next, the smallest normal number,
    the resolution.
    """
    if type.name in _FORMATS:
        digits, largest, smallest, decimals = _FORMATS[type.name]
        step = 2.0 ** (1 - digits)
        return (2.0 - step) * 2.0 ** (largest - 1), step, 2.0**smallest, 10.0**-decimals
    if type._float8_format is None:
        return None
    _, mantissa_bits, bias, largest_code = type._float8_format
    exponent, mantissa = divmod(largest_code, 2**mantissa_bits)
    step = 2.0**-mantissa_bits
    # Without a mantissa, the exponent 0 is as normal as others.
    return (1 + mantissa * step) * 2.0 ** (exponent - bias), step, 2.0 ** ((mantissa_bits > 0) - bias), 1.0


class finfo:
    """The range and precision of a floating-point dtype, or of the parts of a complex one.

    Attributes
    ----------
    bits : int
        Bits of one number.
    eps : float
        The distance from 1 to the next larger number.
    max, min : float
        The largest and the lowest number.
    tiny, smallest_normal : float
        The smallest positive normal number.
    resolution : float
        The decimal resolution, ``10 ** -digits``.
    dtype : str

    Examples
    --------
    >>> import candelabra
    >>> candelabra.finfo(candelabra.float32).eps
    1.1920928955078125e-07
    """

    def __init__(self, type: dtype | None = None) -> None:
        described = _C.get_default_dtype() if type is None else type
        if described.is_complex:
            described = described.to_real()
        found = _format(described)
        if found is None:
            raise TypeError(
                f"candelabra.finfo() requires a floating point input type, not {described}. Use candelabra.iinfo to handle it"
            )
        self.dtype = described.name
        self.bits = described.itemsize * 8
        self.max, self.eps, self.tiny, self.resolution = found
        self.smallest_normal = self.tiny
        self.min = -self.max if described.is_signed else self.tiny

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(("finfo", self.dtype))


class iinfo:
    """The range of an integer dtype.

    Attributes
    ----------
    bits : int
        Bits of one number.
    max, min : int
        The largest and the lowest number.
    dtype : str

    Examples
    --------
    >>> import candelabra
    >>> candelabra.iinfo(candelabra.int8).min
    -128
    """

    def __init__(self, type: dtype) -> None:
        if type.is_floating_point or type.is_complex:
            raise TypeError(
                f"candelabra.iinfo() requires an integer input type, not {type}. Use candelabra.finfo to handle it"
            )
        if type is _C.bool:
            raise TypeError("candelabra.iinfo() requires an integer input type; candelabra.bool has no range")
        self.bits = type.itemsize * 8
        self.max = 2 ** (self.bits - type.is_signed) - 1
        self.min = -(2 ** (self.bits - 1)) if type.is_signed else 0
        self.dtype = type.name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(("iinfo", self.dtype))
