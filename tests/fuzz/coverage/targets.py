"""The fuzz targets: functions of bytes, which return, or raise what is a fault."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import io
import json
import os
import random
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[3] / "packages" / "tensor-core" / "tests"))

import file_mutations
from byte_draw import ByteDraw

import candelabra
from candelabra.serialization import FileError
from candelabra.serialization.zip_files import ArchiveWriter

#: A library of native.cpp, and the runner's.
NATIVE, RUNNER = "CANDELABRA_FUZZ_NATIVE", "CANDELABRA_FUZZ_RUNNER"

# ---- files that Python reads


def load(data: bytes) -> None:
    """Load a file of any format."""
    with contextlib.suppress(FileError, candelabra.BackendError):
        file_mutations.use(candelabra.load(io.BytesIO(data)))


def archive(entries: dict[str, bytes], name: str, content: bytes) -> bytes:
    """Return an archive of these entries with another content of one, and the right checksums."""
    file = io.BytesIO()
    writer = ArchiveWriter(file)
    for key, held in entries.items():
        writer.add(key, content if key == name else held)
    writer.close()
    return file.getvalue()


def entries_of(data: bytes) -> dict[str, bytes]:
    """Return the entries of an archive by name."""
    with zipfile.ZipFile(io.BytesIO(data)) as read:
        return {name: read.read(name) for name in read.namelist()}


@functools.cache
def _archives() -> dict[str, dict[str, bytes]]:
    """Return the entries that the files around a description or a pickle have."""
    corpus = file_mutations.corpus()
    return {kind: entries_of(corpus[kind][0]) for kind in ("candelabra", "pytorch")}


def description(data: bytes) -> None:
    """Load an archive of Candelabra's with this description."""
    load(archive(_archives()["candelabra"], "description.json", data))


def pickle_machine(data: bytes) -> None:
    """Load an archive of PyTorch's with this pickle."""
    load(archive(_archives()["pytorch"], "archive/data.pkl", data))


def t7(data: bytes) -> None:
    """Load a file of Torch 7's."""
    from candelabra.legacy import T7ReaderException, load_lua

    with contextlib.suppress(FileError, T7ReaderException):
        load_lua(io.BytesIO(data))


# ---- exported programs


@functools.cache
def _program() -> dict[str, bytes]:
    corpus = Path(__file__).parent / "corpus" / "program.cex"
    return entries_of(corpus.read_bytes())


def program(data: bytes) -> None:
    """Load an exported program with this description."""
    from candelabra.export import load as load_program

    with contextlib.suppress(FileError, candelabra.BackendError):
        load_program(io.BytesIO(archive(_program(), "description.json", data)))


class _Options(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_uint64), ("backend", ctypes.c_char_p), ("threads", ctypes.c_int32), ("reserved", ctypes.c_int32),
    )  # fmt: skip


@functools.cache
def _runner() -> tuple[ctypes.CDLL, _Options]:
    path = os.environ.get(RUNNER)
    if path is None:
        import candelabra_runner

        path = str(candelabra_runner.library_path())
    import candelabra_backend_cpu

    library = ctypes.CDLL(path)
    library.cr_error.restype = ctypes.c_char_p
    library.cr_close.argtypes = [ctypes.c_void_p]
    options = _Options(ctypes.sizeof(_Options), os.fsencode(candelabra_backend_cpu.library_path()), 1, 0)
    return library, options


@contextlib.contextmanager
def _file(data: bytes) -> Any:
    """Give the path of a file in memory."""
    number = os.memfd_create("file")
    try:
        os.write(number, data)
        yield f"/proc/self/fd/{number}".encode()
    finally:
        os.close(number)


def runner_file(data: bytes) -> None:
    """Open a file with the runner, which checks it. No kernel runs."""
    library, options = _runner()
    opened = ctypes.c_void_p()
    with _file(data) as path:
        status = library.cr_open(path, ctypes.byref(options), ctypes.byref(opened))
    if (status == 0) != bool(opened.value) or (status != 0 and not library.cr_error()):
        raise AssertionError(f"cr_open() returned {status} with a program {opened.value} and {library.cr_error()!r}")
    library.cr_close(opened)


