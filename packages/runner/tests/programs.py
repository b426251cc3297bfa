"""Programs in C99 that use the library, compiled for the tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import candelabra_runner


def compiled(folder: Path, name: str) -> Path:
    """Compile ``NAME.c`` against the library, and return the executable."""
    library = candelabra_runner.library_path()
    target = folder / name
    subprocess.run(
        [
            os.environ.get("CC", "gcc"), "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-I", candelabra_runner.include_folder(),
            Path(__file__).parent / f"{name}.c", "-o", target, library, f"-Wl,-rpath,{library.parent}",
        ],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    return target
