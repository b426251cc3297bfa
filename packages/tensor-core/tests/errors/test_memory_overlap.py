"""Copies between parts of one memory, which PyTorch refuses."""

from __future__ import annotations

import pytest

import candelabra

_REFUSED = "^unsupported operation: some elements of the input tensor and the written-to tensor refer to a single"


def test_a_copy_to_overlapping_memory_is_refused():
    x = candelabra.arange(5.0)
    with pytest.raises(RuntimeError, match=_REFUSED):
        x[1:].copy_(x[:-1])
    with pytest.raises(RuntimeError, match=_REFUSED):
        x[1:] = x[:-1]
    square = candelabra.arange(4.0).view(2, 2)
    with pytest.raises(RuntimeError, match=_REFUSED):
        square.copy_(square.t())
    assert x.tolist() == [0, 1, 2, 3, 4]


def test_a_copy_to_itself_and_between_interleaved_elements():
    x = candelabra.arange(6.0)
    x.copy_(x)
    x[::2].copy_(x[1::2])
    assert x.tolist() == [1, 1, 3, 3, 5, 5]
