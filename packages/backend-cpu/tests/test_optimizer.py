"""Test fused optimizer steps against the formulas of PyTorch's documentation, in float64 NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import BFloat16, call

import candelabra
from candelabra import ops
from candelabra.testing.reference import optimizer as formulas

SHAPES = [(7,), (40, 33), (), (1, 5), (300, 401)]
DTYPES = ["float32", "float64", "float16", "bfloat16"]
TOLERANCE = {"float32": 2e-5, "float64": 1e-12, "float16": 4e-3, "bfloat16": 2e-2}


def make(values: Any, dtype: str) -> Any:
    return BFloat16.of(values) if dtype == "bfloat16" else np.asarray(values, dtype)


def wide(tensor: Any) -> np.ndarray:
    return (tensor.values() if isinstance(tensor, BFloat16) else tensor).astype(np.float64)


def lists(dtype: str, count: int, seed: int = 0) -> list[list[Any]]:
    """Return parameters, gradients, and `count` lists of positive states."""
    generator = np.random.default_rng(seed)
    result = [[make(generator.standard_normal(shape), dtype) for shape in SHAPES] for _ in range(2)]
    return result + [
        [make(np.abs(generator.standard_normal(shape)) + 0.5, dtype) for shape in SHAPES] for _ in range(count)
    ]


def compare(lists: list[list[Any]], wanted: list[list[np.ndarray]], dtype: str) -> None:
    for got, expected in zip(lists, wanted, strict=True):
        for tensor, value in zip(got, expected, strict=True):
            np.testing.assert_allclose(wide(tensor), value, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize(
    ("momentum", "nesterov", "first"),
    [(0.0, False, False), (0.9, False, True), (0.9, False, False), (0.9, True, False)],
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
    if first:  # the buffers are uninitialized
        tensors[2] = [make(np.full(shape, np.nan), dtype) for shape in SHAPES]
    buffers = tensors[2] if momentum else []
    call("_fused_sgd_", [], tensors[0], tensors[1], buffers, lr, decay, momentum, dampening, nesterov, maximize, first)
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
    call("_fused_adam_", [], *tensors[:4], maxima, lr, beta1, beta2, eps, decay, decoupled, amsgrad, False, step)
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
        "_fused_rmsprop_",
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
    call("_fused_adagrad_", [], parameters, gradients, sums, lr, lr_decay, decay, eps, True, step)
    compare([parameters, sums], expected, dtype)


# Operators with their number of state lists and the scalar arguments of each call. The formulas are
# those of candelabra.testing.
CALLS: dict[str, tuple[int, list[tuple[Any, ...]]]] = {
    "adamax": (2, [(0.01, 0.9, 0.99, 1e-8, 0.0, False, 1), (0.01, 0.9, 0.99, 1e-8, 0.1, True, 3)]),
    "nadam": (
        2,
        [
            (0.01, 0.9, 0.99, 1e-8, 0.0, 0.5, 0.6, 0.5, False, False, 1),
            (0.01, 0.9, 0.99, 1e-8, 0.1, 0.6, 0.7, 0.3, False, True, 2),
            (0.01, 0.9, 0.99, 1e-8, 0.1, 0.6, 0.7, 0.3, True, False, 2),
        ],
    ),
    "radam": (
        2,
        [
            (0.01, 0.9, 0.99, 1e-8, 0.0, False, False, 1),
            (0.01, 0.9, 0.99, 1e-8, 0.1, False, True, 9),
            (0.01, 0.9, 0.99, 1e-8, 0.1, True, False, 9),
        ],
    ),
    "adadelta": (2, [(0.5, 0.9, 1e-6, 0.0, False), (0.5, 0.8, 1e-3, 0.1, True)]),
    "rprop": (2, [(0.5, 1.25, 1e-6, 50.0, False), (0.5, 1.25, 0.6, 1.0, True)]),
    "asgd": (1, [(0.1, 0.05, 1.0, 0.0, False), (0.1, 0.05, 0.25, 0.1, True)]),
}
EACH_CALL = [(name, numbers) for name, (_, calls) in CALLS.items() for numbers in calls]


def states_of(name: str, dtype: str, shapes: list[tuple[int, ...]] = SHAPES) -> list[list[Any]]:
    """Return parameters, gradients and states. Rprop's previous gradients are -1, 0 or 1."""
    generator = np.random.default_rng(3)
    result = [[make(generator.standard_normal(shape), dtype) for shape in shapes] for _ in range(2)]
    result += [
        [make(np.abs(generator.standard_normal(shape)) + 0.5, dtype) for shape in shapes] for _ in range(CALLS[name][0])
    ]
    if name == "rprop":
        result[2] = [make(generator.integers(-1, 2, shape), dtype) for shape in shapes]
    return result


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("name", "numbers"), EACH_CALL, ids=str)
def test_formulas(name: str, numbers: tuple[Any, ...], dtype: str) -> None:
    tensors = states_of(name, dtype)
    expected = getattr(formulas, name)(*([wide(tensor) for tensor in each] for each in tensors), *numbers)
    call(f"_fused_{name}_", [], *tensors, *numbers)
    compare(tensors, expected, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize(("name", "numbers"), EACH_CALL, ids=str)
def test_any_strides_and_threads(name: str, numbers: tuple[Any, ...], dtype: str) -> None:
    """Transposed, every second element, with gaps: bitwise the same as contiguous memory."""

    def spread(tensor: np.ndarray, place: int) -> np.ndarray:
        if place == 0:
            return tensor.T.copy().T
        return np.repeat(tensor, place + 1, axis=1)[:, :: place + 1]

    shapes = [(130, 257), (3, 1), (0, 5)]
    plain = states_of(name, dtype, shapes)
    others = [[spread(tensor, place) for tensor in each] for place, each in enumerate(states_of(name, dtype, shapes))]
    turned = [[tensor.T.copy().T for tensor in each] for each in states_of(name, dtype, shapes)]
    for tensors in (plain, others, turned):
        call(f"_fused_{name}_", [], *tensors, *numbers)
    for again in (others, turned):
        for each, one in zip(again, plain, strict=True):
            for got, wanted in zip(each, one, strict=True):
                np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "numbers"), EACH_CALL, ids=str)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numbers_that_are_not_finite(name: str, numbers: tuple[Any, ...], dtype: str) -> None:
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.0])
    count = CALLS[name][0] + 2
    grid = np.stack(np.meshgrid(*[special] * count, indexing="ij")).reshape(count, -1)
    if name != "asgd":  # sums of squares and step sizes are not negative
        grid[3] = np.abs(grid[3])
    if name == "adadelta":
        grid[2] = np.abs(grid[2])
    tensors = [[make(row, dtype)] for row in grid]
    expected = [list(each) for each in getattr(formulas, name)(*([wide(each[0])] for each in tensors), *numbers)]
    if name == "rprop":  # NaN has no sign
        p, g, before, sizes = (wide(each[0]) for each in tensors)
        g = -g if numbers[-1] else g
        with np.errstate(all="ignore"):
            agreement = g * before
        factor = np.select([agreement > 0, agreement < 0], [numbers[1], numbers[0]], 1.0)
        sizes = np.where(np.isnan(sizes), np.nan, np.clip(sizes * factor, numbers[2], numbers[3]))
        g = np.where(agreement < 0, 0.0, g)
        expected = [[p - np.where(np.isnan(g), 0.0, np.sign(g)) * sizes], expected[1], [g], [sizes]]
    if name == "asgd" and numbers[2] == 1:  # the first average is the parameter itself
        expected[2] = expected[0]
    call(f"_fused_{name}_", [], *tensors, *numbers)
    for place, (got, wanted) in enumerate(zip(tensors, expected, strict=True)):
        np.testing.assert_allclose(wide(got[0]), wanted[0], rtol=TOLERANCE[dtype], atol=1e-7, err_msg=f"list {place}")


