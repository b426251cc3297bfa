"""Test the two out-of-tree backends and the CPU backend in one process."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import candelabra
from candelabra import nn, optim
from candelabra.testing import conformance

DEVICES = ("cpu", "numpy", "minic")


@pytest.mark.parametrize("device", DEVICES)
def test_conformance(device):
    outcomes = conformance.run(device)
    assert [failure for outcome in outcomes for failure in outcome.failures] == []
    right = [outcome for outcome in outcomes if outcome.state == "passed"]
    # Every registered kernel must pass. The full backends must pass every operator.
    assert all(outcome.state == "passed" for outcome in outcomes if outcome.kernel)
    assert len(right) >= {"cpu": len(outcomes), "numpy": len(outcomes), "minic": 15}[device]


def test_matrices_transforms_and_functions_on_numpy():
    """The example's LAPACK and SciPy functions match the CPU backend, including errors."""
    random = np.random.default_rng(0)
    values = random.standard_normal((2, 4, 4)) + 3 * np.eye(4)
    results = []
    for device in ("cpu", "numpy"):
        x = candelabra.tensor(values, device=device)
        solved = candelabra.linalg.solve(x, candelabra.ones(2, 4, 1, dtype=candelabra.float64, device=device))
        spectrum = candelabra.linalg.eigvalsh(x @ x.mT)
        transformed = candelabra.fft.irfft(candelabra.fft.rfft(x, dim=1) * 2, n=4, dim=1)
        parts = (
            solved,
            spectrum,
            transformed,
            candelabra.linalg.det(x),
            candelabra.special.i0(x),
            candelabra.linalg.pinv(x),
        )
        results.append([np.array(part.tolist()) for part in parts])
        with pytest.raises(candelabra.linalg.LinAlgError, match="singular"):
            candelabra.linalg.inv(x * 0)
        with pytest.raises(candelabra.linalg.LinAlgError, match="positive-definite"):
            candelabra.linalg.cholesky(-x @ x.mT)
        with pytest.raises(RuntimeError, match="Expected a floating point or complex tensor"):
            candelabra.linalg.qr(x.to(candelabra.int64))
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("source", DEVICES)
@pytest.mark.parametrize("target", DEVICES)
def test_tensors_move_between_all(source, target):
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    tensor = candelabra.tensor(values, device=source)
    moved = tensor.t().to(target)
    assert str(moved.device).startswith(target)
    np.testing.assert_array_equal(np.array(moved.tolist()), values.T)
    back = candelabra.empty(4, 3, device=source).copy_(moved)
    np.testing.assert_array_equal(np.array(back.tolist()), values.T)


def test_same_random_numbers_everywhere():
    candelabra.manual_seed(7)
    ours = candelabra.randn(5, 3)
    candelabra.manual_seed(7)
    theirs = candelabra.randn(5, 3, device="numpy")
    np.testing.assert_allclose(np.array(theirs.tolist()), np.array(ours.tolist()), rtol=1e-5, atol=1e-6)


def test_a_model_trains_on_numpy():
    candelabra.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(4 * 4, 2)
    ).to("numpy")
    optimizer = optim.Adam(model.parameters(), lr=0.05)
    images = candelabra.randn(32, 1, 4, 4, device="numpy")
    classes = (images.mean((1, 2, 3)) > 0).to(candelabra.int64)
    losses = []
    for _ in range(25):
        loss = nn.functional.cross_entropy(model(images), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert all(str(parameter.device) == "numpy" for parameter in model.parameters())
    assert losses[-1] < 0.3 * losses[0]


def test_gradients_flow_across_devices():
    a = candelabra.randn(3, requires_grad=True)
    product = a.to("minic") * 2.0
    (product.to("numpy") * 3.0).sum().backward()
    assert a.grad.tolist() == [6.0, 6.0, 6.0]


def test_minic_memory_cannot_be_read_by_accident():
    tensor = candelabra.ones(3, device="minic")
    with pytest.raises(TypeError, match="minic"):
        tensor.numpy()
    with pytest.raises((TypeError, BufferError)):
        memoryview(tensor)
    assert tensor.data_ptr() >> 47 != 0  # not a user-space address


def test_minic_arena_is_given_back():
    before = candelabra.backends.memory_statistics("minic")["allocated"]
    tensors = [candelabra.ones(1000, device="minic") for _ in range(50)]
    assert candelabra.backends.memory_statistics("minic")["allocated"] >= before + 50 * 4000
    del tensors
    assert candelabra.backends.memory_statistics("minic")["allocated"] == before


def test_out_of_memory_names_the_sizes_and_harms_nothing():
    with pytest.raises(candelabra.OutOfMemoryError, match=r"1200000000 bytes, the arena has 268435456"):
        candelabra.empty(300_000_000, device="minic")
    assert (candelabra.ones(2, device="minic") + 1).tolist() == [2.0, 2.0]


def test_operator_without_kernel_or_composite():
    with pytest.raises(NotImplementedError, match=r"sort has no kernel on device minic"):
        candelabra.sort(candelabra.ones(3, device="minic"))


def test_dtype_without_kernel():
    with pytest.raises(NotImplementedError, match="\"mul\" not implemented for 'Long' on device minic"):
        candelabra.ones(3, dtype=candelabra.int64).to("minic") * 2


def test_kernel_that_returns_an_error():
    with pytest.raises(
        NotImplementedError, match="divides without a rounding mode only, not with rounding_mode='floor'"
    ):
        candelabra.div(candelabra.ones(3, device="minic"), 2.0, rounding_mode="floor")


def test_kernel_that_raises():
    with pytest.raises(RuntimeError, match="index 9 is out of bounds"):
        candelabra.gather(candelabra.ones(3, device="numpy"), 0, candelabra.tensor([9], device="numpy"))
    assert candelabra.ones(2, device="numpy").sum().item() == 2


@pytest.mark.parametrize("pair", [("cpu", "numpy"), ("numpy", "minic"), ("minic", "cpu")])
def test_tensors_on_two_devices(pair):
    a, b = (candelabra.ones(3, device=device) for device in pair)
    with pytest.raises(RuntimeError, match=r"Expected all tensors to be on the same device.*argument 'other' of add"):
        a + b
    assert (a + a).tolist() == [2.0, 2.0, 2.0]


def test_composites_fall_back():
    x = candelabra.tensor([[1.0, 2.0, 3.0]], device="numpy")
    assert not candelabra.ops.softmax.has_kernel("numpy")
    np.testing.assert_allclose(np.array(candelabra.softmax(x, 1).tolist()).sum(), 1.0, rtol=1e-6)


ALONE = """
import importlib.metadata

found = importlib.metadata.entry_points
importlib.metadata.entry_points = lambda **asked: [entry for entry in found(**asked) if entry.name != "cpu"]

import candelabra
from candelabra.testing import conformance

assert "cpu" not in candelabra.backends.installed()
outcomes = conformance.run("numpy", ["add", "sum", "uniform_"])
assert [outcome.state for outcome in outcomes] == ["passed"] * 3, outcomes
"""


def test_a_backend_is_verified_where_it_is_the_only_one():
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
