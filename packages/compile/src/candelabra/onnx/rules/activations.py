"""Rules of activations."""

from __future__ import annotations

import math
from typing import Any

from ..builder import Builder, Value
from .table import rule


def _constant(b: Builder, value: float) -> str:
    return b.constant(value, b.result.dtype)


@rule("relu")
def _relu(b: Builder, self: Value) -> str:
    return b.op("Relu", self)


@rule("hardswish")
def _hardswish(b: Builder, self: Value) -> str:
    return b.op("HardSwish", self)


@rule("hardsigmoid")
def _hardsigmoid(b: Builder, self: Value) -> str:
    return b.op("HardSigmoid", self, alpha=1 / 6, beta=0.5)


@rule("hardtanh")
def _hardtanh(b: Builder, self: Value, min_val: float = -1, max_val: float = 1) -> str:
    return b.op("Clip", self, _constant(b, min_val), _constant(b, max_val))


@rule("leaky_relu")
def _leaky_relu(b: Builder, self: Value, negative_slope: float = 0.01) -> str:
    return b.op("LeakyRelu", self, alpha=float(negative_slope))


@rule("prelu")
def _prelu(b: Builder, self: Value, weight: Value) -> str:
    slope = b.name(weight)
    if weight.rank == 1 and self.rank > 1 and weight.shape[0] != 1:
        slope = b.reshape(weight, [weight.shape[0], *(1 for _ in range(self.rank - 2))])
    return b.op("PRelu", self, slope)


@rule("elu")
def _elu(b: Builder, self: Value, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> str:
    x = b.name(self)
    if input_scale == 1:
        found = b.op("Elu", x, alpha=float(alpha))
    else:
        inner = b.op("Elu", b.op("Mul", x, _constant(b, input_scale)), alpha=float(alpha))
        found = b.op("Where", b.op("Greater", x, _constant(b, 0)), x, inner)
    return found if scale == 1 else b.op("Mul", found, _constant(b, scale))


@rule("silu")
def _silu(b: Builder, self: Value) -> str:
    return b.op("Mul", self, b.op("Sigmoid", self))


@rule("mish")
def _mish(b: Builder, self: Value) -> str:
    return b.op("Mul", self, b.op("Tanh", b.op("Softplus", self)))


def gelu(b: Builder, x: str, approximate: str) -> str:
    """Return the activation, by its own operator where there is one."""
    if b.opset >= 20:
        return b.op("Gelu", x, approximate=approximate)
    if approximate == "tanh":
        cube = b.op("Mul", b.op("Mul", x, b.op("Mul", x, x)), _constant(b, 0.044715))
        inner = b.op("Tanh", b.op("Mul", b.op("Add", x, cube), _constant(b, math.sqrt(2 / math.pi))))
    else:
        inner = b.op("Erf", b.op("Mul", x, _constant(b, math.sqrt(0.5))))
    return b.op("Mul", b.op("Mul", x, _constant(b, 0.5)), b.op("Add", inner, _constant(b, 1)))


@rule("gelu")
def _gelu(b: Builder, self: Value, *, approximate: str = "none") -> str:
    return gelu(b, b.name(self), approximate)


@rule("softplus")
def _softplus(b: Builder, self: Value, beta: float = 1, threshold: float = 20) -> str:
    if beta == 1:
        # Beyond the threshold both agree within the rounding of float32.
        scaled, found = b.name(self), b.op("Softplus", self)
    else:
        scaled = b.op("Mul", self, _constant(b, beta))
        found = b.op("Div", b.op("Softplus", scaled), _constant(b, beta))
    return b.op("Where", b.op("Greater", scaled, _constant(b, threshold)), self, found)


@rule("log_sigmoid")
def _log_sigmoid(b: Builder, self: Value) -> str:
    return b.op("Neg", b.op("Softplus", b.op("Neg", self)))


@rule("threshold")
def _threshold(b: Builder, self: Value, threshold: Any, value: Any) -> str:
    return b.op("Where", b.op("Greater", self, _constant(b, threshold)), self, _constant(b, value))


@rule("hardshrink")
def _hardshrink(b: Builder, self: Value, lambd: float = 0.5) -> str:
    return b.op("Shrink", self, lambd=float(lambd), bias=0.0)


@rule("softshrink")
def _softshrink(b: Builder, self: Value, lambd: float = 0.5) -> str:
    return b.op("Shrink", self, lambd=float(lambd), bias=float(lambd))


@rule("softmax")
def _softmax(b: Builder, self: Value, dim: int, dtype: Any = None) -> str:
    return _over_dim(b, "Softmax", self, dim)


@rule("log_softmax")
def _log_softmax(b: Builder, self: Value, dim: int, dtype: Any = None) -> str:
    return _over_dim(b, "LogSoftmax", self, dim)


def _over_dim(b: Builder, kind: str, self: Value, dim: int) -> str:
    if self.rank == 0:
        return b.squeeze(b.op(kind, b.unsqueeze(b.as_dtype(self, b.result.dtype), 0), axis=0), 0)
    return b.op(kind, b.as_dtype(self, b.result.dtype), axis=dim)
