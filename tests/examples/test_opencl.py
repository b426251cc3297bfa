"""Test the OpenCL backend (examples/backends/opencl): its device, its errors, and networks that
train on it as on the CPU.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import candelabra
from candelabra import nn, optim
from candelabra.catalogue import OPERATORS
from candelabra.testing import conformance

pytest.importorskip("candelabra_opencl", reason="the example backend is not installed: nox -s tests-examples does it")

try:
    candelabra.backends.load("opencl")
except candelabra.BackendError as error:
    if os.environ.get("CANDELABRA_REQUIRE_OPENCL"):
        raise
    pytest.skip(f"no OpenCL device: {error}", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore:the operator .* runs on the CPU:RuntimeWarning")
F = nn.functional
KERNELS = [name for name in conformance.applicable() if OPERATORS[name].has_kernel("opencl")]


def values(*shape, device="cpu", seed=0):
    """Return the same numbers on each device."""
    drawn = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return candelabra.tensor(drawn.tolist(), device=device)


def test_conformance_of_all_kernels():
    outcomes = conformance.run("opencl", KERNELS)
    assert [failure for outcome in outcomes for failure in outcome.failures] == []
    assert {outcome.state for outcome in outcomes} == {"passed"}
    assert len(outcomes) > 100


# ---- the accelerator

PROBE = """
import sys, candelabra
print(candelabra.accelerator.is_available(), candelabra._C.loaded_device_types(), "candelabra_opencl" in sys.modules)
"""


def test_is_available_loads_no_plugin():
    out, error = in_process(PROBE, CANDELABRA_ACCELERATOR="opencl")
    assert out == "True [] False", error


@pytest.mark.parametrize(
    "chosen", [{"CANDELABRA_OPENCL_LIBRARY": "/nowhere/libOpenCL.so.1"}, {"CANDELABRA_OPENCL_PLATFORM": "Voodoo"}]
)
def test_is_not_available_without_a_device(chosen):
    out, error = in_process(PROBE, CANDELABRA_ACCELERATOR="opencl", **chosen)
    assert out == "False [] False", error


def test_the_probe_counts_the_devices_of_the_backend():
    from candelabra_opencl_probe import device_count

    assert device_count() == candelabra.backends.device_count("opencl")


def test_a_loader_that_crashes_is_reported(tmp_path):
    source, library = tmp_path / "loader.c", tmp_path / "libOpenCL.so.1"
    source.write_text("#include <stdlib.h>\nint clGetPlatformIDs(void) { abort(); }\n")
    subprocess.run(["cc", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    code = PROBE.replace("import sys", "import warnings; warnings.simplefilter('default')\nimport sys")
    out, error = in_process(code, CANDELABRA_ACCELERATOR="opencl", CANDELABRA_OPENCL_LIBRARY=str(library))
    assert out == "False [] False"
    assert "the probe candelabra_opencl_probe:device_count of candelabra-example-opencl 0.1.0" in error
    assert "the OpenCL loader or a driver failed (-6)" in error


# ---- memory, streams, events


def test_memory_has_no_address_and_is_given_back():
    before = candelabra.backends.memory_statistics("opencl")["allocated"]
    tensors = [candelabra.ones(1000, device="opencl") for _ in range(20)]
    with pytest.raises(TypeError, match="opencl"):
        tensors[0].numpy()
    assert candelabra.backends.memory_statistics("opencl")["allocated"] >= before + 20 * 4000
    del tensors
    after = candelabra.backends.memory_statistics("opencl")
    assert after["allocated"] == before
    assert after["reserved"] >= after["allocated"]


def test_views():
    x = candelabra.arange(12, device="opencl").view(3, 4)
    assert x[1:, 1::2].t().tolist() == [[5, 9], [7, 11]]
    x[1:].copy_(x[:2].clone())
    x.t()[2].add_(10)
    assert x.tolist() == [[0, 1, 12, 3], [0, 1, 12, 3], [4, 5, 16, 7]]


def test_streams_and_events():
    accelerator = candelabra.accelerator
    accelerator.use("opencl")
    try:
        stream = accelerator.Stream()
        start, end = accelerator.Event(enable_timing=True), accelerator.Event(enable_timing=True)
        with accelerator.stream(stream):
            start.record()
            x = candelabra.ones(1000, device="opencl")
            for _ in range(10):
                x = x + 1
            end.record()
        end.wait()  # the default stream waits
        total = x.sum()
        x.record_stream(accelerator.current_stream())
        end.synchronize()
        assert end.query()
        assert start.elapsed_time(end) >= 0
        assert total.item() == 11_000
        stream.synchronize()
        assert stream.query()
        with accelerator.stream(stream):
            y = x + 1
        accelerator.synchronize()  # all streams
        assert stream.query()
        assert y[0].item() == 12
    finally:
        accelerator.use(None)


def test_threads():
    results = []

    def compute(seed):
        x = values(40, 40, device="opencl", seed=seed)
        for _ in range(10):
            x = (x @ x.t()).softmax(1) + x
        results.append((seed, x.sum().item()))

    threads = [threading.Thread(target=compute, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    serial = list(results)
    results.clear()
    for seed in range(6):
        compute(seed)
    assert sorted(serial) == sorted(results)


# ---- numbers


def test_random_numbers_are_those_of_the_cpu():
    drawn = []
    for device in ("cpu", "opencl"):
        candelabra.manual_seed(7)
        parts = (
            candelabra.rand(33, device=device),
            candelabra.randn(5, 3, device=device),
            candelabra.randint(0, 1000, (9,), device=device),
            F.dropout(candelabra.ones(50, device=device), 0.3),
        )
        drawn.append([np.array(part.tolist()) for part in parts])
    for ours, theirs in zip(*drawn, strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=1e-5, atol=1e-6)


def test_long_slices_are_sorted():
    x = values(3, 1500)
    for descending in (False, True):
        ours, theirs = x.sort(1, descending=descending), x.to("opencl").sort(1, descending=descending)
        assert theirs.indices.tolist() == ours.indices.tolist()
    assert x.to("opencl").topk(5).indices.tolist() == x.topk(5).indices.tolist()


def test_denied_indices_change_nothing():
    x = candelabra.zeros(3, device="opencl")
    with pytest.raises(RuntimeError, match="index 9 is out of bounds for dimension 0 with size 3"):
        x.scatter_(0, candelabra.tensor([1, 9], device="opencl"), 5.0)
    with pytest.raises(IndexError, match="index 4 is out of bounds"):
        x.index_select(0, candelabra.tensor([4], device="opencl"))
    assert x.tolist() == [0, 0, 0]


# ---- errors


def test_out_of_memory_names_the_sizes_and_harms_nothing():
    with pytest.raises(candelabra.OutOfMemoryError, match=r"asked for \d+ bytes; \d+ are in use, the largest possible"):
        candelabra.empty(1 << 50, dtype=candelabra.uint8, device="opencl")
    assert (candelabra.ones(2, device="opencl") + 1).tolist() == [2.0, 2.0]


def in_process(code, **environment):
    """Run a program in a process of its own, and return its output and its last line of errors."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **environment},
    )
    assert done.returncode in (0, 1), done.stderr  # no signal
    return done.stdout.strip(), done.stderr.strip()


