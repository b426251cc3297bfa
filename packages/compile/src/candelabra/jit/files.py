"""`save` and `load`: recorded functions and modules in files."""

from __future__ import annotations

from typing import Any

from candelabra import export
from candelabra.serialization import FileError

from .programs import LoadedModule


def save(m: Any, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
    """Save a module or function that `script` or `trace` made, as `candelabra.export.save` does.

    It is recorded with arguments like those of its first call, for as many sizes as it works with.

    Parameters
    ----------
    m
        The module or function.
    f
        A path, or a binary file object.
    _extra_files
        Texts or bytes by name, which are stored too.

    Raises
    ------
    TypeError
        If it is neither.
    Error
        If it was not called yet, or cannot be recorded.
    """
    program = getattr(m, "_program", None)
    if program is None:
        raise TypeError(f"jit.save(): a {type(m).__name__} is no program; use jit.script or jit.trace before")
    export.save(program(), f, extra_files=_extra_files)


def load(
    f: Any, map_location: Any = None, _extra_files: dict[str, Any] | None = None, _restore_shapes: bool = False
) -> LoadedModule:
    """Load a module that `save` or `candelabra.export.save` has saved.

    Parameters
    ----------
    f
        A path, or a binary file object that can seek.
    map_location
        The device that it shall run on; by default that of the recording.
    _extra_files
        A dict whose values are replaced by those of the stored files of these names.
    _restore_shapes
        Accepted for compatibility.

    Raises
    ------
    candelabra.serialization.FileError
        If the file is no such program. Those of PyTorch are of TorchScript, and are not read.

    Examples
    --------
    >>> import candelabra, io
    >>> file = io.BytesIO()
    >>> candelabra.jit.save(candelabra.jit.trace(lambda x: x + 1, candelabra.ones(2)), file)
    >>> _ = file.seek(0)
    >>> candelabra.jit.load(file)(candelabra.zeros(5))
    tensor([1., 1., 1., 1., 1.])
    """
    try:
        return LoadedModule(export.load(f, extra_files=_extra_files, device=map_location))
    except FileError as error:
        if "program of TorchScript" not in str(error):
            raise
        raise FileError(
            f"jit.load(): it is a program of PyTorch's TorchScript, which is not read; save the state_dict() there ({error})"
        ) from error
