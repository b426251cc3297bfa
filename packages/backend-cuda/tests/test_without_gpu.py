"""Test the backend without a GPU: it loads, describes itself, fails with clear messages, and its
host code is correct.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import candelabra
import candelabra_backend_cuda
from candelabra import _C
from candelabra.catalogue import OPERATORS

SOURCE = Path(__file__).parents[1] / "src"


class _Entry(ctypes.Structure):
    _fields_ = (
        ("operator_name", ctypes.c_char_p), ("kernel", ctypes.c_void_p), ("dtypes", ctypes.c_uint64), ("flags", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    )  # fmt: skip


class _Table(ctypes.Structure):
    """The beginning of cb_backend."""

    _fields_ = (
        ("size", ctypes.c_uint64), ("abi_major", ctypes.c_uint32), ("abi_minor", ctypes.c_uint32), ("device_type", ctypes.c_char_p),
        ("version", ctypes.c_char_p), ("capabilities", ctypes.c_uint64), ("context", ctypes.c_void_p),
        ("kernels", ctypes.POINTER(_Entry)), ("kernel_count", ctypes.c_uint64),
    )  # fmt: skip


def table() -> _Table:
    library = ctypes.CDLL(os.fspath(candelabra_backend_cuda.library_path()))
    library.candelabra_backend.restype = ctypes.POINTER(_Table)
    return library.candelabra_backend().contents


def kernel_names() -> list[str]:
    found = table()
    return [found.kernels[i].operator_name.decode() for i in range(found.kernel_count)]


def has_gpu() -> bool:
    return candelabra.cuda.is_available()


def test_the_table_is_that_of_this_abi():
    found = table()
    assert (found.abi_major, found.device_type) == (_C.ABI_MAJOR, b"cuda")
    assert found.version.decode() == candelabra_backend_cuda.__version__
    assert not found.capabilities & 1, "its memory is not the host's"
    assert found.capabilities & 2 and found.capabilities & 4 and found.capabilities & 8 and found.capabilities & 16


def test_kernels_are_operators_and_registered_once():
    names = kernel_names()
    assert len(names) == len(set(names))
    assert set(names) <= set(OPERATORS), sorted(set(names) - set(OPERATORS))
    assert {"add", "copy_", "fill_", "sum", "exp", "where"} <= set(names)


def test_what_every_program_needs_has_a_kernel():
    wanted = "abs add arange bitwise_and clamp copy_ cos div eq exp fill_ floor log lt maximum mean mul neg pow prod relu sqrt sub sum tanh"
    assert set(wanted.split()) <= set(kernel_names())


def test_links_against_neither_python_nor_nvidias_libraries():
    readelf = shutil.which("readelf")
    if readelf is None:
        pytest.skip("needs readelf")
    text = subprocess.run(
        [readelf, "-dW", candelabra_backend_cuda.library_path()], capture_output=True, text=True, check=True
    ).stdout
    needed = [line.split("[")[1].rstrip("]") for line in text.splitlines() if "(NEEDED)" in line]
    if "libemulated_device.so" in needed:
        pytest.skip("this library was built for the emulated device")
    assert not [name for name in needed if name.startswith(("libcu", "libnv", "libnccl", "libpython", "libstdc++"))], (
        needed
    )


@pytest.mark.skipif(has_gpu(), reason="this machine has a GPU")
def test_the_probe_finds_no_gpu():
    from candelabra.cuda.presence import device_count

    assert device_count() == 0


@pytest.mark.skipif(has_gpu(), reason="this machine has a GPU")
def test_without_a_gpu_it_says_what_is_missing():
    assert not candelabra.cuda.is_available() and candelabra.cuda.device_count() == 0
    with pytest.raises(
        candelabra.BackendError, match=r"cuda: (no NVIDIA driver|no NVIDIA device|the NVIDIA driver)|no NVIDIA"
    ):
        candelabra.ones(2, device="cuda")
    with pytest.raises(RuntimeError, match="NVIDIA"):
        candelabra.cuda.synchronize()
    with pytest.raises(RuntimeError, match="NVIDIA"):
        candelabra.cuda.Stream()


@pytest.mark.skipif(has_gpu(), reason="this machine has a GPU")
def test_the_list_of_backends_says_it():
    done = subprocess.run([sys.executable, "-m", "candelabra.backends"], capture_output=True, text=True, check=True)
    assert "cuda: candelabra-backend-cuda" in done.stdout
    assert "cuda: no NVIDIA" in done.stdout or "cuda: the NVIDIA driver" in done.stdout


def test_importing_loads_nothing():
    code = "import sys, candelabra, candelabra.cuda; assert 'candelabra_backend_cuda' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_missing_library_is_an_import_error(monkeypatch, tmp_path):
    monkeypatch.setattr(candelabra_backend_cuda, "__path__", [str(tmp_path)])
    with pytest.raises(ImportError, match="pip install"):
        candelabra_backend_cuda.library_path()


def test_folders_of_libraries_exist():
    for folder in candelabra_backend_cuda.library_folders():
        assert folder.is_dir() and list(folder.glob("lib*.so*"))


def _cuda_headers() -> list[Path]:
    candidates = [Path("/usr/local/cuda/include"), *sorted(Path("/usr/local").glob("cuda-13*/include"))]
    for entry in sys.path:
        candidates.append(Path(entry) / "nvidia" / "cu13" / "include")
    return [folder for folder in candidates if (folder / "cuda_runtime_api.h").exists()]


def test_host_code(tmp_path, core_headers):
    """The allocator over a fake device, and index arithmetic: tests/host, compiled with the
    sources.
    """
    compiler = shutil.which("g++")
    headers = _cuda_headers()
    if compiler is None or not headers or core_headers is None:
        pytest.skip("needs g++, the CUDA headers and the repository")
    program = tmp_path / "host"
    sources = [
        *sorted((Path(__file__).parent / "host").glob("*.cpp")),
        *sorted((SOURCE / "memory").glob("allocator*.cpp")),
    ]
    subprocess.run(
        [compiler, "-std=gnu++20", "-O1", "-g", "-fsanitize=address,undefined", "-Wall", "-Wextra", "-Werror", f"-I{SOURCE}", f"-I{core_headers}",
         "-isystem", str(headers[0]), "-isystem", str(headers[0] / "cccl"), *map(str, sources), "-o", str(program)],
        check=True,
    )  # fmt: skip
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run([str(program)], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
