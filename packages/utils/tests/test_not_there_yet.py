"""Test the errors for features that this version does not have."""

import importlib

import pytest


def test_import_and_clear_error():
    module = importlib.import_module("candelabra.utils")
    assert module.__version__ == "0.1.0"
    with pytest.raises(AttributeError, match="candelabra-utils does not have it"):
        module.mobile_optimizer


def test_missing_dunder_is_an_ordinary_attribute_error():
    module = importlib.import_module("candelabra.utils")
    with pytest.raises(AttributeError, match="has no attribute '__wrapped__'"):
        module.__wrapped__


def test_importing_what_is_not_there_says_so():
    with pytest.raises(
        ModuleNotFoundError,
        match="candelabra.utils.mobile_optimizer is not there yet: version 0.1.0 of candelabra-utils",
    ):
        importlib.import_module("candelabra.utils.mobile_optimizer")
    with pytest.raises(ModuleNotFoundError, match="candelabra.utils.bottleneck is not there yet"):
        from candelabra.utils.bottleneck import main  # noqa: F401
