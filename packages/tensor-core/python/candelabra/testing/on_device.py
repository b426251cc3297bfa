"""Runs a test suite on another device than the CPU: ``CANDELABRA_TEST_DEVICE=cuda pytest
packages/nn/tests``.

A suite takes part by a line in its ``conftest.py``::

    from candelabra.testing.on_device import *  # noqa: F403

Then the default device is this device, NumPy arrays become tensors of the device, and tensors are
copied to the host before they become arrays (which users of Candelabra must do themselves). Without
the variable nothing changes. Tests of the CPU or of host memory have the mark ``host_only(reason)``
and are skipped on a device.
"""

from __future__ import annotations

import os
from typing import Any

import numpy
import pytest

import candelabra
from candelabra import _C

__all__ = [
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_report_header",
    "tensors_on_the_test_device",
    "test_device",
]

#: The name of the device; empty for the CPU.
DEVICE = os.environ.get("CANDELABRA_TEST_DEVICE", "")
_installed: list[str] = []


def test_device() -> candelabra.device:
    """Return the device that the suite runs on."""
    return candelabra.device(DEVICE or "cpu")


test_device.__test__ = False  # type: ignore[attr-defined]


def _on_host(tensor: Any) -> bool:
    return tensor.device.type != candelabra.device(DEVICE).type


def _copied(tensor: Any) -> Any:
    """Return a copy of a tensor's values, through an interface that needs no CPU backend."""
    if tensor.requires_grad and candelabra.is_grad_enabled():
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    plain = tensor.detach()
    name = str(plain.dtype).rpartition(".")[2]
    if not hasattr(numpy, name) and name != "bool":
        raise TypeError(f"Got unsupported ScalarType {name}")
    dtype = numpy.dtype(name)
    return numpy.array(plain.tolist(), dtype=dtype).reshape(tuple(plain.shape))


def install(device: str) -> None:
    """Make conversions between tensors and arrays copy across devices, until the process ends."""
    if _installed:
        return
    _installed.append(device)
    candelabra.backends.load(candelabra.device(device).type)
    tensor: Any = _C.Tensor
    package: Any = candelabra
    to_numpy, to_array, from_numpy = tensor.numpy, tensor.__array__, candelabra.from_numpy

    def numpy_(self: Any, *, force: bool = False) -> Any:
        if _on_host(self):
            return to_numpy(self, force=force)
        return _copied(self.detach() if force else self)

    def array_(self: Any, dtype: Any = None, copy: Any = None) -> Any:
        if _on_host(self):
            return to_array(self, dtype, copy=copy) if copy is not None else to_array(self, dtype)
        made = _copied(self)
        return made if dtype is None else made.astype(dtype)

    def from_numpy_(array: Any) -> Any:
        return from_numpy(array).to(device)

    tensor.numpy, tensor.__array__, package.from_numpy = numpy_, array_, from_numpy_


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "host_only(reason): about the CPU or the host's memory; skipped on other devices"
    )
    if DEVICE:
        install(DEVICE)
        # Also for tensors that test modules create on import.
        candelabra.set_default_device(DEVICE)


def pytest_report_header() -> str | None:
    return f"candelabra: tensors are made on {DEVICE} (CANDELABRA_TEST_DEVICE)" if DEVICE else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not DEVICE:
        return
    for item in items:
        mark = item.get_closest_marker("host_only")
        if mark is not None:
            reason = mark.args[0] if mark.args else mark.kwargs.get("reason", "about the host's memory")
            item.add_marker(pytest.mark.skip(reason=f"on {DEVICE}: {reason}"))


@pytest.fixture(autouse=True)
def tensors_on_the_test_device() -> None:
    """Make the test device the default in each test."""
    if DEVICE:
        candelabra.set_default_device(DEVICE)
