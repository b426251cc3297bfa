"""These tests use the default backend: candelabra-backend-cpu, if it is installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import candelabra
from candelabra.testing.on_device import *  # noqa: F403

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _recording():
    """Check that no test leaves grad mode off or inference mode on."""
    candelabra.manual_seed(0)
    yield
    assert candelabra.is_grad_enabled()
    assert not candelabra.is_inference_mode_enabled()
