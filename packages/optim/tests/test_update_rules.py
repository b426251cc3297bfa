"""Compare 100 steps of every optimizer, fused and plain, with the rules in NumPy."""

import numpy as np
import pytest
from update_rules import CONFIGURATIONS, FUSED, FUSED_UNASKED, RULES

import candelabra
from candelabra import optim
from candelabra.optim.fused import has_kernel

SHAPES = [(3, 4), (5,), (), (2, 0)]


def path(name, fused):
    """Return the option that selects the fused path (True), the plain one (False) or the default
    (None).
    """
    return {} if fused is None else {"fused" if name in FUSED else "foreach": fused}


def trajectory(name, options, starts, gradients, dtype=candelabra.float64):
    parameters = [candelabra.tensor(start).to(dtype) for start in starts]
    optimizer = getattr(optim, name)(parameters, **options)
    for step in gradients:
        for parameter, grad in zip(parameters, step, strict=True):
            parameter.grad = None if grad is None else candelabra.tensor(grad).to(dtype)
        optimizer.step()
    return parameters, optimizer


@pytest.mark.parametrize("fused", [None, True, False])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(("name", "options"), CONFIGURATIONS, ids=str)
def test_trajectory(rng, name, options, fused, missing):
    starts = [rng.standard_normal(shape) for shape in SHAPES]
    gradients = [
        [None if missing and (step + i) % 3 == 0 else rng.standard_normal(shape) for i, shape in enumerate(SHAPES)]
        for step in range(100)
    ]
    parameters, _ = trajectory(name, {**options, **path(name, fused)}, starts, gradients)
    for i, (parameter, start) in enumerate(zip(parameters, starts, strict=True)):
        expected = RULES[name](start, [step[i] for step in gradients], **options)
        np.testing.assert_allclose(parameter.numpy(), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [candelabra.float32, candelabra.float16, candelabra.bfloat16], ids=str)
