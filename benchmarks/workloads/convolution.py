"""Convolution layers: inference, and forward with backward."""

from __future__ import annotations

from typing import Any

from ..inputs import Input, normal
from ..workload import Workload, layer


def _convolution(
    name: str, inputs: Input, channels: int, kernel: int, positions: int, backward: bool = False, **options: Any
) -> Workload:
    """Make a workload of a layer with these numbers of output channels and output positions."""
    dimensions = len(inputs.shape) - 2
    groups = options.get("groups", 1)
    operations = (
        2.0
        * inputs.shape[0]
        * positions
        * channels
        * inputs.shape[1]
        // groups
        * kernel**dimensions
        * (3 if backward else 1)
    )
    dtype = inputs.dtype

    def build(xp: Any) -> Any:
        module = getattr(xp.nn, f"Conv{dimensions}d")(inputs.shape[1], channels, kernel, **options)
        return module.to(getattr(xp, dtype))

    rate = "bfloat16" if dtype == "bfloat16" else "float32"
    tolerance = 3e-2 if dtype == "bfloat16" else 1e-3
    return layer(name, build, inputs, backward=backward, operations=operations, rate=rate, tolerance=tolerance)


LARGE, P = normal(16, 64, 56, 56), 56 * 56

WORKLOADS = [
    _convolution("3x3, 1 x 3 x 32 x 32 to 16", normal(1, 3, 32, 32), 16, 3, 1024, padding=1),
    _convolution("3x3, 1 x 64 x 56 x 56", normal(1, 64, 56, 56), 64, 3, P, padding=1),
    _convolution("3x3, 16 x 64 x 56 x 56", LARGE, 64, 3, P, padding=1),
    _convolution("3x3, 16 x 64 x 56 x 56, channels last", normal(16, 64, 56, 56, layout="channels_last"), 64, 3, P, padding=1),
    _convolution("3x3, 16 x 64 x 56 x 56, bfloat16", normal(16, 64, 56, 56, dtype="bfloat16"), 64, 3, P, padding=1),
    _convolution("3x3, 16 x 64 x 56 x 56, transposed memory", normal(16, 64, 56, 56, layout="transposed"), 64, 3, P, padding=1),
    _convolution("3x3, dilated by 2", LARGE, 64, 3, P, padding=2, dilation=2),
    _convolution("3x3, step 2", LARGE, 128, 3, 28 * 28, padding=1, stride=2),
    _convolution("3x3, 4 groups", LARGE, 64, 3, P, padding=1, groups=4),
    _convolution("3x3, depthwise", LARGE, 64, 3, P, padding=1, groups=64),
    _convolution("3x3, depthwise, 1 x 32 x 14 x 14", normal(1, 32, 14, 14), 32, 3, 196, padding=1, groups=32),
    _convolution("1x1, 16 x 64 x 56 x 56 to 256", LARGE, 256, 1, P),
    _convolution("7x7, step 2, 8 x 3 x 224 x 224", normal(8, 3, 224, 224), 64, 7, 112 * 112, padding=3, stride=2),
    _convolution("one dimension, 16 x 64 x 1000, 5", normal(16, 64, 1000), 64, 5, 1000, padding=2),
    _convolution("three dimensions, 2 x 16 x 16 x 32 x 32", normal(2, 16, 16, 32, 32), 16, 3, 16 * 1024, padding=1),
    _convolution("3x3, forward and backward, 4 x 16 x 14 x 14", normal(4, 16, 14, 14, grad=True), 16, 3, 196, True, padding=1),
    _convolution("3x3, forward and backward, 16 x 64 x 56 x 56", normal(16, 64, 56, 56, grad=True), 64, 3, P, True, padding=1),
    _convolution("depthwise, forward and backward", normal(16, 64, 56, 56, grad=True), 64, 3, P, True, padding=1, groups=64),
    _convolution("1x1, forward and backward", normal(16, 64, 56, 56, grad=True), 128, 1, P, True),
    layer(
        "transposed 2x2, step 2, 16 x 64 x 28 x 28", lambda xp: xp.nn.ConvTranspose2d(64, 64, 2, 2), normal(16, 64, 28, 28),
        operations=2.0 * 16 * 28 * 28 * 64 * 64 * 4, tolerance=1e-3,
    ),
    layer(
        "transposed 4x4, step 2, forward and backward, 8 x 64 x 16 x 16", lambda xp: xp.nn.ConvTranspose2d(64, 32, 4, 2, 1),
        normal(8, 64, 16, 16, grad=True), backward=True, operations=6.0 * 8 * 256 * 64 * 32 * 16, tolerance=1e-3,
    ),
    layer(
        "convolution, batch norm, relu, 16 x 64 x 56 x 56",
        lambda xp: xp.nn.Sequential(xp.nn.Conv2d(64, 64, 3, padding=1, bias=False), xp.nn.BatchNorm2d(64), xp.nn.ReLU()).eval(),
        LARGE, operations=2.0 * 16 * P * 64 * 64 * 9, tolerance=1e-3,
    ),
]  # fmt: skip
