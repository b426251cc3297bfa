"""Tests import what they share from this folder."""

import sys
from pathlib import Path

import pytest

import candelabra

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _seeded():
    candelabra.manual_seed(0)
