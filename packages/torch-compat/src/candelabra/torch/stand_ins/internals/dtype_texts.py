"""``torch.utils._dtype_abbrs``: short names of dtypes, such as f32."""

from __future__ import annotations

import re

import candelabra

__all__ = ["dtype_abbrs"]

_LETTERS = {"float": "f", "bfloat": "bf", "complex": "c", "int": "i", "uint": "u", "bool": "b8"}


def _short(dtype: candelabra.dtype) -> str:
    name = str(dtype).removeprefix("candelabra.")
    kind, size = re.fullmatch(r"([a-z]+)(.*)", name).groups()  # type: ignore[union-attr]
    return _LETTERS[kind] + size.replace("_", "")


#: The short names by dtype.
dtype_abbrs = {dtype: _short(dtype) for dtype in vars(candelabra).values() if isinstance(dtype, candelabra.dtype)}
