"""Candelabra's backend for the CPU: a shared library of kernels behind ``candelabra/backend.h``.

Nothing here is called by users: ``import candelabra`` finds this package by its entry point and
loads the library the first time that a tensor is made on the device ``cpu``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pluggy

__version__ = "0.1.0"

_hook = pluggy.HookimplMarker("candelabra")


def library_path() -> Path:
    """Return where the shared library of kernels lies.

    Returns
    -------
    pathlib.Path
        ``lib/libcandelabra_cpu.so`` in the folder of the package.

    Raises
    ------
    ImportError
        The library is missing: this is a source tree that was not built.

    Examples
    --------
    >>> import candelabra_backend_cpu
    >>> candelabra_backend_cpu.library_path().name
    'libcandelabra_cpu.so'
    """
    # In an editable install the package has two folders: the sources', and the one that CMake
    # installs into.
    candidates = [Path(folder) / "lib" / "libcandelabra_cpu.so" for folder in __path__]
    path = next((candidate for candidate in candidates if candidate.is_file()), candidates[0])
    if not path.is_file():
        raise ImportError(
            f"{path} is missing: install the wheel of candelabra-backend-cpu, or build it (pip install ./packages/backend-cpu)"
        )
    return path


def _require_processor(flags: frozenset[str] | None = None) -> None:
    """Raise ImportError where the processor lacks what every kernel is compiled for."""
    if flags is None:
        try:
            lines = Path("/proc/cpuinfo").read_text().splitlines()
        except OSError:
            return  # the library looks by itself and refuses
        flags = frozenset(next((line.split(":", 1)[1] for line in lines if line.startswith("flags")), "").split())
        if not flags:
            return
    missing = sorted({"avx2", "fma", "f16c", "bmi2"} - flags)
    if missing:
        raise ImportError(
            "candelabra-backend-cpu needs a processor with AVX2 and FMA (Intel Haswell of 2013, AMD Zen of 2017, or newer); "
            f"this one lacks {', '.join(missing)}"
        )


def _follow_deterministic(mode: bool) -> None:
    """Tell the library whether its results must not depend on the number of threads, whatever that
    costs.
    """
    import ctypes  # here: few programs need it

    ctypes.CDLL(str(library_path())).candelabra_cpu_set_deterministic(int(mode))


def _prepare_compiler() -> None:
    """Give the library LLVM's compiler where llvmlite is installed."""
    from importlib.util import find_spec  # here: needed by compiled programs only

    if find_spec("llvmlite") is not None:
        from . import llvm

        llvm.register(library_path())


@_hook
def candelabra_register_backend(registrar: Any) -> None:
    """Give the core the shared library (the hook of the entry-point group
    ``candelabra.backends``).
    """
    _require_processor()
    registrar.library(str(library_path()))
    from candelabra.settings import before_compiling, follow_deterministic  # the core is there by now

    follow_deterministic(_follow_deterministic)
    before_compiling(_prepare_compiler)
