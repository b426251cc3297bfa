"""The CPU fallback, and Python kernels beside a library, on memory that the core cannot read.

The CPU here has four Python kernels; tests/examples/test_cpu_fallback.py has a real one.
"""

from __future__ import annotations

import subprocess
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from test_accelerator import COMPILER, INCLUDE
from test_plugins import Installed

if TYPE_CHECKING:
    from collections.abc import Callable

#: A library whose memory has handles only. It copies; the other kernels decline.
LIBRARY = """
#include <candelabra/backend.h>
#include <stdlib.h>
#include <string.h>

enum { ARENA = 1 << 20 };
static char arena[ARENA];
static uint64_t used = 64;

static int32_t allocate(int32_t device, cb_allocation *allocation) {
  (void)device;
  if (used + allocation->bytes > ARENA) return CB_OUT_OF_MEMORY;
  allocation->storage = (void *)(uintptr_t)used;
  used += (allocation->bytes + 63) / 64 * 64;
  return CB_OK;
}
static void deallocate(int32_t device, void *storage, uint64_t bytes) { (void)device, (void)storage, (void)bytes; }
static char *at(const cb_memory *memory) { return arena + (uintptr_t)memory->storage + memory->offset; }
static int32_t from_host(int32_t device, const cb_memory *to, const void *from, uint64_t bytes, void *stream) {
  (void)device, (void)stream;
  memcpy(at(to), from, bytes);
  return CB_OK;
}
static int32_t to_host(int32_t device, void *to, const cb_memory *from, uint64_t bytes, void *stream) {
  (void)device, (void)stream;
  memcpy(to, at(from), bytes);
  return CB_OK;
}
static int32_t declines(cb_call *call) { (void)call; return CB_NOT_IMPLEMENTED; }

static uint64_t offset_of(const cb_tensor *t, int64_t i) {
  int64_t offset = 0;
  for (int32_t d = t->ndim - 1; d >= 0; i /= t->sizes[d--]) offset += i % t->sizes[d] * t->strides[d];
  return (uintptr_t)t->storage + t->offset + (uint64_t)offset * cb_dtype_size(t->dtype);
}
static int32_t copy(cb_call *call) {
  const cb_tensor *out = &call->outputs[0], *source = call->arguments[1].as.tensor;
  if (out->dtype != source->dtype) return CB_NOT_IMPLEMENTED;
  for (int64_t i = 0; i < out->numel; ++i)
    memcpy(arena + offset_of(out, i), arena + offset_of(source, i), cb_dtype_size(out->dtype));
  return CB_OK;
}

static const cb_kernel_entry kernels[] = {{"copy_", copy, 0, 0, 0}, {"neg", declines, 0, 0, 0}, {"uniform_", declines, 0, 0, 0}};

const cb_backend *candelabra_backend(const cb_host *host) {
  (void)host;
  static const cb_backend backend = {
      .size = sizeof(cb_backend), .abi_major = CB_ABI_MAJOR, .abi_minor = CB_ABI_MINOR, .device_type = "far",
      .kernels = kernels, .kernel_count = 3, .kernel_entry_size = sizeof(cb_kernel_entry),
      .allocate = allocate, .deallocate = deallocate, .copy_from_host = from_host, .copy_to_host = to_host};
  return &backend;
}
"""

PLUGIN = """
    import candelabra
    from candelabra.backends import hookimpl

    @hookimpl
    def candelabra_register_backend(registrar):
        registrar.library("{library}")
        registrar.kernel("add", add)
        registrar.kernel("sum", total)
        registrar.kernel("nonzero", nonzero)
        registrar.kernel("exp", exp)

    def add(out, a, b, alpha):
        b = [b] * out.numel() if isinstance(b, (int, float)) else [element for row in b.tolist() for element in row]
        a = [element for row in a.tolist() for element in row]
        out.copy_(candelabra.tensor([x + alpha * y for x, y in zip(a, b)], dtype=out.dtype).view(out.shape))

    def total(out, a, dim, keepdim, dtype):
        assert out.dim() == a.dim(), "the reduced dimensions have size 1"
        out.copy_(candelabra.tensor([sum(row) for row in a.tolist()], dtype=out.dtype).view(out.shape))

    def nonzero(allocate, a):
        found = [[i] for i, element in enumerate(a.tolist()) if element]
        allocate(len(found), 1).copy_(candelabra.tensor(found))

    def exp(out, a):
        raise NotImplementedError("far has no exponentials")
"""

#: A CPU with kernels in Python.
HOST = """
    import math
    from candelabra.backends import hookimpl

    @hookimpl
    def candelabra_register_backend(registrar):
        for kernel in (neg, exp, fill_, uniform_):
            registrar.kernel(kernel.__name__, kernel)

    def numbers(tensor):
        return memoryview(tensor).cast("B").cast("f") if tensor.dim() != 1 else memoryview(tensor)

    def neg(out, a):
        for i, element in enumerate(a.tolist()):
            numbers(out)[i] = -element

    def exp(out, a):
        for i, element in enumerate(a.tolist()):
            numbers(out)[i] = math.exp(element)

    def fill_(out, self, value):
        for i in range(self.numel()):
            numbers(out)[i] = value

    def uniform_(out, self, low, high, seed, offset):
        for i in range(self.numel()):
            numbers(out)[i] = seed + offset
"""


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("far")
    (folder / "far.c").write_text(LIBRARY)
    made = folder / "libfar.so"
    subprocess.run(
        [str(COMPILER), "-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{INCLUDE}", str(folder / "far.c"), "-o", str(made)],
        check=True,
    )  # fmt: skip
    return made


