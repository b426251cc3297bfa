"""Test PyTorch's aliases."""

from __future__ import annotations

import pytest

import candelabra
from candelabra import assembly, nn
from candelabra.nn import functional as F


@pytest.mark.parametrize("name", sorted(assembly.NN_FUNCTIONS))
def test_functions_of_the_package(name):
    assert getattr(candelabra, name) is getattr(F, name)


@pytest.mark.parametrize("name", sorted(assembly.NATIVE_FUNCTIONS))
def test_functions_of_the_package_in_their_own_spelling(name):
    assert getattr(candelabra, name) is getattr(F.native, name)
    assert name in F.native.__all__


def test_modules_call_the_functions_that_a_program_replaces(monkeypatch):
    called = []
    for name in ("max_pool2d", "conv2d", "avg_pool2d", "relu"):
        function = getattr(F, name)
        monkeypatch.setattr(
            F, name, lambda *given, _f=function, _n=name, **named: (called.append(_n), _f(*given, **named))[1]
        )
    nn.Sequential(nn.Conv2d(1, 1, 3), nn.ReLU(), nn.MaxPool2d(2), nn.AvgPool2d(1))(candelabra.ones(1, 1, 8, 8))
    assert called == ["conv2d", "relu", "max_pool2d", "avg_pool2d"]
