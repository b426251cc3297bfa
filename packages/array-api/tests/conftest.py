"""Tests import what they share from this folder."""

import sys
from pathlib import Path

import candelabra

sys.path.insert(0, str(Path(__file__).parent))


def pytest_configure() -> None:
    candelabra.manual_seed(0)
