"""safetensors files, read and written: a header in JSON, and behind it the bytes of the tensors
(https://github.com/huggingface/safetensors).

The functions are those of ``safetensors.torch``. The format is read here rather than by the package
of this name, since that makes tensors only of the frameworks it knows, and by way of NumPy there is
no bfloat16, and no tensor on the mapped file.
"""

from __future__ import annotations

import json

from candelabra import _C

# Imports the package before its module, so that two threads cannot wait for each other's imports.
from . import serialization as _serialization  # noqa: F401
from .serialization.errors import explained
from .serialization.places import Places, storage_memory
from .serialization.safetensors_files import (
    LONGEST_HEADER,
    NAMES,
    Described,
    read_all,
    read_header,
    read_tensor,
)
from .serialization.saving import write_to
from .serialization.sources import opened
from .serialization.zip_files import write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Any

    from candelabra._C import Tensor
    from candelabra.types import Device

    from .serialization.sources import Source

    Path = str | os.PathLike[str]

__all__ = ["load", "load_file", "load_model", "safe_open", "save", "save_file", "save_model"]

_FORMAT = "safetensors file"


# ---- reading


def load_file(filename: Path, device: Device = "cpu", *, mmap: bool = True) -> dict[str, Tensor]:
    """Read the tensors of a safetensors file.

    Parameters
    ----------
    filename
        A path.
    device
        Where the tensors go.
    mmap
        Whether tensors on the CPU are to be on the file itself, which is read as they are; what is
        written to them stays in this process.

    Raises
    ------
    candelabra.serialization.FileError
        If it is no such file, is damaged, or holds numbers of a dtype that is not there.

    Examples
    --------
    >>> import candelabra, os, tempfile
    >>> from candelabra.safetensors import load_file, save_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.safetensors")
    ...     save_file({"weight": candelabra.ones(2)}, path, metadata={"epoch": "3"})
    ...     load_file(path)
    {'weight': tensor([1., 1.])}
    """
    with opened(filename, "load_file()") as source, explained("load_file()", filename, _FORMAT):
        return read_all(source, Places(device, mmap))[0]


def load(data: bytes) -> dict[str, Tensor]:
    """Read the tensors of the bytes of a safetensors file.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.safetensors import load, save
    >>> load(save({"bias": candelabra.zeros(2)}))
    {'bias': tensor([0., 0.])}
    """
    import io

    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"load(): expected bytes, but got {type(data).__name__}; load_file() takes a path")
    with opened(io.BytesIO(data), "load()") as source, explained("load()", None, _FORMAT):
        return read_all(source, Places())[0]


class safe_open:
    """Open a safetensors file to read some of its tensors, or parts of them.

    Parameters
    ----------
    filename
        A path.
    framework
        Ignored; for compatibility. Tensors are Candelabra's.
    device
        Where the tensors go.

    Examples
    --------
    >>> import candelabra, os, tempfile
    >>> from candelabra.safetensors import safe_open, save_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.safetensors")
    ...     save_file({"weight": candelabra.arange(6).reshape(3, 2)}, path, metadata={"epoch": "3"})
    ...     with safe_open(path) as file:
    ...         file.keys(), file.metadata(), file.get_slice("weight")[1:, 0]
    (['weight'], {'epoch': '3'}, tensor([2, 4]))
    """

    def __init__(self, filename: Path, framework: str = "candelabra", device: Device = "cpu") -> None:
        if framework not in ("candelabra", "pt", "torch", "pytorch"):
            raise ValueError(f"safe_open(): the tensors are Candelabra's, and not those of the framework {framework!r}")
        self._filename = filename
        self._places = Places(device, mapped=True)
        self._opening = opened(filename, "safe_open()")
        self._source: Source | None = self._opening.__enter__()
        try:
            with explained("safe_open()", filename, _FORMAT):
                self._found, self._metadata, self._begin = read_header(self._source)
        except BaseException:
            self._close()
            raise

    def _close(self) -> None:
        if self._source is not None:
            self._source = None
            self._opening.__exit__(None, None, None)

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._close()

    def __del__(self) -> None:
        if getattr(self, "_source", None) is not None:
            self._close()

    def keys(self) -> list[str]:
        """Return the names of the tensors in alphabetical order."""
        return sorted(self._found)

    def offset_keys(self) -> list[str]:
        """Return the names of the tensors in the order of their bytes."""
        return sorted(self._found, key=lambda name: (self._found[name].begin, name))

    def metadata(self) -> dict[str, str] | None:
        """Return the metadata that was saved with the tensors."""
        return self._metadata

    def get_tensor(self, name: str) -> Tensor:
        """Return one tensor."""
        described = self._described(name)
        if self._source is None:
            raise ValueError("safe_open(): the file is closed")
        with explained("safe_open()", self._filename, _FORMAT):
            return read_tensor(self._source, self._places, described, self._begin)

    def get_slice(self, name: str) -> SafeSlice:
        """Return a view of one tensor that supports indexing; only the indexed part is read."""
        return SafeSlice(self, self._described(name))

    def _described(self, name: str) -> Described:
        found = self._found.get(name)
        if found is None:
            raise KeyError(f"safe_open(): the file has no tensor {name!r}")
        return found


