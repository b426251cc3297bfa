"""Test optimizers whose rules are not elementwise, plain optimizers' errors, and differentiable
steps.
"""

import copy
import math

import numpy as np
import pytest
from scipy import optimize
from update_rules import RULES

import candelabra
from candelabra import optim


def with_grad(value, grad):
    made = candelabra.tensor(value)
    made.grad = candelabra.tensor(grad)
    return made


# ---- averages of ASGD


def test_asgd_averages_from_t0_on(rng):
    parameter = candelabra.tensor(rng.standard_normal(3))
    optimizer = optim.ASGD([parameter], lr=0.1, t0=5)
    seen = []
    for _ in range(12):
        parameter.grad = candelabra.tensor(rng.standard_normal(3))
        optimizer.step()
        seen.append(parameter.numpy().copy())
    np.testing.assert_allclose(optimizer.state[parameter]["ax"].numpy(), running(seen, 5))


def running(seen, t0):
    mean, mu = seen[0], 1.0
    for step, value in enumerate(seen, 1):
        mean = mean + mu * (value - mean)
        mu = 1 / max(1, step - t0)
    return mean


# ---- Adafactor


@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 4)])
@pytest.mark.parametrize(
    "options",
    [{}, {"lr": 0.3, "beta2_decay": -0.5, "eps": (1e-4, 0.01), "d": 2.0, "weight_decay": 0.1, "maximize": True}],
)
def test_adafactor(rng, shape, options):
    p = rng.standard_normal(shape)
    parameter = candelabra.tensor(p)
    optimizer = optim.Adafactor([parameter], **options)
    lr, decay, (eps1, eps2), d = (
        options.get(k, v) for k, v in (("lr", 1e-2), ("beta2_decay", -0.8), ("eps", (2.0**-52, 1e-3)), ("d", 1.0))
    )
    rows = columns = full = 0
    for t in range(1, 21):
        grad = rng.standard_normal(shape)
        parameter.grad = candelabra.tensor(grad)
        optimizer.step()
        g = -grad if options.get("maximize") else grad
        share = t**decay
        rate = max(eps2, np.sqrt(np.mean(p**2))) * min(lr, 1 / math.sqrt(t))
        p = p * (1 - lr * options.get("weight_decay", 0))
        if p.ndim > 1:
            rows = (1 - share) * rows + share * np.mean(g**2, -1, keepdims=True)
            columns = (1 - share) * columns + share * np.mean(g**2, -2, keepdims=True)
            v = rows * columns / np.maximum(np.mean(rows, -2, keepdims=True), eps1)
        else:
            v = full = (1 - share) * full + share * g**2
        u = g / np.maximum(np.sqrt(v), eps1)
        p = p - rate * u / max(1, np.sqrt(np.mean(u**2)) / d)
    np.testing.assert_allclose(parameter.numpy(), p, rtol=1e-10)
    expected = {"step", "variance"} if p.ndim == 1 else {"step", "row_var", "col_var"}
    assert set(optimizer.state_dict()["state"][0]) == expected


# ---- Muon


@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (3, 6)])
@pytest.mark.parametrize("adjust", [None, "original", "match_rms_adamw"])
def test_muon_steps_are_nearly_orthogonal(rng, shape, adjust):
    start, grad = rng.standard_normal(shape), rng.standard_normal(shape)
    parameter = with_grad(start, grad)
    optim.Muon([parameter], lr=0.1, weight_decay=0.5, adjust_lr_fn=adjust, ns_steps=10).step()
    rows, columns = shape
    rate = 0.1 * (0.2 * math.sqrt(max(shape)) if adjust == "match_rms_adamw" else math.sqrt(max(1, rows / columns)))
    step = (start * (1 - 0.1 * 0.5) - parameter.numpy()) / rate
    left, values, right = np.linalg.svd(step, full_matrices=False)
    assert np.all(np.abs(values - 1) < 0.45)  # the iteration brings singular values only this close to 1
    turned = np.linalg.svd(grad, full_matrices=False)
    np.testing.assert_allclose(left @ right, turned[0] @ turned[2], atol=0.35)


def test_muon_momentum(rng):
    parameter = with_grad(np.zeros((2, 2)), np.eye(2))
    optimizer = optim.Muon([parameter], momentum=0.75)
    optimizer.step()
    np.testing.assert_allclose(optimizer.state[parameter]["momentum_buffer"].numpy(), 0.25 * np.eye(2))


