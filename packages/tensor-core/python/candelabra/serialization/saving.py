"""``candelabra.save``."""

from __future__ import annotations

import os
import pickle

from . import native, pytorch_archive, pytorch_legacy
from .replacing import replaced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .sources import Target


def save(
    obj: Any,
    f: Target,
    pickle_module: Any = None,
    pickle_protocol: int | None = None,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
    *,
    format: str | None = None,
) -> None:
    """Save tensors and plain data to a file.

    Parameters
    ----------
    obj
        Tensors in any nesting of dict, OrderedDict, list and tuple, with str, numbers, bytes, None,
        dtypes, sizes and devices. NumPy scalars are saved as Python numbers. PyTorch's format also
        supports sets, defaultdicts, Counters and bytearrays.
    f
        A path, or a binary file object. The file of a path is replaced atomically, after the new
        one has been written and synced. It keeps its permissions, and symbolic links are followed.
    pickle_module, pickle_protocol
        For compatibility with PyTorch. Only the standard library's module is allowed, and has no
        effect: code is never saved.
    _use_new_zipfile_serialization
        If False, use PyTorch's format from before version 1.6.
    _disable_byteorder_record
        Whether to omit the byte order from PyTorch's format.
    format
        ``"candelabra"`` (the default), or ``"pytorch"`` for an archive that ``torch.load`` reads.

    Raises
    ------
    ValueError
        If the format is unknown, a container contains itself, or containers are nested too deeply.
    TypeError
        If `obj` contains other types.
    AttributeError
        If `f` is neither a path nor a file.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import candelabra, io
    >>> file = io.BytesIO()
    >>> candelabra.save({"weight": candelabra.tensor([1.0, 2.0])}, file)
    >>> _ = file.seek(0)
    >>> candelabra.load(file)
    {'weight': tensor([1., 2.])}
    """
    if not hasattr(f, "write") and not isinstance(f, (str, bytes, os.PathLike)):
        raise AttributeError(
            f"save(): expected 'f' to be string, path, or a file-like object with a 'write' attribute, but got {type(f).__name__}"
        )
    if pickle_module is not None and pickle_module is not pickle:
        raise RuntimeError(
            f"save(): nothing is stored by way of {getattr(pickle_module, '__name__', pickle_module)!s}, only tensors and plain data; leave out "
            "pickle_module"
        )
    if format not in (None, "candelabra", "pytorch"):
        raise ValueError(f"save(): format must be 'candelabra' or 'pytorch', but got {format!r}")
    if not _use_new_zipfile_serialization:
        if format == "candelabra":
            raise ValueError("save(): the old format is PyTorch's; leave out format='candelabra'")
        write = pytorch_legacy.prepare(obj)
    elif format == "pytorch":
        write = pytorch_archive.prepare(obj, folder_in_archive(f), not _disable_byteorder_record)
    else:
        write = native.prepare(obj)
    write_to(f, write)


def write_to(f: Any, write: Any) -> None:
    """Write to a file object, or replace the file of a path atomically."""
    if hasattr(f, "write"):
        write(f)
        if hasattr(f, "flush"):
            f.flush()
        return
    with replaced(f) as stream:
        write(stream)


def folder_in_archive(f: Any) -> str:
    """Return PyTorch's name of the folder: the file's name without its extension."""
    if hasattr(f, "write"):
        return "archive"
    name = os.path.splitext(os.path.basename(os.fsdecode(f)))[0]
    return name if name and "/" not in name and name.isprintable() else "archive"