def runner(data: bytes) -> None:
    """Open a file with this description with the runner."""
    runner_file(archive(_program(), "description.json", data))


# ---- native sources that no package exports


@functools.cache
def _native() -> ctypes.CDLL:
    library = ctypes.CDLL(os.environ[NATIVE])
    library.last_message.restype = ctypes.c_char_p
    return library


def backend_table(data: bytes) -> None:
    """Check tables of a backend."""
    library = _native()
    size = ctypes.c_size_t(len(data))
    library.try_backend_table(data, size, b"fuzz")
    library.try_accelerator_table(
        data[8:], ctypes.c_size_t(len(data[8:])), ctypes.c_uint64(int.from_bytes(data[:8], "little"))
    )


def runner_npy(data: bytes) -> None:
    """Read an .npy file with the runner."""
    if _native().try_npy(data, ctypes.c_size_t(len(data))) < 0:
        raise OSError("no file in memory could be written")


# ---- the parser of schemas


def schema(data: bytes) -> None:
    """Parse a schema of a custom operator in C++ and in Python."""
    from candelabra import _C
    from candelabra.catalogue.schemas import parse

    text = "fuzz::f" + data.decode("utf-8", "replace")
    with contextlib.suppress(ValueError):
        parse(text)
    try:
        operator = _C.declare_operator(text, "custom", 0, "", {}, "")
    except ValueError:
        return
    _C.forget_operator(operator.name)
    if operator.positional_count > len(operator.parameters):
        raise AssertionError(f"{text} has {operator.parameters}")


# ---- arrays of other libraries


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_index", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64),
    )  # fmt: skip


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64), ("tensor", _DLTensor),
    )  # fmt: skip


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
#: What the address of a capsule has: as much as a believable shape reaches.
_ROOM = 1 << 16


