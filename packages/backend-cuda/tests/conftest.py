"""Whether there is a GPU: tests that need one ask for the fixture `cuda` and are skipped, with the reason, where there is none."""

from __future__ import annotations

import pytest

import candelabra


def reason_without_gpu() -> str | None:
    """Return why no GPU can be used, or None where one can."""
    try:
        candelabra.cuda.init()
    except candelabra.BackendError as error:
        return str(error)
    except RuntimeError as error:
        return str(error)
    return None


def pytest_report_header() -> str:
    why = reason_without_gpu()
    return "cuda: " + (candelabra.cuda.get_device_name() if why is None else f"tests that need a GPU are skipped: {why}")


@pytest.fixture(scope="session")
def cuda() -> candelabra.device:
    """The first GPU."""
    why = reason_without_gpu()
    if why is not None:
        pytest.skip(f"needs a GPU: {why}")
    return candelabra.device("cuda", 0)
