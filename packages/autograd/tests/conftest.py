"""Tests of the tape compute on whatever backend is the default: candelabra-backend-cpu, where it is
installed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import candelabra
from candelabra.testing.on_device import *  # noqa: F403

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _recording():
    """No test may leave recording switched off, or inference mode on."""
    candelabra.manual_seed(0)
    yield
    assert candelabra.is_grad_enabled()
    assert not candelabra.is_inference_mode_enabled()
