"""``torch.types``: names of types in annotations."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Sequence
from typing import IO

import candelabra
from candelabra import Size, Tensor, UntypedStorage

from .symbols import SymBool, SymFloat, SymInt

__all__ = [
    "BoolLikeType", "FILE_LIKE", "FileLike", "FloatLikeType", "IntLikeType", "MAP_LOCATION", "PySymType", "Storage", "_TensorOrTensors", "_bool", "_bytes", "_complex",
    "_device", "_dtype", "_float", "_int", "_layout", "_size", "_str", "_symsize", "py_sym_types",
]  # fmt: skip

FileLike = str | os.PathLike[str] | IO[bytes]
FILE_LIKE = FileLike
Storage = UntypedStorage
#: Where `load` puts what was saved.
MAP_LOCATION = Callable[[Storage, str], Storage] | candelabra.device | str | dict[str, str] | None
_bool, _bytes, _complex, _float, _int, _str = bool, bytes, complex, float, int, str
_device, _dtype, _layout = candelabra.device, candelabra.dtype, candelabra.layout
_size = Size | builtins.list[int] | tuple[int, ...]
_symsize = Size | Sequence[int | SymInt]
_TensorOrTensors = Tensor | Sequence[Tensor]
py_sym_types = (SymInt, SymFloat, SymBool)
PySymType = SymInt | SymFloat | SymBool
IntLikeType, FloatLikeType, BoolLikeType = int | SymInt, float | SymFloat, bool | SymBool
