"""Run the examples in the docstrings."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize(
    "name", ["export.dims", "export.exporting", "export.files", "export.program", "jit.files", "jit.recording"]
)
def test_examples_run(name):
    result = doctest.testmod(importlib.import_module(f"candelabra.{name}"))
    assert result.attempted > 0 and result.failed == 0