class SafeSlice:
    """A tensor in a file, of which indexing reads a part."""

    def __init__(self, file: safe_open, described: Described) -> None:
        self._file = file
        self._found = described

    def get_shape(self) -> list[int]:
        """Return the sizes."""
        return list(self._found.shape)

    def get_dtype(self) -> str:
        """Return the name of the dtype in the file."""
        return self._found.dtype

    def __getitem__(self, index: Any) -> Tensor:
        return self._file.get_tensor(self._found.name)[index]


# ---- writing


def _prepare(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None) -> tuple[bytes, list[Any]]:
    """Return the header of a file, and the memory of its tensors."""
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, Tensor] but received {type(tensors).__name__}")
    for name, tensor in tensors.items():
        if not isinstance(name, str) or name == "__metadata__":
            raise ValueError(f"save(): {name!r} cannot be the name of a tensor")
        if not isinstance(tensor, _C.Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected Tensor but received {type(tensor).__name__}")
        if tensor.dtype not in NAMES:
            raise ValueError(
                f"save(): the format has no dtype for {name!r}, which is of {tensor.dtype.name}; save its view_as_real()"
            )
        if not tensor.is_contiguous():
            raise ValueError(
                f"You are trying to save a non contiguous tensor: `{name}` which is not allowed. It either means you are trying to save "
                "tensors which are reference of each other in which case it's recommended to save only the full tensors, and reslice at "
                "load time, or simply call `.contiguous()` on your tensor to pack it before saving."
            )
    together = [names for names in _sharing(tensors) if len(names) > 1]
    if together:
        raise RuntimeError(
            f"Some tensors share memory, this will lead to duplicate memory on disk and potential differences when loading them again: "
            f"{together}. A potential way to correctly save your model is to use `save_model`."
        )
    if metadata is not None and (
        not isinstance(metadata, dict)
        or not all(isinstance(key, str) and isinstance(value, str) for key, value in metadata.items())
    ):
        raise TypeError("save(): metadata must be a dict of str to str")
    # In the package's order: the largest dtypes first, so that all are aligned.
    order = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": dict(metadata)}
    at = 0
    memories = []
    for name in order:
        tensor = tensors[name].detach().cpu()
        begin = tensor.storage_offset() * tensor.dtype.itemsize
        nbytes = tensor.numel() * tensor.dtype.itemsize
        header[name] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + nbytes]}
        memories.append(memoryview(storage_memory(tensor.untyped_storage()))[begin : begin + nbytes])
        at += nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    text += b" " * (-(8 + len(text)) % 64)
    if len(text) > LONGEST_HEADER:
        raise ValueError(
            f"save(): the names and shapes of the tensors take {len(text)} bytes, more than the format allows"
        )
    return len(text).to_bytes(8, "little") + text, memories


def _sharing(tensors: Mapping[str, Tensor]) -> list[list[str]]:
    """Return groups of names of tensors whose memory overlaps."""
    ranges = sorted(
        (tensor.data_ptr(), tensor.data_ptr() + tensor.numel() * tensor.dtype.itemsize, str(tensor.device), name)
        for name, tensor in tensors.items()
        if tensor.numel()
    )
    groups: list[list[str]] = []
    end, where = -1, ""
    for begin, stop, device, name in sorted(ranges, key=lambda each: (each[2], each[0])):
        if groups and device == where and begin < end:
            groups[-1].append(name)
            end = max(end, stop)
        else:
            groups.append([name])
            end, where = stop, device
    return groups


