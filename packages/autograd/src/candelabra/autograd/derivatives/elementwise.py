"""Gradients of arithmetic, mathematical and activation functions.

Complex formulas follow PyTorch's convention: the negative gradient of a real loss is the direction
of steepest descent. Factors are therefore conjugated.
"""

from __future__ import annotations

import math
from typing import Any

import candelabra
from candelabra import Tensor, ops, where

from ..table import derivative
from .parts import conj, masked, zeros_like

_LN2 = math.log(2)
_LN10 = math.log(10)


def _unchanged(grad: Tensor) -> Tensor:
    return grad


# ---- one argument

for _name in ("sign", "floor", "ceil", "trunc", "round"):
    derivative(_name, self=lambda grad: zeros_like(grad))

derivative("neg", self=lambda grad: -grad)
derivative("frac", self=_unchanged)
derivative("square", self=lambda grad, self: grad * (2 * conj(self)))
derivative("conj_physical", title="ConjPhysical", self=lambda grad: conj(grad))
derivative("relu", self=lambda grad, result: ops.threshold_backward(grad, result, 0))
derivative("nan_to_num", self=lambda grad, self: masked(grad, ~(self.isnan() | self.isinf())))


def _abs(grad: Tensor, self: Tensor) -> Tensor:
    return grad * self.sgn()


def _sgn(grad: Tensor, self: Tensor) -> Tensor:
    if not self.is_complex():
        return zeros_like(grad)
    # The component of grad perpendicular to z, divided by |z|.
    size = self.abs()
    zero = size == 0
    unit = self.sgn()
    across = (grad - (conj(unit) * grad).real * unit) / where(zero, 1, size)
    return masked(across, ~zero)


def _angle(grad: Tensor, self: Tensor) -> Tensor:
    if not self.is_complex():
        return zeros_like(grad)
    real, imag = self.real, self.imag
    zero = (real == 0) & (imag == 0)
    scaled = grad / where(zero, 1, real * real + imag * imag)
    return masked(ops_complex(-imag * scaled, real * scaled), ~zero)


def ops_complex(real: Tensor, imag: Tensor) -> Tensor:
    """Return a complex tensor with the given real and imaginary parts."""
    return candelabra.complex(real, imag)


derivative("abs", self=_abs)
derivative("sgn", self=_sgn)
derivative("angle", self=_angle)

# ---- one argument, floating-point results

derivative("exp", self=lambda grad, result: grad * conj(result))
derivative("exp2", self=lambda grad, result: grad * conj(result) * _LN2)
derivative("expm1", self=lambda grad, result: grad * (conj(result) + 1))
derivative("log", self=lambda grad, self: grad / conj(self))
derivative("log2", self=lambda grad, self: grad / (conj(self) * _LN2))
derivative("log10", self=lambda grad, self: grad / (conj(self) * _LN10))
derivative("log1p", self=lambda grad, self: grad / (conj(self) + 1))
derivative("sqrt", self=lambda grad, result: grad / (2 * conj(result)))
derivative("rsqrt", self=lambda grad, result: -0.5 * grad * conj(result) ** 3)
derivative("reciprocal", self=lambda grad, result: -grad * conj(result * result))
derivative("sin", self=lambda grad, self: grad * conj(self.cos()))
derivative("cos", self=lambda grad, self: grad * -conj(self.sin()))
derivative("tan", self=lambda grad, result: grad * conj(1 + result * result))
derivative("asin", self=lambda grad, self: grad * conj((1 - self * self).rsqrt()))
derivative("acos", self=lambda grad, self: grad * -conj((1 - self * self).rsqrt()))
derivative("atan", self=lambda grad, self: grad / conj(self * self + 1))
derivative("sinh", self=lambda grad, self: grad * conj(self.cosh()))
derivative("cosh", self=lambda grad, self: grad * conj(self.sinh()))
derivative("tanh", self=lambda grad, result: ops.tanh_backward(grad, result))
derivative("asinh", self=lambda grad, self: grad * conj((self * self + 1).rsqrt()))
derivative("acosh", self=lambda grad, self: grad * conj((self - 1).rsqrt() * (self + 1).rsqrt()))
derivative("atanh", self=lambda grad, self: grad / conj(1 - self * self))
derivative("sigmoid", self=lambda grad, result: ops.sigmoid_backward(grad, result))
derivative("erf", self=lambda grad, self: grad * ((2 / math.sqrt(math.pi)) * (-(self * self)).exp()))
derivative("erfc", self=lambda grad, self: grad * ((-2 / math.sqrt(math.pi)) * (-(self * self)).exp()))
derivative("erfinv", self=lambda grad, result: grad * ((math.sqrt(math.pi) / 2) * (result * result).exp()))
derivative("lgamma", self=lambda grad, self: grad * self.digamma())
derivative("digamma", self=lambda grad, self: grad * trigamma(self))


