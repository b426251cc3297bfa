"""Fused optimizer steps against the formulas of PyTorch's documentation, written again in NumPy with float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import RUNTIME_ERROR, BFloat16, KernelError, call

SHAPES = [(7,), (40, 33), (), (1, 5), (300, 401)]
DTYPES = ["float32", "float64", "bfloat16"]
TOLERANCE = {"float32": 2e-5, "float64": 1e-12, "bfloat16": 2e-2}


def make(values: Any, dtype: str) -> Any:
    return BFloat16.of(values) if dtype == "bfloat16" else np.asarray(values, dtype)


def wide(tensor: Any) -> np.ndarray:
    return (tensor.values() if isinstance(tensor, BFloat16) else tensor).astype(np.float64)


def lists(dtype: str, count: int, seed: int = 0) -> list[list[Any]]:
    """Return parameters, gradients, and `count` lists of states, the last ones positive."""
    generator = np.random.default_rng(seed)
    result = [[make(generator.standard_normal(shape), dtype) for shape in SHAPES] for _ in range(2)]
    return result + [[make(np.abs(generator.standard_normal(shape)) + 0.5, dtype) for shape in SHAPES] for _ in range(count)]


def compare(lists: list[list[Any]], wanted: list[list[np.ndarray]], dtype: str) -> None:
    for got, expected in zip(lists, wanted, strict=True):
        for tensor, value in zip(got, expected, strict=True):
            np.testing.assert_allclose(wide(tensor), value, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize(
    ("momentum", "nesterov", "first"), [(0.0, False, False), (0.9, False, True), (0.9, False, False), (0.9, True, False)]
)
def test_sgd(dtype: str, momentum: float, nesterov: bool, first: bool, maximize: bool) -> None:
    lr, decay, dampening = 0.1, 0.01, 0.0 if nesterov else 0.2
    tensors = lists(dtype, 1 if momentum else 0)
    expected: list[list[np.ndarray]] = [[], [], []]
    for i in range(len(SHAPES)):
        p, g = wide(tensors[0][i]), wide(tensors[1][i])
        d = (-g if maximize else g) + decay * p
        if momentum:
            b = d if first else momentum * wide(tensors[2][i]) + (1 - dampening) * d
            expected[2].append(b)
            d = d + momentum * b if nesterov else b
        expected[0].append(p - lr * d)
        expected[1].append(g)
    if first:  # the buffers hold nothing yet
        tensors[2] = [make(np.full(shape, np.nan), dtype) for shape in SHAPES]
    buffers = tensors[2] if momentum else []
    call("fused_sgd_", [], tensors[0], tensors[1], buffers, lr, decay, momentum, dampening, nesterov, maximize, first)
    compare(tensors, expected[: len(tensors)], dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("decoupled", [False, True])
def test_adam(dtype: str, decoupled: bool, amsgrad: bool) -> None:
    lr, beta1, beta2, eps, decay, step = 0.01, 0.9, 0.99, 1e-8, 0.1, 3
    tensors = lists(dtype, 3 if amsgrad else 2)
    expected: list[list[np.ndarray]] = [[] for _ in tensors]
    for i in range(len(SHAPES)):
        p, g, m, v = (wide(tensors[k][i]) for k in range(4))
        d = g
        if decoupled:
            p = p * (1 - lr * decay)
        else:
            d = g + decay * p
        m = beta1 * m + (1 - beta1) * d
        v = beta2 * v + (1 - beta2) * d * d
        top = np.maximum(wide(tensors[4][i]), v) if amsgrad else v
        p = p - lr / (1 - beta1**step) * m / (np.sqrt(top) / np.sqrt(1 - beta2**step) + eps)
        for k, value in enumerate([p, g, m, v] + ([top] if amsgrad else [])):
            expected[k].append(value)
    maxima = tensors[4] if amsgrad else []
    call("fused_adam_", [], *tensors[:4], maxima, lr, beta1, beta2, eps, decay, decoupled, amsgrad, False, step)
    compare(tensors, expected, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("momentum", [0.0, 0.8])
def test_rmsprop(dtype: str, momentum: float, centered: bool) -> None:
    lr, alpha, eps, decay = 0.02, 0.9, 1e-3, 0.05
    parameters, gradients, squares, buffers = lists(dtype, 2)
    means = [make(np.random.default_rng(9).standard_normal(shape) * 0.1, dtype) for shape in SHAPES] if centered else []
    expected: list[list[np.ndarray]] = [[], [], [], []]
    for i in range(len(SHAPES)):
        p, g, s = wide(parameters[i]), wide(gradients[i]), wide(squares[i])
        d = g + decay * p
        s = alpha * s + (1 - alpha) * d * d
        spread = s
        if centered:
            mean = alpha * wide(means[i]) + (1 - alpha) * d
            spread = s - mean**2
            expected[2].append(mean)
        change = d / (np.sqrt(spread) + eps)
        if momentum:
            change = momentum * wide(buffers[i]) + change
            expected[3].append(change)
        expected[0].append(p - lr * change)
        expected[1].append(s)
    call(
        "fused_rmsprop_",
        [],
        parameters,
        gradients,
        squares,
        means,
        buffers if momentum else [],
        lr,
        alpha,
        eps,
        decay,
        momentum,
        centered,
        False,
    )
    compare([parameters, squares, means], expected[:3], dtype)
    if momentum:
        compare([buffers], [expected[3]], dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_adagrad(dtype: str) -> None:
    lr, lr_decay, decay, eps, step = 0.1, 0.05, 0.01, 1e-10, 4
    parameters, gradients, sums = lists(dtype, 1)
    expected: list[list[np.ndarray]] = [[], []]
    for p, g, s in zip(map(wide, parameters), map(wide, gradients), map(wide, sums), strict=True):
        d = -g + decay * p
        s = s + d * d
        expected[0].append(p - lr / (1 + (step - 1) * lr_decay) * d / (np.sqrt(s) + eps))
        expected[1].append(s)
    call("fused_adagrad_", [], parameters, gradients, sums, lr, lr_decay, decay, eps, True, step)
    compare([parameters, sums], expected, dtype)


def test_any_strides() -> None:
    generator = np.random.default_rng(2)
    p, g = generator.standard_normal((30, 50)), generator.standard_normal((30, 50))
    parameter, gradient = p.T.copy().T, np.repeat(g, 2, axis=1)[:, ::2]
    buffer = np.zeros((30, 50))
    call("fused_sgd_", [], [parameter], [gradient], [buffer], 0.1, 0.0, 0.9, 0.0, False, False, True)
    np.testing.assert_allclose(parameter, p - 0.1 * g, rtol=1e-14)
    np.testing.assert_array_equal(buffer, g)


def test_lists_that_do_not_fit() -> None:
    p = [np.zeros(3, np.float32), np.zeros(4, np.float32)]
    with pytest.raises(KernelError, match="2 parameters, but argument 1 has 1 tensors") as caught:
        call("fused_sgd_", [], p, p[:1], [], 0.1, 0.0, 0.0, 0.0, False, False, False)
    assert caught.value.status == RUNTIME_ERROR
    with pytest.raises(KernelError, match="must have the same sizes"):
        call("fused_sgd_", [], p, p[::-1], [], 0.1, 0.0, 0.0, 0.0, False, False, False)
    with pytest.raises(KernelError, match="must have one dtype"):
        call("fused_sgd_", [], p, [x.astype(np.float64) for x in p], [], 0.1, 0.0, 0.0, 0.0, False, False, False)
    call("fused_sgd_", [], [], [], [], 0.1, 0.0, 0.0, 0.0, False, False, False)
