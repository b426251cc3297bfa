"""The interface in C, the search for backends, and arguments that do not fit."""

from __future__ import annotations

import shutil
import struct
import subprocess

import pytest
from programs import compiled
from running import BACKEND, refusal, run_command, saved_mlp

import candelabra
import candelabra_runner
from candelabra import nn
from candelabra.export import export, save
from candelabra.serialization import save_npy


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", candelabra.zeros(()))

    def forward(self, x, y):
        self.calls += 1
        return x * y + self.calls


def test_a_program_in_c(tmp_path):
    model, path = Counter(), tmp_path / "counter.cex"
    save(export(model, (candelabra.ones(2, 3), candelabra.ones(2, 3))), path, runner=True)
    # Lowering runs the program, and gives its buffers their values back.
    assert model.calls.item() == 0
    before = path.read_bytes()
    echo = tmp_path / "echo.cex"
    save(export(nn.Identity(), (candelabra.ones(16),)), echo, runner=True)
    command = [compiled(tmp_path, "use_library"), BACKEND, path, echo]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert path.read_bytes() == before


def test_the_library_exports_its_functions_alone():
    done = subprocess.run(
        ["nm", "-D", "--defined-only", candelabra_runner.library_path()], capture_output=True, text=True, timeout=60
    )
    names = {line.split()[-1] for line in done.stdout.splitlines()}
    assert names == {"cr_close", "cr_error", "cr_open", "cr_run", "cr_signature_at", "cr_signature_count"}


def test_backends_that_are_missing_or_none(tmp_path):
    path = tmp_path / "model.cex"
    saved_mlp(path)
    nowhere = tmp_path / "libcandelabra_cpu.so"
    assert refusal(path, "--list", backend=nowhere).startswith("the backend cannot be loaded: ")
    nowhere.write_bytes(b"no library")
    assert refusal(path, "--list", backend=nowhere).startswith("the backend cannot be loaded: ")
    other = candelabra_runner.library_path()
    assert refusal(path, "--list", backend=other) == f"{other} is no backend: it does not export candelabra_backend"


def test_the_search_for_a_backend(tmp_path):
    model = tmp_path / "model.cex"
    saved_mlp(model)
    # As two wheels lie in an environment.
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    executable = tmp_path / "bin" / "candelabra-run"
    for folder in (executable.parent, packages):
        folder.mkdir(parents=True)
    shutil.copy(candelabra_runner.executable_path(), executable)

    def search():
        return subprocess.run([executable, "--list", model], capture_output=True, text=True, timeout=60)

    assert search().returncode == 1
    assert "whose backend was not found: pip install candelabra-backend-cpu" in search().stderr
    installed = packages / "candelabra_backend_cpu" / "lib"
    installed.parent.mkdir()
    installed.symlink_to(BACKEND.parent)
    assert search().stdout == "input float32[8, 32] -> output float32[8, 10]\n"
    # Beside the executable.
    installed.unlink()
    (executable.parent / "libcandelabra_cpu.so").symlink_to(BACKEND)
    assert search().returncode == 0
    # From its package.
    inner = packages / "candelabra_runner" / "bin"
    inner.mkdir(parents=True)
    executable = shutil.copy(executable, inner)
    installed.symlink_to(BACKEND.parent)
    assert search().returncode == 0


def test_arguments_that_do_not_fit(tmp_path):
    path, x = tmp_path / "model.cex", tmp_path / "x.npy"
    saved_mlp(path)
    assert refusal(path) == "the program takes 1 arguments, not 0: input float32[8, 32]"
    save_npy(x, candelabra.ones(8, 32))
    assert refusal(path, x, x) == "the program takes 1 arguments, not 2: input float32[8, 32]"
    save_npy(x, candelabra.ones(8, 32, dtype=candelabra.float64))
    assert refusal(path, x).startswith("no program in the file takes float64[8, 32]; there are programs for")
    assert refusal(path, tmp_path / "nowhere.npy") == f"{tmp_path}/nowhere.npy: No such file or directory"
    save_npy(x, candelabra.ones(8, 32))
    assert (
        refusal(path, x, "--output", tmp_path / "nowhere")
        == f"{tmp_path}/nowhere/output.npy: No such file or directory"
    )


def _npy(header: str, data: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    return b"\x93NUMPY" + version + struct.pack("<H", len(header)) + header.encode() + data


@pytest.mark.parametrize(("content", "message"), [
    (b"", ": the file is too short"),
    (b"\x93NUMPZ\x01\x00\x00\x00", " is no .npy file"),
    (_npy("", version=b"\x09\x00"), ": version 9 of .npy is not read"),
    (_npy("{"), ": the header has no 'descr':"),
    (_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (8, 32), }"), ": the file is too short for its 1024 bytes"),
    (_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, 9999999999), }"), ": sizes that are too large"),
    (_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (8, -32), }"), ": the shape makes no sense"),
    (_npy("{'descr': '<f4', 'fortran_order': False, 'shape': 8"), ": the shape makes no sense"),
    (_npy("{'descr': '>f4', 'fortran_order': False, 'shape': (8, 32), }"), ": the dtype '>f4' is not read"),
    (_npy("{'descr': '|O', 'fortran_order': False, 'shape': (8, 32), }"), ": the dtype '|O' is not read"),
    (_npy("{'descr': '<f4', 'fortran_order': True, 'shape': (8, 32), }", bytes(1024)), " is in Fortran's order: save numpy.ascontiguousarray(array)"),
])  # fmt: skip
def test_arrays_that_make_no_sense(tmp_path, content, message):
    path, x = tmp_path / "model.cex", tmp_path / "x.npy"
    saved_mlp(path)
    x.write_bytes(content)
    assert refusal(path, x) == f"{x}{message}"


def test_results_that_numpy_cannot_hold(tmp_path):
    path, x = tmp_path / "model.cex", tmp_path / "x.npy"

    class Half(nn.Module):
        def forward(self, x):
            return x.to(candelabra.bfloat16)

    save(export(Half(), (candelabra.ones(2),)), path, runner=True)
    save_npy(x, candelabra.ones(2))
    assert run_command(path, "--list").stdout == "x float32[2] -> output bfloat16[2]\n"
    assert refusal(path, x, "--output", tmp_path) == "NumPy has no dtype bfloat16"


def test_bools_are_zero_or_one(tmp_path):
    path, x = tmp_path / "model.cex", tmp_path / "x.npy"

    class Negation(nn.Module):
        def forward(self, x):
            return ~x

    save(export(Negation(), (candelabra.tensor([True, False]),)), path, runner=True)
    x.write_bytes(_npy("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }", b"\x01\x02"))
    assert refusal(path, x) == "argument x has bools that are neither 0 nor 1"


def test_the_number_of_threads(tmp_path):
    path, x = tmp_path / "model.cex", tmp_path / "x.npy"
    model = saved_mlp(path)
    save_npy(x, candelabra.ones(8, 32))
    assert run_command(path, x, "--threads", 2, "--output", tmp_path).returncode == 0
    with candelabra.no_grad():
        assert candelabra.serialization.load_npy(tmp_path / "output.npy").allclose(model(candelabra.ones(8, 32)))