def test_an_infinite_parameter_leaves_states_alone() -> None:
    """Without weight decay, a parameter does not affect its state."""
    for name, (count, calls) in CALLS.items():
        if name == "asgd":
            continue
        p, g = np.array([np.inf, -np.inf, np.nan]), np.ones(3)
        states = [np.ones(3) for _ in range(count)]
        call(f"_fused_{name}_", [], [p], [g], *([state] for state in states), *calls[0])
        assert all(np.isfinite(state).all() for state in states), name
        np.testing.assert_array_equal(p, [np.inf, -np.inf, np.nan])
    p, g, state = np.array([np.inf]), np.ones(1), np.ones(1)
    call("_fused_sgd_", [], [p], [g], [state], 0.1, 0.0, 0.9, 0.0, False, False, False)
    call("_fused_adam_", [], [p], [g], [state], [np.ones(1)], [], 0.1, 0.9, 0.99, 1e-8, 0.0, False, False, False, 1)
    call("_fused_rmsprop_", [], [p], [g], [state], [], [], 0.1, 0.9, 1e-8, 0.0, 0.0, False, False)
    call("_fused_adagrad_", [], [p], [g], [state], 0.1, 0.0, 0.0, 1e-8, False, 1)
    assert np.isfinite(state).all() and p[0] == np.inf


