"""Run the examples in the docstrings."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize("name", ["", ".connections", ".contexts", ".spawning", ".strategies"])
def test_examples_run(name):
    result = doctest.testmod(importlib.import_module(f"candelabra.multiprocessing{name}"))
    assert result.attempted > 0 and result.failed == 0
