"""Convolution by ATen's names: ``conv2d``, which it is compared with, comes with candelabra-nn."""

import pytest

import candelabra

aten = candelabra.ops.aten


@pytest.mark.parametrize("name", ["convolution", "_convolution"])
def test_convolution_takes_atens_arguments(name):
    settings = [False, False, True, True] if name == "_convolution" else []
    image, weight = candelabra.arange(16.0).reshape(1, 1, 4, 4), candelabra.ones(1, 1, 3, 3)
    geometry = ([1, 1], [0, 0], [1, 1])
    found = getattr(aten, name).default(image, weight, None, *geometry, False, [0, 0], 1, *settings)
    assert candelabra.equal(found, candelabra.conv2d(image, weight))
    turned = getattr(aten, name).default(image, weight, None, *geometry, True, [0, 0], 1, *settings)
    assert candelabra.equal(turned, candelabra.conv_transpose2d(image, weight))
