"""Run the examples in the docstrings."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import candelabra.distributed


def test_examples_run():
    names = [found.name for found in pkgutil.walk_packages(candelabra.distributed.__path__, "candelabra.distributed.")]
    results = [doctest.testmod(importlib.import_module(name)) for name in names if not name.endswith("__main__")]
    assert sum(result.attempted for result in results) > 60
    assert sum(result.failed for result in results) == 0
