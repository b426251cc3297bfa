"""Test gradients through optimizer steps, and weight averaging, which needs both nn and optim."""

import numpy as np
import pytest

import candelabra
from candelabra import nn, optim
from candelabra.autograd import gradcheck
from candelabra.optim import swa_utils

CONFIGURATIONS = [
    ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("Adam", {"amsgrad": True, "weight_decay": 0.1}),
    ("AdamW", {"maximize": True}),
    ("RMSprop", {"momentum": 0.5, "centered": True}),
    ("Adagrad", {"lr_decay": 0.1}),
    ("Adadelta", {"weight_decay": 0.1, "eps": 1e-3}),
    ("Adamax", {"weight_decay": 0.1}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"betas": (0.5, 0.9)}),
    ("ASGD", {"lambd": 0.1}),
]


@pytest.mark.parametrize(("name", "options"), CONFIGURATIONS, ids=str)
def test_gradients_go_back_through_several_steps(name, options):
    rng = np.random.default_rng(2)
    start = candelabra.tensor(rng.standard_normal(3), requires_grad=True)
    grads = candelabra.tensor(rng.standard_normal((8, 3)), requires_grad=True)

    def stepped(start, grads):
        parameter = start.clone()
        optimizer = getattr(optim, name)([parameter], lr=0.05, differentiable=True, **options)
        for grad in grads:
            parameter.grad = grad
            optimizer.step()
        return parameter

    assert gradcheck(stepped, (start, grads))


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam"])
def test_gradient_of_the_learning_rate(name):
    start = candelabra.tensor([1.0, -2.0], dtype=candelabra.float64)
    lr = candelabra.tensor(0.1, dtype=candelabra.float64, requires_grad=True)

    def loss(lr):
        parameter = start.clone()
        optimizer = getattr(optim, name)([parameter], lr=lr, differentiable=True)
        for _ in range(3):
            parameter.grad = 2 * parameter
            optimizer.step()
        return (parameter**2).sum()

    assert gradcheck(loss, (lr,))


def test_averaged_model():
    candelabra.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    averaged = swa_utils.AveragedModel(model)
    moving = swa_utils.AveragedModel(model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.75), use_buffers=True)
    own = swa_utils.AveragedModel(model, avg_fn=lambda average, parameter, count: 2 * parameter - average)
    weights, means = [], []
    for step in range(4):
        with candelabra.no_grad():
            model[0].weight.add_(step)
        model(candelabra.randn(8, 3))
        for one in (averaged, moving, own):
            one.update_parameters(model)
        weights.append(model[0].weight.detach().numpy().copy())
        means.append(model[1].running_mean.numpy().copy())
    np.testing.assert_allclose(averaged.module[0].weight.detach().numpy(), np.mean(weights, axis=0), rtol=1e-5)
    np.testing.assert_array_equal(averaged.module[1].running_mean.numpy(), means[-1])

    def running(values):
        mean = values[0]
        for value in values[1:]:
            mean = 0.75 * mean + 0.25 * value
        return mean

    np.testing.assert_allclose(moving.module[0].weight.detach().numpy(), running(weights), rtol=1e-5)
    np.testing.assert_allclose(moving.module[1].running_mean.numpy(), running(means), rtol=1e-5, atol=1e-6)
    expected = weights[0]
    for weight in weights[1:]:
        expected = 2 * weight - expected
    np.testing.assert_allclose(own.module[0].weight.detach().numpy(), expected, rtol=1e-5)
    assert int(averaged.n_averaged) == 4 and "n_averaged" in averaged.state_dict()
    assert averaged(candelabra.ones(2, 3)).shape == (2, 4)
    with pytest.raises(AssertionError, match="Only one of avg_fn and multi_avg_fn"):
        swa_utils.AveragedModel(model, avg_fn=min, multi_avg_fn=min)
    with pytest.raises(ValueError, match="Invalid decay value 1.5"):
        swa_utils.get_ema_avg_fn(1.5)


def test_update_bn():
    model = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 1)).eval()
    batches = [candelabra.randn(10, 2) + 3 for _ in range(5)]
    swa_utils.update_bn([(batch, None) for batch in batches], model)
    np.testing.assert_allclose(
        model[0].running_mean.numpy(), np.mean([b.numpy() for b in batches], axis=(0, 1)), rtol=1e-5
    )
    assert not model.training and model[0].momentum == 0.1 and int(model[0].num_batches_tracked) == 5


def test_swa_rates_and_errors():
    optimizer = optim.SGD([candelabra.zeros(1)], lr=1.0)
    schedule = swa_utils.SWALR(optimizer, swa_lr=0.2, anneal_epochs=4)
    rates = []
    for _ in range(6):
        optimizer.step()
        schedule.step()
        rates += schedule.get_last_lr()
    expected = [1 + (0.2 - 1) * (1 - np.cos(np.pi * min(t, 4) / 4)) / 2 for t in range(1, 7)]
    np.testing.assert_allclose(rates, expected, rtol=1e-12)
    with pytest.raises(ValueError, match="anneal_strategy must be one of 'cos' or 'linear', instead got flat"):
        swa_utils.SWALR(optimizer, swa_lr=0.2, anneal_strategy="flat")
    with pytest.raises(ValueError, match="anneal_epochs must be equal or greater than 0, got -1"):
        swa_utils.SWALR(optimizer, swa_lr=0.2, anneal_epochs=-1)
