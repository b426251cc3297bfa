"""Layers compared with those of nn that have the same parameters."""

from __future__ import annotations

from typing import Any

import pytest

import candelabra
from candelabra import nn as modern
from candelabra.legacy import nn
from candelabra.testing import assert_close

PAIRS: list[tuple[Any, Any, tuple[int, ...]]] = [
    (nn.Linear(4, 3), modern.Linear(4, 3), (5, 4)),
    (nn.SpatialConvolution(3, 4, 2, 3, 2, 1, 0, 1), modern.Conv2d(3, 4, (3, 2), (1, 2), (1, 0)), (2, 3, 6, 7)),
    (nn.SpatialDilatedConvolution(3, 4, 3, 3, 1, 1, 1, 1, 2, 1), modern.Conv2d(3, 4, 3, 1, 1, (1, 2)), (2, 3, 6, 7)),
    (nn.SpatialFullConvolution(3, 4, 2, 3, 2, 3, 0, 1, 1, 2), modern.ConvTranspose2d(3, 4, (3, 2), (3, 2), (1, 0), (2, 1)), (2, 3, 4, 5)),
    (nn.VolumetricConvolution(2, 3, 1, 2, 3), modern.Conv3d(2, 3, (1, 3, 2)), (1, 2, 3, 4, 5)),
    (nn.VolumetricFullConvolution(2, 3, 1, 2, 3, 2, 1, 1), modern.ConvTranspose3d(2, 3, (1, 3, 2), (2, 1, 1)), (1, 2, 3, 4, 5)),
    (nn.BatchNormalization(4), modern.BatchNorm1d(4), (5, 4)),
    (nn.SpatialBatchNormalization(3, 1e-3, 0.3), modern.BatchNorm2d(3, 1e-3, 0.3), (2, 3, 4, 4)),
    (nn.SpatialMaxPooling(2, 3, 1, 2), modern.MaxPool2d((3, 2), (2, 1)), (2, 3, 6, 7)),
    (nn.SpatialAveragePooling(2, 3, 1, 2), modern.AvgPool2d((3, 2), (2, 1)), (2, 3, 6, 7)),
    (nn.VolumetricMaxPooling(1, 2, 3), modern.MaxPool3d((1, 3, 2)), (2, 3, 4, 6, 6)),
    (nn.SpatialAdaptiveMaxPooling(2, 3), modern.AdaptiveMaxPool2d((3, 2)), (2, 3, 6, 7)),
    (nn.SpatialCrossMapLRN(3, 0.1, 0.6, 2), modern.LocalResponseNorm(3, 0.1, 0.6, 2), (2, 5, 3, 3)),
    (nn.SpatialUpSamplingNearest(2), modern.UpsamplingNearest2d(scale_factor=2), (2, 3, 4, 5)),
    (nn.SpatialUpSamplingBilinear(2), modern.UpsamplingBilinear2d(scale_factor=2), (2, 3, 4, 5)),
    (nn.SpatialReflectionPadding(1, 2, 3, 2), modern.ReflectionPad2d((1, 2, 3, 2)), (2, 3, 5, 5)),
    (nn.PReLU(3), modern.PReLU(3), (2, 3, 4, 4)),
    (nn.SoftMax(), modern.Softmax(1), (3, 4)),
    (nn.LogSoftMax(), modern.LogSoftmax(1), (3, 4)),
    (nn.SoftPlus(2), modern.Softplus(2), (3, 4)),
    (nn.ELU(0.7), modern.ELU(0.7), (3, 4)),
    (nn.HardShrink(0.3), modern.Hardshrink(0.3), (3, 4)),
    (nn.LogSigmoid(), modern.LogSigmoid(), (3, 4)),
    (nn.PixelShuffle(2), modern.PixelShuffle(2), (1, 8, 3, 3)),
]  # fmt: skip


