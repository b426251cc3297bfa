"""Test channels-last networks: every layer keeps the format, and none copies its input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import candelabra
from candelabra import nn

CHANNELS = 64
LAYERS: dict[str, Callable[[], nn.Module]] = {
    "3x3": lambda: nn.Conv2d(CHANNELS, 24, 3, 1, 1),
    "3x3, step 2": lambda: nn.Conv2d(CHANNELS, CHANNELS, 3, 2, 1),
    "3x3, dilated": lambda: nn.Conv2d(CHANNELS, CHANNELS, 3, 1, 2, dilation=2),
    "1x1": lambda: nn.Conv2d(CHANNELS, 128, 1),
    "1x1, step 2": lambda: nn.Conv2d(CHANNELS, 128, 1, 2),
    "groups": lambda: nn.Conv2d(CHANNELS, CHANNELS, 3, 1, 1, groups=4),
    "depthwise": lambda: nn.Conv2d(CHANNELS, CHANNELS, 3, 1, 1, groups=CHANNELS),
    "batch norm, evaluation": lambda: nn.BatchNorm2d(CHANNELS).eval(),
    "batch norm, training": lambda: nn.BatchNorm2d(CHANNELS),
    "relu": nn.ReLU,
    "relu6": nn.ReLU6,
    "silu": nn.SiLU,
    "hardswish": nn.Hardswish,
    "max pooling": lambda: nn.MaxPool2d(3, 2, 1),
    "average pooling": lambda: nn.AvgPool2d(2),
    "adaptive pooling": lambda: nn.AdaptiveAvgPool2d(4),
    "nearest": lambda: nn.Upsample(scale_factor=2),
    "padding": lambda: nn.ZeroPad2d(1),
}


def images() -> Any:
    candelabra.manual_seed(0)
    return candelabra.randn(8, CHANNELS, 32, 32).to(memory_format=candelabra.channels_last)


def call_and_measure(function: Callable[[Any], Any], x: Any) -> tuple[Any, float]:
    """Return a result, and the peak of additional memory, without that of the result, relative to
    the input's size.
    """
    for _ in range(3):  # warm up: create primitives and pack weights
        function(x)
    candelabra.backends.reset_peak_statistics("cpu")
    before = candelabra.backends.memory_statistics("cpu")["allocated"]
    result = function(x)
    peak = candelabra.backends.memory_statistics("cpu")["allocated_peak"]
    size = x.element_size()
    return result, (peak - before - size * result.numel()) / (size * x.numel())


@pytest.mark.parametrize(
    "weights", [candelabra.contiguous_format, candelabra.channels_last], ids=["plain", "channels last"]
)
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_keeps_the_order_without_a_copy(name: str, weights: Any) -> None:
    x, layer = images(), LAYERS[name]().to(memory_format=weights)
    with candelabra.no_grad():
        result, extra = call_and_measure(layer, x)
        expected = layer(x.contiguous())
    assert result.is_contiguous(memory_format=candelabra.channels_last)
    assert extra < 0.5
    assert candelabra.allclose(result, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "function",
    [lambda x: x + x, lambda x: x.add(x, alpha=2), lambda x: candelabra.cat([x, x], 1)],
    ids=["sum", "scaled sum", "cat"],
)
def test_several_images_keep_the_order_without_a_copy(function: Callable[[Any], Any]) -> None:
    result, extra = call_and_measure(function, images())
    assert result.is_contiguous(memory_format=candelabra.channels_last)
    assert extra < 0.1


class Residual(nn.Module):
    """He et al. 2016."""

    def __init__(self) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(CHANNELS, CHANNELS, 3, 1, 1, bias=False), nn.BatchNorm2d(CHANNELS), nn.ReLU(inplace=True),
            nn.Conv2d(CHANNELS, CHANNELS, 3, 1, 1, bias=False), nn.BatchNorm2d(CHANNELS),
        )  # fmt: skip
        self.shortcut = nn.Sequential(nn.Conv2d(CHANNELS, CHANNELS, 1, bias=False), nn.BatchNorm2d(CHANNELS))

    def forward(self, x: Any) -> Any:
        return nn.functional.relu(self.convolutions(x) + self.shortcut(x), inplace=True)


def test_a_chain_keeps_the_order_from_end_to_end() -> None:
    x, seen = images(), []
    network = nn.Sequential(Residual(), nn.MaxPool2d(2), Residual()).to(memory_format=candelabra.channels_last)
    for module in network.modules():
        module.register_forward_hook(
            lambda _, __, y: seen.append(y.is_contiguous(memory_format=candelabra.channels_last))
        )
    with candelabra.no_grad():
        expected = network.eval()(x.contiguous())
        seen.clear()
        result = network(x)
    assert all(seen)
    assert len(seen) > 10
    assert candelabra.allclose(result, expected, rtol=1e-4, atol=1e-4)