def save_file(tensors: dict[str, Tensor], filename: Path, metadata: dict[str, str] | None = None) -> None:
    """Save tensors to a safetensors file, which is replaced atomically.

    Parameters
    ----------
    tensors
        Contiguous tensors that do not share memory.
    filename
        A path.
    metadata
        Text to save with the tensors.

    Raises
    ------
    ValueError
        If one is not a tensor, not contiguous, or of a dtype that the format lacks (complex128).
    RuntimeError
        If tensors share memory.

    Examples
    --------
    See :func:`load_file`.

    >>> import candelabra
    >>> candelabra.safetensors.save_file({"x": candelabra.ones(2)}, "/dev/null")
    """
    head, memories = _prepare(tensors, metadata)

    def write(stream: Any) -> None:
        write_all(stream, head)
        for memory in memories:
            write_all(stream, memory)

    write_to(filename, write)


def save(tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """Return tensors as the bytes of a safetensors file; see :func:`save_file`.

    Examples
    --------
    >>> import candelabra
    >>> len(candelabra.safetensors.save({"x": candelabra.ones(2)}))
    72
    """
    head, memories = _prepare(tensors, metadata)
    return b"".join([head, *memories])


def save_model(
    model: Any, filename: Path, metadata: dict[str, str] | None = None, force_contiguous: bool = True
) -> None:
    """Save the state of a module to a safetensors file. Tensors that share their memory are saved
    once; the metadata has their other names.

    Parameters
    ----------
    model
        Anything with ``state_dict()``.
    filename
        A path.
    metadata
        Text to save with the tensors.
    force_contiguous
        Whether to copy tensors that are not contiguous, instead of raising an error.

    Raises
    ------
    RuntimeError
        If tensors share a part of their memory, and none of them has all of it.

    Examples
    --------
    >>> import candelabra
    >>> class Model:
    ...     def state_dict(self):
    ...         return {"weight": candelabra.ones(2, 2)}
    >>> candelabra.safetensors.save_model(Model(), "/dev/null")
    """
    state = dict(model.state_dict())
    together = dict(metadata or {})
    for names in _sharing({name: tensor for name, tensor in state.items() if tensor.is_contiguous()}):
        whole = sorted(names, key=lambda name: (-state[name].numel() * state[name].dtype.itemsize, name))
        kept = whole[0]
        for other in whole[1:]:
            same = (state[other].data_ptr(), state[other].shape, state[other].dtype) == (
                state[kept].data_ptr(), state[kept].shape, state[kept].dtype,
            )  # fmt: skip
            if not same:
                raise RuntimeError(
                    f"save_model(): {kept!r} and {other!r} share a part of their memory; save copies of them"
                )
            together[other] = kept
            del state[other]
    if force_contiguous:
        state = {name: tensor.contiguous() for name, tensor in state.items()}
    save_file(state, filename, together or None)


def load_model(model: Any, filename: Path, strict: bool = True, device: Device = "cpu") -> tuple[list[str], list[str]]:
    """Load the state of a module from a safetensors file; return the missing and the unexpected
    names.

    Parameters
    ----------
    model
        Anything with ``state_dict()`` and ``load_state_dict(state, strict=False)``.
    filename
        A path.
    strict
        Whether to raise if there are such names.
    device
        The device to load to.

    Raises
    ------
    RuntimeError
        If `strict` is set and names are missing or not expected.

    Examples
    --------
    >>> import candelabra, os, tempfile
    >>> class Model:
    ...     weight = candelabra.zeros(2)
    ...     def state_dict(self):
    ...         return {"weight": self.weight}
    ...     def load_state_dict(self, state, strict):
    ...         self.weight.copy_(state["weight"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.safetensors")
    ...     candelabra.safetensors.save_file({"weight": candelabra.ones(2)}, path)
    ...     candelabra.safetensors.load_model(Model(), path)
    ([], [])
    """
    with safe_open(filename, device=device) as file:
        state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no dict)
        metadata = file.metadata() or {}
    known = model.state_dict()
    for name in known:
        if name not in state and metadata.get(name) in state:
            state[name] = state[metadata[name]]
    missing = sorted(name for name in known if name not in state)
    unexpected = sorted(name for name in state if name not in known)
    if strict and (missing or unexpected):
        raise RuntimeError(
            f"Error(s) in loading state_dict for {type(model).__name__}: missing names {missing}, names that are not expected {unexpected}"
        )
    model.load_state_dict(state, strict=False)
    return missing, unexpected
