"""``candelabra.load``, which recognizes formats by the first bytes of a file."""

from __future__ import annotations

import mmap as _mmap
import os
import pickle
import tarfile

from . import native, numpy_files, pytorch_archive, pytorch_legacy, safetensors_files
from .errors import FileError, NotReadError, UnsafeFileError, explained
from .options import get_default_mmap_options
from .places import Places
from .sources import opened
from .zip_files import Archive, is_archive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .sources import Source, Target

#: Whether load(mmap=None) maps files.
_FORMATS = "archive of candelabra.save or torch.save"


def load(
    f: Target,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Load an object that :func:`candelabra.save` or ``torch.save`` saved, or a safetensors or
    NumPy file.

    Of PyTorch's files tensors and plain data are read, as in state dicts; the bytes of a tensor are
    taken as they are, so nothing of PyTorch is needed. Of a safetensors file and of an ``.npz``
    archive the result is a dict of tensors, of an ``.npy`` file a tensor.

    Parameters
    ----------
    f
        A path, or a binary file object that can seek.
    map_location
        The devices of the tensors: a device for all; a dict from saved devices to new ones; or a
        function of the storage (on the CPU) and the name of its device. The function returns the
        storage on another device, a device, or None. By default, tensors are loaded to the device
        they were saved from.
    pickle_module
        For compatibility with PyTorch. Only the standard library's module is allowed, and has no
        effect.
    weights_only
        Ignored; for compatibility with PyTorch. Only tensors and plain data are ever loaded.
    mmap
        Whether to map the file into memory. Its parts are then read when a tensor is used, and
        checksums of tensors are not verified. Changes of the tensors stay in this process (but see
        `serialization.set_default_mmap_options`). The file must not be changed or truncated while
        the tensors exist; :func:`candelabra.save` replaces it, which leaves them intact.
    **pickle_load_args
        `encoding` is the encoding of strings in files that PyTorch wrote in Python 2.

    Raises
    ------
    candelabra.serialization.FileError
        If the file is damaged, in an unknown format, or of a newer version. A RuntimeError.
    candelabra.serialization.UnsafeFileError
        If the file holds objects other than tensors and plain data. A FileError and a
        ``pickle.UnpicklingError``.
    AttributeError
        If `f` is neither a path nor a file that can seek.
    ValueError
        If `mmap` is True and `f` is not a path.
    candelabra.BackendError
        If tensors were saved from a device that is not available.

    Examples
    --------
    See :func:`candelabra.save`.
    """
    if pickle_module is not None and pickle_module is not pickle:
        raise RuntimeError(
            f"load(): can not safely load by way of {getattr(pickle_module, '__name__', pickle_module)!s}: files are read without it, and no code "
            "from them runs; leave out pickle_module"
        )
    encoding = pickle_load_args.pop("encoding", "utf-8")
    if pickle_load_args:
        raise TypeError(f"load() got an unexpected keyword argument {next(iter(pickle_load_args))!r}")
    if not isinstance(encoding, str):
        raise TypeError(f"load(): encoding must be a str, but got {type(encoding).__name__}")
    mapped = bool(mmap)
    if mapped and not isinstance(f, (str, bytes, os.PathLike)):
        raise ValueError("f must be a string filename in order to use mmap argument")
    places = Places(map_location, mapped)
    writable = mapped and get_default_mmap_options() == _mmap.MAP_SHARED
    with opened(f, "candelabra.load()", writable) as source, explained("candelabra.load()", f, _FORMATS):
        return _read(source, places, mapped, encoding)


def _read(source: Source, places: Places, mapped: bool, encoding: str) -> Any:
    if is_archive(source):
        return _read_archive(Archive(source), places, encoding)
    if source.size == source.start:
        raise FileError("there is nothing in it")
    if safetensors_files.is_safetensors(source):
        return safetensors_files.read_all(source, places)[0]
    if numpy_files.is_npy(source):
        return numpy_files.read_npy(source, places, source.start)
    if pytorch_legacy.is_legacy(source):
        if mapped:
            raise NotReadError(
                "it is of PyTorch's old format, which cannot be mapped: mmap can only be used with files saved with "
                "torch.save(_use_new_zipfile_serialization=True)"
            )
        return pytorch_legacy.read(source, places, encoding)
    head = source.read(source.start, min(512, source.size - source.start))
    if len(head) == 512 and _is_tar(head):
        raise NotReadError(
            "it is a tar archive of PyTorch before version 0.2: load it with a PyTorch and save it again"
        )
    if head[:1] == b"\x80" and 1 < head[1] <= 5:
        raise NotReadError(
            "it is no archive but a pickle by itself, and those are not read: save it by candelabra.save or torch.save",
            UnsafeFileError,
        )
    raise FileError("it begins as no format that is known")


def _read_archive(archive: Archive, places: Places, encoding: str) -> Any:
    if native.is_native(archive):
        return native.read(archive, places)
    prefix = pytorch_archive.prefix_of(archive)
    if prefix is not None:
        return pytorch_archive.read(archive, prefix, places, encoding)
    if numpy_files.is_npz(archive):
        return numpy_files.read_npz(archive, places)
    raise FileError("there is no description.json, data.pkl or .npy in it")


def _is_tar(head: bytes) -> bool:
    try:
        tarfile.TarInfo.frombuf(head, "utf-8", "strict")
    except (tarfile.HeaderError, ValueError):
        return False
    return True


def get_unsafe_globals_in_checkpoint(f: Target) -> list[str]:
    """Return the names in a PyTorch file that are neither known nor allowed, and that must be
    allowed to load it.

    Raises
    ------
    candelabra.serialization.FileError
        If the file was not saved by ``torch.save``.

    Examples
    --------
    >>> import candelabra, io
    >>> file = io.BytesIO()
    >>> candelabra.save({"weight": candelabra.ones(2)}, file, format="pytorch")
    >>> candelabra.serialization.get_unsafe_globals_in_checkpoint(file)
    []
    """
    import pickletools

    from .pytorch_objects import Objects

    function = "get_unsafe_globals_in_checkpoint()"
    with opened(f, function) as source, explained(function, f, "archive of torch.save"):
        archive = Archive(source)
        prefix = pytorch_archive.prefix_of(archive)
        if prefix is None:
            raise FileError("there is no data.pkl in it")
        text = pytorch_archive.read_pickle(archive, prefix)
        objects = Objects(lambda pid: None)
        found: dict[str, None] = {}
        strings: list[str] = []
        memo: dict[int, Any] = {}
        last: Any = None
        for code, argument, _ in pickletools.genops(text):
            name = code.name
            if name in ("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE"):
                last = str(argument)
                strings.append(last)
            elif name in ("MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT"):
                memo[len(memo) if name == "MEMOIZE" else int(str(argument))] = last
            elif name in ("GET", "BINGET", "LONG_BINGET"):
                last = memo.get(int(str(argument)))
                if last is not None:
                    strings.append(last)
            elif name in ("GLOBAL", "INST", "STACK_GLOBAL"):
                module, _, thing = (
                    str(argument).partition(" ") if name != "STACK_GLOBAL" else (*strings[-2:-1], "", *strings[-1:])
                )
                try:
                    objects.find(module, thing)
                except FileError:
                    found[f"{module}.{thing}"] = None
                last = None
            else:
                last = None
        return list(found)
