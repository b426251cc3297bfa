"""Memory in which ranks write what they do, and which their launcher reads when one is killed.

The launcher makes it without a name in the file system, and passes its descriptor on. Unlike the
reports of the health channel, it is exact at the time of the death.
"""

from __future__ import annotations

import mmap
import os
import struct
from typing import Any

#: Set by the launcher: the descriptor, and the number of the process's record.
VARIABLE = "CANDELABRA_STATUS"
_RECORD = struct.Struct("=?xHHxxqqq")
_RECORD_BYTES = 64
_KINDS = (
    "collective", "all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "all_to_all", "all_to_all_single", "gather",
    "scatter", "barrier", "send", "recv", "batch_isend_irecv",
)  # fmt: skip
_DTYPES = (
    "", "float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
    "complex64", "complex128",
)  # fmt: skip
_KIND_NUMBERS = {kind: number for number, kind in enumerate(_KINDS)}
_DTYPE_NUMBERS = {dtype: number for number, dtype in enumerate(_DTYPES)}

#: Number and name of the group, number and name of the collective, dtype and elements.
Operation = tuple[int, str, int, str, Any, int]


def described(operation: Operation) -> str:
    """Return an operation as text: ``all_reduce(float32 262144) (number 71)``."""
    group, name, number, kind, dtype, count = operation
    tensor = f"{dtype_name(dtype)} {count}" if dtype is not None and dtype != "" else ""
    where = "" if group == 0 else f" of group {name}"
    return f"{kind}({tensor}) (number {number}{where})"


def dtype_name(dtype: Any) -> str:
    """Return a dtype's name without that of the package."""
    return str(dtype).rpartition(".")[2]


class StatusMemory:
    """The launcher's side: a record for each of its processes."""

    def __init__(self, count: int) -> None:
        self.descriptor = os.memfd_create("candelabra status", os.MFD_CLOEXEC)
        os.ftruncate(self.descriptor, count * _RECORD_BYTES)
        self._memory = mmap.mmap(self.descriptor, count * _RECORD_BYTES)

    def variable(self, place: int) -> str:
        """Return the value of the variable for a process."""
        return f"{self.descriptor}:{place}"

    def read(self, place: int) -> list[Any] | None:
        """Return what a process has written last, as `health.Current.report` does, or None."""
        is_inside, kind, dtype, group, number, count = _RECORD.unpack_from(self._memory, place * _RECORD_BYTES)
        if number == 0:
            return None
        names = (_KINDS[kind % len(_KINDS)], _DTYPES[dtype % len(_DTYPES)])
        return [is_inside, group, number, described((group, str(group), number, *names, count))]

    def close(self) -> None:
        """Free the memory."""
        self._memory.close()
        os.close(self.descriptor)


class StatusRecord:
    """A rank's side: its record."""

    def __init__(self, memory: mmap.mmap, offset: int) -> None:
        self._memory = memory
        self._offset = offset
        self._dtypes: dict[Any, int] = {None: 0}

    @staticmethod
    def of_environment() -> StatusRecord | None:
        """Return this process's record, or None if no launcher has made one."""
        text = os.environ.pop(VARIABLE, None)
        if text is None:
            return None
        descriptor, _, place = text.partition(":")
        offset = int(place) * _RECORD_BYTES
        try:
            memory = mmap.mmap(int(descriptor), offset + _RECORD_BYTES)
        except (OSError, ValueError):
            return None  # another program stands between, which has closed the descriptor
        os.close(int(descriptor))
        return StatusRecord(memory, offset)

    def begin(self, operation: Operation) -> None:
        """Write that the rank is in an operation."""
        group, _, number, kind, dtype, count = operation
        code = self._dtypes.get(dtype)
        if code is None:
            code = self._dtypes[dtype] = _DTYPE_NUMBERS.get(dtype_name(dtype), 0)
        _RECORD.pack_into(self._memory, self._offset, True, _KIND_NUMBERS.get(kind, 0), code, group, number, count)

    def end(self) -> None:
        """Write that the operation has ended."""
        self._memory[self._offset] = 0
