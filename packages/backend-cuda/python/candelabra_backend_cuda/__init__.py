"""Candelabra's backend for NVIDIA GPUs: a shared library of kernels for ``candelabra/backend.h``.

Nothing here is called by users: ``import candelabra`` finds this package by its entry point and
loads the library the first time that a tensor is made on the device ``cuda``. What users call is
`candelabra.cuda`, which this distribution brings too.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from candelabra.backends.registrar import Registrar

__version__ = "0.1.0"

_hook = pluggy.HookimplMarker("candelabra")

#: Folders of the libraries in NVIDIA's PyPI packages for CUDA 13, within the namespace package
#: ``nvidia``.
LIBRARY_FOLDERS = ("cu13/lib", "cudnn/lib", "nccl/lib")

#: Callbacks of the library. Kept alive as long as it is loaded.
_kept: list[object] = []


def library_path() -> Path:
    """Return the path of the shared library of kernels.

    Returns
    -------
    pathlib.Path
        ``lib/libcandelabra_cuda.so`` in the folder of the package.

    Raises
    ------
    ImportError
        The library is missing: this is a source tree that was not built.

    Examples
    --------
    >>> import candelabra_backend_cuda
    >>> candelabra_backend_cuda.library_path().name
    'libcandelabra_cuda.so'
    """
    # In an editable install the package has two folders: the source folder, and the one that CMake
    # installs into.
    candidates = [Path(folder) / "lib" / "libcandelabra_cuda.so" for folder in __path__]
    path = next((candidate for candidate in candidates if candidate.is_file()), candidates[0])
    if not path.is_file():
        raise ImportError(
            f"{path} is missing: install the wheel of candelabra-backend-cuda, or build it (pip install ./packages/backend-cuda)"
        )
    return path


def library_folders() -> list[Path]:
    """Return the folders of NVIDIA's libraries in this environment, without importing their
    packages.

    Returns
    -------
    list of pathlib.Path
        The existing folders. Those of ``CANDELABRA_CUDA_LIBRARIES`` (separated by ``:``) come
        first.

    Examples
    --------
    >>> import candelabra_backend_cuda
    >>> all(folder.is_dir() for folder in candelabra_backend_cuda.library_folders())
    True
    """
    spec = importlib.util.find_spec("nvidia")
    roots = list(spec.submodule_search_locations or []) if spec is not None else []
    folders = [Path(root) / part for root in roots for part in LIBRARY_FOLDERS]
    return [folder for folder in folders if folder.is_dir()]


@_hook
def candelabra_register_backend(registrar: Registrar) -> None:
    """Register the shared library with the core (the hook of entry-point group
    ``candelabra.backends``).
    """
    path = library_path()
    library = ctypes.CDLL(os.fspath(path))
    library.candelabra_cuda_set_library_folders(":".join(map(os.fspath, library_folders())).encode())
    registrar.library(path)
    # Imported here, because candelabra.backends imports this package.
    from candelabra import _C
    from candelabra.backends import cuda
    from candelabra.settings import follow_deterministic

    warner = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(lambda text: _C.warn(text.decode()))
    _kept.append(warner)
    library.candelabra_cuda_set_warner(warner)

    cuda.connect(
        lambda name, value: library.candelabra_cuda_set_switch(name.encode(), int(value)),
        lambda name: int(library.candelabra_cuda_ask(name.encode())),
    )
    follow_deterministic(lambda wanted: library.candelabra_cuda_set_switch(b"deterministic", int(wanted)))
