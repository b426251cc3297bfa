"""Test that cuDNN has plans for the backend's requests, for a device that is only described
(tests/cudnn).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import candelabra_backend_cuda

HERE = Path(__file__).parent / "cudnn"
SOURCE = Path(__file__).parents[1] / "src"


def _folders(*names: str) -> list[Path]:
    """Return include folders of NVIDIA's packages, and of a toolkit."""
    roots = [Path(entry) / "nvidia" for entry in sys.path] + [
        Path("/usr/local/cuda"),
        *sorted(Path("/usr/local").glob("cuda-13*")),
    ]
    return [folder for root in roots for name in names if (folder := root / name).is_dir()]


def _first(file: str, folders: list[Path]) -> Path | None:
    return next((folder for folder in folders if (folder / file).exists()), None)


def test_every_graph_has_a_plan(tmp_path, core_headers):
    library = _first("libcudnn.so.9", [*candelabra_backend_cuda.library_folders(), *_folders("cudnn/lib", "lib64")])
    cudnn = _first("cudnn.h", _folders("cudnn/include", "include"))
    runtime = _first("cuda_runtime_api.h", _folders("cu13/include", "include"))
    compiler = shutil.which("g++")
    if compiler is None or library is None or cudnn is None or runtime is None or core_headers is None:
        pytest.skip("needs g++, cuDNN, the headers of CUDA and the repository")
    if not (library / "libcudnn_graph.so.9").exists():
        pytest.skip(f"{library} does not have NVIDIA's cuDNN")
    warnings = ["-Wall", "-Wextra", "-Werror"]
    stand_in, program = tmp_path / "libcuda.so.1", tmp_path / "plans"
    subprocess.run(
        [
            compiler,
            *warnings,
            "-x",
            "c",
            "-shared",
            "-fPIC",
            str(HERE / "driver.c"),
            f"-Wl,-soname,{stand_in.name}",
            "-o",
            str(stand_in),
        ],
        check=True,
    )
    sources = [
        HERE / "plans.cpp",
        HERE / "runtime.cpp",
        *sorted((SOURCE / "vendor" / "cudnn").glob("cudnn*.cpp")),
        SOURCE / "vendor" / "libraries.cpp",
    ]
    subprocess.run(
        [compiler, "-std=gnu++20", "-O1", *warnings, f"-I{SOURCE}", f"-I{core_headers}", "-isystem", str(runtime), "-isystem", str(runtime / "cccl"),
         "-isystem", str(cudnn), *map(str, sources), "-ldl", "-o", str(program)],
        check=True,
    )  # fmt: skip
    others = [str(folder) for folder in candelabra_backend_cuda.library_folders()]
    path = ":".join([str(tmp_path), str(library), str(library.parents[1] / "cu13" / "lib"), *others])
    environment = {**os.environ, "LD_LIBRARY_PATH": path, "CANDELABRA_CUDA_LIBRARIES": str(library)}
    done = subprocess.run([str(program)], capture_output=True, text=True, env=environment)
    missing = [line for line in done.stdout.splitlines() if ": none," in line]
    assert done.returncode == 0, "\n".join([*missing[:20], done.stdout[-300:], done.stderr[-300:]])
    assert "attention, bfloat16" in done.stdout and "recurrent, bfloat16, GRU" in done.stdout
    assert "float32, channels-last, 3x3, weight gradient" in done.stdout
