"""Test the messages of GPU failures on an emulated device (tests/emulation), whose driver and
kernels can be made to fail.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

import candelabra


def output_of(code: str, **environment: str) -> str:
    """Run a script in a process of its own. `failing` in it returns the error of a call."""
    prelude = """
        import candelabra

        def failing(function, *arguments, **keywords):
            try:
                function(*arguments, **keywords)
            except Exception as error:
                return f"{type(error).__name__}: {error}"
            return "nothing"
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(prelude) + textwrap.dedent(code)],
        capture_output=True, text=True, timeout=120, env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"CANDELABRA_EMULATION_DRIVER": "none"}, "no NVIDIA driver (libcuda.so.1 was not found or does not answer)"),
        (
            {"CANDELABRA_EMULATION_DRIVER": "old"},
            "the NVIDIA driver is too old: it knows CUDA 12.4, candelabra-backend-cuda was built for CUDA 13.",
        ),
        ({"CANDELABRA_EMULATION_DRIVER": "broken"}, "the NVIDIA driver does not start: cudaErrorSystemNotReady"),
        ({"CANDELABRA_EMULATION_DEVICES": "0"}, "no NVIDIA device: the driver sees none"),
        (
            {"CANDELABRA_EMULATION_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "7"},
            "the driver sees none (CUDA_VISIBLE_DEVICES=7)",
        ),
        (
            {"CANDELABRA_EMULATION_CAPABILITY": "75"},
            "no device that this build has kernels for: device 0 has compute capability 7.5, the kernels are for 90",
        ),
    ],
    ids=["no driver", "old driver", "broken driver", "no device", "hidden devices", "old device"],
)
def test_without_a_device_it_says_why_and_others_go_on(emulated, environment, said):
    code = """
        assert not candelabra.cuda.is_available() and candelabra.cuda.device_count() == 0
        print(failing(candelabra.ones, 2, device="cuda"))
        print(failing(candelabra.cuda.synchronize))
        print(failing(candelabra.cuda.Stream))
        assert candelabra.cuda.memory_allocated() == 0
        candelabra.cuda.manual_seed_all(1)
        candelabra.cuda.empty_cache()
        assert candelabra.ones(3).tolist() == [1, 1, 1]
    """
    lines = output_of(code, **environment).splitlines()
    assert len(lines) == 3
    for line in lines:
        assert line.startswith("BackendError: ") and said in line


def test_the_list_of_backends_says_it(emulated):
    environment = {**os.environ, "CANDELABRA_EMULATION_DRIVER": "none"}
    done = subprocess.run(
        [sys.executable, "-m", "candelabra.backends"], capture_output=True, text=True, env=environment, timeout=60
    )
    assert done.returncode == 0 and "cuda: no NVIDIA driver" in done.stdout


def test_reset_says_that_a_new_process_is_the_way(emulated):
    code = """
        x = candelabra.ones(4, device="cuda")
        print(failing(candelabra.backends.reset_device, "cuda"))
        print(x.tolist())
    """
    said, values = output_of(code).splitlines()
    assert said.startswith("NotImplementedError: ") and "start a new process" in said
    assert values == "[1.0, 1.0, 1.0, 1.0]"


FAILING = """
    x = candelabra.ones(4, device="cuda")
    other = candelabra.ones(4, device="cuda:1")
    candelabra.cuda.synchronize()
    print(failing(lambda: x.exp().sin().cos()))
    print(failing(candelabra.cuda.synchronize))
    print(candelabra.ones(2).tolist())
"""


def test_a_failed_kernel_is_reported_when_somebody_waits(emulated):
    """Of two fills and an exp that fails, the failure is raised at the next synchronization."""
    environment = {
        "CANDELABRA_EMULATION_FAIL_LAUNCH": "3",
        "CANDELABRA_EMULATION_DEFERRED": "1",
        "CANDELABRA_LAUNCH_BLOCKING": "0",
    }
    call, wait, host = output_of(FAILING, **environment).splitlines()
    assert call == "nothing"
    assert wait.startswith("AcceleratorError: ") and "CUDA error cudaErrorIllegalAddress" in wait
    assert "kernel queued here or earlier" in wait and "CANDELABRA_LAUNCH_BLOCKING=1 says which" in wait
    assert host == "[1.0, 1.0]"


