"""Sample arguments for activations and elementwise losses, away from the kinks."""

from __future__ import annotations

from typing import Any


def call(*arguments: Any) -> Any:
    return arguments, {}


def _one(*numbers: float) -> Any:
    return lambda d: [call(d.away(4), *numbers), call(d.away(2, 3), *numbers)]


def _pair(*numbers: float) -> Any:
    return lambda d: [call(d(4), d.away(4), *numbers)]


def _error(*numbers: float) -> Any:
    return lambda d: [call(d(4), d(4), *numbers), call(d(2, 3), d(3), *numbers)]


def _slope(*numbers: float) -> Any:
    return lambda d: [call(d(4), d(4), d(4), *numbers)]


SAMPLERS: dict[str, Any] = {
    "hardtanh": _one(-0.05, 0.03), "hardswish": _one(), "hardsigmoid": _one(), "hardshrink": _one(0.05), "softshrink": _one(0.05),
    "threshold": _one(0.0, 7.0), "prelu": lambda d: [call(d.away(2, 3), d(3)), call(d.away(4), d(4))],
    "hardtanh_backward": _pair(-0.05, 0.03), "hardswish_backward": _pair(), "hardsigmoid_backward": _pair(), "shrink_backward": _pair(0.05),
    "leaky_relu_backward": _pair(0.2), "elu_backward": _pair(0.7, 1.3, 0.9), "softplus_backward": _pair(2.0, 5.0),
    "log_sigmoid_backward": _pair(), "mish_backward": _pair(),
    "squared_error": _error(), "huber_error": _error(7.0, 0.5), "logits_cross_entropy": _error(),
    "probability_cross_entropy": lambda d: [call(d.positive(4, low=0.2, high=0.8), d(4))],
    "squared_error_backward": _slope(), "huber_error_backward": _slope(7.0, 0.5), "logits_cross_entropy_backward": _slope(),
    "probability_cross_entropy_backward": lambda d: [call(d(4), d.positive(4, low=0.2, high=0.8), d(4))],
}  # fmt: skip