# ---- L-BFGS


def minimizing(start, function, **options):
    parameter = candelabra.tensor(start)
    calls = []

    def closure():
        value, gradient = function(parameter.numpy())
        calls.append(value)
        parameter.grad = candelabra.tensor(gradient)
        return value

    optimizer = optim.LBFGS([parameter], **options)
    first = optimizer.step(closure)
    return parameter, optimizer, calls, first


@pytest.mark.parametrize("dimension", [2, 6])
def test_lbfgs_finds_rosenbrocks_minimum(dimension):
    start = np.full(dimension, -1.2)
    parameter, optimizer, calls, first = minimizing(
        start,
        lambda x: (float(optimize.rosen(x)), optimize.rosen_der(x)),
        max_iter=200,
        line_search_fn="strong_wolfe",
        tolerance_grad=1e-10,
        tolerance_change=1e-14,
    )
    assert first == calls[0] == optimize.rosen(start)
    minimum = optimize.minimize(optimize.rosen, start, jac=optimize.rosen_der, method="BFGS", tol=1e-10).x
    np.testing.assert_allclose(parameter.numpy(), minimum, atol=1e-5)
    state = optimizer.state[parameter]
    assert state["func_evals"] == len(calls) and state["n_iter"] <= 200


def test_lbfgs_without_line_search_solves_a_quadratic(rng):
    half = rng.standard_normal((5, 5))
    matrix, goal = half @ half.T + 5 * np.eye(5), rng.standard_normal(5)
    parameter, *_ = minimizing(
        np.zeros(5),
        lambda x: (float(0.5 * x @ matrix @ x - goal @ x), matrix @ x - goal),
        max_iter=60,
        tolerance_change=1e-14,
    )
    np.testing.assert_allclose(parameter.numpy(), np.linalg.solve(matrix, goal), rtol=1e-6)


def test_lbfgs_of_several_parameters_and_history():
    a, b = candelabra.zeros(2, dtype=candelabra.float64), candelabra.zeros((), dtype=candelabra.complex128)
    still = candelabra.ones(3, dtype=candelabra.float64)

    def closure():
        a.grad = 2 * (a - 3) * candelabra.tensor([1.0, 9.0], dtype=candelabra.float64)
        b.grad = 2 * (b - (1 - 2j))
        return float(((a - 3) ** 2 * candelabra.tensor([1.0, 9.0])).sum() + (b - (1 - 2j)).abs() ** 2)

    optimizer = optim.LBFGS([a, b, still], history_size=2, line_search_fn="strong_wolfe", max_iter=50)
    optimizer.step(closure)
    np.testing.assert_allclose(a.numpy(), [3, 3], atol=1e-6)
    assert abs(b.item() - (1 - 2j)) < 1e-6 and still.tolist() == [1.0] * 3
    state = optimizer.state_dict()["state"][0]
    assert len(state["old_dirs"]) == len(state["old_stps"]) == len(state["ro"]) <= 2
    again = optim.LBFGS([a, b, still])
    again.load_state_dict(optimizer.state_dict())
    assert again.step(closure) < 1e-10


def test_lbfgs_stops_at_the_limits():
    calls = []
    parameter = candelabra.tensor([5.0])

    def closure():
        calls.append(1)
        parameter.grad = parameter.sign() * parameter.abs() ** 3
        return float(parameter.abs() ** 4 / 4)

    optim.LBFGS([parameter], lr=0.01, max_iter=3).step(closure)
    assert len(calls) == 3
    calls.clear()
    optim.LBFGS([parameter], lr=0.01, max_iter=100, max_eval=5).step(closure)
    assert len(calls) == 5
    parameter.fill_(0.0)
    calls.clear()
    optim.LBFGS([parameter]).step(closure)
    assert len(calls) == 1