def test_blocking_launches_name_the_operator(emulated):
    environment = {
        "CANDELABRA_EMULATION_FAIL_LAUNCH": "3",
        "CANDELABRA_EMULATION_DEFERRED": "1",
        "CANDELABRA_LAUNCH_BLOCKING": "1",
    }
    call, wait, host = output_of(FAILING, **environment).splitlines()
    assert (
        call.startswith("AcceleratorError: exp")
        and "CUDA error cudaErrorIllegalAddress" in call
        and "says which" not in call
    )
    assert wait == "nothing" and host == "[1.0, 1.0]"


def test_an_index_out_of_range_is_reported_at_the_next_call(emulated):
    code = """
        x = candelabra.arange(4.0, device="cuda")
        index = candelabra.tensor([1, 9], device="cuda")
        first = failing(x.index_select, 0, index)
        print(first if first != "nothing" else failing(candelabra.cuda.synchronize))
        print(x.index_select(0, index.clamp(max=3)).tolist())
    """
    for blocking in ("0", "1"):
        error, after = output_of(code, CANDELABRA_LAUNCH_BLOCKING=blocking).splitlines()
        assert error.startswith("IndexError: ") and "index_select" in error and "9" in error
        assert after == "[1.0, 3.0]"


def test_out_of_memory_tells_what_is_held(emulated):
    code = """
        kept = candelabra.ones(1 << 24, device="cuda")
        text = failing(candelabra.empty, 1 << 33, device="cuda")
        print(text)
        print(kept.sum().item(), candelabra.cuda.memory_stats()["num_ooms"], candelabra.ones(3, device="cuda:1").sum().item())
    """
    error, after = output_of(code, CANDELABRA_EMULATION_MEMORY="256").splitlines()
    assert error.startswith("OutOfMemoryError: ") and "CUDA out of memory. Tried to allocate 32.00 GiB" in error
    assert "total capacity of 256.00 MiB" in error and "64.00 MiB is allocated by Candelabra" in error
    assert after == f"{float(1 << 24)} 1 3.0"


def test_tensors_of_other_devices_are_named(emulated):
    x, other = candelabra.ones(3, device=emulated), candelabra.ones(3, device="cuda:1")
    for a, b in ((x, other), (x, candelabra.ones(3)), (candelabra.ones(3), other)):
        with pytest.raises(
            RuntimeError, match=rf"same device, but found at least two devices, {a.device} and {b.device}"
        ):
            a + b
    with pytest.raises(RuntimeError, match="index 7"):
        candelabra.ones(3, device="cuda:7")
    with pytest.raises(TypeError, match=r"can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu\(\)"):
        x.numpy()
    assert (x + candelabra.tensor(2.0)).tolist() == [3, 3, 3], "a number of the host goes with every device"


def test_events_and_streams_of_other_devices(emulated):
    side = candelabra.cuda.Stream("cuda:1")
    event = candelabra.cuda.Event()
    event.record()
    with pytest.raises(RuntimeError, match="does not match recording stream's device"):
        event.record(side)
    with pytest.raises(RuntimeError, match="default stream|captured"):
        candelabra.cuda.CUDAGraph().capture_begin()


def test_memory_that_cannot_be_shared(emulated):
    code = """
        import candelabra.multiprocessing as mp
        here, there = mp.Pipe()
        print(failing(here.send, candelabra.ones(1 << 20, device="cuda")))
    """
    said = output_of(code, CANDELABRA_CUDA_ALLOC_CONF="expandable_segments:True")
    assert (
        said.startswith("RuntimeError: ") and "cannot be shared with other processes" in said and "expandable" in said
    )
