"""candelabra.accelerator over a device that is made up (fake_accelerator/fake.c), and without any;
what stands in for candelabra.cuda.
"""

from __future__ import annotations

import shutil
import subprocess
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from test_plugins import WORKING, Installed

import candelabra
from candelabra import _C

COMPILER = shutil.which("cc") or shutil.which("gcc")
INCLUDE = next(
    (
        folder
        for folder in (Path(candelabra.__file__).parent / "include", Path(candelabra.__file__).parents[2] / "include")
        if (folder / "candelabra" / "accelerator.h").exists()
    ),
    None,
)

if TYPE_CHECKING:
    from collections.abc import Callable

PLUGIN = """
    from candelabra.backends import hookimpl

    @hookimpl
    def candelabra_register_backend(registrar):
        registrar.library("{library}")
"""

#: What every script begins with: `told` is what the device has recorded.
PRELUDE = """
    import candelabra
    from candelabra import _C, accelerator

    class Told:
        def __getattr__(self, name):
            pairs = dict(item.split("=", 1) for item in _C.backend_info("fake")["description"].split(" "))
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


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("fake") / "libfake.so"
    subprocess.run(
        [str(COMPILER), "-std=c99", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", '-DFAKE_TYPE="fake"',
         f"-I{INCLUDE}", str(Path(__file__).parents[1] / "fake_accelerator" / "fake.c"), "-o", str(made)],
        check=True,
    )  # fmt: skip
    return made


@pytest.fixture
def on_device(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[str], str]:
    """A function that runs a script where the made-up device is installed, and a CPU with hardly
    any kernels.
    """
    if COMPILER is None or INCLUDE is None:
        pytest.skip("needs a C compiler and the headers")
    library = request.getfixturevalue("library")

    def run(script: str) -> str:
        installed = Installed(tmp_path)
        installed.distribution("host-backend", "1", "cpu", "host_backend", WORKING)
        source = textwrap.dedent(PLUGIN).replace("{library}", str(library))
        installed.distribution("fake-backend", "1", "fake", "fake_backend", source, accelerator="fake_backend")
        done = installed.run(textwrap.dedent(PRELUDE) + textwrap.dedent(script))
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_found_and_asked(on_device):
    on_device("""
        assert "fake" not in _C.loaded_device_types()
        assert accelerator.is_available()
        import sys
        assert "fake" not in _C.loaded_device_types() and "fake_backend" not in sys.modules
        assert accelerator.device_count() == 2
        assert accelerator.current_accelerator() == candelabra.device("fake:0")
        properties = accelerator.get_device_properties(1)
        assert (properties.name, properties.major, properties.minor, properties.multi_processor_count) == ("Fake 1", 4, 2, 7)
        assert properties.warp_size == 16 and properties.uuid.endswith("01") and "Fake 1" in repr(properties)
        assert properties == accelerator.get_device_properties("fake:1") != accelerator.get_device_properties(0)
        fails(AttributeError, "does not tell 'colour'", getattr, properties, "colour")
        fails(ValueError, "doesn't match the current accelerator fake", accelerator.get_device_properties, "cpu")
        fails(RuntimeError, "index 2", accelerator.get_device_properties, 2)
        assert accelerator.get_memory_info() == (1 << 20, 1 << 20)
    """)


def test_current_device(on_device):
    on_device("""
        import threading
        assert accelerator.current_device_index() == 0
        accelerator.set_device_index(1)
        assert candelabra.empty(2, device="fake").device == candelabra.device("fake:1")
        assert candelabra.empty(2, device="fake:0").device == candelabra.device("fake:0")
        assert accelerator.get_device_properties().name == "Fake 1"
        seen = []
        thread = threading.Thread(target=lambda: seen.append(accelerator.current_device_index()))
        thread.start(), thread.join()
        assert seen == [0], "another thread has its own"
        with accelerator.device_index(0):
            assert accelerator.current_device_index() == 0
            with accelerator.device_index(None):
                assert accelerator.current_device_index() == 0
        assert accelerator.current_device_index() == 1
        accelerator.set_device_index(-1)
        assert accelerator.current_device_index() == 1
        fails(RuntimeError, "7", accelerator.set_device_index, 7)
    """)


def test_streams(on_device):
    on_device("""
        import threading
        default = accelerator.current_stream()
        assert default.stream_id == 0 and default == accelerator.default_stream() and default.query()
        side = accelerator.Stream(priority=-1)
        assert side != default and side.device == candelabra.device("fake:0") and len({side, default}) == 2
        x = candelabra.ones(4, device="fake")
        with side as entered:
            assert entered is side and accelerator.current_stream() is side
            y = x + x
            assert told.kernel_stream == told.allocation_stream == side.stream_id
            seen = []
            thread = threading.Thread(target=lambda: seen.append(accelerator.current_stream().stream_id))
            thread.start(), thread.join()
            assert seen == [0], "another thread has its own"
            candelabra.empty(2, device="fake:1")
            assert told.allocation_stream == 0, "another device has its own"
            assert y.tolist() == [2.0] * 4 and told.copy_stream == side.stream_id
        assert accelerator.current_stream() == default
        x + x
        assert told.kernel_stream == 0
        other = accelerator.Stream(device=1)
        with accelerator.stream(other):
            assert accelerator.current_device_index() == 1 and accelerator.current_stream() == other
        assert accelerator.current_device_index() == 0
        with accelerator.stream(None):
            assert accelerator.current_stream() == default
        waits = told.waits
        side.wait_stream(default)
        assert told.waits == waits + 1
        synchronizations = told.synchronizations
        side.synchronize()
        accelerator.synchronize()
        assert told.synchronizations == synchronizations + 2
        x.record_stream(side)
        assert told.recorded == 1
        accelerator.set_stream(accelerator.Stream())
        import gc; gc.collect()
        assert accelerator.current_stream().stream_id != 0, "a current stream stays"
        accelerator.set_stream(default)
        destroyed = told.destroyed_streams
        accelerator.Stream(); gc.collect()
        assert told.destroyed_streams == destroyed + 1
    """)


def test_events(on_device):
    on_device("""
        import gc
        start, end = accelerator.Event(enable_timing=True), accelerator.Event(enable_timing=True)
        assert start.query()
        fails(ValueError, "recorded before calculating", start.elapsed_time, end)
        start.record()
        end.record(accelerator.Stream())
        assert start.elapsed_time(end) == 1.0
        plain = accelerator.current_stream().record_event()
        plain.synchronize(), plain.wait()
        assert plain.query()
        fails(ValueError, "enable_timing=True", start.elapsed_time, plain)
        fails(RuntimeError, "does not match recording stream's device", plain.record, accelerator.Stream(device=1))
        del start, end, plain; gc.collect()
        assert told.events == 0
    """)


def test_memory(on_device):
    on_device("""
        assert accelerator.memory_allocated() == 0
        x = candelabra.empty(1000, device="fake")
        assert accelerator.memory_allocated() == accelerator.memory_stats()["allocated_bytes.all.current"] == 4000
        assert accelerator.memory_allocated(1) == 0
        del x
        assert accelerator.memory_allocated() == 0 and accelerator.max_memory_allocated() == 4000 == accelerator.max_memory_reserved()
        accelerator.reset_peak_memory_stats()
        assert accelerator.max_memory_allocated() == 0
        accelerator.set_memory_fraction(0.5)
        fails(candelabra.OutOfMemoryError, "the fake device is full", candelabra.empty, 1 << 18, device="fake")
        accelerator.set_memory_fraction(1.0)
        fails(TypeError, "float", accelerator.set_memory_fraction, 1)
        fails(ValueError, "1.5", accelerator.set_memory_fraction, 1.5)
        fails(NotImplementedError, "totals", accelerator.reset_accumulated_memory_stats)
        accelerator.empty_cache()
        assert "memory of fake:1" in accelerator.memory_summary(1)
        (segment,) = accelerator.memory_snapshot(1)
        assert segment["total_size"] == 3072 and segment["allocated_size"] == 1024 and segment["active_size"] == 2048
        assert segment["requested_size"] == 1000
        assert [block["state"] for block in segment["blocks"]] == ["active_allocated", "active_pending_free", "inactive"]
    """)


def test_copies(on_device):
    on_device("""
        values = candelabra.tensor([1.0, 2.0, 3.0])
        assert not values.is_pinned()
        pinned = values.pin_memory()
        assert pinned.is_pinned() and pinned.pin_memory() is pinned and pinned.tolist() == [1.0, 2.0, 3.0]
        assert told.pinned == 1
        there = pinned.to("fake", non_blocking=True)
        assert told.asynchronous == 1 and there.tolist() == [1.0, 2.0, 3.0]
        values.to("fake")
        assert told.asynchronous == 1
        back = there.to("cpu", non_blocking=True)
        assert told.asynchronous == 2 and back.is_pinned() and back.tolist() == [1.0, 2.0, 3.0]
        waits = told.waits
        elsewhere = there.to("fake:1")
        assert told.peer == 1 and told.waits == waits + 2, "ordered with both devices' streams"
        assert elsewhere.tolist() == [1.0, 2.0, 3.0]
        there.copy_(pinned, non_blocking=True)
        assert told.asynchronous == 3
        fails(RuntimeError, "only dense CPU tensors can be pinned", there.pin_memory)
        del pinned, back
        assert told.pinned == 0
        assert candelabra.tensor([]).pin_memory().numel() == 0
    """)


def test_other_processes(on_device):
    on_device("""
        x = candelabra.full((4,), 5.0, device="fake")
        handle = _C.ipc_export_storage(x.untyped_storage())
        same = _C.tensor_on_storage(_C.ipc_open_storage("fake", *handle, 16), candelabra.float32)
        same.fill_(3.0)
        assert x.tolist() == [3.0] * 4
        fails(ValueError, "outside", _C.ipc_open_storage, "fake", handle[0], 1 << 19, 1 << 20, 1 << 20)
        fails(ValueError, "128 bytes", _C.ipc_open_storage, "fake", b"short", 0, 1 << 20, 16)
        assert _C.can_access_peer("fake:0", "fake:1") and not _C.can_access_peer("fake:1", "fake:0")
    """)


def test_without_a_device(tmp_path):
    done = Installed(tmp_path).run("""
        import candelabra
        from candelabra import accelerator, cuda
        assert not accelerator.is_available() and accelerator.device_count() == 0 and accelerator.current_accelerator() is None
        assert not cuda.is_available() and cuda.device_count() == 0 and not cuda.is_initialized() and not cuda.is_bf16_supported()
        assert cuda.memory_allocated() == 0 and cuda.memory_stats() == {} and cuda.get_arch_list() == []
        cuda.empty_cache(), cuda.manual_seed_all(1), cuda.manual_seed(1), cuda.seed_all(), cuda.nvtx.mark("x")
        with cuda.nvtx.range("a {}", 1):
            pass
        assert cuda.default_generators == () and not cuda.is_current_stream_capturing()
        for call in (cuda.synchronize, cuda.current_device, cuda.Stream, cuda.Event, cuda.get_device_name, cuda.CUDAGraph, lambda: cuda.device(0)):
            try:
                call()
            except candelabra.BackendError as error:
                assert "pip install candelabra-backend-cuda" in str(error), error
            else:
                raise AssertionError(call)
        with cuda.device(-1), cuda.device_of(None), cuda.stream(None), cuda.amp.autocast(enabled=False):
            cuda.set_device(-1), cuda.set_stream(None), cuda.set_rng_state_all(cuda.get_rng_state_all())
        assert cuda.amp.amp_definitely_not_available() and cuda.amp.GradScaler(enabled=False).get_scale() == 1.0
        try:
            accelerator.synchronize()
        except RuntimeError as error:
            assert "no backend of one is installed" in str(error), error
        else:
            raise AssertionError("synchronize")
    """)
    assert done.returncode == 0, done.stderr


BROKEN = """
    print("the plugin is imported")
    raise RuntimeError("the plugin is broken")