# ---- errors


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda z: optim.Adadelta([z], rho=1.1), ValueError, "Invalid rho value: 1.1"),
        (lambda z: optim.NAdam([z], momentum_decay=-1), ValueError, "Invalid momentum_decay value: -1"),
        (lambda z: optim.RAdam([z], betas=(0.9, 1.0)), ValueError, "Invalid beta parameter at index 1: 1.0"),
        (lambda z: optim.Adamax([z], eps=-1), ValueError, "Invalid epsilon value: -1"),
        (lambda z: optim.ASGD([z], weight_decay=-1), ValueError, "Invalid weight_decay value: -1"),
        (lambda z: optim.Rprop([z], etas=(1.0, 0.5)), ValueError, "Invalid eta values: 1.0, 0.5"),
        (lambda z: optim.Rprop([z], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda z: optim.Adafactor([z], lr=-1), ValueError, "Learning rate should be >= 0 but is: -1"),
        (lambda z: optim.Adafactor([z], d=0.5), ValueError, "Clipping threshold d should be >= 1 but is: 0.5"),
        (lambda z: optim.Adafactor([z], eps=(-1, 1)), ValueError, "epsilon1 should be >= 0 but is: -1"),
        (lambda z: optim.Adafactor([z], beta2_decay=0.1), ValueError, "beta2_decay should be <= 0 but is: 0.1"),
        (lambda z: optim.Adafactor([z.to(candelabra.complex64)]).step(), None, ""),
        (lambda z: optim.Muon([z]), ValueError, "Muon only supports 2D parameters"),
        (
            lambda z: optim.Muon([z.view(1, 1)], adjust_lr_fn="x"),
            ValueError,
            "Adjust learning rate function x is not supported",
        ),
        (
            lambda z: optim.LBFGS([{"params": [z]}, {"params": [z.clone()]}]),
            ValueError,
            "LBFGS doesn't support per-parameter options",
        ),
        (lambda z: optim.SparseAdam([z], eps=0.0), ValueError, "Invalid epsilon value: 0.0"),
        (
            lambda z: optim.SparseAdam([z.to(candelabra.complex64)]),
            ValueError,
            "SparseAdam does not support complex parameters",
        ),
        (lambda z: optim.NAdam([z], capturable=True), RuntimeError, "capturable=True is not supported"),
        (lambda z: optim.RAdam([z], lr=candelabra.ones(2)), ValueError, "Tensor lr must be 1-element"),
    ],
)
def test_errors(act, error, text):
    z = candelabra.zeros(1)
    if error is None:
        act(z)
        return
    with pytest.raises(error) as caught:
        act(z)
    assert text in str(caught.value)


def test_errors_of_steps():
    number = candelabra.zeros(1, dtype=candelabra.complex64)
    number.grad = number.clone()
    with pytest.raises(RuntimeError, match="Adafactor does not support complex parameters"):
        optim.Adafactor([number]).step()
    matrix = number.view(1, 1)
    matrix.grad = matrix.clone()
    with pytest.raises(RuntimeError, match="Muon does not support complex parameters"):
        optim.Muon([matrix]).step()
    real = with_grad([1.0], [1.0])
    with pytest.raises(RuntimeError, match="SparseAdam does not support dense gradients"):
        optim.SparseAdam([real]).step()
    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
        optim.LBFGS([real], line_search_fn="armijo").step(lambda: 1.0)
    for steps in (100,):
        with pytest.raises(ValueError, match="Number of steps must be less than 100"):
            optim.Muon([with_grad([[1.0]], [[1.0]])], ns_steps=steps).step()


@pytest.mark.parametrize("name", RULES)
def test_empty_and_zero_dimensional(name):
    parameters = [candelabra.zeros(0, 3), candelabra.zeros(())]
    for parameter in parameters:
        parameter.grad = candelabra.ones_like(parameter)
    getattr(optim, name)(parameters, lr=0.1).step()
    assert parameters[1].item() < 0


# ---- swap_in_optimizer_params_and_state


def test_swap_in():
    own, other = with_grad([1.0], [1.0]), with_grad([5.0], [1.0])
    optimizer = optim.Adam([own], lr=0.1)
    optimizer.step()
    saved = copy.deepcopy(optimizer.state_dict())
    saved["param_groups"][0]["lr"] = 1.0
    before, state = own.item(), optimizer.state
    with optim.swap_in_optimizer_params_and_state(optimizer, {"w": other}, saved):
        assert optimizer.param_groups[0]["lr"] == 1.0
        optimizer.step()
    assert other.item() == pytest.approx(4.0) and own.item() == before
    assert (
        optimizer.state is state
        and optimizer.param_groups[0]["params"][0] is own
        and optimizer.param_groups[0]["lr"] == 0.1
    )
    optimizer.step()
    assert own.item() == pytest.approx(0.8, abs=1e-6)
    with pytest.raises(ValueError, match="expected 1 parameters to swap in"):
        with optim.swap_in_optimizer_params_and_state(optimizer, {}, saved):
            pass
