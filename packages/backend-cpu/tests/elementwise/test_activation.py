"""Test the activation kernels and their gradients against formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special
from arrays import FLOATS, uniform
from harness import Scalar, call

import candelabra
from candelabra import ops


def gelu(x: np.ndarray) -> np.ndarray:
    return x * scipy.special.ndtr(x)


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def numerical_derivative(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    step = 1e-6
    return (function(x + step) - function(x - step)) / (2 * step)


ACTIVATIONS: dict[str, tuple[tuple[Any, ...], Callable[[np.ndarray], np.ndarray]]] = {
    "gelu": (("none",), gelu), "silu": ((), lambda x: x * scipy.special.expit(x)),
    "mish": ((), lambda x: x * np.tanh(np.logaddexp(0, x))), "log_sigmoid": ((), lambda x: -np.logaddexp(0, -x)),
    "softplus": ((Scalar(2.0), Scalar(20.0)), lambda x: np.where(2 * x > 20, x, np.logaddexp(0, 2 * x) / 2)),
    "elu": ((Scalar(1.5), Scalar(2.0), Scalar(0.5)), lambda x: np.where(x > 0, 2 * x, 3 * np.expm1(0.5 * x))),
    "logit": ((None,), scipy.special.logit),
    "logit clamped": ((0.2,), lambda x: scipy.special.logit(np.clip(x, 0.2, 0.8))),
    "leaky_relu": ((Scalar(0.1),), lambda x: np.where(x > 0, x, 0.1 * x)),
    "hardtanh": ((Scalar(-1.0), Scalar(2.0)), lambda x: np.clip(x, -1, 2)),
    "hardswish": ((), lambda x: x * np.clip(x + 3, 0, 6) / 6), "hardsigmoid": ((), lambda x: np.clip(x + 3, 0, 6) / 6),
    "softshrink": ((Scalar(0.5),), lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0)),
    "hardshrink": ((Scalar(0.5),), lambda x: np.where(np.abs(x) <= 0.5, 0, x)),
    "threshold": ((Scalar(0.5), Scalar(9.0)), lambda x: np.where(x <= 0.5, 9, x)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_activations(name: str, dtype: str) -> None:
    arguments, reference = ACTIVATIONS[name]
    name = name.split()[0]
    x = uniform(-12, 12, 4000, dtype)
    out = np.empty_like(x)
    call(name, [out], x, *arguments)
    tolerance = 1e-6 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(out, reference(x.astype(np.float64)), rtol=10 * tolerance, atol=tolerance)
    x = np.array([np.nan], dtype)
    call(name, [out[:1]], x, *arguments)
    assert np.isnan(out[0])


def test_gradients_of_activations() -> None:
    x, grad = uniform(-4, 4, 3000, "float64"), uniform(-1, 1, 3000, "float64", 1)
    out = np.empty_like(x)
    for name, arguments, function in [
        ("gelu_backward", ("none",), gelu),
        ("gelu_backward", ("tanh",), gelu_tanh),
        ("silu_backward", (), lambda v: v * scipy.special.expit(v)),
        ("mish_backward", (), lambda v: v * np.tanh(np.logaddexp(0, v))),
        ("log_sigmoid_backward", (), lambda v: -np.logaddexp(0, -v)),
        ("softplus_backward", (Scalar(2.0), Scalar(20.0)), lambda v: np.logaddexp(0, 2 * v) / 2),
        (
            "elu_backward",
            (Scalar(1.5), Scalar(2.0), Scalar(0.5)),
            lambda v: np.where(v > 0, 2 * v, 3 * np.expm1(0.5 * v)),
        ),
    ]:
        call(name, [out], grad, x, *arguments)
        np.testing.assert_allclose(out, grad * numerical_derivative(function, x), rtol=1e-6, atol=1e-8)
    call("gelu", [out], x, "tanh")
    np.testing.assert_allclose(out, gelu_tanh(x), rtol=1e-12, atol=1e-14)
    call("threshold_backward", [out], grad, x, Scalar(0))
    assert np.array_equal(out, np.where(x > 0, grad, 0))
    y = scipy.special.expit(x)
    call("sigmoid_backward", [out], grad, y)
    np.testing.assert_allclose(out, grad * y * (1 - y), rtol=1e-12)
    y = np.tanh(x)
    call("tanh_backward", [out], grad, y)
    np.testing.assert_allclose(out, grad * (1 - y * y), rtol=1e-12)
    one = candelabra.ones(2)
    for refused in (lambda: ops.gelu(one, approximate="sigmoid"), lambda: ops.gelu_backward(one, one, approximate="")):
        with pytest.raises(RuntimeError, match="approximate argument must be either none or tanh"):
            refused()