def trigamma(x: Tensor) -> Tensor:
    """Compute the derivative of digamma with differentiable operators.

    Arguments below 1/2 are reflected with ψ₁(x) = π²/sin²(πx) - ψ₁(1-x). The recurrence ψ₁(x) =
    ψ₁(x+1) + 1/x² then shifts the argument above 10, where the asymptotic series applies
    (Abramowitz and Stegun, 6.4.12).
    """
    left = x < 0.5
    y = where(left, 1 - x, x)
    total: Any = 0
    for step in range(10):
        shifted = y + step
        total = total + 1 / (shifted * shifted)
    z = y + 10
    inverse = 1 / z
    square = inverse * inverse
    series = square * (
        1 / 6 - square * (1 / 30 - square * (1 / 42 - square * (1 / 30 - square * (5 / 66 - square * (691 / 2730)))))
    )
    right = total + inverse * (1 + 0.5 * inverse + series)
    sine = (where(left, x, 0.5) * math.pi).sin()
    return where(left, (math.pi * math.pi) / (sine * sine) - right, right)


# ---- two arguments


def _scaled(grad: Tensor, alpha: Any) -> Tensor:
    return grad if alpha == 1 else grad * conj(alpha)


def _scaled_negative(grad: Tensor, alpha: Any) -> Tensor:
    return -grad if alpha == 1 else grad * -conj(alpha)


derivative("add", broadcast=True, self=_unchanged, other=_scaled)
derivative("sub", broadcast=True, self=_unchanged, other=_scaled_negative)
derivative("rsub", broadcast=True, self=_scaled_negative, other=_unchanged)
derivative(
    "mul", broadcast=True, self=lambda grad, other: grad * conj(other), other=lambda grad, self: grad * conj(self)
)


def _div_self(grad: Tensor, other: Any, rounding_mode: str | None) -> Tensor:
    return grad / conj(other) if rounding_mode is None else zeros_like(grad)


def _div_other(grad: Tensor, self: Any, other: Tensor, rounding_mode: str | None) -> Tensor:
    if rounding_mode is not None:
        return zeros_like(grad)
    return -grad * conj(self / other / other) if isinstance(self, Tensor) else -grad * conj(self / (other * other))


derivative("div", broadcast=True, self=_div_self, other=_div_other)
derivative("floor_divide", broadcast=True, self=lambda grad: zeros_like(grad), other=lambda grad: zeros_like(grad))
derivative(
    "remainder",
    broadcast=True,
    self=_unchanged,
    other=lambda grad, self, other: -grad * candelabra.div(self, other, rounding_mode="floor"),
)
derivative(
    "fmod",
    broadcast=True,
    self=_unchanged,
    other=lambda grad, self, other: -grad * candelabra.div(self, other, rounding_mode="trunc"),
)


def _pow_self(grad: Tensor, self: Tensor, exponent: Any) -> Tensor:
    if not isinstance(exponent, Tensor):
        if exponent == 0:
            return zeros_like(grad)
        if exponent == 1:
            return grad
        if exponent == 2:
            return grad * (2 * conj(self))
        return grad * conj(exponent * self ** (exponent - 1))
    # y * x^(y-1) is 0 for y = 0, whatever x is.
    return masked(grad * conj(exponent * self ** (exponent - 1)), exponent != 0)


def _pow_exponent(grad: Tensor, self: Any, exponent: Tensor, result: Tensor) -> Tensor:
    # 0^y is 0 for all real y > 0, and PyTorch also defines the derivative at y = 0 as 0.
    flat_at_zero = (exponent.imag == 0) & (exponent.real >= 0) if exponent.is_complex() else exponent >= 0
    if not isinstance(self, Tensor):
        if self == 0:
            return where(flat_at_zero, 0, grad * conj(result * float("-inf")))
        logarithm = (
            math.log(self) if not isinstance(self, complex) and self > 0 else _complex_or_nan_log(self, exponent)
        )
        return grad * conj(result * logarithm)
    flat = (self == 0) & flat_at_zero
    # The logarithm of a negative number is complex if the result is.
    base = where(flat, 1, self).to(result.dtype)
    return where(flat, 0, grad * conj(result * base.log()))


