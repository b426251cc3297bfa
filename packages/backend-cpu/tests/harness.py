"""Call kernels directly through the C interface with NumPy arrays, to test them without the core.

``call("add", [out], a, b, Scalar(1))`` runs one kernel. Outputs are written in place. If the kernel
fails, it raises `KernelError`.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from candelabra_backend_cpu import library_path

LIBRARY = Path(os.environ.get("CANDELABRA_CPU_LIBRARY") or library_path())
#: The BLAS that the library is built with.
BLAS = "OpenBLAS" if (LIBRARY.parent / "libscipy_openblas.so").exists() else "MKL"

OK, RUNTIME_ERROR, OUT_OF_MEMORY, VALUE_ERROR, INDEX_ERROR, TYPE_ERROR, NOT_IMPLEMENTED = range(7)

DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
CODES = {name: code for code, name in enumerate(DTYPES)}


class KernelError(Exception):
    """A kernel returned a status other than CB_OK."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"status {status}: {message}")
        self.status = status
        self.message = message


@dataclass
class BFloat16:
    """An array of bfloat16. NumPy has no such dtype, so the bits are stored as uint16."""

    bits: np.ndarray

    @staticmethod
    def of(values: Any) -> BFloat16:
        """Convert from float32, rounding to nearest even."""
        wide = np.asarray(values, dtype=np.float32)
        words = wide.view(np.uint32) if wide.ndim else wide.reshape(1).view(np.uint32).reshape(())
        rounded = ((words.astype(np.uint64) + 0x7FFF + ((words >> 16) & 1)) >> 16).astype(np.uint16)
        return BFloat16(np.where(np.isnan(wide), np.uint16(0x7FC0), rounded).astype(np.uint16))

    def values(self) -> np.ndarray:
        """Return the values as float32."""
        return (self.bits.astype(np.uint32) << 16).view(np.float32)


@dataclass
class Scalar:
    """An argument of type ``Scalar``."""

    value: bool | int | float | complex


@dataclass
class Number:
    """A Python number in place of a tensor: one element of `dtype`, expanded to `shape`."""

    value: Any
    dtype: str
    shape: tuple[int, ...]


@dataclass
class Allocate:
    """An output with a data-dependent shape. The call sets `result`."""

    dtype: str
    result: Any = None


@dataclass
class Reduced:
    """The output of a reduction: `array`, with reduced dimensions of size 1 and stride 0
    (keepdims).
    """

    array: Any


class Tensor_(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("sizes", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("numel", ctypes.c_int64), ("ndim", ctypes.c_int32), ("dtype", ctypes.c_int32), ("device_index", ctypes.c_int32),
        ("flags", ctypes.c_uint32), ("storage", ctypes.c_void_p), ("offset", ctypes.c_uint64), ("memory_kind", ctypes.c_int32),
        ("reserved", ctypes.c_int32), ("reserved_2", ctypes.c_uint64),
    ]  # fmt: skip


class Scalar_(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_int32), ("flags", ctypes.c_int32), ("i", ctypes.c_int64), ("re", ctypes.c_double), ("im", ctypes.c_double),
        ("reserved", ctypes.c_uint64),
    ]  # fmt: skip


class As_(ctypes.Union):
    _fields_ = [
        ("tensor", ctypes.POINTER(Tensor_)), ("tensors", ctypes.POINTER(ctypes.POINTER(Tensor_))), ("scalar", ctypes.POINTER(Scalar_)),
        ("i", ctypes.c_int64), ("f", ctypes.c_double), ("ints", ctypes.POINTER(ctypes.c_int64)),
        ("floats", ctypes.POINTER(ctypes.c_double)), ("string", ctypes.c_char_p),
    ]  # fmt: skip


class Value_(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("count", ctypes.c_int32), ("as_", As_), ("reserved", ctypes.c_uint64)]


ALLOCATE_OUTPUT = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_int64)
)
IS_CANCELLED = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)


