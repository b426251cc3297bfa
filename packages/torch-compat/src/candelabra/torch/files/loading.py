"""``torch.load``."""

from __future__ import annotations

import importlib
import io
import os
import pickle
import sys
from collections.abc import Callable
from typing import Any

import candelabra
from candelabra import _C
from candelabra.serialization import FileError, UnsafeFileError, pytorch_archive, pytorch_legacy
from candelabra.serialization.loading import load as load_plain_data
from candelabra.serialization.options import get_default_mmap_options
from candelabra.serialization.places import Places
from candelabra.serialization.pytorch_names import in_candelabra
from candelabra.serialization.sources import opened
from candelabra.serialization.zip_files import Archive, is_archive
from candelabra.storage import TypedStorage

from ..mirror import Mirror
from . import legacy, rebuilding
from .versions import check_dill_version

_UNSAFE = (
    "In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` from `False` to `True`. Re-running "
    "`torch.load` with `weights_only` set to `False` will likely succeed, but it can result in arbitrary code execution. Do it only if you "
    "got the file from a trusted source."
)


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Load an object that ``torch.save`` saved, here or in PyTorch.

    Parameters
    ----------
    f
        A path, or a binary file object that can seek.
    map_location
        Where the tensors go, as in `candelabra.load`.
    pickle_module
        The module whose ``Unpickler`` reads the pickle. It implies ``weights_only=False``.
    weights_only
        By default, only tensors, plain data and classes allowed by `add_safe_globals` are loaded,
        as `candelabra.load` does. If False, code in the file is run: do that only with files that
        you trust.
    mmap
        Whether to map the file into memory.
    **pickle_load_args
        Arguments of the unpickler, such as `encoding`.

    Raises
    ------
    candelabra.serialization.UnsafeFileError
        If `weights_only`, and the file holds an object that is not allowed. A
        ``pickle.UnpicklingError``.
    RuntimeError
        If the file is damaged.

    Examples
    --------
    See ``torch.save``.
    """
    weights_only = _weights_only(weights_only, pickle_module)
    if weights_only:
        if pickle_module is not None:
            raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
        return _load_weights(f, map_location, mmap, pickle_load_args)
    module = pickle if pickle_module is None else pickle_module
    check_dill_version(module)
    pickle_load_args.setdefault("encoding", "utf-8")
    mapped = bool(mmap)
    if mapped and not isinstance(f, (str, bytes, os.PathLike)):
        raise ValueError("f must be a file path in order to use the mmap argument")
    places = Places(map_location, mapped)
    with opened(f, "torch.load()", mapped and get_default_mmap_options() == 1) as source:
        if is_archive(source):
            archive = Archive(source)
            prefix = pytorch_archive.prefix_of(archive)
            if prefix is not None:
                return _load_archive(archive, prefix, places, module, pickle_load_args)
        else:
            if mapped:
                raise RuntimeError(
                    "mmap can only be used with files saved with `torch.save(_use_new_zipfile_serialization=True), please torch.save your "
                    "checkpoint with this option in order to use mmap."
                )
            if pytorch_legacy.is_legacy(source):
                return legacy.load(source, places, module, pickle_load_args, unpickler)
            if source.size - source.start == 0:
                raise EOFError("Ran out of input")
            if source.read(source.start, 1) == b"\x80":
                raise RuntimeError("Invalid magic number; corrupt file? It is a pickle by itself: pickle.load reads it")
        source.finished(source.start)
    return load_plain_data(f, map_location, mmap=mmap)


def _weights_only(given: bool | None, pickle_module: Any) -> bool:
    """Return whether code is refused, which the environment may decide."""
    yes = ("1", "y", "yes", "true")
    forced = os.getenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "0").lower() in yes
    forced_off = os.getenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "0").lower() in yes
    if forced and forced_off:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set, but both were set."
        )
    if forced:
        return True
    if given is None and forced_off:
        _C.warn(
            "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the`weights_only` argument was not explicitly passed to "
            "`torch.load`, forcing weights_only=False.",
        )
        return False
    return pickle_module is None if given is None else bool(given)


def _load_weights(f: Any, map_location: Any, mmap: bool | None, pickle_load_args: dict[str, Any]) -> Any:
    """Load without running code; errors begin as PyTorch's do."""
    if pickle_load_args:
        _C.warn("pickle_load_args only works if `weights_only=False`.")
    known = {"encoding": pickle_load_args["encoding"]} if "encoding" in pickle_load_args else {}
    try:
        return load_plain_data(f, map_location, mmap=mmap, **known)
    except UnsafeFileError as error:
        if error.missing is None:
            raise UnsafeFileError(f"Weights only load failed. {_UNSAFE}\n{error}") from None
        name = error.missing.removeprefix("builtins.").removeprefix("__builtin__.")
        raise UnsafeFileError(
            "Weights only load failed. This file can still be loaded, to do so you have two options, do those steps only if you trust the "
            f"source of the checkpoint. \n\t(1) {_UNSAFE}\n\t(2) Alternatively, to load with `weights_only=True` please check the recommended "
            f"steps in the following error message.\n\tWeightsUnpickler error: Unsupported global: GLOBAL {name} was not an allowed global by "
            f"default. Please use `torch.serialization.add_safe_globals([{name}])` or the `torch.serialization.safe_globals([{name}])` context "
            f"manager to allowlist this global if you trust this class/function.\n{error}",
            error.missing,
        ) from None


