"""candelabra.cuda over a device that is made up (tensor-core's fake_accelerator/fake.c), and what
stands in for it where this distribution is not installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import candelabra
from candelabra import without_cuda

if TYPE_CHECKING:
    from collections.abc import Callable

COMPILER = shutil.which("cc") or shutil.which("gcc")
FAKE = Path(__file__).parents[2] / "tensor-core" / "tests" / "fake_accelerator" / "fake.c"

PLUGINS = """
    from candelabra.backends import hookimpl

    @hookimpl
    def candelabra_register_backend(registrar):
        if registrar.device_type == "cuda":
            registrar.library("{library}")
        else:
            registrar.kernel("fill_", fill)

    def fill(out, self, value):
        memory = memoryview(out).cast("B").cast("f")
        for i in range(len(memory)):
            memory[i] = value
"""

#: What every script begins with: `told` is what the device has recorded.
PRELUDE = """
    import candelabra
    from candelabra import _C

    class Told:
        def __getattr__(self, name):
            pairs = dict(item.split("=", 1) for item in _C.backend_info("cuda")["description"].split(" "))
            return pairs[name] if name in ("range", "collective") else int(pairs[name])

    told = Told()

    def fails(kind, part, function, *arguments, **keywords):
        try:
            function(*arguments, **keywords)
        except kind as error:
            assert part in str(error), error
        else:
            raise AssertionError(f"{function} raised nothing")
"""


@pytest.fixture
def on_device(tmp_path: Path, core_headers: Path | None) -> Callable[[str], None]:
    """A function that runs a script where the core, this distribution's candelabra.cuda and the
    made-up device are installed, and a CPU with hardly any kernels.
    """
    if COMPILER is None or core_headers is None or not FAKE.exists():
        pytest.skip("needs a C compiler and the repository")
    library = tmp_path / "libcuda.so"
    subprocess.run(
        [COMPILER, "-std=c99", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", '-DFAKE_TYPE="cuda"',
         f"-I{core_headers}", str(FAKE), "-o", str(library)],
        check=True,
    )  # fmt: skip
    site = tmp_path / "site"
    information = site / "fake_backend-1.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: fake-backend\nVersion: 1\n")
    (information / "entry_points.txt").write_text("[candelabra.backends]\ncpu = fake_backend\ncuda = fake_backend\n")
    (site / "fake_backend.py").write_text(textwrap.dedent(PLUGINS).replace("{library}", str(library)))
    import pluggy

    (site / "pluggy").symlink_to(Path(pluggy.__file__).parent)
    (site / "candelabra").mkdir()
    brought = Path(candelabra.cuda.__file__).parent
    for item in [*Path(candelabra.__file__).parent.iterdir(), brought]:
        if item.name not in candelabra.assembly.SUBPACKAGES or item == brought:
            (site / "candelabra" / item.name).unlink(missing_ok=True)
            (site / "candelabra" / item.name).symlink_to(item)

    def run(script: str) -> None:
        # -S: nothing else that is installed is seen, a GPU's backend least of all.
        done = subprocess.run(
            [sys.executable, "-S", "-c", textwrap.dedent(PRELUDE) + textwrap.dedent(script)],
            env={"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(site)}, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    return run


def test_cuda_is_a_layer_over_it(on_device):
    on_device("""
        cuda = candelabra.cuda
        assert not cuda.is_initialized()
        assert cuda.is_available() and cuda.device_count() == 2 and cuda.is_initialized()
        assert cuda.get_device_name(1) == "Fake 1" and cuda.get_device_capability() == (4, 2)
        cuda.set_device(1)
        assert cuda.current_device() == 1 and candelabra.ones(1, device="cuda").device.index == 1
        with cuda.device(0):
            assert candelabra.ones(1, device="cuda").device.index == 0
        with cuda.device_of(candelabra.ones(1, device="cuda:0")):
            assert cuda.current_device() == 0
        assert cuda.current_device() == 1
        cuda.set_device(0)
        side = cuda.Stream()
        assert side.cuda_stream == side.stream_id and cuda.Stream.priority_range() == (0, -3)
        with cuda.stream(side):
            assert cuda.current_stream() == side and isinstance(cuda.current_stream(), cuda.Stream)
        assert isinstance(cuda.default_stream(), cuda.Stream) and cuda.default_stream().cuda_stream == 0
        event = cuda.Event(enable_timing=True)
        event.record(side)
        assert event.query() and event.cuda_event
        x = candelabra.ones(10, device="cuda")
        assert cuda.memory_allocated() == 40 and cuda.mem_get_info()[1] == 1 << 20 and "cuda:0" in cuda.memory_summary()
        cuda.manual_seed_all(5)
        assert cuda.initial_seed() == 5 and [g.initial_seed() for g in cuda.default_generators] == [5, 5]
        state = cuda.get_rng_state()
        candelabra.rand(100, device="cuda")
        cuda.set_rng_state(state)
        cuda.nvtx.range_push("here")
        assert told.range == "here"
        assert cuda.can_device_access_peer(0, 1)
        assert issubclass(cuda.OutOfMemoryError, RuntimeError) and x.is_cuda
    """)


def test_graphs(on_device):
    on_device("""
        cuda = candelabra.cuda
        x = candelabra.zeros(8, device="cuda")
        cuda.manual_seed(3)
        generator = cuda.default_generators[0]
        graph = cuda.CUDAGraph()
        fails(RuntimeError, "without a preceding successful capture", graph.replay)
        fails(RuntimeError, "default stream", graph.capture_begin)
        with cuda.graph(graph):
            assert cuda.is_current_stream_capturing()
            x.uniform_()
            x.uniform_()
        assert not cuda.is_current_stream_capturing()
        before = generator.get_state().tolist()
        graph.replay()
        assert (told.launches, told.seed, told.offset) == (1, 3, 0)
        assert generator.get_state().tolist() != before, "the replay has drawn numbers, the capture none"
        graph.replay()
        assert told.launches == 2 and told.offset == 8, "as the same calls without a graph would: two times (8 + 1) // 2 blocks"
        second = cuda.CUDAGraph()
        with cuda.graph(second, pool=graph.pool()):
            pass
        assert second.pool() == graph.pool() and told.pools == 2
        fails(RuntimeError, "already owns", second.capture_begin)
        fails(RuntimeError, "is no pool", cuda.CUDAGraph().capture_begin, (0, 1))
        graph.reset(), second.reset()
        assert told.pools == 0
        fails(RuntimeError, "pool()", graph.pool)
    """)


def test_what_stands_in_for_it_has_the_same_names():
    modules = {"comm", "nccl", "profiler", "random"}
    assert set(without_cuda.__all__) | modules == set(candelabra.cuda.__all__)
    for name in set(candelabra.cuda.__all__) - modules - {"default_generators"}:
        ours, there = getattr(without_cuda, name), getattr(candelabra.cuda, name)
        assert isinstance(ours, type) == isinstance(there, type) and callable(ours) == callable(there), name
    assert set(without_cuda.amp.__all__) == set(candelabra.cuda.amp.__all__)
    ranges = {name for name in vars(candelabra.cuda.nvtx) if name.startswith(("range", "mark"))}
    assert len(ranges) == 6 and all(callable(getattr(without_cuda.nvtx, name)) for name in ranges)