class Host_(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint64), ("abi_major", ctypes.c_uint32), ("abi_minor", ctypes.c_uint32), ("allocate_output", ALLOCATE_OUTPUT),
        ("allocate_workspace", ctypes.c_void_p), ("is_cancelled", IS_CANCELLED),
    ]  # fmt: skip


class Call_(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint64), ("host", ctypes.POINTER(Host_)), ("backend", ctypes.c_void_p), ("operator_name", ctypes.c_char_p),
        ("device_index", ctypes.c_int32), ("output_count", ctypes.c_int32), ("argument_count", ctypes.c_int32),
        ("reserved", ctypes.c_int32), ("outputs", ctypes.POINTER(Tensor_)), ("arguments", ctypes.POINTER(Value_)),
        ("stream", ctypes.c_void_p), ("random_seed", ctypes.c_uint64), ("random_offset", ctypes.c_uint64),
        ("error", ctypes.c_char_p), ("error_capacity", ctypes.c_uint64), ("content_versions", ctypes.c_void_p),
    ]  # fmt: skip


KERNEL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(Call_))


class Entry_(ctypes.Structure):
    _fields_ = [
        ("operator_name", ctypes.c_char_p), ("kernel", KERNEL), ("dtypes", ctypes.c_uint64), ("flags", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    ]  # fmt: skip


_P = ctypes.c_void_p
_I = ctypes.c_int32


class Properties_(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint64), ("name", ctypes.c_char * 128), ("total_memory", ctypes.c_int64), ("free_memory", ctypes.c_int64),
        ("processor_count", _I), ("architecture", _I),
    ]  # fmt: skip


class Statistics_(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint64)] + [
        (name, ctypes.c_int64)
        for name in ("allocated", "allocated_peak", "reserved", "reserved_peak", "allocation_count", "cache_hit_count")
    ]


class Allocation_(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint64), ("bytes", ctypes.c_uint64), ("stream", _P), ("storage", _P), ("address", _P), ("kind", _I),
        ("host_visible", _I),
    ]  # fmt: skip


class Backend_(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint64), ("abi_major", ctypes.c_uint32), ("abi_minor", ctypes.c_uint32), ("device_type", ctypes.c_char_p),
        ("version", ctypes.c_char_p), ("capabilities", ctypes.c_uint64), ("context", _P),
        ("kernels", ctypes.POINTER(Entry_)), ("kernel_count", ctypes.c_uint64),
        ("kernel_entry_size", ctypes.c_uint64), ("initialize", ctypes.CFUNCTYPE(_I)), ("shutdown", _P), ("last_error", ctypes.CFUNCTYPE(ctypes.c_char_p)),
        ("supports", _P), ("device_count", _P), ("device_properties", ctypes.CFUNCTYPE(_I, _I, ctypes.POINTER(Properties_))), ("synchronize", _P),
        ("device_status", _P), ("reset_device", _P),
        ("allocate", ctypes.CFUNCTYPE(_I, _I, ctypes.POINTER(Allocation_))),
        ("deallocate", ctypes.CFUNCTYPE(None, _I, _P, ctypes.c_uint64)),
        ("copy_from_host", _P), ("copy_to_host", _P), ("copy_within", _P),
        ("memory_statistics", ctypes.CFUNCTYPE(_I, _I, ctypes.POINTER(Statistics_))),
        ("reset_peak_statistics", ctypes.CFUNCTYPE(None, _I)), ("empty_cache", ctypes.CFUNCTYPE(None, _I)),
        ("set_memory_limit", ctypes.CFUNCTYPE(_I, _I, ctypes.c_int64)),
        ("thread_count", ctypes.CFUNCTYPE(_I)), ("set_thread_count", ctypes.CFUNCTYPE(_I, _I)),
        ("after_fork_in_child", ctypes.CFUNCTYPE(None)),
    ]  # fmt: skip


