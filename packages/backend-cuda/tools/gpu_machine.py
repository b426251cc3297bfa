"""What the machine of ``gpu_check.py`` has: its GPU, compilers, headers and tools."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def answer(*command: str) -> str:
    """Return the first lines that a program prints, or nothing if it cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "; ".join(done.stdout.split("\n")[:8]).strip("; ") if done.returncode == 0 else ""


def find_header(name: str) -> bool:
    """Return whether a header of a library that backend-cpu needs is found."""
    folders = [
        Path(sys.prefix) / "include",
        *map(Path, (os.environ.get("MKLROOT", "/opt/intel/oneapi/mkl/latest"), "/usr", "/usr/local")),
    ]
    return any((folder / name).exists() or (folder / "include" / name).exists() for folder in folders)


def missing(*modules: str) -> str:
    """Return the names of the modules that are not installed."""
    absent = [name for name in modules if importlib.util.find_spec(name) is None]
    return f"Python has no {', '.join(absent)}" if absent else ""


def architecture() -> str:
    """Return the compute capability of the first GPU without its point, or 90 if the driver's tool
    does not answer.
    """
    return (
        answer("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader").split(";")[0].replace(".", "").strip()
        or "90"
    )


def takes_one_process() -> bool:
    """Return whether a GPU is set to serve one process at a time."""
    return "Exclusive" in answer("nvidia-smi", "--query-gpu=compute_mode", "--format=csv,noheader")


def find_nvcc(nvidia: Path | None) -> str | None:
    """Find nvcc where CMakeLists.txt looks for it."""
    folders = [Path(os.environ[name]) / "bin" for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    folders += [Path("/usr/local/cuda/bin"), *Path("/usr/local").glob("cuda-13*/bin")]
    folders += [
        root / "nvidia" / "cu13" / "bin" for root in (nvidia, Path(sysconfig.get_path("purelib"))) if root is not None
    ]
    return shutil.which("nvcc") or shutil.which("nvcc", path=os.pathsep.join(map(str, folders)))


def version_of(text: str) -> tuple[int, ...]:
    """Return the first number with a point in a text."""
    found = re.search(r"(\d+)\.(\d+)", text)
    return tuple(map(int, found.groups())) if found else (0,)


def needs(building: bool, nvcc: str | None, path: str) -> list[str]:
    """Return what is required but missing."""
    absent = [] if sys.version_info >= (3, 11) else [f"Python 3.11 or newer; this is {platform.python_version()}"]
    modules = missing("pytest", "numpy", "scipy", "hypothesis", "pluggy")
    if modules:
        absent.append(f"modules of the tests: {modules}")
    if not building:
        return absent
    absent += [f"{name}, to build" for name in ("cmake", "ninja", "g++") if shutil.which(name, path=path) is None]
    compiler = shutil.which("g++", path=path)
    if compiler and version_of(answer(compiler, "-dumpfullversion") or "0.0") < (11, 0):
        absent.append(f"g++ 11 or newer; {compiler} is {answer(compiler, '-dumpfullversion')}")
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        absent.append(f"Python's headers; {sysconfig.get_path('include')} has no Python.h")
    if nvcc is None:
        absent.append(
            "nvcc 13: a toolkit, PyPI's nvidia-cuda-nvcc, or --nvcc FILE; --ready FOLDER takes what was built elsewhere"
        )
    elif version_of(answer(nvcc, "--version").partition("release")[2]) < (13, 0):
        absent.append(f"nvcc 13 or newer; {nvcc} is of {answer(nvcc, '--version').partition('release')[2][:8].strip()}")
    return absent


def describe_machine(nvcc: str | None) -> dict[str, str]:
    """Describe the machine of the measurements."""
    return {
        "GPU": answer(
            "nvidia-smi", "--query-gpu=name,driver_version,memory.total,compute_mode", "--format=csv,noheader"
        )
        or "nvidia-smi does not answer",
        "processors": str(os.cpu_count()),
        "Python": platform.python_version(),
        "compilers": f"g++ {answer('g++', '-dumpfullversion') or 'none'}, nvcc {answer(nvcc, '--version').partition('release')[2][:12].strip() if nvcc else 'none'}",
        "commit": answer("git", "-C", str(ROOT), "rev-parse", "HEAD") or "unknown",
    }


def find_sanitizer() -> str | None:
    """Find compute-sanitizer on the path, or in toolkits."""
    places = [
        "/usr/local/cuda/bin",
        "/usr/local/cuda/compute-sanitizer",
        *(str(path) for path in Path("/usr/local").glob("cuda-13*/bin")),
    ]
    return shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=os.pathsep.join(places))