def test_any_strides() -> None:
    generator = np.random.default_rng(2)
    p, g = generator.standard_normal((30, 50)), generator.standard_normal((30, 50))
    parameter, gradient = p.T.copy().T, np.repeat(g, 2, axis=1)[:, ::2]
    buffer = np.zeros((30, 50))
    call("_fused_sgd_", [], [parameter], [gradient], [buffer], 0.1, 0.0, 0.9, 0.0, False, False, True)
    np.testing.assert_allclose(parameter, p - 0.1 * g, rtol=1e-14)
    np.testing.assert_array_equal(buffer, g)


def test_lists_that_do_not_fit() -> None:
    p = [candelabra.zeros(3), candelabra.zeros(4)]
    options = (0.1, 0.0, 0.0, 0.0, False, False, False)
    with pytest.raises(RuntimeError, match="expected one entry for each of 2 parameters in list 1, but got 1"):
        ops._fused_sgd_(p, p[:1], [], *options)
    with pytest.raises(RuntimeError, match=r"entry 0 of list 1 is of shape \[4\].*its parameter of shape \[3\]"):
        ops._fused_sgd_(p, p[::-1], [], *options)
    with pytest.raises(RuntimeError, match="float64.*its parameter of shape.*float32"):
        ops._fused_sgd_(p, [x.double() for x in p], [], *options)
    ops._fused_sgd_([], [], [], *options)


def test_state_of_options_must_be_there() -> None:
    def p() -> list[candelabra.Tensor]:
        return [candelabra.ones(2)]

    with pytest.raises(RuntimeError, match="expected one entry for each of 1 parameters in list 2, but got 0"):
        ops._fused_adam_(p(), p(), [], p(), [], 0.1, 0.9, 0.99, 1e-8, 0.0, False, False, False, 1)
    with pytest.raises(RuntimeError, match="amsgrad needs max_exp_avg_sqs"):
        ops._fused_adam_(p(), p(), p(), p(), [], 0.1, 0.9, 0.99, 1e-8, 0.0, False, True, False, 1)
    with pytest.raises(RuntimeError, match="centered needs grad_avgs"):
        ops._fused_rmsprop_(p(), p(), p(), [], [], 0.1, 0.9, 1e-8, 0.0, 0.0, True, False)
    with pytest.raises(RuntimeError, match="momentum needs momentum_buffers"):
        ops._fused_rmsprop_(p(), p(), p(), [], [], 0.1, 0.9, 1e-8, 0.0, 0.5, False, False)


def test_steps_count_from_one() -> None:
    p, g, state = [candelabra.ones(2)], [candelabra.ones(2)], [candelabra.zeros(2)]
    for step in (0, -1):
        message = f"step counts from 1, but got {step}"
        with pytest.raises(ValueError, match=message):
            ops._fused_adam_(p, g, state, state, [], 0.1, 0.9, 0.99, 1e-8, 0.0, False, False, False, step)
        with pytest.raises(ValueError, match=message):
            ops._fused_adagrad_(p, g, state, 0.1, 0.0, 0.0, 1e-8, False, step)
        with pytest.raises(ValueError, match=message):
            ops._fused_adamax_(p, g, state, state, 0.1, 0.9, 0.99, 1e-8, 0.0, False, step)
        with pytest.raises(ValueError, match=message):
            ops._fused_nadam_(p, g, state, state, 0.1, 0.9, 0.99, 1e-8, 0.0, 0.5, 0.5, 0.5, False, False, step)
        with pytest.raises(ValueError, match=message):
            ops._fused_radam_(p, g, state, state, 0.1, 0.9, 0.99, 1e-8, 0.0, False, False, step)
    assert p[0].tolist() == [1.0, 1.0]
