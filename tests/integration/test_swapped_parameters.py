"""Gradients go on after parameters were swapped with converted ones."""

from __future__ import annotations

import pytest

import candelabra
from candelabra import nn
from candelabra.nn.modules.base.conversion import Conversion


def test_gradients_after_a_swap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Conversion, "_swaps", True)
    layer = nn.Linear(2, 2)
    layer(candelabra.ones(1, 2)).sum().backward()
    layer.double()
    layer(candelabra.ones(1, 2, dtype=candelabra.float64)).sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.tolist() == [[2, 2], [2, 2]]