@pytest.mark.parametrize("old, new, shape", PAIRS, ids=[type(old).__name__ for old, _, _ in PAIRS])
def test_outputs_and_gradients_are_those_of_nn(old: Any, new: Any, shape: tuple[int, ...]) -> None:
    parameters, gradients = old.parameters() or ([], [])
    with candelabra.no_grad():
        for parameter, own in zip(parameters, new.parameters(), strict=True):
            own.copy_(parameter.view(own.shape))
    value = candelabra.randn(*shape)
    recorded = value.clone().requires_grad_()
    expected = new(recorded)
    output = old.forward(value)
    assert_close(output, expected.detach())
    seed = candelabra.randn_like(output)
    expected.backward(seed)
    assert_close(old.backward(value, seed), recorded.grad)
    for gradient, own in zip(gradients, new.parameters(), strict=True):
        assert_close(gradient, own.grad.view(gradient.shape))


def test_bilinear() -> None:
    old, new = nn.Bilinear(2, 3, 4), modern.Bilinear(2, 3, 4)
    new.load_state_dict({"weight": old.weight, "bias": old.bias})
    pair = [candelabra.randn(5, 2), candelabra.randn(5, 3)]
    assert_close(old.forward(pair), new(*pair).detach())


def test_temporal_convolution_takes_frames() -> None:
    old, value = nn.TemporalConvolution(4, 3, 2), candelabra.randn(6, 4)
    output = old.forward(value)
    # A row of the weight is for two whole frames.
    assert_close(output[1], old.weight @ value[1:3].reshape(-1) + old.bias)


def test_local_convolution_has_a_kernel_for_each_position() -> None:
    old, value = nn.SpatialConvolutionLocal(2, 3, 4, 4, 3, 3), candelabra.randn(2, 4, 4)
    output = old.forward(value)
    window = value[:, 1:4, 0:3]
    assert_close(output[:, 1, 0], (old.weight[1, 0] * window).sum((1, 2, 3)) + old.bias[:, 1, 0])
    with pytest.raises(RuntimeError, match="expected images of the shape"):
        old.forward(candelabra.randn(2, 5, 4))


def test_convolution_maps_connect_planes() -> None:
    table = nn.SpatialConvolutionMap.maps.oneToOne(3)
    old, value = nn.SpatialConvolutionMap(table, 2, 2), candelabra.randn(1, 3, 5, 5)
    expected = modern.functional.conv2d(value, old.weight.unsqueeze(1), old.bias, groups=3)
    assert_close(old.forward(value), expected)
    old = nn.SpatialFullConvolutionMap(table, 2, 2)
    expected = modern.functional.conv_transpose2d(value, old.weight.unsqueeze(1), old.bias, groups=3)
    assert_close(old.forward(value), expected)
    random = nn.SpatialConvolutionMap.maps.random(6, 4, 3)
    assert random.shape == (12, 2) and random[:, 1].long().bincount().tolist() == [3] * 4
    assert random[:, 0].long().bincount().tolist() == [2] * 6
    with pytest.raises(ValueError, match="1 to 2 inputs"):
        nn.SpatialConvolutionMap.maps.random(2, 4, 3)


def test_subtractive_normalization_has_no_mean_of_constants() -> None:
    value = candelabra.full((1, 2, 9, 9), 3.0)
    assert nn.SpatialSubtractiveNormalization(2, candelabra.rand(5, 3)).forward(value).abs().max() < 1e-5
    divided = nn.SpatialDivisiveNormalization(2, candelabra.rand(5, 5)).forward(value)
    assert_close(divided[..., 4, 4], candelabra.ones(1, 2))


def test_depth_concat_centres_smaller_outputs() -> None:
    net = nn.DepthConcat(0).add(nn.Identity()).add(nn.Sequential().add(nn.Narrow(1, 0, 2)).add(nn.Narrow(2, 0, 2)))
    value = candelabra.ones(1, 5, 5)
    output = net.forward(value)
    assert output.shape == (2, 5, 5) and output[1].sum() == 4 and output[1, 1:3, 1:3].sum() == 4