def _complex_or_nan_log(number: Any, other: Tensor) -> Any:
    if other.is_complex() or isinstance(number, complex):
        import cmath

        return cmath.log(number)
    return math.nan


derivative("pow", broadcast=True, self=_pow_self, exponent=_pow_exponent)


def _maximum(grad: Tensor, self: Tensor, other: Tensor) -> Tensor:
    """Return the gradient of maximum(); equal arguments share it.

    If an argument is NaN, both get the full gradient.
    """
    return where(self == other, grad / 2, masked(grad, ~(self < other)))


def _minimum(grad: Tensor, self: Tensor, other: Tensor) -> Tensor:
    return where(self == other, grad / 2, masked(grad, ~(self > other)))


derivative("maximum", broadcast=True, self=_maximum, other=lambda grad, self, other: _maximum(grad, other, self))
derivative("minimum", broadcast=True, self=_minimum, other=lambda grad, self, other: _minimum(grad, other, self))
derivative(
    "fmax", broadcast=True,
    self=lambda grad, self, other: masked(grad, (self >= other) | other.isnan()),
    other=lambda grad, self, other: masked(grad, ~((self >= other) | other.isnan())),
)  # fmt: skip
derivative(
    "fmin", broadcast=True,
    self=lambda grad, self, other: masked(grad, (self <= other) | other.isnan()),
    other=lambda grad, self, other: masked(grad, ~((self <= other) | other.isnan())),
)  # fmt: skip


def _atan2_self(grad: Tensor, self: Any, other: Any) -> Tensor:
    square = self * self + other * other
    return masked(grad * (other / square), square != 0)


def _atan2_other(grad: Tensor, self: Any, other: Any) -> Tensor:
    square = self * self + other * other
    return masked(grad * (-self / square), square != 0)


derivative("atan2", broadcast=True, self=_atan2_self, other=_atan2_other)
derivative(
    "hypot",
    broadcast=True,
    self=lambda grad, self, result: grad * (self / result),
    other=lambda grad, other, result: grad * (other / result),
)