@pytest.fixture
def on_far(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., str]:
    """A function that runs a script where the device `far` and a small CPU are installed."""
    if COMPILER is None or INCLUDE is None:
        pytest.skip("needs a C compiler and the headers")
    library = request.getfixturevalue("library")

    def run(script: str, *, plugin: str = PLUGIN, **environment: str) -> str:
        installed = Installed(tmp_path)
        installed.distribution("host-backend", "1", "cpu", "host_backend", HOST)
        installed.distribution("far-backend", "1", "far", "far_backend", plugin.replace("{library}", str(library)))
        code = "import candelabra\nfrom candelabra import _C, backends\n" + textwrap.dedent(script)
        done = installed.run(code, "-W", "ignore::RuntimeWarning", **environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_python_kernels_beside_a_library_without_host_memory(on_far):
    on_far("""
        x = candelabra.tensor([[1.0, 2.0], [3.0, 4.0]], device="far")
        row = candelabra.tensor([10.0, 20.0], device="far")
        assert (x + row).tolist() == [[11, 22], [13, 24]], "broadcast arguments"
        assert (x[1:] + x[:1]).tolist() == [[4, 6]], "offsets"
        assert candelabra.add(x, 1, alpha=2).tolist() == [[3, 4], [5, 6]], "numbers"
        x[1:] += x[:1]
        assert x.tolist() == [[1, 2], [4, 6]], "in place"
        assert x.sum(1).tolist() == [3, 10] and x.sum(1, keepdim=True).tolist() == [[3], [10]], "reduced dimensions"
        assert candelabra.tensor([0.0, 3, 4], device="far").nonzero().tolist() == [[1], [2]], "allocate()"
        try:
            memoryview(x)
        except (TypeError, BufferError) as error:
            assert "far" in str(error), error
        else:
            raise AssertionError("the memory is not the host's")
    """)


def test_off_by_default(on_far):
    on_far("""
        x = candelabra.tensor([1.0, -2.0], device="far")
        assert not _C.has_cpu_fallback("far")
        for call, part in ((x.neg, "not implemented for 'Float' on device far"), (x.exp, "far has no exponentials"),
                           (x.tan, "backends.cpu_fallback('far')")):
            try:
                call()
            except NotImplementedError as error:
                assert part in str(error), error
            else:
                raise AssertionError(part)
        assert backends.fallback_calls("far") == {}
    """)


WORKS = """
    import warnings
    x = candelabra.tensor([1.0, -2.0], device="far")
    assert _C.has_cpu_fallback("far")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert x.neg().tolist() == x.neg().tolist() == [-1, 2], "a library's kernel that declines"
    assert len(caught) == 1 and "neg has no kernel for this call on device 'far'" in str(caught[0].message)
    assert candelabra.zeros(2, device="far").exp().tolist() == [1, 1], "a Python kernel that raises"
    assert x.neg_() is x and x.tolist() == [-1, 2]
    assert backends.fallback_calls("far")["neg"] == 2 and backends.fallback_calls("far")["neg_"] == 1
    candelabra.manual_seed(5)
    first, second = candelabra.rand(4, device="far"), candelabra.rand(4, device="far")
    assert first.tolist() == [5] * 4 and second.tolist() == [7] * 4, "a kernel that declines draws nothing"
    try:
        x.i0()
    except NotImplementedError as error:
        assert "the operator i0 has no kernel on device cpu" in str(error), error
    else:
        raise AssertionError("there is no i0 on this CPU")
"""


def test_by_the_environment(on_far):
    on_far(WORKS, CANDELABRA_CPU_FALLBACK="near, far")


def test_by_the_environment_for_all(on_far):
    on_far("assert not _C.has_cpu_fallback('cpu')" + WORKS.replace("\n    ", "\n"), CANDELABRA_CPU_FALLBACK="all")


def test_by_the_plugin(on_far):
    plugin = PLUGIN.replace("registrar.library(", "registrar.cpu_fallback()\n        registrar.library(")
    on_far(WORKS, plugin=plugin)


def test_by_the_user(on_far):
    on_far("backends.cpu_fallback('far')" + WORKS.replace("\n    ", "\n"))


def test_listing(on_far):
    on_far(
        """
        from candelabra.backends.__main__ import describe
        lines = describe("far", False)
        assert any(line.startswith("  CPU fallback on: ") and line.endswith(" operators") for line in lines), lines
        backends.cpu_fallback("far", False)
        assert "  CPU fallback off" in describe("far", False)
        assert not any("fallback" in line for line in describe("cpu", False) if "composite" not in line)
        """,
        CANDELABRA_CPU_FALLBACK="far",
    )
