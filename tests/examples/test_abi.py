"""Test the ABI's version policy and plugin errors, each with a generated distribution in its own
process.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import candelabra

INCLUDE = Path(candelabra.cmake_prefix_path).parent / "include"
COMPILER = shutil.which("cc") or shutil.which("gcc")

#: A backend of two kernels on host memory. Tests fill in the %(...)s fields.
SOURCE = r"""
#include <stdlib.h>
#include <string.h>
#include "candelabra/backend.h"
static int32_t allocate(int32_t d, cb_allocation *a) { (void)d; return posix_memalign(&a->address, 64, a->bytes) ? CB_OUT_OF_MEMORY : CB_OK; }
static void deallocate(int32_t d, void *p, uint64_t n) { (void)d; (void)n; free(p); }
static int32_t copy_in(int32_t d, const cb_memory *to, const void *from, uint64_t n, void *s) { (void)d; (void)s; memmove(to->address, from, n); return CB_OK; }
static int32_t copy_out(int32_t d, void *to, const cb_memory *from, uint64_t n, void *s) { (void)d; (void)s; memmove(to, from->address, n); return CB_OK; }
static int32_t neg(cb_call *c) {
  const cb_tensor *a = c->arguments[0].as.tensor;
  for (int64_t i = 0; i < a->numel; ++i) ((float *)c->outputs[0].data)[i] = -((float *)a->data)[i];
  return CB_OK;
}
static int32_t silent_failure(cb_call *c) { (void)c; return CB_RUNTIME_ERROR; }
static const cb_kernel_entry kernels[] = {
  {.operator_name = "neg", .kernel = neg}, {.operator_name = "exp", .kernel = silent_failure},
  {.operator_name = "operator_of_a_later_version", .kernel = neg}};
static cb_backend table;
CB_EXPORT const cb_backend *candelabra_backend(const cb_host *host) {
  (void)host;
  table.size = %(size)s;
  table.abi_major = %(major)s;
  table.abi_minor = %(minor)s;
  table.device_type = "%(device)s";
  table.version = "1.2.3";
  table.kernels = kernels;
  table.kernel_count = 3;
  table.kernel_entry_size = sizeof(cb_kernel_entry);
  table.allocate = allocate;
  table.deallocate = deallocate;
  table.copy_from_host = copy_in;
  table.copy_to_host = copy_out;
  return &table;
}
"""
PLUGIN = """
import pathlib, pluggy
@pluggy.HookimplMarker("candelabra")
def candelabra_register_backend(registrar):
    registrar.library(pathlib.Path(__file__).with_name("libbackend.so"))
"""


def distribution(folder: Path, name: str, device: str, code: str) -> None:
    """Install a distribution: metadata with its entry point, and a module."""
    module = name.replace("-", "_")
    info = folder / f"{module}-0.3.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.3\n")
    (info / "entry_points.txt").write_text(f"[candelabra.backends]\n{device} = {module}\n")
    (folder / f"{module}.py").write_text(textwrap.dedent(code))


def compiled(
    folder: Path,
    name: str,
    device: str,
    major: str = "CB_ABI_MAJOR",
    minor: str = "CB_ABI_MINOR",
    size: str = "sizeof(cb_backend)",
) -> None:
    if COMPILER is None:
        pytest.skip("no C compiler")
    distribution(folder, name, device, PLUGIN)
    source = folder / "backend.c"
    source.write_text(SOURCE % {"major": major, "minor": minor, "size": size, "device": device})
    library = folder / "libbackend.so"
    subprocess.run(
        [COMPILER, "-D_POSIX_C_SOURCE=200809L", "-shared", "-fPIC", f"-I{INCLUDE}", str(source), "-o", str(library)],
        check=True,
    )


def run(folder: Path, code: str) -> str:
    """Return the output of a new process that sees the folder's distributions."""
    script = f"import sys; sys.path.insert(0, {str(folder)!r})\nimport candelabra\n" + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


SHOW = """
def attempt(what):
    try:
        print(what())
    except Exception as error:
        print(type(error).__name__, error)
"""


def test_current_version_works(tmp_path):
    compiled(tmp_path, "third-party", "third")
    out = run(tmp_path, SHOW + "attempt(lambda: (-candelabra.tensor([1.0, -2.0], device='third')).tolist())")
    assert out.strip() == "[-1.0, 2.0]"


def test_another_major_is_refused(tmp_path):
    compiled(tmp_path, "third-party", "third", major="3")
    out = run(
        tmp_path, SHOW + "attempt(lambda: candelabra.device('third'))\nattempt(lambda: candelabra.ones(1).tolist())"
    )
    first, second = out.strip().splitlines()
    assert first.startswith("BackendVersionError")
    assert "ABI 3." in first
    assert "ABI 2." in first
    assert "pip install --upgrade candelabra-tensor-core" in first
    assert second == "[1.0]"


def test_an_older_minor_works(tmp_path):
    # The table of a backend for an earlier minor version ends after the required memory functions.
    compiled(tmp_path, "third-party", "third", size="offsetof(cb_backend, copy_within)")
    out = run(
        tmp_path,
        SHOW + "attempt(lambda: (-candelabra.tensor([1.0], device='third')).tolist())\n"
        "attempt(lambda: candelabra.backends.memory_statistics('third')['allocated'])\n"
        "attempt(lambda: candelabra.ones(2, device='cpu').to('third').clone().tolist())",
    )
    assert out.strip().splitlines()[:2] == ["[-1.0]", "0"]


def test_kernel_that_fails_without_a_message(tmp_path):
    compiled(tmp_path, "third-party", "third")
    out = run(
        tmp_path,
        SHOW
        + "t = candelabra.tensor([1.0], device='third')\nattempt(lambda: candelabra.exp(t))\nattempt(lambda: (-t).tolist())",
    )
    first, second = out.strip().splitlines()
    assert first.startswith("RuntimeError exp(): the kernel of third-party 0.3 for device third")
    assert second == "[-1.0]"


def test_no_such_device(tmp_path):
    out = run(
        tmp_path,
        SHOW + "attempt(lambda: candelabra.ones(1, device='nowhere'))\nattempt(lambda: candelabra.ones(1).tolist())",
    )
    first, second = out.strip().splitlines()
    assert first.startswith("BackendError")
    assert "nowhere" in first
    assert second == "[1.0]"


def test_plugin_that_fails_to_import(tmp_path):
    distribution(tmp_path, "broken-party", "broken", "import a_module_that_is_not_there")
    out = run(
        tmp_path,
        SHOW + "attempt(lambda: candelabra.ones(1, device='broken'))\nattempt(lambda: candelabra.ones(1).tolist())",
    )
    first, second = out.strip().splitlines()
    assert first.startswith("BackendError")
    assert "broken-party 0.3" in first
    assert "a_module_that_is_not_there" in first
    assert second == "[1.0]"


def test_two_distributions_for_one_device(tmp_path):
    distribution(tmp_path, "first-party", "mine", "")
    distribution(tmp_path, "second-party", "mine", "")
    out = run(
        tmp_path,
        SHOW + "attempt(lambda: candelabra.ones(1, device='mine'))\nattempt(lambda: candelabra.ones(1).tolist())",
    )
    first, second = out.strip().splitlines()
    assert first.startswith("BackendError")
    assert "first-party" in first
    assert "second-party" in first
    assert second == "[1.0]"