USE = "import candelabra; print((candelabra.ones(3, device='opencl') * 2).tolist())"


def test_without_a_loader_the_error_says_what_to_install():
    _, error = in_process(USE, CANDELABRA_OPENCL_LIBRARY="/nowhere/libOpenCL.so.1")
    assert "BackendError" in error
    assert "there is no OpenCL loader (/nowhere/libOpenCL.so.1" in error
    assert "pocl-opencl-icd" in error


def test_a_platform_that_is_not_there():
    _, error = in_process(USE, CANDELABRA_OPENCL_PLATFORM="Voodoo")
    assert "no OpenCL device: the platforms are '" in error
    assert "CANDELABRA_OPENCL_PLATFORM asks for Voodoo" in error


def test_a_forked_process_is_told_to_spawn():
    code = (
        "import candelabra, os; x = candelabra.ones(2, device='opencl')\n"
        "child = os.fork()\n"
        "if child: print(os.waitpid(child, 0)[1], (x + 1).tolist())\n"
        "else:\n"
        "    try: x + 1\n"
        "    except RuntimeError as error: print(error, flush=True)\n"
        "    os._exit(0)"
    )
    out, error = in_process(code)
    assert out.splitlines() == [
        "opencl: OpenCL cannot be used in a forked process: start processes by the method 'spawn'", "0 [2.0, 2.0]",
    ], error  # fmt: skip


