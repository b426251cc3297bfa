"""`save` and `load`: exported programs in files without code."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import candelabra
from candelabra import pytree, serialization
from candelabra.serialization import FileError

from .checking import check_shapes
from .encoding import Decoder, encoded
from .lowering import lowered
from .program import ExportedProgram
from .running import on_device

#: Namespaces of custom operators that may be in a file without being named.
_KNOWN_NAMESPACES = ("torchvision",)


def save(
    ep: ExportedProgram,
    f: Any,
    *,
    extra_files: dict[str, Any] | None = None,
    opset_version: dict[str, int] | None = None,
    pickle_protocol: int = 2,
    runner: bool | Sequence[Mapping[str, int]] = False,
) -> None:
    """Save a program with its parameters and buffers.

    The file is an archive of `candelabra.save`: a description in JSON, and the bytes of the
    tensors, which are mapped when it is loaded.

    Parameters
    ----------
    ep
        The program.
    f
        A path, or a binary file object.
    extra_files
        Texts or bytes by name, which are stored too.
    opset_version, pickle_protocol
        Accepted for compatibility: files have a version of their own, and no pickle.
    runner
        Whether candelabra-runner, which has no shape rules, shall run the file as well. The
        program's kernel calls are recorded at the sizes of the export and stored, or at each of the
        sizes in a sequence of dicts, such as ``[{"batch": 1}, {"batch": 8}]``.

    Raises
    ------
    TypeError
        If `ep` is no program.
    ValueError
        If the arguments or results have containers other than tuples, lists and dicts, or if the
        program cannot be stored for the runner: it draws random numbers, writes to its arguments,
        calls operators that are not in the backend, or has results that are no tensors.

    Examples
    --------
    >>> import candelabra, io
    >>> from candelabra import nn
    >>> file = io.BytesIO()
    >>> candelabra.export.save(candelabra.export.export(nn.ReLU(), (candelabra.ones(2),)), file)
    >>> _ = file.seek(0)
    >>> candelabra.export.load(file).module()(-candelabra.ones(2))
    tensor([0., 0.])
    """
    if not isinstance(ep, ExportedProgram):
        raise TypeError(
            f"The 'ep' parameter must be an instance of 'ExportedProgram', got '{type(ep).__name__}' instead."
        )
    content = encoded(ep._graph)
    content["extra_files"] = dict(extra_files or {})
    if runner is not False:
        content["runner"] = lowered(ep._graph, [{}] if runner is True else list(runner), _examples(ep))
    serialization.save(content, f)


def load(
    f: Any,
    *,
    extra_files: dict[str, Any] | None = None,
    expected_opset_version: dict[str, int] | None = None,
    device: Any = None,
    namespaces: Iterable[str] = (),
) -> ExportedProgram:
    """Load a program that `save` has saved. No code runs but operators, when the program is called.

    Every operator's shape rule checks the file before this function returns.

    Parameters
    ----------
    f
        A path, whose tensors are mapped, or a binary file object that can seek.
    extra_files
        A dict whose values are replaced by those of the stored files of these names.
    expected_opset_version
        Accepted for compatibility: files have a version of their own, which is checked.
    device
        Where the program shall run; by default where it was exported.
    namespaces
        Namespaces of custom operators that the program may call. Their libraries are imported
        before.

    Raises
    ------
    candelabra.serialization.FileError
        If the file is truncated, damaged, hostile, or no program.
    OSError
        If it cannot be opened.
    """
    wanted = None if device is None else candelabra.device(device)
    is_path = isinstance(f, str | bytes | os.PathLike)
    content = serialization.load(f, map_location=wanted, mmap=is_path)
    try:
        graph = Decoder(content, frozenset([*_KNOWN_NAMESPACES, *namespaces])).graph()
        if wanted is not None:
            on_device(graph, wanted)
        check_shapes(graph)
    except FileError as error:
        raise FileError(f"candelabra.export.load: {_name(f)} is no program, or it is damaged: {error}") from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        raise FileError(f"candelabra.export.load: {_name(f)} is no program, or it is damaged: {error!r}") from error
    stored = content.get("extra_files")
    for name in extra_files or {}:
        if not isinstance(stored, dict) or name not in stored:
            raise FileError(f"candelabra.export.load: {_name(f)} has no extra file {name!r}")
        extra_files[name] = stored[name]  # type: ignore[index]
    return ExportedProgram(graph)


def _examples(ep: ExportedProgram) -> list[Any] | None:
    return None if ep.example_inputs is None else pytree.tree_leaves(ep.example_inputs)


def _name(f: Any) -> str:
    return os.fsdecode(f) if isinstance(f, str | bytes | os.PathLike) else "the file"
