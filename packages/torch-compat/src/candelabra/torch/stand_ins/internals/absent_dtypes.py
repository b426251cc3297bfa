"""Dtypes that no tensor has: they can be named, compared and described.

Libraries keep dtypes in tables, compare with them and ask for their ranges. What makes or converts
a tensor refuses them.
"""

from __future__ import annotations

from typing import Any, NoReturn

import candelabra

_FLOAT8 = "no tensor has this dtype: convert to bfloat16 or float16"
_COMPLEX = "no tensor has this dtype: use complex64 or complex128"
_QUANTIZED = "there are no quantized tensors: use int8, uint8 or int32 with a scale of your own"
#: By name: the size of an element, the kind, and why it is absent.
_DTYPES = {
    **dict.fromkeys(
        ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"), (1, "float", _FLOAT8)
    ),
    "complex32": (4, "complex", _COMPLEX),
    "qint8": (1, "quantized", _QUANTIZED),
    "qint32": (4, "quantized", _QUANTIZED),
    **dict.fromkeys(("quint8", "quint4x2", "quint2x4"), (1, "quantized", _QUANTIZED)),
}
__all__ = [*_DTYPES, "chalf"]


class _Absent:
    """A dtype without tensors.

    The core's functions name the type of what is no dtype in their errors, so that each of these
    dtypes is of a class of its own, whose name says what is missing.
    """

    def __init__(self, name: str, itemsize: int, kind: str) -> None:
        self.name = name
        self.itemsize = itemsize
        self.is_floating_point = kind == "float"
        self.is_complex = kind == "complex"
        self.is_signed = name not in ("float8_e8m0fnu", "quint8", "quint4x2", "quint2x4")

    @property
    def __class__(self) -> type:
        """`isinstance` counts it among the dtypes."""
        return candelabra.dtype

    @__class__.setter
    def __class__(self, value: Any) -> NoReturn:
        raise TypeError("__class__ of a dtype cannot be assigned")

    def to_real(self) -> Any:
        """Return the dtype of the parts of a complex one, and others as they are."""
        return candelabra.float16 if self.is_complex else self

    def to_complex(self) -> Any:
        """Return a complex dtype as it is.

        Raises
        ------
        RuntimeError
            For other dtypes: none has parts of them.
        """
        if not self.is_complex:
            raise RuntimeError(f"no complex dtype has parts of the dtype {self!r}")
        return self

    def __repr__(self) -> str:
        return f"candelabra.{self.name}"

    def __reduce__(self) -> Any:
        return _of_name, (self.name,)


def _of_name(name: str) -> Any:
    return globals()[name]


for _name, (_itemsize, _kind, _reason) in _DTYPES.items():
    globals()[_name] = type(f"{_name} ({_reason})", (_Absent,), {})(_name, _itemsize, _kind)
chalf: Any = globals()["complex32"]
