"""Decompositions of activations and their gradients.

The ``*_backward`` decompositions are written with differentiable operators: they are what second
derivatives go through. Half precisions are computed in float32, as fused kernels do.
"""

from __future__ import annotations

import math

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..elementwise.elementwise import clamp, conjugate, narrow_to, wide
from ..registration import decomposes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor
    from candelabra.types import Number

_SQRT_HALF = math.sqrt(0.5)
_SQRT_2_OVER_PI = math.sqrt(2 / math.pi)
_INV_SQRT_2PI = 1 / math.sqrt(2 * math.pi)
_GELU_CUBIC = 0.044715

where = OPERATORS["where"]
exp = OPERATORS["exp"]
tanh = OPERATORS["tanh"]
sigmoid = OPERATORS["sigmoid"]
_add = OPERATORS["add"]
_sub = OPERATORS["sub"]


def _check_approximate(approximate: str) -> bool:
    if approximate not in ("none", "tanh"):
        raise RuntimeError(f"approximate argument must be either none or tanh, but got {approximate!r}.")
    return approximate == "tanh"


@decomposes("gelu")
def gelu(self: Tensor, *, approximate: str = "none") -> Tensor:
    x = wide(self)
    if _check_approximate(approximate):
        inner = _SQRT_2_OVER_PI * (x + _GELU_CUBIC * x * x * x)
        return narrow_to(0.5 * x * (1 + tanh(inner)), self.dtype)
    return narrow_to(0.5 * x * (1 + OPERATORS["erf"](x * _SQRT_HALF)), self.dtype)


@decomposes("gelu_backward")
def gelu_backward(grad: Tensor, self: Tensor, *, approximate: str = "none") -> Tensor:
    x, g = wide(self), wide(grad)
    if _check_approximate(approximate):
        square = x * x
        t = tanh(_SQRT_2_OVER_PI * (x + _GELU_CUBIC * square * x))
        slope = _SQRT_2_OVER_PI * (1 + 3 * _GELU_CUBIC * square)
        derivative = 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope
    else:
        cumulative = 0.5 * (1 + OPERATORS["erf"](x * _SQRT_HALF))
        derivative = cumulative + x * (exp(-0.5 * x * x) * _INV_SQRT_2PI)
    return narrow_to(g * derivative, self.dtype)


@decomposes("silu")
def silu(self: Tensor) -> Tensor:
    x = wide(self)
    return narrow_to(x * sigmoid(x), self.dtype)


@decomposes("silu_backward")
def silu_backward(grad: Tensor, self: Tensor) -> Tensor:
    x = wide(self)
    s = sigmoid(x)
    return narrow_to(wide(grad) * (s * (1 + x * (1 - s))), self.dtype)


@decomposes("softplus")
def softplus(self: Tensor, beta: Number = 1, threshold: float = 20) -> Tensor:
    x = wide(self)
    scaled = x * beta
    # Clamped, so that the unused branch stays finite and its gradient is zero instead of NaN.
    curved = OPERATORS["log1p"](exp(clamp(scaled, max=threshold))) / beta
    return narrow_to(where(scaled > threshold, x, curved), self.dtype)


@decomposes("mish")
def mish(self: Tensor) -> Tensor:
    x = wide(self)
    return narrow_to(x * tanh(softplus(x)), self.dtype)


@decomposes("log_sigmoid")
def log_sigmoid(self: Tensor) -> Tensor:
    # Beyond 40 the function equals its asymptote to double precision.
    return -softplus(-self, 1, 40)