def _extent(tensor: _DLTensor, sizes: list[int], strides: list[int] | None) -> int:
    """Return how many bytes a capsule says that it has."""
    if 0 in sizes:
        return 0
    if strides is None:
        elements = 1
        for size in sizes:
            elements *= size
    else:
        elements = 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides))
    return elements * max(tensor.bits * tensor.lanes // 8, 1) + tensor.byte_offset


def dlpack(data: bytes) -> None:
    """Import a capsule whose fields the data names. Its address is believed, so one with memory
    says no more than there is.
    """
    draw = ByteDraw(data)
    versioned = draw.chance(0.5)
    managed: _Managed | _Versioned = _Versioned() if versioned else _Managed()
    if isinstance(managed, _Versioned):
        managed.major, managed.minor, managed.flags = draw.integer(1), draw.integer(1), draw.integer(1)
    tensor = managed.tensor
    tensor.device_type, tensor.device_index = draw.integer(1), draw.integer(1)
    tensor.ndim = draw.choice((0, 1, 2, 3, 4, 64, 65, -1, 2**31 - 1))
    tensor.code, tensor.bits, tensor.lanes = (
        draw.integer(1) % 20,
        draw.choice((8, 16, 32, 64, 128, 1, 4)),
        draw.choice((1, 1, 1, 0, 4)),
    )
    count = max(0, min(tensor.ndim, 65))
    sizes = [draw.size() for _ in range(count)]
    strides = [draw.size() for _ in range(count)] if draw.chance(0.7) else None
    shape_memory = (ctypes.c_int64 * max(count, 1))(*sizes)
    stride_memory = (ctypes.c_int64 * max(count, 1))(*(strides or []))
    memory = ctypes.create_string_buffer(_ROOM + 64)
    tensor.shape = ctypes.addressof(shape_memory) if draw.chance(0.95) and tensor.ndim <= 65 else None
    tensor.strides = ctypes.addressof(stride_memory) if strides is not None else None
    tensor.byte_offset = draw.choice((0, 0, 8, 3, 64, 2**40))
    has_room = 0 <= _extent(tensor, sizes, strides) <= _ROOM
    tensor.data = (ctypes.addressof(memory) + 63) // 64 * 64 if draw.chance(0.9) else None
    capsule = _new_capsule(
        ctypes.addressof(managed),
        draw.choice((b"dltensor_versioned" if versioned else b"dltensor", b"used_dltensor")),
        None,
    )
    try:
        made = candelabra.from_dlpack(capsule)
    except (BufferError, RuntimeError):
        return
    # The core believes an address. What nobody reads may be wrong.
    if has_room:
        file_mutations.use(made)
        candelabra.from_dlpack(made.__dlpack__(max_version=draw.choice((None, (1, 0), (0, 8)))))


def arrays(data: bytes) -> None:
    """Take NumPy's arrays of many dtypes and layouts, and give them back."""
    import numpy as np

    draw = ByteDraw(data)
    codes = (
        "f4",
        "f8",
        "i8",
        "i4",
        "u1",
        "b1",
        "c8",
        "c16",
        "f2",
        "u8",
        "u2",
        ">f4",
        "O",
        "S3",
        "M8[s]",
        "f4,f4",
        "g",
        "V3",
    )
    buffer = np.frombuffer(bytearray(data.ljust(512, b"\x01")), np.uint8)
    dtype = np.dtype(draw.choice(codes))
    if dtype.hasobject:
        array = np.array([draw.choice((1, None, "x", 2.5, [1])) for _ in range(draw.integer(1) % 5)], dtype=object)
    else:
        sizes = [draw.integer(1) % 5 for _ in range(draw.integer(1) % 5)]
        room = buffer.size // dtype.itemsize
        flat = buffer[: room * dtype.itemsize].view(dtype)
        strides, offset, room = [], 0, room - 1
        for size in sizes:
            step = min(draw.integer(1) % 9, room // max(size - 1, 1))
            room -= step * max(size - 1, 0)
            backward = draw.chance(0.2)
            offset += step * max(size - 1, 0) if backward else 0
            strides.append((-step if backward else step) * dtype.itemsize)
        array = np.lib.stride_tricks.as_strided(flat[offset:], sizes, strides)
    if draw.chance(0.2):
        array.flags.writeable = False
    for make in (
        candelabra.from_numpy,
        candelabra.as_tensor,
        candelabra.tensor,
        lambda value: candelabra.tensor([value, value]),
    ):
        try:
            made = make(array)
        except (TypeError, ValueError, RuntimeError, BufferError, OverflowError):
            continue
        file_mutations.use(made)
        back = made.numpy()
        expected = np.stack([array, array]) if back.ndim > array.ndim else array
        # A byte of a bool may be neither 0 nor 1: the values are compared.
        if back.shape != expected.shape or not np.array_equal(
            back + 0, expected + 0, equal_nan=back.dtype.kind in "fc"
        ):
            raise AssertionError(f"{make} made {back} of {expected}")


# ---- arguments of operators


def arguments(data: bytes) -> None:
    """Call an operator with arguments that the data chooses."""
    from candelabra.testing import hostile

    draw = ByteDraw(data)
    names, operators = _operators()
    name = names[draw.integer(2) % len(names)]
    fault = hostile.attack_with(name, operators[name], draw, lambda line: None)
    if fault:
        raise AssertionError(fault)


@functools.cache
def _operators() -> tuple[list[str], dict[str, Callable[..., Any]]]:
    from candelabra.testing import hostile

    candelabra.backends.set_memory_limit("cpu", 1 << 26)
    candelabra.set_num_threads(1)
    operators = hostile.functions("candelabra.ops") | hostile.functions("candelabra.Tensor")
    return sorted(operators), operators


def _change_legacy(data: bytes, draw: random.Random, others: list[bytes]) -> bytes:
    try:
        return file_mutations.change_legacy(data, draw, others)
    except Exception:  # (whatever pickletools says to what is no pickle)
        return file_mutations.change_bytes(data, draw, others)


def _change_safetensors(data: bytes, draw: random.Random, others: list[bytes]) -> bytes:
    if int.from_bytes(data[:8], "little") > len(data):
        return file_mutations.change_bytes(data, draw, others)
    return file_mutations.change_safetensors(data, draw, others)


#: By name: what is called with the bytes.
TARGETS: dict[str, Callable[[bytes], None]] = {
    "archive": load, "description": description, "pickle_machine": pickle_machine, "legacy": load, "safetensors": load, "npy": load,
    "t7": t7, "program": program, "runner_file": runner_file, "runner": runner, "runner_npy": runner_npy, "backend_table": backend_table,
    "schema": schema, "dlpack": dlpack, "arrays": arrays, "arguments": arguments,
}  # fmt: skip

#: By name: how an input is changed, where a change of bytes would seldom leave one that is read.
MUTATORS: dict[str, Callable[[bytes, random.Random, list[bytes]], bytes]] = {
    "description": file_mutations.change_json, "program": file_mutations.change_json, "runner": file_mutations.change_json,
    "pickle_machine": file_mutations.change_pickle, "legacy": _change_legacy, "safetensors": _change_safetensors,
    "npy": file_mutations.change_npy, "runner_npy": file_mutations.change_npy,
}  # fmt: skip


# ---- the first inputs


def _t7_files() -> list[bytes]:
    from candelabra.legacy import save_lua

    values = [None, -3, 0.1, "text", ["a", 2, None, False], {"k": [1.5], 7: {}}, candelabra.arange(6.0).view(2, 3).t()]
    files = []
    with tempfile.TemporaryDirectory() as folder:
        for ascii_form in (False, True):
            path = Path(folder) / "file.t7"
            save_lua(values, path, ascii=ascii_form)
            files.append(path.read_bytes())
    return files


def _program_file() -> bytes:
    from candelabra import nn
    from candelabra.export import export, save

    candelabra.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Flatten()).eval()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.cex"
        save(export(model, (candelabra.ones(2, 4),)), path, runner=True)
        return path.read_bytes()


def _table() -> bytes:
    """Return a table of a backend in which nothing is null."""
    return (1024).to_bytes(8, "little") + (2).to_bytes(4, "little") + bytes(4) + b"\x08".ljust(8, b"\0") * 126


def seeds() -> dict[str, list[bytes]]:
    """Return small inputs of each target."""
    files = file_mutations.corpus()
    descriptions = [entries_of(data)["description.json"] for data in files["candelabra"]]
    pickles = [
        content for data in files["pytorch"] for name, content in entries_of(data).items() if name.endswith("data.pkl")
    ]
    program_entries = _program()
    schemas = [
        b"(Tensor self, int k, int dim=-1) -> (Tensor values, Tensor indices)", b"(Tensor(a!) self, Scalar? alpha=1.5) -> ()",
        b"(Tensor?[] x, int[2] s=[1, 2], *, str how='mean', dtype? d=None) -> Tensor[]", b"(float[] p=[], bool b=True) -> Tensor(a!)",
    ]  # fmt: skip
    return {
        "archive": [*files["candelabra"][:1], *files["pytorch"][:1], *files["npz"]],
        "description": descriptions, "pickle_machine": pickles, "legacy": files["legacy"], "safetensors": files["safetensors"],
        "npy": files["npy"], "t7": _t7_files(), "program": [program_entries["description.json"]],
        "runner_file": [(Path(__file__).parent / "corpus" / "program.cex").read_bytes()], "runner": [program_entries["description.json"]],
        "runner_npy": files["npy"], "backend_table": [_table()], "schema": schemas,
        "dlpack": [bytes(range(64)), bytes(64)], "arrays": [bytes(range(48)), bytes(48)], "arguments": [bytes(range(200)), bytes(100)],
    }  # fmt: skip


def write_seeds() -> None:
    """Write the first inputs to the corpora, beside what fuzzing has found."""
    folder = Path(__file__).parent / "corpus"
    folder.mkdir(exist_ok=True)
    (folder / "program.cex").write_bytes(_program_file())
    _program.cache_clear()
    for name, inputs in seeds().items():
        (folder / name).mkdir(exist_ok=True)
        for number, data in enumerate(inputs):
            (folder / name / f"seed{number}").write_bytes(data)


if __name__ == "__main__":
    write_seeds()
    json.dump(sorted(TARGETS), sys.stdout)
