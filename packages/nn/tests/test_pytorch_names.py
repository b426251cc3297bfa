"""What PyTorch has under two names."""

from __future__ import annotations

import pytest

import candelabra
from candelabra import assembly
from candelabra.nn import functional as F


@pytest.mark.parametrize("name", sorted(assembly.NN_FUNCTIONS))
def test_functions_of_the_package(name):
    assert getattr(candelabra, name) is getattr(F, name)
