"""The shared library, and the MPI that it opens."""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

from candelabra import communication

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

#: Names the MPI to use: the path of its libmpi_abi.so.1, or its folder.
VARIABLE = "CANDELABRA_MPI_LIBRARY"
_NAME = "libmpi_abi.so.1"

#: Seconds that the end of the process waits for the other ranks to end, too.
_STOP_SECONDS = 10.0

_loaded: ctypes.CDLL | None = None


def library_path() -> Path:
    """Return where the shared library of the collectives lies.

    Raises
    ------
    ImportError
        It is missing: this is a source tree that was not built.
    """
    import candelabra_collectives_mpi

    # In an editable install the package has two folders: the sources', and CMake's.
    candidates = [Path(folder) / "lib" / "libcandelabra_mpi.so" for folder in candelabra_collectives_mpi.__path__]
    for path in candidates:
        if path.is_file():
            return path
    raise ImportError(
        f"{candidates[0]} is missing: install the wheel of candelabra-collectives-mpi, or build it "
        "(pip install ./packages/collectives-mpi)"
    )


def _candidates() -> Iterator[Path | str]:
    """Yield where MPI may lie, the preferred one first. A name is looked up by the loader."""
    try:
        files = metadata.files("mpich") or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == _NAME:
            yield Path(os.path.normpath(str(file.locate())))
    for prefix in dict.fromkeys((sys.prefix, sysconfig.get_path("data"))):
        yield Path(prefix) / "lib" / _NAME
    for variable in ("I_MPI_ROOT", "MPI_HOME"):
        if root := os.environ.get(variable):
            yield Path(root) / "lib" / _NAME
    yield _NAME


def mpi_path() -> str:
    """Return the MPI that `start` opens: a library of the standard ABI of MPI 5.

    The environment variable ``CANDELABRA_MPI_LIBRARY`` names it: a file, or a folder with
    ``libmpi_abi.so.1``. Else it is that of the PyPI package ``mpich``, or one that the system's
    loader finds.

    Raises
    ------
    RuntimeError
        There is none. The message says where it was looked for.
    """
    given = os.environ.get(VARIABLE)
    if given:
        path = Path(given)
        path = path / _NAME if path.is_dir() else path
        if path.is_file():
            return str(path)
        raise RuntimeError(f"{VARIABLE} is {given}, where there is no {_NAME}")
    tried = []
    for candidate in _candidates():
        if isinstance(candidate, Path):
            if candidate.is_file():
                return str(candidate)
        else:
            try:
                ctypes.CDLL(candidate, mode=os.RTLD_LOCAL | os.RTLD_NOW)
            except OSError:
                pass
            else:
                return candidate
        tried.append(str(candidate))
    raise RuntimeError(
        f"no MPI was found (pip install mpich, or set {VARIABLE}); looked for {', '.join(dict.fromkeys(tried))}"
    )


def functions() -> ctypes.CDLL:
    """Return the functions of ``src/interface.cpp``. The core's table is loaded with them."""
    global _loaded
    if _loaded is None:
        path = str(library_path())
        communication.load_library("cpu", path)
        library = ctypes.CDLL(path, mode=os.RTLD_LOCAL | os.RTLD_NOW)
        address, number, wide = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64
        text, capacity, numbers = ctypes.c_char_p, ctypes.c_uint64, ctypes.POINTER(ctypes.c_int32)
        addresses = ctypes.POINTER(ctypes.c_void_p)
        signatures: dict[str, tuple[object, ...]] = {
            "start": (text, wide),
            "stop": (wide,),
            "fail": (text,),
            "world": (numbers, numbers),
            "version": (text, capacity),
            "communicator": (numbers, number, number, wide, text, addresses),
            "set_timeout": (address, wide),
            "request_begin": (),
            "set_tag": (number,),
            "request_end": (addresses,),
            "barrier": (address, addresses),
            "is_done": (address,),
            "wait": (address, wide, wide, wide, numbers, numbers),
            "release": (address,),
            "describe": (text, capacity),
            "failure": (text, capacity),
        }
        for name, arguments in signatures.items():
            function = getattr(library, f"candelabra_mpi_{name}")
            function.argtypes = arguments
            function.restype = None if name in ("fail", "release", "describe", "set_tag") else number
        _loaded = library
    return _loaded


def failure() -> tuple[str, bool]:
    """Return the reason of this thread's last failure, and whether it was the end of a time
    limit.
    """
    text = ctypes.create_string_buffer(4096)
    timed_out = functions().candelabra_mpi_failure(text, len(text))
    return text.value.decode(errors="replace"), bool(timed_out)


def check(status: int) -> None:
    """Raise the failure of a function that has returned `status`."""
    if status == 0:
        return
    reason, timed_out = failure()
    if timed_out:
        raise TimeoutError(reason)
    raise ValueError(reason) if status == 3 else RuntimeError(reason)  # 3: CB_VALUE_ERROR


def milliseconds(timeout: float | None) -> int:
    """Return a time limit as the library takes it: 0 for None."""
    return 0 if timeout is None else max(1, round(timeout * 1000))


def start(timeout: float | None = 600.0) -> tuple[int, int]:
    """Start MPI, if it does not run yet, and return this process's rank and the number of ranks.

    MPI finds the other ranks by the variables of what has started the process: ``mpiexec``, or
    another launcher that speaks PMI. A process without them is rank 0 of 1. After this,
    candelabra.communication has collectives for the device ``cpu``.

    Parameters
    ----------
    timeout : float, optional
        Seconds to wait for the other ranks; None for no limit.

    Raises
    ------
    RuntimeError
        No MPI was found, or it could not start.
    TimeoutError
        Other ranks are missing. MPI cannot be used in this process any more.
    """
    library = functions()
    check(library.candelabra_mpi_start(os.fsencode(mpi_path()), milliseconds(timeout)))
    rank, size = ctypes.c_int32(), ctypes.c_int32()
    check(library.candelabra_mpi_world(ctypes.byref(rank), ctypes.byref(size)))
    atexit.register(_stop)
    return rank.value, size.value


def _stop() -> None:
    """End MPI at the end of the process. Ranks that are gone cannot keep it."""
    atexit.unregister(_stop)
    functions().candelabra_mpi_stop(milliseconds(_STOP_SECONDS))


def version() -> str:
    """Return the name and the version of the MPI that runs."""
    text = ctypes.create_string_buffer(512)
    check(functions().candelabra_mpi_version(text, len(text)))
    return text.value.decode(errors="replace")
