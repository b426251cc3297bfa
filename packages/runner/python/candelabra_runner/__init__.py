"""Where the runner of exported programs lies: an executable, a library in C and its header.

Python is not needed to run a program, and importing this package loads nothing:

    gcc main.c -I "$(python -c 'import candelabra_runner as r; print(r.include_folder())')" \
        "$(python -c 'import candelabra_runner as r; print(r.library_path())')"
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["executable_path", "include_folder", "library_path"]

__version__ = "0.1.0"


def executable_path() -> Path:
    """Return where ``candelabra-run`` lies.

    Raises
    ------
    ImportError
        If it is missing: this is a source tree that was not built.
    """
    return _find("bin/candelabra-run")


def library_path() -> Path:
    """Return where ``libcandelabra_run.so`` lies.

    Raises
    ------
    ImportError
        If it is missing: this is a source tree that was not built.
    """
    return _find("lib/libcandelabra_run.so")


def include_folder() -> Path:
    """Return the folder of ``candelabra_run.h``.

    Raises
    ------
    ImportError
        If it is missing: this is a source tree that was not built.
    """
    return _find("include/candelabra_run.h").parent


def _find(name: str) -> Path:
    # In an editable install the package has two folders: the sources', and CMake's.
    candidates = [Path(folder) / name for folder in __path__]
    for path in candidates:
        if path.is_file():
            return path
    raise ImportError(
        f"{candidates[0]} is missing: install the wheel of candelabra-runner, or build it (pip install ./packages/runner)"
    )
