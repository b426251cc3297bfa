"""Share fixtures: a private folder for shared memory, and each sharing strategy."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import candelabra.multiprocessing as mp
from candelabra.multiprocessing import named_files


@pytest.fixture(scope="session", autouse=True)
def own_files():
    """Use a private folder, so that counts exclude other programs and concurrent test runs."""
    before = named_files.ROOT
    named_files.ROOT = os.environ["CANDELABRA_SHARED_MEMORY"] = tempfile.mkdtemp(dir=before)
    yield
    shutil.rmtree(named_files.ROOT)
    named_files.ROOT = before
    del os.environ["CANDELABRA_SHARED_MEMORY"]


@pytest.fixture(params=sorted(mp.get_all_sharing_strategies()))
def strategy(request):
    """Run the test with each sharing strategy."""
    before = mp.get_sharing_strategy()
    mp.set_sharing_strategy(request.param)
    yield request.param
    mp.set_sharing_strategy(before)
    gc.collect()