def _copysign(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    # sgn(0) is 0, so the gradient is 0 at the jump.
    return grad * (result.sign() * self.sign())


derivative("copysign", broadcast=True, self=_copysign, other=lambda grad: zeros_like(grad))


def _xlogy_self(grad: Tensor, self: Tensor, other: Any) -> Tensor:
    if isinstance(other, Tensor):
        unknown = other.isnan()
        logarithm = where((self == 0) & (other <= 0) & ~unknown, 1, other).log()
        return where((self == 0) & (other <= 0) & ~unknown, 0, grad * logarithm)
    logarithm = math.log(other) if other > 0 else (-math.inf if other == 0 else math.nan)
    return grad * logarithm if other > 0 else masked(grad * logarithm, self != 0)


derivative("xlogy", broadcast=True, self=_xlogy_self, other=lambda grad, self, other: grad * self / other)
derivative(
    "logaddexp",
    broadcast=True,
    self=lambda grad, self, other: grad * (self - other).sigmoid(),
    other=lambda grad, self, other: grad * (other - self).sigmoid(),
)
derivative(
    "logaddexp2",
    broadcast=True,
    self=lambda grad, self, other: grad * ((self - other) * _LN2).sigmoid(),
    other=lambda grad, self, other: grad * ((other - self) * _LN2).sigmoid(),
)


# Derivative 1 with respect to `self`, except where the arguments are equal.
derivative(
    "nextafter",
    broadcast=True,
    self=lambda grad, self, other: masked(grad, self != other),
    other=lambda grad: candelabra.zeros_like(grad),
)

# ---- three arguments

derivative(
    "where", broadcast=True,
    input=lambda grad, condition: where(condition, grad, 0),
    other=lambda grad, condition: where(condition, 0, grad),
)  # fmt: skip


def _clamp_self(grad: Tensor, self: Tensor, min: Any, max: Any) -> Tensor:
    if min is None and max is None:
        return grad
    if max is None:
        return masked(grad, self >= min)
    if min is None:
        return masked(grad, self <= max)
    return masked(grad, (self >= min) & (self <= max))


def _clamp_min(grad: Tensor, self: Tensor, min: Any, max: Any) -> Tensor:
    below = self < min
    return masked(grad, below if max is None else below & (min < max))


def _clamp_max(grad: Tensor, self: Tensor, min: Any, max: Any) -> Tensor:
    above = self > max
    return masked(grad, above if min is None else above | (max < min))


derivative("clamp", broadcast=True, self=_clamp_self, min=_clamp_min, max=_clamp_max)
derivative(
    "lerp", broadcast=True,
    self=lambda grad, weight: grad * (1 - conj(weight)),
    end=lambda grad, weight: grad * conj(weight),
    weight=lambda grad, self, end: grad * conj(end - self),
)  # fmt: skip
derivative(
    "addcmul", broadcast=True,
    self=_unchanged,
    tensor1=lambda grad, tensor2, value: grad * conj(tensor2 * value),
    tensor2=lambda grad, tensor1, value: grad * conj(tensor1 * value),
)  # fmt: skip
derivative(
    "addcdiv", broadcast=True,
    self=_unchanged,
    tensor1=lambda grad, tensor2, value: grad * conj(value / tensor2),
    tensor2=lambda grad, tensor1, tensor2, value: -grad * conj((value * tensor1) / (tensor2 * tensor2)),
)  # fmt: skip

# ---- complex numbers from real parts

derivative("complex", broadcast=True, real=lambda grad: grad.real, imag=lambda grad: grad.imag)


def _polar_abs(grad: Tensor, angle: Tensor) -> Tensor:
    return grad.real * angle.cos() + grad.imag * angle.sin()


def _polar_angle(grad: Tensor, result: Tensor) -> Tensor:
    return grad.imag * result.real - grad.real * result.imag


derivative("polar", broadcast=True, abs=_polar_abs, angle=_polar_angle)

# ---- activations

derivative("gelu", self=lambda grad, self, approximate: ops.gelu_backward(grad, self, approximate=approximate))
derivative("silu", self=lambda grad, self: ops.silu_backward(grad, self))


derivative("mish", self=lambda grad, self: ops.mish_backward(grad, self))
derivative("log_sigmoid", self=lambda grad, self: ops.log_sigmoid_backward(grad, self))
derivative("softplus", self=lambda grad, self, beta, threshold: ops.softplus_backward(grad, self, beta, threshold))
derivative(
    "elu",
    self=lambda grad, self, alpha, scale, input_scale: ops.elu_backward(grad, self, alpha, scale, input_scale),
)


def _logit(grad: Tensor, self: Tensor, eps: float | None) -> Tensor:
    slope = grad / (self * (1 - self))
    if eps is None or eps < 0:
        return where((self < 0) | (self > 1), math.nan, slope)
    return masked(slope, ~((self < eps) | (self > 1 - eps)))


derivative("logit", self=_logit)
derivative("leaky_relu", self=lambda grad, self, negative_slope: ops.leaky_relu_backward(grad, self, negative_slope))
derivative("hardtanh", self=lambda grad, self, min_val, max_val: ops.hardtanh_backward(grad, self, min_val, max_val))
derivative("hardswish", self=lambda grad, self: ops.hardswish_backward(grad, self))
derivative("hardsigmoid", self=lambda grad, self: ops.hardsigmoid_backward(grad, self))
derivative("hardshrink", self=lambda grad, self, lambd: ops.shrink_backward(grad, self, lambd))
derivative("softshrink", self=lambda grad, self, lambd: ops.shrink_backward(grad, self, lambd))
derivative("threshold", self=lambda grad, self, threshold: ops.threshold_backward(grad, self, threshold))
derivative(
    "prelu", broadcast=True,
    self=lambda grad, self, weight: where(self > 0, grad, grad * weight),
    weight=lambda grad, self: where(self > 0, 0, grad * self),
)  # fmt: skip

# ---- gradients of activations

derivative(
    "threshold_backward",
    grad=lambda upper, self, threshold: ops.threshold_backward(upper, self, threshold),
    self=lambda upper: zeros_like(upper),
)

derivative(
    "sigmoid_backward",
    # The result g conj(y (1 - y)) is linear in g and depends on conj(y). Its gradient for y is
    # conj(upper) g conj(1 - 2y).
    grad=lambda upper, output: upper * (output * (1 - output)),
    output=lambda upper, grad, output: conj(upper) * grad * conj(1 - 2 * output),
)
derivative(
    "tanh_backward",
    grad=lambda upper, output: upper * (1 - output * output),
    output=lambda upper, grad, output: conj(upper) * grad * conj(-2 * output),
)
