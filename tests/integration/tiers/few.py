"""The device type ``few``: exactly the kernels of the tier "required", in memory that the host
cannot touch, without the CPU fallback.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import candelabra
from candelabra import _C
from candelabra.backends import tiers
from candelabra.catalogue import OPERATORS
from candelabra.testing.conformance import _materialize, _stable
from candelabra.testing.reference import references

COMPILER = shutil.which("cc") or shutil.which("gcc")
_library: Any = None


def _include() -> Path:
    package = Path(candelabra.__file__).parent
    folders = (package / "include", package.parents[1] / "include")
    return next(folder for folder in folders if (folder / "candelabra" / "backend.h").exists())


def install() -> None:
    """Compile the backend and register it, at the first call in a process."""
    global _library
    if _library is not None:
        return
    import candelabra_backend_cpu

    candelabra.empty(1)  # the CPU backend is initialized by the core
    folder = Path(tempfile.mkdtemp(prefix="few"))
    cpu = Path(candelabra_backend_cpu.__file__).parent / "lib" / "libcandelabra_cpu.so"
    lines = "".join(f"TIER({name})\n" for name in tiers.operators_of("required"))
    (folder / "few.inc").write_text(lines)
    made = folder / "libfew.so"
    command = [
        str(COMPILER), "-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
        f"-I{_include()}", f"-I{folder}", f'-DCPU_LIBRARY="{cpu}"', str(Path(__file__).with_suffix(".c")), "-o", str(made),
        "-ldl",
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, text=True)
    _C.register_backend("few", "the tier required", str(made), {})
    _library = ctypes.CDLL(str(made))
    _library.few_called.restype = ctypes.POINTER(ctypes.c_ubyte)
    shutil.rmtree(folder)


def kernels_called(name: str) -> set[str]:
    """Return the kernels that an operator calls over its reference samples."""
    required, marks, found = tiers.operators_of("required"), _library.few_called(), set()
    operator, reference = OPERATORS[name], references()[name]
    for dtype in reference.dtypes:
        for sample in reference.samples(np.random.default_rng(_stable(name + dtype)), dtype):
            arguments = [_materialize(argument, "few")[0] for argument in sample.arguments]
            keywords = {**sample.keywords, **({"device": "few"} if "device" in operator.parameters else {})}
            ctypes.memset(marks, 0, len(required))
            try:
                operator(*arguments, **keywords)
            except NotImplementedError:
                continue
            found |= {kernel for kernel, mark in zip(required, marks, strict=False) if mark}
    return found
