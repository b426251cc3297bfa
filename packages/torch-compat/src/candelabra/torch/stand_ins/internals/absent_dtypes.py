"""Dtypes that no tensor has: they can be named, compared and described.

Libraries keep dtypes in tables, compare with them and ask for their ranges. What makes or converts
a tensor refuses them.
"""

from __future__ import annotations

from typing import Any, NoReturn

import candelabra

_QUANTIZED = "there are no quantized tensors: use int8, uint8 or int32 with a scale of your own"
#: The size of an element by name.
_DTYPES = {
    "qint8": 1,
    "qint32": 4,
    **dict.fromkeys(("quint8", "quint4x2", "quint2x4"), 1),
}
__all__ = [*_DTYPES]


class _Absent:
    """A dtype without tensors.

    The core's functions name the type of what is no dtype in their errors, so that each of these
    dtypes is of a class of its own, whose name says what is missing.
    """

    is_floating_point = False
    is_complex = False

    def __init__(self, name: str, itemsize: int) -> None:
        self.name = name
        self.itemsize = itemsize
        self.is_signed = name.startswith("qint")

    @property
    def __class__(self) -> type:
        """`isinstance` counts it among the dtypes."""
        return candelabra.dtype

    @__class__.setter
    def __class__(self, value: Any) -> NoReturn:
        raise TypeError("__class__ of a dtype cannot be assigned")

    def to_real(self) -> Any:
        """Return the dtype: it is not complex."""
        return self

    def to_complex(self) -> NoReturn:
        """Raise.

        Raises
        ------
        RuntimeError
            No complex dtype has parts of this dtype.
        """
        raise RuntimeError(f"no complex dtype has parts of the dtype {self!r}")

    def __repr__(self) -> str:
        return f"candelabra.{self.name}"

    def __reduce__(self) -> Any:
        return _of_name, (self.name,)


def _of_name(name: str) -> Any:
    return globals()[name]


for _name, _itemsize in _DTYPES.items():
    globals()[_name] = type(f"{_name} ({_QUANTIZED})", (_Absent,), {})(_name, _itemsize)
