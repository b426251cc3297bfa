"""Small C backends for the tests of the ABI: a template with fields, a compiler, and
distributions.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

#: The headers of this core, and the frozen headers of each released minor version.
CURRENT = Path(__file__).parents[2] / "packages" / "tensor-core" / "include"
FROZEN = Path(__file__).with_name("headers")
COMPILER = shutil.which("cc") or shutil.which("gcc")

#: Device types of one process: the core has room for 16, and "cpu" is one.
BATCH = 14

#: A backend on host memory. `DECLARATIONS`, `KERNELS`, `SETUP` and `RESULT` are replaced.
TEMPLATE = r"""
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "candelabra/backend.h"
#include "candelabra/accelerator.h"
static const cb_host *host;
static cb_backend table;
static int64_t allocated;
static int32_t allocate(int32_t device, cb_allocation *a) {
  (void)device;
  if (a->bytes > (uint64_t)1 << 40) return CB_OUT_OF_MEMORY;
  if (posix_memalign(&a->address, 64, a->bytes)) return CB_OUT_OF_MEMORY;
  allocated += (int64_t)a->bytes;
  return CB_OK;
}
static void deallocate(int32_t device, void *p, uint64_t n) { (void)device; allocated -= (int64_t)n; free(p); }
static int32_t copy_in(int32_t device, const cb_memory *to, const void *from, uint64_t n, void *s) {
  (void)device, (void)s;
  memmove(to->address, from, n);
  return CB_OK;
}
static int32_t copy_out(int32_t device, void *to, const cb_memory *from, uint64_t n, void *s) {
  (void)device, (void)s;
  memmove(to, from->address, n);
  return CB_OK;
}
static int64_t offset_of(const cb_tensor *t, int64_t number) {
  int64_t offset = 0;
  for (int32_t d = t->ndim - 1; d >= 0; --d) {
    offset += number % t->sizes[d] * t->strides[d];
    number /= t->sizes[d];
  }
  return offset;
}
static int32_t neg(cb_call *c) {
  const cb_tensor *out = &c->outputs[0], *a = c->arguments[0].as.tensor;
  if (out->dtype != CB_FLOAT32) return CB_NOT_IMPLEMENTED;
  for (int64_t i = 0; i < out->numel; ++i)
    ((float *)out->data)[offset_of(out, i)] = -((const float *)a->data)[offset_of(a, i)];
  return CB_OK;
}
static int32_t copy(cb_call *c) {
  const cb_tensor *out = &c->outputs[0], *a = c->arguments[1].as.tensor;
  size_t n = cb_dtype_size(out->dtype);
  if (out->dtype != a->dtype) return CB_NOT_IMPLEMENTED;
  for (int64_t i = 0; i < out->numel; ++i)
    memmove((char *)out->data + (size_t)offset_of(out, i) * n, (const char *)a->data + (size_t)offset_of(a, i) * n, n);
  return CB_OK;
}
DECLARATIONS
static const cb_kernel_entry kernels[] = {
  {.operator_name = "neg", .kernel = neg}, {.operator_name = "copy_", .kernel = copy}, KERNELS
};
CB_EXPORT const cb_backend *candelabra_backend(const cb_host *given) {
  host = given;
  table.size = sizeof table;
  table.abi_major = CB_ABI_MAJOR;
  table.abi_minor = CB_ABI_MINOR;
  table.device_type = "DEVICE_TYPE";
  table.version = "1.2.3";
  table.kernels = kernels;
  table.kernel_count = sizeof kernels / sizeof kernels[0];
  table.kernel_entry_size = sizeof(cb_kernel_entry);
  table.allocate = allocate;
  table.deallocate = deallocate;
  table.copy_from_host = copy_in;
  table.copy_to_host = copy_out;
  SETUP
  RESULT
}
"""

PLUGIN = """
import pathlib, pluggy
@pluggy.HookimplMarker("candelabra")
def candelabra_register_backend(registrar):
    registrar.library(pathlib.Path(__file__).with_name("lib{module}.so"))
"""


@dataclass(frozen=True)
class Backend:
    """What a generated backend does otherwise than the template."""

    device: str
    declarations: str = ""
    kernels: str = ""
    setup: str = ""
    result: str = "return &table;"
    include: Path = CURRENT

    def source(self) -> str:
        """Return the C source."""
        fields = {
            "DEVICE_TYPE": self.device, "DECLARATIONS": self.declarations, "KERNELS": self.kernels, "SETUP": self.setup,
            "RESULT": self.result,
        }  # fmt: skip
        text = TEMPLATE
        for name, value in fields.items():
            text = text.replace(name, value)
        return text


def distribution(folder: Path, name: str, device: str, code: str) -> None:
    """Install a distribution into a folder: metadata with its entry point, and a module."""
    module = name.replace("-", "_")
    info = folder / f"{module}-0.3.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.3\n")
    (info / "entry_points.txt").write_text(f"[candelabra.backends]\n{device} = {module}\n")
    (folder / f"{module}.py").write_text(textwrap.dedent(code))


def compile_library(cache: Path, backend: Backend) -> Path:
    """Return the library of a backend. The cache has those that were compiled before."""
    if COMPILER is None:
        pytest.skip("no C compiler")
    source = backend.source()
    digest = hashlib.sha256(f"{backend.include}{source}".encode()).hexdigest()[:24]
    library = cache / f"{digest}.so"
    if not library.exists():
        file = cache / f"{digest}.c"
        file.write_text(source)
        command = [COMPILER, "-D_POSIX_C_SOURCE=200809L", "-w", "-shared", "-fPIC", f"-I{backend.include}"]
        subprocess.run([*command, str(file), "-lm", "-lpthread", "-o", str(library)], check=True)
    return library


def install(folder: Path, cache: Path, name: str, backend: Backend) -> None:
    """Install a distribution with a compiled backend into a folder."""
    module = name.replace("-", "_")
    distribution(folder, name, backend.device, PLUGIN.replace("{module}", module))
    shutil.copy(compile_library(cache, backend), folder / f"lib{module}.so")


def outcomes(folder: Path, programs: list[tuple[str, str, str]], **variables: str) -> dict[str, dict[str, str]]:
    """Run [name, device type, program] in a process that sees the folder's distributions."""
    paths = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("process.py"))],
        input=json.dumps(programs),
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": paths, **variables},
    )
    found = dict(json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))
    for name, _, _ in programs:
        if name not in found:
            found[name] = {"died": f"status {done.returncode}\n{done.stderr[-2000:]}"}
            break
    return found
