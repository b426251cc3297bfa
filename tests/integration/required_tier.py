"""The device type ``few``: exactly the kernels of the tier "required", in memory that the host
cannot touch, without the CPU fallback.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import candelabra
from candelabra import _C
from candelabra.backends import tiers

COMPILER = shutil.which("cc") or shutil.which("gcc")


def _include() -> Path:
    package = Path(candelabra.__file__).parent
    folders = (package / "include", package.parents[1] / "include")
    return next(folder for folder in folders if (folder / "candelabra" / "backend.h").exists())


def install(folder: Path) -> None:
    """Compile the backend in a folder and register it."""
    import candelabra_backend_cpu

    candelabra.empty(1)  # the CPU backend is initialized by the core
    (cpu,) = (Path(candelabra_backend_cpu.__file__).parent / "lib").glob("libcandelabra_cpu.so")
    lines = "".join(f"TIER({name})\n" for name in tiers.operators_of("required"))
    (folder / "required_tier.inc").write_text(lines)
    made = folder / "libfew.so"
    source = Path(__file__).with_suffix(".c")
    command = [
        str(COMPILER), "-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
        f"-I{_include()}", f"-I{folder}", f'-DCPU_LIBRARY="{cpu}"', str(source), "-o", str(made), "-ldl",
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, text=True)
    _C.register_backend("few", "the tier required", str(made), {})
