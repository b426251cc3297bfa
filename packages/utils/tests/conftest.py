"""These tests use the default backend, or the one that CANDELABRA_TEST_DEVICE names."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from candelabra.testing.on_device import *  # noqa: F403


@pytest.fixture(scope="module")
def extension_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Build C and C++ operators in a separate folder for each test module."""
    folder = tmp_path_factory.mktemp("extensions")
    before = os.environ.get("CANDELABRA_EXTENSIONS_DIR")
    os.environ["CANDELABRA_EXTENSIONS_DIR"] = str(folder)
    yield folder
    if before is None:
        del os.environ["CANDELABRA_EXTENSIONS_DIR"]
    else:
        os.environ["CANDELABRA_EXTENSIONS_DIR"] = before
