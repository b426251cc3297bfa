"""Test autocast and loss scaling: gradients, the cache of cast parameters, function transforms."""

import numpy as np
import pytest

import candelabra
from candelabra import nn, optim
from candelabra.amp import GradScaler
from candelabra.func import vmap


def test_training_in_mixed_precision():
    candelabra.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = optim.Adam(model.parameters(), lr=0.02)
    scaler = GradScaler("cpu", init_scale=1024.0, growth_interval=50)
    x = candelabra.randn(64, 4)
    y = x.sum(1, keepdim=True).sin()
    losses = []
    for _ in range(120):
        optimizer.zero_grad()
        with candelabra.autocast("cpu"):
            out = model(x)
            assert out.dtype == candelabra.bfloat16
            loss = nn.functional.mse_loss(out.float(), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert all(parameter.dtype == parameter.grad.dtype == candelabra.float32 for parameter in model.parameters())
    assert losses[-1] < 0.25 * losses[0] and scaler.get_scale() == 4096.0


def test_a_parameter_is_cast_once_a_block():
    weight = candelabra.ones(3, 3, requires_grad=True)
    x = candelabra.ones(2, 3)
    with candelabra.autocast("cpu"):
        first, second = x @ weight, x @ weight
        nodes = [out.grad_fn.next_functions[-1][0] for out in (first, second)]
        assert nodes[0] is nodes[1]
        with candelabra.no_grad():
            weight.mul_(2)
        assert (x @ weight)[0, 0].item() == 6.0  # the weight changed, so it is cast again
    (first.sum() + second.sum()).backward()
    np.testing.assert_array_equal(weight.grad.numpy(), np.full((3, 3), 4.0))
    with candelabra.autocast("cpu", cache_enabled=False):
        nodes = [(x @ weight).grad_fn.next_functions[-1][0] for _ in range(2)]
        assert nodes[0] is not nodes[1]


def test_autocast_and_transformations():
    matrix = candelabra.ones(3, 3)
    with candelabra.autocast("cpu"):
        assert vmap(lambda row: matrix @ row)(matrix).dtype == candelabra.bfloat16
        assert (matrix @ matrix).dtype == candelabra.bfloat16
    assert vmap(lambda row: matrix @ row)(matrix).dtype == candelabra.float32
    assert candelabra._C.set_dispatch_hook(None) is None


def test_steps_are_in_profiles():
    parameter = candelabra.ones(2)
    parameter.grad = candelabra.ones(2)
    optimizer = optim.SGD([parameter], lr=0.5)
    with candelabra.autograd.profiler.profile() as profile:
        optimizer.step()
    assert [event.name for event in profile.function_events if event.is_user_annotation] == ["Optimizer.step#SGD.step"]
    assert parameter.tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    "name", ["mse_loss", "l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits"]
)
def test_losses_are_in_full_precision(name):
    loss = getattr(nn.functional, name)
    low = candelabra.rand(8, 3).bfloat16()
    with candelabra.autocast("cpu"):
        found = loss(low, target=low.flip(0))
    assert found.dtype == candelabra.float32
    np.testing.assert_allclose(found.item(), loss(low.float(), low.float().flip(0)).item(), rtol=1e-6)
    assert loss(low, low.flip(0)).dtype == candelabra.bfloat16


# As in PyTorch, a GRU updates its state in float32, the dtype of the initial state. Only its matrix
# products use bfloat16.
@pytest.mark.parametrize(
    ("kind", "dtype"), [(nn.LSTM, candelabra.bfloat16), (nn.GRU, candelabra.float32), (nn.RNN, candelabra.bfloat16)]
)
def test_recurrent_nets(kind, dtype):
    candelabra.manual_seed(0)
    net = kind(3, 4)
    x = candelabra.randn(5, 2, 3)
    with candelabra.autocast("cpu"):
        out, _ = net(x)
    assert out.dtype == dtype
    np.testing.assert_allclose(out.detach().float().numpy(), net(x)[0].detach().numpy(), atol=0.03)
    out.float().sum().backward()
    assert all(parameter.grad.dtype == candelabra.float32 for parameter in net.parameters())