def find_class(module: str, name: str) -> Any:
    """Return Candelabra's object of a name in PyTorch."""
    if name in rebuilding.__all__ and module in (
        "torch._utils",
        "torch._tensor",
        "torch.storage",
        "torch.serialization",
    ):
        return getattr(rebuilding, name)
    if (module, name) == ("torch.storage", "_load_from_bytes"):
        return _load_from_bytes
    if module == "torch._C" and name in ("_VariableFunctionsClass", "_VariableFunctions"):
        return candelabra
    try:
        return in_candelabra(module, name)
    except AttributeError:
        if not isinstance(sys.modules.get("torch"), Mirror):
            raise
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        return found


def _load_from_bytes(data: bytes) -> Any:
    """Return what a pickle of a storage holds."""
    return load(io.BytesIO(data), weights_only=False)


def unpickler(stream: Any, pickle_module: Any, storage: Callable[[Any], Any], arguments: dict[str, Any]) -> Any:
    """Return an unpickler that finds PyTorch's names in Candelabra."""

    class Unpickler(pickle_module.Unpickler):  # type: ignore[misc, name-defined]
        def find_class(self, module: str, name: str) -> Any:
            if module == "torch" or module.startswith("torch."):
                return find_class(module, name)
            return super().find_class(module, name)

        def persistent_load(self, pid: Any) -> Any:
            return storage(pid)

    return Unpickler(stream, **arguments)


def _load_archive(
    archive: Archive, prefix: str, places: Places, pickle_module: Any, pickle_load_args: dict[str, Any]
) -> Any:
    reader = pytorch_archive.StorageReader(archive, prefix, places)
    loaded: dict[Any, TypedStorage] = {}

    def storage(pid: Any) -> TypedStorage:
        if not isinstance(pid, tuple) or len(pid) < 5 or pid[0] != "storage":
            raise FileError(f"Unknown typename for persistent_load, expected 'storage' but got {pid!r}")
        dtype, key = getattr(pid[1], "dtype", candelabra.uint8), pid[2]
        if not isinstance(dtype, candelabra.dtype):
            dtype = candelabra.uint8  # of an untyped storage
        if key not in loaded:
            flat = reader.read(dtype, key, pid[3], pid[4])
            loaded[key] = TypedStorage(wrap_storage=flat.untyped_storage(), dtype=dtype, _internal=True)
        return loaded[key]

    text = archive.read(f"{prefix}data.pkl", sys.maxsize)
    return unpickler(io.BytesIO(text), pickle_module, storage, pickle_load_args).load()