@decomposes("elu")
def elu(self: Tensor, alpha: Number = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    x = wide(self)
    negative = OPERATORS["expm1"](clamp(x, max=0) * input_scale) * (alpha * scale)
    return narrow_to(where(x > 0, x * scale, negative), self.dtype)


@decomposes("logit")
def logit(self: Tensor, eps: float | None = None) -> Tensor:
    if not (self.dtype.is_floating_point or self.dtype.is_complex):
        self = narrow_to(self, _C.get_default_dtype())
    x = wide(self)
    if eps is not None and eps >= 0:
        x = where(x < eps, eps, where(x > 1 - eps, 1 - eps, x))
    return narrow_to(OPERATORS["log"](x / (1 - x)), self.dtype)


@decomposes("leaky_relu")
def leaky_relu(self: Tensor, negative_slope: float = 0.01) -> Tensor:
    return where(self > 0, self, self * negative_slope)


@decomposes("hardtanh")
def hardtanh(self: Tensor, min_val: Number = -1, max_val: Number = 1) -> Tensor:
    # Not clamp, whose gradient at its bounds is not zero.
    return where(self <= min_val, min_val, where(self >= max_val, max_val, self))


@decomposes("hardtanh_backward")
def hardtanh_backward(grad: Tensor, self: Tensor, min_val: Number = -1, max_val: Number = 1) -> Tensor:
    return where((self <= min_val) | (self >= max_val), 0, grad)


@decomposes("hardswish")
def hardswish(self: Tensor) -> Tensor:
    x = wide(self)
    return narrow_to(x * hardtanh(x + 3, 0, 6) / 6, self.dtype)


@decomposes("hardswish_backward")
def hardswish_backward(grad: Tensor, self: Tensor) -> Tensor:
    x, g = wide(self), wide(grad)
    return narrow_to(where(x <= -3, 0, where(x < 3, g * (x / 3 + 0.5), g)), self.dtype)


@decomposes("hardsigmoid")
def hardsigmoid(self: Tensor) -> Tensor:
    return narrow_to(hardtanh(wide(self) + 3, 0, 6) / 6, self.dtype)


@decomposes("hardsigmoid_backward")
def hardsigmoid_backward(grad: Tensor, self: Tensor) -> Tensor:
    return where((self > -3) & (self < 3), grad / 6, 0)


def _is_near(x: Tensor, limit: Number) -> Tensor:
    return (x >= -limit) & (x <= limit)


@decomposes("hardshrink")
def hardshrink(self: Tensor, lambd: Number = 0.5) -> Tensor:
    return where(_is_near(self, lambd), 0, self)


@decomposes("softshrink")
def softshrink(self: Tensor, lambd: Number = 0.5) -> Tensor:
    # self * 0 instead of 0, so that NaN propagates.
    return where(self > lambd, self - lambd, where(self < -lambd, self + lambd, self * 0))


@decomposes("shrink_backward")
def shrink_backward(grad: Tensor, self: Tensor, lambd: Number = 0.5) -> Tensor:
    return where(_is_near(self, lambd), 0, grad)


@decomposes("threshold")
def threshold(self: Tensor, threshold: Number, value: Number) -> Tensor:
    return where(self <= threshold, value, self)


@decomposes("prelu")
def prelu(self: Tensor, weight: Tensor) -> Tensor:
    return where(self > 0, self, weight * self)


@decomposes("leaky_relu_backward")
def leaky_relu_backward(grad: Tensor, self: Tensor, negative_slope: float = 0.01) -> Tensor:
    return where(self > 0, grad, grad * negative_slope)


@decomposes("elu_backward")
def elu_backward(grad: Tensor, self: Tensor, alpha: Number = 1, scale: Number = 1, input_scale: Number = 1) -> Tensor:
    x, g = wide(self), wide(grad)
    # The exponential of positive numbers is unused, but must not overflow: 0 * inf would be NaN in
    # the second derivative.
    below = g * (exp(where(x > 0, 0, x) * input_scale) * (alpha * scale * input_scale))
    return narrow_to(where(x > 0, g * scale, below), self.dtype)


@decomposes("softplus_backward")
def softplus_backward(grad: Tensor, self: Tensor, beta: Number = 1, threshold: float = 20) -> Tensor:
    g, scaled = wide(grad), wide(self) * beta
    return narrow_to(where(scaled > threshold, g, g * sigmoid(scaled)), self.dtype)


@decomposes("log_sigmoid_backward")
def log_sigmoid_backward(grad: Tensor, self: Tensor) -> Tensor:
    return narrow_to(wide(grad) * sigmoid(-wide(self)), self.dtype)


@decomposes("mish_backward")
def mish_backward(grad: Tensor, self: Tensor) -> Tensor:
    x = wide(self)
    squashed = tanh(softplus(x))
    return narrow_to(wide(grad) * (squashed + x * sigmoid(x) * (1 - squashed * squashed)), self.dtype)


@decomposes("threshold_backward")
def threshold_backward(grad: Tensor, self: Tensor, threshold: float) -> Tensor:
    return where(self <= threshold, 0, grad)


@decomposes("sigmoid_backward")
def sigmoid_backward(grad: Tensor, output: Any) -> Tensor:
    if output.dtype.is_complex:
        return grad * conjugate((1 - output) * output)
    y = wide(output)
    return narrow_to(wide(grad) * ((1 - y) * y), output.dtype)


@decomposes("tanh_backward")
def tanh_backward(grad: Tensor, output: Any) -> Tensor:
    if output.dtype.is_complex:
        return grad * conjugate(1 - output * output)
    y = wide(output)
    return narrow_to(wide(grad) * (1 - y * y), output.dtype)