class Backend:
    """The loaded library: its table and its kernels by name."""

    def __init__(self, path: Path = LIBRARY) -> None:
        self.library = ctypes.CDLL(str(path))
        self._allocate = ALLOCATE_OUTPUT(self._allocate_output)
        self._is_cancelled = IS_CANCELLED(lambda call: 0)
        self._host = Host_(ctypes.sizeof(Host_), 2, 0, self._allocate, None, self._is_cancelled)
        self.library.candelabra_backend.restype = ctypes.POINTER(Backend_)
        self.library.candelabra_backend.argtypes = [ctypes.POINTER(Host_)]
        self.table: Backend_ = self.library.candelabra_backend(ctypes.byref(self._host)).contents
        self._pending: tuple[Any, Any] | None = None
        status = self.table.initialize()
        if status != OK:
            raise KernelError(status, self.table.last_error().decode())
        self.kernels = {
            self.table.kernels[i].operator_name.decode(): self.table.kernels[i].kernel
            for i in range(self.table.kernel_count)
        }

    def _allocate_output(self, call: Any, index: int, ndim: int, sizes: Any) -> int:
        assert self._pending is not None
        outputs, request = self._pending
        dtype = request[index].dtype
        array = np.empty([sizes[d] for d in range(ndim)], dtype=np.uint16 if dtype == "bfloat16" else dtype)
        request[index].result = BFloat16(array) if dtype == "bfloat16" else array
        self._fill(outputs[index], request[index].result, self._kept)
        return OK

    def _fill(self, tensor: Tensor_, value: Any, kept: list[Any]) -> None:
        reduced = isinstance(value, Reduced)
        if reduced:
            value = value.array
        array = value.bits if isinstance(value, BFloat16) else value
        dtype = "bfloat16" if isinstance(value, BFloat16) else array.dtype.name
        if reduced:  # a kept dimension may also have size 1; its stride is ignored
            strides = [
                0 if size == 1 else stride // array.itemsize
                for size, stride in zip(array.shape, array.strides, strict=True)
            ]
        else:
            strides = [stride // array.itemsize for stride in array.strides]
        sizes = (ctypes.c_int64 * max(1, array.ndim))(*array.shape)
        steps = (ctypes.c_int64 * max(1, array.ndim))(*strides)
        kept += [array, sizes, steps]
        tensor.data = array.ctypes.data
        tensor.sizes, tensor.strides = sizes, steps
        tensor.numel, tensor.ndim, tensor.dtype, tensor.flags = array.size, array.ndim, CODES[dtype], 0

    def _tensor(self, value: Any, kept: list[Any]) -> Tensor_:
        tensor = Tensor_()
        if isinstance(value, Number):
            if value.dtype == "bfloat16":
                cell = BFloat16.of(np.array(value.value)).bits.reshape(1)
            else:
                cell = np.array([value.value]).astype(value.dtype)
            ndim = len(value.shape)
            sizes, steps = (ctypes.c_int64 * max(1, ndim))(*value.shape), (ctypes.c_int64 * max(1, ndim))()
            kept += [cell, sizes, steps]
            tensor.data, tensor.sizes, tensor.strides = cell.ctypes.data, sizes, steps
            tensor.numel, tensor.ndim, tensor.dtype, tensor.flags = (
                int(np.prod(value.shape)),
                ndim,
                CODES[value.dtype],
                1,
            )
        else:
            self._fill(tensor, value, kept)
        kept.append(tensor)
        return tensor

    def _value(self, argument: Any, kept: list[Any]) -> Value_:
        value = Value_()
        if argument is None:
            value.kind = 0
        elif isinstance(argument, np.ndarray | BFloat16 | Number | Reduced):
            value.kind, value.as_.tensor = 1, ctypes.pointer(self._tensor(argument, kept))
        elif isinstance(argument, Scalar):
            number = argument.value
            scalar = Scalar_()
            scalar.kind = {bool: 0, int: 1, float: 2, complex: 3}[type(number)]
            scalar.i = int(number) if isinstance(number, int) else 0
            scalar.re, scalar.im = complex(number).real, complex(number).imag
            value.kind, value.as_.scalar = 3, ctypes.pointer(scalar)
        elif isinstance(argument, bool | int):
            value.kind, value.as_.i = 4, int(argument)
        elif isinstance(argument, float):
            value.kind, value.as_.f = 5, argument
        elif isinstance(argument, str):
            value.kind, value.as_.string = 8, argument.encode()
        elif isinstance(argument, Sequence) and (
            not argument or any(isinstance(entry, np.ndarray | BFloat16 | Number) for entry in argument)
        ):
            pointers = (ctypes.POINTER(Tensor_) * max(1, len(argument)))()
            for i, entry in enumerate(argument):
                if entry is not None:
                    pointers[i] = ctypes.pointer(self._tensor(entry, kept))
            value.kind = 2
            value.as_.tensors = pointers
        elif isinstance(argument, Sequence) and all(isinstance(entry, int | np.integer) for entry in argument):
            value.kind, value.as_.ints = 6, (ctypes.c_int64 * len(argument))(*argument)
        elif isinstance(argument, Sequence):
            value.kind, value.as_.floats = 7, (ctypes.c_double * len(argument))(*argument)
        else:
            raise TypeError(f"no argument of a kernel: {argument!r}")
        value.count = len(argument) if isinstance(argument, Sequence) and not isinstance(argument, str) else 0
        kept.append(value)
        return value

    def prepare(
        self, operator: str, outputs: Sequence[Any], *arguments: Any, seed: int = 0, offset: int = 0
    ) -> tuple[Any, Call_, list[Any]]:
        """Build a call that can run many times: ``kernel(ctypes.byref(call))``."""
        kept: list[Any] = []
        out = (Tensor_ * max(1, len(outputs)))()
        for i, output in enumerate(outputs):
            if isinstance(output, Allocate):
                out[i].dtype = CODES[output.dtype]
            else:
                self._fill(out[i], output, kept)
        values = (Value_ * max(1, len(arguments)))(*[self._value(argument, kept) for argument in arguments])
        error = ctypes.create_string_buffer(1024)
        call = Call_(
            ctypes.sizeof(Call_), ctypes.pointer(self._host), None, operator.encode(), 0, len(outputs), len(arguments), 0, out, values,
            None, seed, offset, ctypes.cast(error, ctypes.c_char_p), 1024,
        )  # fmt: skip
        kept += [out, values, error]
        return self.kernels[operator], call, kept

    def call(self, operator: str, outputs: Sequence[Any], *arguments: Any, seed: int = 0, offset: int = 0) -> None:
        """Run one kernel. Raise `KernelError` if it fails, and KeyError if there is none."""
        kernel, call, kept = self.prepare(operator, outputs, *arguments, seed=seed, offset=offset)
        self._pending, self._kept = (call.outputs, outputs), kept
        status = kernel(ctypes.byref(call))
        if status != OK:
            raise KernelError(status, call.error.decode(errors="replace"))


_backend: Backend | None = None


def backend() -> Backend:
    """Return the library, which is loaded once."""
    global _backend
    if _backend is None:
        _backend = Backend()
    return _backend


def call(operator: str, outputs: Sequence[Any], *arguments: Any, seed: int = 0, offset: int = 0) -> None:
    """Run one kernel of the library; see `Backend.call`."""
    backend().call(operator, outputs, *arguments, seed=seed, offset=offset)


def nanoseconds(operator: str, outputs: Sequence[Any], *arguments: Any, repeats: int = 1000) -> float:
    """Return the time of one run of the kernel, including about 100 ns of ctypes overhead."""
    import time

    kernel, call_, kept = backend().prepare(operator, outputs, *arguments)
    address = ctypes.cast(kernel, ctypes.c_void_p).value
    function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(address)
    raw = ctypes.c_void_p(ctypes.addressof(call_))

    def timed(body: Any, argument: Any) -> float:
        best = float("inf")
        for _ in range(7):
            start = time.perf_counter_ns()
            for _ in range(repeats):
                body(argument)
            best = min(best, (time.perf_counter_ns() - start) / repeats)
        return best

    total = timed(function, raw)
    del kept
    return total
