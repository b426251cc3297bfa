"""The device type ``few``: exactly the kernels of the tier "required", in memory that the host
cannot touch, without the CPU fallback.

``python tests/integration/tiers/few.py [--fallback] ARGUMENT...`` runs Python with these arguments,
a file or ``-m`` and a module, and with this device type installed. With ``--fallback`` the CPU
computes what the device cannot. For instance, in an environment with PyTorch::

    few="python tests/integration/tiers/few.py --fallback"
    $few tests/parity --device few --samples 3 --jobs 2
    $few tests/parity_modules --device few
    $few tests/parity_optim --device few
    CANDELABRA_TEST_DEVICE=few $few -m pytest packages/nn/tests
    $few -m candelabra.testing.hostile candelabra.ops --device few --calls 100

The same commands test a backend of another author: without ``few.py``, and with its device type.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
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


def compile_library(folder: Path) -> Path:
    """Compile the backend's library into a folder."""
    import candelabra_backend_cpu

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
    return made


def install() -> None:
    """Compile the backend and register it, at the first call in a process."""
    global _library
    if _library is not None:
        return
    candelabra.empty(1)  # the CPU backend is initialized by the core
    folder = Path(tempfile.mkdtemp(prefix="few"))
    made = compile_library(folder)
    _C.register_backend("few", "the tier required", str(made), {})
    _library = ctypes.CDLL(str(made))
    _library.few_called.restype = ctypes.POINTER(ctypes.c_ubyte)
    shutil.rmtree(folder)


PLUGIN = """\
from pathlib import Path

import candelabra


@candelabra.backends.hookimpl
def candelabra_register_backend(registrar):
    candelabra.backends.load("cpu")  # the core initializes the CPU backend, whose kernels these are
    registrar.library(Path(__file__).with_name("libfew.so"))
"""


@contextmanager
def distribution(fallback: bool) -> Iterator[dict[str, str]]:
    """Install the device type as a distribution in a temporary folder. Yield environment variables
    with which Python finds it, and that switch the CPU fallback on or off.
    """
    with tempfile.TemporaryDirectory(prefix="few") as name:
        folder = Path(name)
        compile_library(folder)
        (folder / "few_backend.py").write_text(PLUGIN)
        information = folder / "few_backend-0.1.dist-info"
        information.mkdir()
        (information / "METADATA").write_text("Metadata-Version: 2.1\nName: few-backend\nVersion: 0.1\n")
        (information / "entry_points.txt").write_text("[candelabra.backends]\nfew = few_backend\n")
        path = os.pathsep.join([name, *filter(None, [os.environ.get("PYTHONPATH")])])
        yield {"PYTHONPATH": path, "CANDELABRA_CPU_FALLBACK": "few" if fallback else ""}


def kernels_called(name: str) -> set[str] | None:
    """Return the kernels that an operator calls over its reference samples; None if none runs."""
    required, marks, found, has_run = tiers.operators_of("required"), _library.few_called(), set(), False
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
            has_run = True
            found |= {kernel for kernel, mark in zip(required, marks, strict=False) if mark}
    return found if has_run else None


def main(arguments: list[str]) -> int:
    """Run Python with the device type; return its exit status."""
    wants_fallback = arguments[:1] == ["--fallback"]
    with distribution(wants_fallback) as variables:
        command = [sys.executable, *arguments[wants_fallback:]]
        return subprocess.run(command, env={**os.environ, **variables}).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
