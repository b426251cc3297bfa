"""What this version is: an import name that says what is missing."""

import importlib

import pytest


def test_import_and_clear_error():
    module = importlib.import_module("candelabra.utils")
    assert module.__version__ == "0.1.0"
    with pytest.raises(AttributeError, match="candelabra-utils only reserves the place"):
        module.anything_at_all


def test_missing_dunder_is_an_ordinary_attribute_error():
    module = importlib.import_module("candelabra.utils")
    with pytest.raises(AttributeError, match="has no attribute '__wrapped__'"):
        module.__wrapped__
