"""Runs each test with descriptors as it found them, and where asked with both strategies."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import candelabra.multiprocessing as mp


@pytest.fixture(params=sorted(mp.get_all_sharing_strategies()))
def strategy(request):
    """Each sharing strategy in turn."""
    before = mp.get_sharing_strategy()
    mp.set_sharing_strategy(request.param)
    yield request.param
    mp.set_sharing_strategy(before)
    gc.collect()
