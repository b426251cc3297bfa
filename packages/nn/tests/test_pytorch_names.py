"""Test PyTorch's aliases."""

from __future__ import annotations

import pytest

import candelabra
from candelabra import assembly
from candelabra.nn import functional as F


@pytest.mark.parametrize("name", sorted(assembly.NN_FUNCTIONS))
def test_functions_of_the_package(name):
    assert getattr(candelabra, name) is getattr(F, name)


@pytest.mark.parametrize("name", sorted(assembly.NATIVE_FUNCTIONS))
def test_functions_of_the_package_in_their_own_spelling(name):
    assert getattr(candelabra, name) is getattr(F.native, name)
    assert name in F.native.__all__
