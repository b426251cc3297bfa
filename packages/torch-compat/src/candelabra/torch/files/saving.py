"""``torch.save``."""

from __future__ import annotations

import io
import os
import pickle
from typing import Any

import candelabra.serialization as _serialization  # noqa: F401
from candelabra.serialization.options import skipping, write_checksums
from candelabra.serialization.places import add_storage, storage_memory
from candelabra.serialization.pytorch_legacy import MAGIC_NUMBER, PROTOCOL_VERSION
from candelabra.serialization.saving import folder_in_archive, write_to
from candelabra.serialization.zip_files import ArchiveWriter, write_all

from .reducing import StorageIds, reduced
from .renaming import renamed
from .versions import check_dill_version

DEFAULT_PROTOCOL = 2


def pickled(obj: Any, ids: StorageIds, pickle_module: Any, protocol: int) -> bytes:
    """Return the pickle of an object, in which storages are persistent ids."""
    stream = io.BytesIO()

    class Pickler(pickle_module.Pickler):  # type: ignore[misc, name-defined]
        def persistent_id(self, obj: Any) -> Any:
            return ids(obj)

        def reducer_override(self, obj: Any) -> Any:
            found = reduced(obj, protocol)
            if found is not NotImplemented:
                return found
            # cloudpickle pickles functions and classes by value here.
            above = getattr(super(), "reducer_override", None)
            return NotImplemented if above is None else above(obj)

    Pickler(stream, protocol=protocol).dump(obj)
    return renamed(stream.getvalue())


def save(
    obj: object,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Save any object that can be pickled, in PyTorch's format.

    PyTorch reads the file, if it has the classes in it. Classes of Candelabra have PyTorch's names
    there. `candelabra.save` stores only tensors and plain data.

    Parameters
    ----------
    obj
        The object. Tensors that share a storage share it again when they are loaded.
    f
        A path, whose file is replaced atomically, or a binary file object.
    pickle_module
        A module with a ``Pickler``, such as ``pickle``, ``dill`` or ``cloudpickle``.
    pickle_protocol
        The protocol of the pickle.
    _use_new_zipfile_serialization
        If False, use the format from before PyTorch 1.6.
    _disable_byteorder_record
        Whether to omit the byte order from the file.

    Raises
    ------
    AttributeError
        If `f` is neither a path nor a file.
    RuntimeError
        If tensors view the same memory as different dtypes.

    Examples
    --------
    >>> import candelabra, io
    >>> from candelabra.torch.files.saving import save
    >>> file = io.BytesIO()
    >>> save({"x": candelabra.ones(2), "what": range(3)}, file)
    >>> from candelabra.torch.files.loading import load
    >>> load(file, weights_only=False)
    {'x': tensor([1., 1.]), 'what': range(0, 3)}
    """
    check_dill_version(pickle_module)
    if not isinstance(f, (str, os.PathLike)) and not hasattr(f, "write"):
        raise AttributeError(
            "expected 'f' to be string, path, or a file-like object with a 'write' attribute, "
            f"but got {type(f).__name__}"
        )
    if not _use_new_zipfile_serialization:
        if skipping():
            raise RuntimeError("Cannot use skip_data=True with _use_new_zipfile_serialization=False")
        _save_legacy(obj, f, pickle_module, pickle_protocol)
        return
    ids = StorageIds()
    text = pickled(obj, ids, pickle_module, pickle_protocol)
    folder = folder_in_archive(f)

    def write(stream: Any) -> None:
        archive = ArchiveWriter(stream, write_checksums())
        archive.add(f"{folder}/data.pkl", text)
        archive.add(f"{folder}/.format_version", b"1")
        archive.add(f"{folder}/.storage_alignment", b"64")
        if not _disable_byteorder_record:
            archive.add(f"{folder}/byteorder", b"little")
        for number, storage in enumerate(ids.storages):
            add_storage(archive, f"{folder}/data/{number}", storage)
        archive.add(f"{folder}/version", b"3\n")
        archive.close()

    write_to(f, write)


def _save_legacy(obj: Any, f: Any, pickle_module: Any, protocol: int) -> None:
    ids = StorageIds(legacy=True)
    text = pickled(obj, ids, pickle_module, protocol)
    machine = {
        "protocol_version": PROTOCOL_VERSION,
        "little_endian": True,
        "type_sizes": {"short": 2, "int": 4, "long": 4},
    }
    keys = [str(number) for number in range(len(ids.storages))]

    def write(stream: Any) -> None:
        for part in (MAGIC_NUMBER, PROTOCOL_VERSION, machine):
            write_all(stream, pickle.dumps(part, max(protocol, 2)))
        write_all(stream, text)
        write_all(stream, pickle.dumps(keys, protocol))
        for storage, dtype in zip(ids.storages, ids.dtypes, strict=True):
            write_all(stream, (storage.nbytes() // dtype.itemsize).to_bytes(8, "little"))
            write_all(
                stream, memoryview(storage_memory(storage))[: storage.nbytes() // dtype.itemsize * dtype.itemsize]
            )

    write_to(f, write)
