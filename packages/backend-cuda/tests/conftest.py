"""Fixtures that skip tests which need a GPU, with the reason, if there is none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import candelabra
from candelabra import _C


def reason_without_gpu() -> str | None:
    """Return why no GPU can be used, or None if one can."""
    try:
        candelabra.cuda.init()
    except candelabra.BackendError as error:
        return str(error)
    except RuntimeError as error:
        return str(error)
    return None


@pytest.fixture
def core_headers(tmp_path: Path) -> Path | None:
    """Return the headers that backends compile against, or None outside of the repository."""
    writer = Path(__file__).parents[2] / "tensor-core" / "tools" / "make_headers.py"
    if not writer.exists():
        return None
    folder = tmp_path / "core_headers"
    subprocess.run([sys.executable, str(writer), "--with-headers", str(folder)], check=True)
    return folder


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "same_as_cpu: compares with what candelabra-backend-cpu computes; skipped where another backend of the host stands in its place, or none",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip comparisons at the edges of functions if candelabra-backend-cpu is not there to compare
    with.
    """
    if "cpu" in candelabra.backends.installed():
        candelabra.backends.load("cpu")
        if _C.backend_info("cpu")["compiled"]:
            return
    for item in items:
        if item.get_closest_marker("same_as_cpu") is not None:
            item.add_marker(pytest.mark.skip(reason="compares with candelabra-backend-cpu, which is not there"))


def pytest_report_header() -> str:
    why = reason_without_gpu()
    return "cuda: " + (
        candelabra.cuda.get_device_name() if why is None else f"tests that need a GPU are skipped: {why}"
    )


@pytest.fixture(scope="session")
def cuda() -> candelabra.device:
    """The first GPU."""
    why = reason_without_gpu()
    if why is not None:
        pytest.skip(f"needs a GPU: {why}")
    return candelabra.device("cuda", 0)


def is_emulated() -> bool:
    """Return whether the GPUs are emulated (tests/emulation). Then several ranks may share one, and
    driver failures can be provoked.
    """
    return candelabra.cuda.is_available() and candelabra.cuda.get_device_name() == "Emulated device"


@pytest.fixture(scope="session")
def on_emulation() -> bool:
    """Return whether the GPUs are emulated."""
    return is_emulated()


@pytest.fixture(scope="session")
def emulated(cuda: candelabra.device, on_emulation: bool) -> candelabra.device:
    """Return the first GPU, which must be emulated: real drivers cannot be made to fail."""
    if not on_emulation:
        pytest.skip("needs the emulated device (tests/emulation)")
    return cuda
