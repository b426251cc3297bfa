"""Test candelabra.cuda beside devices, streams and memory: several GPUs, sleeping, profiling,
NVML.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import candelabra
from candelabra.cuda import comm, nccl


@pytest.fixture
def two(cuda: candelabra.device) -> tuple[candelabra.device, candelabra.device]:
    if candelabra.cuda.device_count() < 2:
        pytest.skip("needs 2 GPUs")
    return candelabra.device("cuda", 0), candelabra.device("cuda", 1)


def test_what_is_not_there_says_what_is():
    for name, part in (
        ("FloatTensor", "device='cuda'"), ("HalfStorage", "untyped_storage"), ("cudart", "profiler"), ("jiterator", "library"),
        ("CUDAPluggableAllocator", "allocator"), ("tunable", "cuBLASLt"), ("sparse", "no sparse"), ("CudaError", "AcceleratorError"),
    ):  # fmt: skip
        with pytest.raises(AttributeError, match=f"has no attribute '{name}': .*{part}"):
            getattr(candelabra.cuda, name)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'$"):
        _ = candelabra.cuda.nothing
    assert candelabra.cuda.has_half and not candelabra.cuda.has_magma
    assert all(hasattr(candelabra.cuda, name) for name in candelabra.cuda.__all__ if name != "default_generators")


def test_architectures(cuda):
    assert candelabra.cuda.get_arch_list() and candelabra.cuda.is_tf32_supported()
    number = candelabra.cuda.get_arch_list()[0].partition("_")[2]
    assert f"-gencode compute=compute_{number},code=sm_{number}" in candelabra.cuda.get_gencode_flags()


def test_priorities(cuda):
    least, greatest = candelabra.cuda.Stream.priority_range()
    assert greatest < 0 <= least
    urgent = candelabra.cuda.Stream(priority=-1)
    assert urgent.priority == -1
    with candelabra.cuda.stream(urgent):
        assert (candelabra.ones(3, device=cuda) + 1).tolist() == [2, 2, 2]
    same = candelabra.cuda.get_stream_from_external(urgent.cuda_stream)
    assert same == urgent and same.device == urgent.device


def test_waiting_can_be_refused(cuda):
    x = candelabra.arange(6.0, device=cuda)
    waiting = [
        x.tolist,
        lambda: x.sum().item(),
        x.nonzero,
        x.cpu,
        lambda: candelabra.ones(3).to(cuda),
        candelabra.cuda.Stream().synchronize,
    ]
    host = candelabra.ones(6).pin_memory()
    try:
        candelabra.cuda.set_sync_debug_mode("error")
        assert candelabra.cuda.get_sync_debug_mode() == 2
        for call in waiting:
            with pytest.raises(RuntimeError, match="called a synchronizing CUDA operation"):
                call()
        y = (x * 2 + host.to(cuda, non_blocking=True)).exp()
        candelabra.cuda.synchronize()
        candelabra.cuda.set_sync_debug_mode(1)
        for call in waiting:
            with pytest.warns(UserWarning, match="called a synchronizing CUDA operation"):
                call()
    finally:
        candelabra.cuda.set_sync_debug_mode("default")
    assert y.shape == (6,) and x.tolist() == [0, 1, 2, 3, 4, 5]
    for wrong in ("sometimes", 3, -1):
        with pytest.raises(RuntimeError, match="invalid value of debug_mode"):
            candelabra.cuda.set_sync_debug_mode(wrong)


def test_profilers(cuda):
    with candelabra.cuda.profiler.profile(), candelabra.cuda.nvtx.range("{} of {}", 1, 2):
        candelabra.cuda.nvtx.mark("here")
        crossing = candelabra.cuda.nvtx.range_start("crossing")
        x = candelabra.ones(3, device=cuda) + 1
    candelabra.cuda.nvtx.range_end(crossing)
    assert x.tolist() == [2, 2, 2]


def test_copies_to_several(two):
    numbers = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    x = candelabra.tensor(numbers).to(two[0])
    copies = comm.broadcast(x, [0, "cuda:1"])
    assert copies[0] is x and [each.device for each in copies] == list(two)
    np.testing.assert_array_equal(copies[1].cpu().numpy(), numbers)
    out = [candelabra.zeros(3, 4, device=device) for device in two]
    assert comm.broadcast(x, out=out) is out
    assert all(np.array_equal(each.cpu().numpy(), numbers) for each in out)
    sets = comm.broadcast_coalesced([x, x[0]], [0, 1])
    assert [[each.device for each in some] for some in sets] == [[two[0]] * 2, [two[1]] * 2]
    with pytest.raises(RuntimeError, match="Exactly one of 'devices' and 'out'"):
        comm.broadcast(x)
    with pytest.raises(RuntimeError, match="index 1 has shape"):
        comm.broadcast(x, out=[out[0], candelabra.zeros(2, device=two[1])])
    with pytest.raises(RuntimeError, match="CUDA tensors"):
        comm.broadcast(x, out=[candelabra.zeros(3, 4)])


def test_sums_of_several(two):
    parts = [candelabra.full((2, 3), 1.0 + i, device=device) for i, device in enumerate(two)]
    for where in (0, 1):
        total = comm.reduce_add(parts, where)
        assert total.device == two[where] and total.tolist() == [[3.0] * 3] * 2
    assert parts[0].tolist() == [[1.0] * 3] * 2
    sums = comm.reduce_add_coalesced([[part, part[0] * 2] for part in parts], 1)
    assert [each.tolist() for each in sums] == [[[3.0] * 3] * 2, [6.0] * 3]
    with pytest.raises(ValueError, match="input 1 has invalid size: got 3, but expected 2x3"):
        comm.reduce_add([parts[0], parts[1][0]], 0)
    with pytest.raises(RuntimeError, match="on GPUs"):
        comm.reduce_add([candelabra.ones(2)], 0)
    with pytest.raises(RuntimeError, match="same GPU with one of"):
        comm.reduce_add(parts[:1], 1)


def test_parts_for_several(two):
    numbers = np.arange(20.0, dtype=np.float32).reshape(5, 4)
    x = candelabra.tensor(numbers)
    parts = comm.scatter(x, [0, 1])
    assert [each.device for each in parts] == list(two) and [len(each) for each in parts] == [3, 2]
    streams = [candelabra.cuda.Stream(0), None]
    uneven = comm.scatter(x.to(two[0]), [0, 1], chunk_sizes=[1, 3], dim=1, streams=streams)
    candelabra.cuda.synchronize()
    np.testing.assert_array_equal(uneven[1].cpu().numpy(), numbers[:, 1:])
    out = [candelabra.empty(4, 4, device=two[0]), candelabra.empty(1, 4, device=two[1])]
    assert comm.scatter(x, out=out)[1] is out[1] and out[1].tolist() == [[16, 17, 18, 19]]
    for where, device in ((1, two[1]), ("cpu", candelabra.device("cpu")), (None, two[0])):
        joined = comm.gather(parts, 0, where)
        assert joined.device == device
        np.testing.assert_array_equal(joined.cpu().numpy(), numbers)
    target = candelabra.empty(5, 4, device=two[1])
    assert comm.gather(parts, out=target) is target
    np.testing.assert_array_equal(target.cpu().numpy(), numbers)
    with pytest.raises(RuntimeError, match="chunk sizes"):
        comm.scatter(x, [0, 1], chunk_sizes=[1, 1])
    with pytest.raises(RuntimeError, match="does not match"):
        comm.scatter(x, out=out[:1])
    with pytest.raises(RuntimeError, match="'destination' must not be"):
        comm.gather(parts, destination=0, out=target)
    with pytest.raises(RuntimeError, match="at least one device"):
        comm.scatter(x, [])


def test_collectives_of_lists(two):
    def made(*values):
        return [
            candelabra.tensor(value, dtype=candelabra.float32).to(device)
            for value, device in zip(values, two, strict=True)
        ]

    x = made([1.0, 2.0], [3.0, 5.0])
    assert nccl.is_available(x) and not nccl.is_available([x[0], x[0]]) and not nccl.is_available([candelabra.ones(2)])
    for op, wanted in ((0, [4, 7]), (1, [3, 10]), (2, [3, 5]), (3, [1, 2]), (4, [2, 3.5])):
        out = made([0, 0], [0, 0])
        nccl.all_reduce(x, out, op)
        assert out[0].tolist() == out[1].tolist() == wanted
    y = made([1.0, 2.0], [3.0, 5.0])
    nccl.reduce(y, root=1)
    assert y[0].tolist() == [1, 2] and y[1].tolist() == [4, 7]
    nccl.broadcast(y, 1)
    assert y[0].tolist() == [4, 7]
    gathered = made([0] * 4, [0] * 4)
    nccl.all_gather(x, gathered)
    assert gathered[0].tolist() == gathered[1].tolist() == [1, 2, 3, 5]
    parts = made([0.0], [0.0])
    nccl.reduce_scatter(x, parts)
    assert [each.tolist() for each in parts] == [[4], [7]]
    assert nccl.version() >= (2, 0, 0) and len(nccl.unique_id()) == 128
    with pytest.raises(TypeError, match="collection of tensors"):
        nccl.all_reduce(x[0])
    with pytest.raises(ValueError, match="GPU of its own"):
        nccl.all_reduce([x[0], x[0]])
    with pytest.raises(ValueError, match="op must be"):
        nccl.all_reduce(x, op=9)


NVML = """
#include <string.h>
#include <stdlib.h>
struct memory { unsigned long long total, free, used; };
struct load { unsigned gpu, memory; };
struct process { unsigned pid; unsigned long long memory; unsigned a, b; };
static int one;
int nvmlInit_v2(void) { return getenv("NVML_BROKEN") ? 9 : 0; }
const char* nvmlErrorString(int status) { return status == 9 ? "Driver Not Loaded" : "Not Supported"; }
int nvmlDeviceGetHandleByPciBusId_v2(const char* place, void** handle) {
  *handle = &one;
  return strlen(place) == 16 && strcmp(place + 13, ".0") == 1 ? 6 : 0;
}
int nvmlDeviceGetMemoryInfo(void* handle, struct memory* result) { result->used = 12345; return handle != &one; }
int nvmlDeviceGetUtilizationRates(void* handle, struct load* result) { *result = (struct load){71, 23}; return handle != &one; }
int nvmlDeviceGetTemperature(void* handle, int sensor, unsigned* result) { *result = 55; return handle != &one || sensor; }
int nvmlDeviceGetPowerUsage(void* handle, unsigned* result) { (void)handle; (void)result; return 3; }
int nvmlDeviceGetClockInfo(void* handle, int kind, unsigned* result) { *result = 1980; return handle != &one || kind != 1; }
int nvmlDeviceGetComputeRunningProcesses_v3(void* handle, unsigned* count, struct process* result) {
  unsigned room = *count;
  *count = 40;
  if (room < 40) return 7;
  for (unsigned i = 0; i < 40; ++i) result[i] = (struct process){1000 + i, i ? ~0ull : 3ull << 20, 0, 0};
  return handle != &one;
}
"""


def test_what_the_driver_tells(emulated, tmp_path: Path):
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    (tmp_path / "nvml.c").write_text(NVML)
    library = tmp_path / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", str(tmp_path / "nvml.c"), "-o", str(library)], check=True)
    code = """
        from candelabra import cuda
        assert cuda.utilization() == 71 and cuda.memory_usage(1) == 23 and cuda.device_memory_used("cuda:0") == 12345
        assert cuda.temperature() == 55 and cuda.clock_rate() == 1980
        try:
            cuda.power_draw()
        except RuntimeError as error:
            assert "nvmlDeviceGetPowerUsage: Not Supported" in str(error)
        else:
            raise AssertionError
        lines = cuda.list_gpu_processes(1).splitlines()
        assert len(lines) == 41 and lines[0] == "GPU:1", lines
        assert lines[1] == "process       1000 uses        3.000 MB GPU memory", lines[1]
        assert "unknown" in lines[2]
    """
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("LD_LIBRARY_PATH", "")])),
    }
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    broken = subprocess.run(
        [sys.executable, "-c", "from candelabra import cuda\ncuda.temperature()"],
        capture_output=True, text=True, env={**environment, "NVML_BROKEN": "1"},
    )  # fmt: skip
    assert "RuntimeError: nvmlInit: Driver Not Loaded" in broken.stderr


def test_without_the_drivers_library(emulated):
    if any(
        (Path(folder) / "libnvidia-ml.so.1").exists()
        for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib")
    ):
        pytest.skip("this machine has NVIDIA's driver")
    with pytest.raises(RuntimeError, match="libnvidia-ml.so.1, which comes with NVIDIA's driver, cannot be loaded"):
        candelabra.cuda.utilization()