"""
#: A program that asks for an accelerator in every way that needs none of its devices.
ASKING = """
    import sys
    import candelabra
    from candelabra import accelerator
    print(accelerator.is_available(), sorted(name for name in sys.modules if name.endswith("_backend")))
"""


def test_asking_imports_no_plugin(tmp_path):
    """A backend that declares nothing is no accelerator until it is used; a declared one is."""
    installed = Installed(tmp_path)
    installed.distribution("broken-backend", "1", "broken", "broken_backend", BROKEN)
    assert installed.check(ASKING + "    print(accelerator.device_count(), accelerator.current_accelerator())") == (
        "False []\n0 None\n"
    )
    installed.distribution("other-backend", "2", "other", "other_backend", BROKEN, accelerator="other_backend")
    assert installed.check(ASKING) == "True []\n"
    done = installed.run(ASKING + "    accelerator.synchronize()")
    assert "BackendError: the backend for device 'other' (other-backend 2) could not be loaded" in done.stderr


def test_a_probe_tells_of_devices(tmp_path):
    installed = Installed(tmp_path)
    installed.distribution("some-backend", "1", "some", "some_backend", BROKEN, accelerator="some_probe:devices")
    probe = tmp_path / "some_probe.py"
    for body, expected in (("return 0", "False []\n"), ("return 12", "True []\n"), ("return True", "True []\n")):
        probe.write_text(f"def devices():\n    {body}\n")
        assert installed.check(ASKING) == expected
    probe.write_text("def devices():\n    raise OSError('no such driver')\n")
    done = installed.run(ASKING)
    assert done.stdout == "False []\n"
    for part in ("some_probe:devices of some-backend 1", "OSError: no such driver", "counts as absent"):
        assert part in done.stderr


def test_the_environment_names_the_accelerator(tmp_path):
    installed = Installed(tmp_path)
    installed.distribution("host-backend", "1", "host", "host_backend", WORKING)
    installed.distribution("broken-backend", "1", "broken", "broken_backend", BROKEN)
    asked = ASKING + "    print(accelerator.current_accelerator())"
    assert installed.run(asked, CANDELABRA_ACCELERATOR="host").stdout == "True []\nhost\n"
    assert installed.run(asked, CANDELABRA_ACCELERATOR="absent").stdout == "False []\nNone\n"
    broken = installed.run(asked, CANDELABRA_ACCELERATOR="broken")
    assert broken.stdout == "True []\nthe plugin is imported\n"
    assert "BackendError: the backend for device 'broken' (broken-backend 1)" in broken.stderr
    absent = installed.run(ASKING + "    accelerator.synchronize()", CANDELABRA_ACCELERATOR="absent")
    assert "no backend for device 'absent' is installed" in absent.stderr
    chosen = ASKING + "    accelerator.use('host')\n    print(accelerator.is_available(), accelerator.device_count())"
    assert installed.run(chosen, CANDELABRA_ACCELERATOR="absent").stdout == "False []\nTrue 1\n"


def test_an_undeclared_backend_counts_from_its_first_use_on(on_device, tmp_path):
    on_device("""
        from candelabra.backends import discovery
        discovery._declared = {}
        assert not accelerator.is_available()
        fails(RuntimeError, "candelabra.accelerator.use() takes one of fake", accelerator.synchronize)
        candelabra.empty(1, device="fake")
        assert accelerator.is_available() and accelerator.current_accelerator().type == "fake"
    """)


def test_what_stands_in_for_cuda_says_what_to_install(tmp_path):
    done = Installed(tmp_path).run("""
        import importlib, candelabra
        assert "without_cuda" in candelabra.cuda.__file__ and candelabra.cuda.__name__ == "candelabra.cuda"
        assert issubclass(candelabra.cuda.Stream, object) and not isinstance(1, candelabra.cuda.Event)
        import candelabra.cuda.amp, candelabra.cuda.nvtx
        for statement in (
            "import candelabra.cuda.nccl", "from candelabra.cuda.memory import memory_allocated", "candelabra.cuda.comm",
            "from candelabra.cuda import random", "import candelabra.cuda.nothing", "candelabra.cuda.nothing",
            "import candelabra.cuda.Stream",
        ):
            try:
                exec(statement)
            except (ImportError, AttributeError) as error:
                print(type(error).__name__, error)
        assert not hasattr(candelabra.cuda, "nothing") and set(candelabra.cuda.__all__) <= set(dir(candelabra.cuda))
    """)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == [
        "ModuleNotFoundError", "ModuleNotFoundError", "AttributeError", "ModuleNotFoundError", "ModuleNotFoundError", "AttributeError", "ModuleNotFoundError",
    ]  # fmt: skip
    assert all("pip install candelabra-backend-cuda" in line for line in lines[:4])
    assert not any("pip install" in line for line in lines[4:])


def test_a_host_device_can_stand_for_it():
    accelerator = candelabra.accelerator
    accelerator.use("cpu")
    try:
        assert accelerator.device_count() == 1 and accelerator.current_device_index() == 0
        assert accelerator.current_stream().query()
        with pytest.raises(NotImplementedError, match="has no streams"):
            accelerator.Stream()
        with pytest.raises(NotImplementedError, match="has no events"):
            accelerator.Event()
        with pytest.raises(NotImplementedError, match="pinned memory"):
            candelabra.ones(3).pin_memory()
        with pytest.raises(NotImplementedError, match="snapshot"):
            accelerator.memory_snapshot()
        assert _C.memory_info("cpu")[1] > 0
    finally:
        accelerator.use(None)


def test_a_number_is_a_device_of_the_accelerator():
    candelabra.accelerator.use("cpu")
    try:
        cpu = candelabra.device("cpu")
        assert candelabra.device(0) == candelabra.zeros(2, device=0).device == candelabra.zeros(2).to(0).device == cpu
        with pytest.raises(RuntimeError, match="Device index must not be negative"):
            candelabra.device(-1)
        with pytest.raises(RuntimeError, match="device index 3 is out of range"):
            candelabra.zeros(2, device=3)
        with pytest.raises(TypeError, match="a number of the accelerator's, not bool"):
            candelabra.device(True)
    finally:
        candelabra.accelerator.use(None)