def test_programs_are_cached_on_disk(tmp_path):
    variables = {"CANDELABRA_CACHE_DIR": str(tmp_path), "CANDELABRA_OPENCL_PROGRAM_CACHE": "1"}
    code = "import candelabra; print(candelabra.full((3,), 7, device='opencl').tolist())"  # one small program
    assert in_process(code, **variables)[0] == "[7, 7, 7]"
    binaries = list(tmp_path.rglob("*.bin"))
    assert binaries
    times = {path: path.stat().st_mtime_ns for path in binaries}
    assert in_process(code, **variables)[0] == "[7, 7, 7]"
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.bin")} == times
    for path in binaries:  # a binary that the driver refuses is built again
        path.write_bytes(b"not a program")
    assert in_process(code, **variables)[0] == "[7, 7, 7]"
    assert all(path.stat().st_size > 100 for path in binaries)


# ---- networks


class Block(nn.Module):
    """A residual block of ResNet-18."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


class ResNet18(nn.Module):
    """He et al., "Deep residual learning for image recognition" (2015), with 18 layers."""

    def __init__(self, classes=10):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        )
        blocks, inputs = [], 64
        for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            blocks += [Block(inputs, outputs, stride), Block(outputs, outputs, 1)]
            inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)))


class Gpt(nn.Module):
    """A decoder of pre-normalized transformer blocks with causal attention."""

    def __init__(self, tokens=17, length=12, width=16, heads=2, layers=2):
        super().__init__()
        self.tokens, self.places = nn.Embedding(tokens, width), nn.Embedding(length, width)
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout=0.1, activation="gelu", batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(layer, layers, nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, tokens, bias=False)

    def forward(self, tokens):
        length = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length, device=tokens.device)
        x = self.tokens(tokens) + self.places(candelabra.arange(length, device=tokens.device))
        return self.head(self.blocks(x, mask=mask, is_causal=True)).flatten(0, 1)


def losses(device, build, inputs, targets, optimizer_of, steps):
    candelabra.manual_seed(3)
    model = build().to(device)
    optimizer = optimizer_of(model.parameters())
    candelabra.manual_seed(4)
    result = []
    for _ in range(steps):
        loss = F.cross_entropy(model(inputs.to(device)), targets.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        result.append(loss.item())
    return result


def test_resnet18_trains_as_on_the_cpu():
    arguments = (
        ResNet18, values(4, 3, 32, 32), candelabra.tensor([1, 5, 0, 7]),
        lambda parameters: optim.SGD(parameters, lr=0.01, momentum=0.9, weight_decay=1e-4), 4,
    )  # fmt: skip
    ours, theirs = (losses(device, *arguments) for device in ("cpu", "opencl"))
    np.testing.assert_allclose(theirs, ours, rtol=1e-3, atol=1e-3)
    assert theirs[-1] < theirs[0]


def test_gpt_trains_as_on_the_cpu():
    text = candelabra.arange(48).view(4, 12) * 5 % 17
    arguments = (
        Gpt, text, text.roll(-1, 1).flatten(), lambda parameters: optim.AdamW(parameters, lr=0.01), 12,
    )  # fmt: skip
    ours, theirs = (losses(device, *arguments) for device in ("cpu", "opencl"))
    np.testing.assert_allclose(theirs, ours, rtol=1e-3, atol=1e-4)
    assert theirs[-1] < 0.8 * theirs[0]


# ---- with the other backends in one process


def test_four_backends_in_one_process():
    devices = ("cpu", "numpy", "minic", "opencl")
    missing = set(devices) - set(candelabra.backends.installed())
    assert missing <= {"numpy", "minic"}
    if missing:
        pytest.skip(f"not installed: {sorted(missing)}")
    a = candelabra.tensor([1.0, 2.0, 3.0], requires_grad=True)
    x = a
    for device in (*devices, *reversed(devices)):
        x = x.to(device) * 2.0 + 1.0
        assert x.device.type == device
    x.sum().backward()
    assert a.grad.tolist() == [256.0] * 3
    assert x.tolist() == [511.0, 767.0, 1023.0]
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        candelabra.ones(2, device="minic") + candelabra.ones(2, device="opencl")