@pytest.mark.parametrize("name", RULES)
def test_other_dtypes_agree_on_both_paths(rng, name, dtype):
    starts = [rng.standard_normal(7)]
    gradients = [[rng.standard_normal(7)] for _ in range(5)]
    (one,), optimizer = trajectory(name, {"lr": 0.05, **path(name, None)}, starts, gradients, dtype)
    (two,), _ = trajectory(name, {"lr": 0.05, **path(name, False)}, starts, gradients, dtype)
    expected = RULES[name](starts[0], [g for (g,) in gradients], lr=0.05)
    tolerance = {candelabra.float32: 1e-5, candelabra.float16: 1e-2, candelabra.bfloat16: 6e-2}[dtype]
    np.testing.assert_allclose(one.float().numpy(), expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(two.float().numpy(), expected, rtol=tolerance, atol=tolerance)
    for state in optimizer.state.values():
        assert all(value.dtype == dtype for value in state.values() if isinstance(value, candelabra.Tensor))


@pytest.mark.parametrize(("name", "options"), CONFIGURATIONS, ids=str)
def test_complex_parameters_are_pairs_of_real_ones(rng, name, options):
    start = rng.standard_normal(4) + 1j * rng.standard_normal(4)
    gradients = [rng.standard_normal(4) + 1j * rng.standard_normal(4) for _ in range(10)]
    (parameter,), _ = trajectory(name, options, [start], [[g] for g in gradients], candelabra.complex128)
    real = RULES[name](start.real, [g.real for g in gradients], **options)
    imag = RULES[name](start.imag, [g.imag for g in gradients], **options)
    np.testing.assert_allclose(parameter.numpy(), real + 1j * imag, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("fused", [True, False])
def test_not_contiguous(rng, fused):
    start, grad = rng.standard_normal((4, 3)), rng.standard_normal((3, 4))
    parameter = candelabra.tensor(start.T.copy()).t()
    parameter.grad = candelabra.tensor(grad).t()
    optimizer = optim.SGD([parameter], lr=0.5, momentum=0.9, fused=fused)
    optimizer.step()
    optimizer.step()
    np.testing.assert_allclose(parameter.numpy(), RULES["SGD"](start, [grad.T] * 2, lr=0.5, momentum=0.9))


def test_gradients_are_not_changed(rng):
    for name, options in CONFIGURATIONS:
        for fused in (None, False):
            parameter = candelabra.tensor(rng.standard_normal(4))
            parameter.grad = candelabra.tensor(rng.standard_normal(4))
            before = parameter.grad.numpy().copy()
            getattr(optim, name)([parameter], **options, **path(name, fused)).step()
            np.testing.assert_array_equal(parameter.grad.numpy(), before)


def test_learning_rate_as_a_tensor(rng):
    start, grad = rng.standard_normal(3), rng.standard_normal(3)
    for name in RULES:
        lr = candelabra.tensor(0.25)
        parameter = candelabra.tensor(start)
        parameter.grad = candelabra.tensor(grad)
        optimizer = getattr(optim, name)([parameter], lr=lr)
        optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        optimizer.step()
        assert optimizer.param_groups[0]["lr"] is lr
        np.testing.assert_allclose(parameter.numpy(), RULES[name](start, [grad], lr=0.25))


def test_requires_grad_parameters_are_stepped_unrecorded():
    parameter = candelabra.ones(3, requires_grad=True)
    for name, options in CONFIGURATIONS:
        for fused in (None, False):
            parameter.grad = candelabra.ones(3)
            optimizer = getattr(optim, name)([parameter], **options, **path(name, fused))
            optimizer.step()
            assert parameter.is_leaf and parameter.grad_fn is None
            assert not any(
                v.requires_grad
                for s in optimizer.state.values()
                for v in s.values()
                if isinstance(v, candelabra.Tensor)
            )


def watched(optimizer):
    """Return a list that records the number of parameters in each call of the operator."""
    real, calls = optimizer._operator, []
    optimizer._operator = lambda *arguments: calls.append(len(arguments[0])) or real(*arguments)
    return calls


@pytest.mark.parametrize("name", RULES)
def test_one_call_a_step(name):
    parameters = [candelabra.zeros(3) for _ in range(5)]
    for parameter in parameters:
        parameter.grad = candelabra.ones(3)
    optimizer = getattr(optim, name)(parameters)
    optimizer.step()
    there = has_kernel(optimizer._operator, parameters[0])  # some devices have none
    calls = watched(optimizer)
    optimizer.step()
    assert calls == ([5] if there else [])
    plain = getattr(optim, name)(parameters, **path(name, False))
    plain.step()
    calls = watched(plain)
    plain.step()
    assert calls == []


def test_one_call_for_parameters_with_the_same_numbers(rng):
    """ASGD's rates and NAdam's product are per parameter. In a loaded state dict they may differ at
    the same step count.
    """
    for name, number, values in (("ASGD", "eta", [0.1, 0.2, 0.1]), ("NAdam", "mu_product", [0.5, 0.25, 0.5])):
        starts, grads = rng.standard_normal((2, 3, 4))
        results = []
        for fused in (None, False):
            parameters = [candelabra.tensor(start) for start in starts]
            optimizer = getattr(optim, name)(parameters, **path(name, fused))
            for parameter, grad in zip(parameters, grads, strict=True):
                parameter.grad = candelabra.tensor(grad)
            optimizer.step()
            for parameter, value in zip(parameters, values, strict=True):
                optimizer.state[parameter][number] = value
            there = has_kernel(optimizer._operator, parameters[0])
            calls = watched(optimizer)
            optimizer.step()
            assert calls == ([2, 1] if fused is None and there else [])
            results.append(parameters)
        for one, two in zip(*results, strict=True):
            np.testing.assert_allclose(one.numpy(), two.numpy(), rtol=1e-12)


@pytest.mark.parametrize("name", FUSED_UNASKED)
def test_without_a_kernel_steps_are_plain(rng, name, monkeypatch):
    monkeypatch.setattr("candelabra.optim.fused.has_kernel", lambda operator, parameter: False)
    start, grads = rng.standard_normal(4), rng.standard_normal((3, 4))
    parameter = candelabra.tensor(start)
    optimizer = getattr(optim, name)([parameter], lr=0.05)
    calls = watched(optimizer)
    for grad in grads:
        parameter.grad = candelabra.tensor(grad)
        optimizer.step()
    assert calls == []
    np.testing.assert_allclose(parameter.numpy(), RULES[name](start, list(grads), lr=0.05), rtol=1e-12)


def test_conversion_between_steps():
    parameters = [candelabra.zeros(3), candelabra.zeros(3)]
    optimizer = optim.SGD(parameters, lr=1.0)
    for parameter in parameters:
        parameter.grad = candelabra.ones(3)
    optimizer.step()
    parameters[1].grad = None
    parameters[1].data = parameters[1].double()
    parameters[1].grad = candelabra.ones(3, dtype=candelabra.float64)
    optimizer.step()
    assert parameters[0].tolist() == parameters[1].tolist() == [-2.0] * 3
    optimizer.param_groups[0]["params"].append(new := candelabra.zeros(1))
    new.grad = candelabra.ones(1)
    optimizer.step()
    assert new.item() == -1 and parameters[0][0].item() == -3
