"""Run the kernels on an emulated device (``tests/emulation``), in modes that reveal races, reads
beyond the end and memory that is freed too early.

Needs the output of ``python packages/backend-cuda/tests/emulation/build.py FOLDER``, and
``CANDELABRA_EMULATED=FOLDER``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
FOLDER = os.environ.get("CANDELABRA_EMULATED", "")

sys.path.insert(0, str(HERE / "emulation"))

needs_build = pytest.mark.skipif(
    not FOLDER,
    reason="CANDELABRA_EMULATED names no folder that packages/backend-cuda/tests/emulation/build.py has built",
)

GUARDED = {"CANDELABRA_EMULATION_GUARD": "1", "CANDELABRA_CUDA_ALLOC_CONF": "caching:False"}
#: Modes of execution that must not change results.
WAYS = {
    "forward": {},
    "backward": {"CANDELABRA_EMULATION_ORDER": "backward"},
    "shuffled": {"CANDELABRA_EMULATION_ORDER": "shuffled"},
    "deferred": {"CANDELABRA_EMULATION_DEFERRED": "1"},
    "beyond the end": GUARDED,
    "before the beginning": {**GUARDED, "CANDELABRA_EMULATION_GUARD": "before"},
    "by the host": {"CANDELABRA_EMULATION_GUARD": "host"},
}


def run(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, [str(Path(FOLDER) / "site"), os.environ.get("PYTHONPATH", "")]))
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path, **variables})


def faults(name: str, **variables: str) -> str:
    return run(str(Path(FOLDER) / "faults"), name, **variables).stdout


@needs_build
@pytest.mark.parametrize("order", ["forward", "backward", "shuffled"])
def test_barriers_shuffles_and_votes(order):
    variables = {"CANDELABRA_EMULATION_ORDER": order}
    assert faults("sums", **variables) == f"{sum(range(1000))} sums: cudaSuccess: no error\n"
    assert faults("votes", **variables) == "16 48 1 0 votes: cudaSuccess: no error\n"
    assert faults("dynamic", **variables).startswith(" ".join(map(str, range(63, -1, -1))))


@needs_build
def test_a_race_depends_on_the_order():
    right = list(map(str, range(63, -1, -1)))
    found = {order: faults("race", CANDELABRA_EMULATION_ORDER=order).split()[:64] for order in ("forward", "backward")}
    assert found["forward"] != found["backward"] and right not in found.values()


@needs_build
@pytest.mark.parametrize(
    ("name", "variables", "text"),
    [
        ("different barriers", {}, "cudaErrorLaunchFailure: emulation: threads of a block wait at different barriers"),
        ("hang", {}, "cudaErrorLaunchTimeout: emulation: the block would hang: 31 threads wait at the barrier"),
        ("ended lane", {}, "-134744073 "),
        ("leftovers", {}, "7 -134744073 "),
        ("bounds", {}, "cudaErrorLaunchFailure: emulation: a block of more threads than __launch_bounds__ says"),
        (
            "short dynamic",
            {},
            "cudaErrorIllegalAddress: emulation: an access beyond the 128 bytes of dynamic shared memory",
        ),
        ("beyond", GUARDED, "cudaErrorIllegalAddress: emulation: an access to address"),
        ("beyond", GUARDED, "byte 4000 of an allocation of 4000 bytes, thread (0, 0, 0)"),
        ("before", {"CANDELABRA_EMULATION_GUARD": "before"}, "byte -4 of an allocation of 4000 bytes"),
        ("freed", GUARDED, "byte 0 of a freed allocation of 4000 bytes"),
        ("grid", {}, "cudaErrorInvalidConfiguration: emulation: grid 1 x 65536 x 1"),
        ("threads", {}, "cudaErrorInvalidConfiguration: emulation: grid 1 x 1 x 1, block 33 x 32 x 1"),
        ("shared", {}, "49153 bytes of dynamic shared memory"),
        ("long copy", {}, "cudaErrorInvalidValue: emulation: a copy of 4800 bytes"),
    ],
)
def test_faults_are_found(name, variables, text):
    assert text in faults(name, **variables)


@needs_build
def test_the_host_cannot_read_device_memory():
    assert run(str(Path(FOLDER) / "faults"), "host").returncode == 0
    assert run(str(Path(FOLDER) / "faults"), "host", CANDELABRA_EMULATION_GUARD="host").returncode < 0


@needs_build
def test_kernels_reach_the_memory_of_peers_only():
    host = {"CANDELABRA_EMULATION_GUARD": "host"}
    assert "cudaErrorIllegalAddress: emulation: an access to address" in faults("other device", **host)
    assert " of device 0, thread (0, 0, 0)" in faults("other device", **host)
    assert faults("peer", **host) == "peer: cudaSuccess: no error\n"


@needs_build
def test_conformance_on_a_device_that_is_not_the_current_one():
    done = run(sys.executable, "-m", "candelabra.backends", "--verify", "cuda:1", **WAYS["by the host"])
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert " 0 wrong" in done.stdout and "emulation:" not in done.stderr


@needs_build
@pytest.mark.parametrize("way", WAYS)
def test_conformance(way):
    done = run(sys.executable, "-m", "candelabra.backends", "--verify", "cuda", **WAYS[way])
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert " 0 wrong" in done.stdout and "emulation:" not in done.stderr


@needs_build
@pytest.mark.parametrize("way", ["forward", "deferred", "by the host"])
def test_streams_memory_and_graphs(way):
    files = [str(HERE / "test_runtime.py"), str(HERE / "test_devices.py")]
    done = run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files, **WAYS[way])
    assert done.returncode == 0 and " passed" in done.stdout and " skipped" not in done.stdout, (
        done.stdout[-4000:] + done.stderr[-2000:]
    )


def test_strict_translation(tmp_path):
    from translate import translated

    path = tmp_path / "some.cu"
    path.write_text("__global__ void __launch_bounds__(f(2), 1) k(int* a) {\n  __shared__ T<int, 2> x[3], y;\n}\n")
    bounds, shared = translated(path, strict=True).splitlines()[1:3]
    assert bounds.endswith("k(int* a) { ::emulation::within(f(2));")
    assert (
        shared.count("::emulation::fresh(block, &x, sizeof x)")
        == shared.count("::emulation::fresh(block, &y, sizeof y)")
        == 1
    )
    assert "emulation" not in translated(path)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("kernel<<<1, n, 0, stream>>>(a, b);", "::emulation::configured(kernel, 1, n, 0, stream)(a, b);"),
        ("  f<T, g<2>><<<b, t>>>();", "  ::emulation::configured(f<T, g<2>>, b, t)();"),
        ("__shared__ alignas(16) unsigned char x[4];", "alignas(16) static unsigned char x[4];"),
        (
            "extern __shared__ __align__(16) unsigned char x[];",
            "unsigned char* const x = static_cast<unsigned char*>(::emulation::dynamic_shared());",
        ),
        ("k = reinterpret_cast<const void*>(f<T>);", "k = ::emulation::kernel_address(f<T>);"),
        ("#ifdef __CUDACC__", "#ifdef CANDELABRA_EMULATED_DEVICE_CODE"),
    ],
)
def test_translation(tmp_path, given, wanted):
    from translate import translated

    path = tmp_path / "some.cu"
    path.write_text(given + "\n")
    assert translated(path) == f'#line 1 "{path}"\n{wanted}\n'
