"""Test gradients through recurrent layers, packed sequences, parametrizations, pruning,
functional_call and DataParallel.
"""

import copy

import numpy as np
import pytest

import candelabra
from candelabra import nn
from candelabra.nn.modules.base.conversion import Conversion
from candelabra.nn.utils import parametrizations, parametrize, prune, rnn, stateless

F64 = {"dtype": candelabra.float64}


@pytest.fixture(autouse=True)
def seeded():
    candelabra.manual_seed(0)


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_recurrent_layers(kind, packed):
    options = {"proj_size": 2} if kind is nn.LSTM else {}
    net = kind(4, 3, 2, bidirectional=True, **options, **F64)
    x = candelabra.randn(5, 3, 4, **F64).requires_grad_()

    def loss(net):
        given = rnn.pack_padded_sequence(x, [2, 5, 3], enforce_sorted=False) if packed else x
        output, _ = net(given)
        return (output.data if packed else output).square().sum()

    loss(net).backward()
    assert x.grad is not None and all(p.grad is not None and bool(p.grad.any()) for p in net.parameters())
    # Compare with a difference quotient for one parameter of each kind.
    for name in ("weight_ih_l0", "weight_hh_l1", "bias_hh_l0_reverse"):
        slope, eps, losses = float(net.get_parameter(name).grad.flatten()[1]), 1e-6, []
        for sign in (1, -1):
            moved = copy.deepcopy(net)
            with candelabra.no_grad():
                moved.get_parameter(name).view(-1)[1] += sign * eps
                losses.append(float(loss(moved)))
        assert abs((losses[0] - losses[1]) / (2 * eps) - slope) < 1e-5 * max(1, abs(slope))


def test_padding_gets_no_gradient():
    x = candelabra.randn(4, 2, 1, **F64).requires_grad_()
    rnn.pad_packed_sequence(rnn.pack_padded_sequence(x, [4, 2]))[0].square().sum().backward()
    expected = 2 * x.detach().numpy()
    expected[2:, 1] = 0
    np.testing.assert_allclose(x.grad.numpy(), expected)


def test_transformer_and_adaptive_softmax():
    model = nn.Transformer(4, 2, 1, 1, 7, **F64)
    mask = model.generate_square_subsequent_mask(3, dtype=candelabra.float64)
    model(candelabra.randn(5, 2, 4, **F64), candelabra.randn(3, 2, 4, **F64), tgt_mask=mask).square().sum().backward()
    assert all(p.grad is not None for p in model.parameters())
    head = nn.AdaptiveLogSoftmaxWithLoss(8, 12, [4, 7], 2.0, **F64)
    head(candelabra.randn(5, 8, **F64), candelabra.tensor([0, 5, 11, 3, 7])).loss.backward()
    assert all(bool(p.grad.any()) for p in head.parameters())


def test_lazy_layer_is_trained_after_its_first_call():
    layer = nn.LazyLinear(2)
    layer(candelabra.ones(3, 4)).sum().backward()
    assert layer.weight.grad.tolist() == [[3.0] * 4] * 2


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).transpose(-1, -2)


def test_parametrization():
    layer = parametrize.register_parametrization(nn.Linear(3, 3, **F64), "weight", Symmetric())
    x = candelabra.randn(2, 3, **F64)
    layer(x).sum().backward()
    # The weight's gradient of the outputs' sum is 1 x^T. Below the diagonal, it goes to the
    # mirrored element.
    full = np.ones((3, 1)) * x.numpy().sum(0)
    np.testing.assert_allclose(layer.parametrizations.weight.original.grad.numpy(), np.triu(full) + np.triu(full.T, 1))


@pytest.mark.parametrize("dtype", [candelabra.float64, candelabra.complex128])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (2, 5, 3)])
@pytest.mark.parametrize("kind", ["matrix_exp", "cayley", "householder"])
def test_orthogonal_weights_stay_orthogonal(kind, shape, dtype):
    if dtype.is_complex and kind == "householder":
        pytest.skip("reflections are real")
    module = nn.Module()
    module.weight = nn.Parameter(candelabra.randn(shape, dtype=dtype))
    parametrizations.orthogonal(module, "weight", kind)
    target, losses = candelabra.randn(shape, dtype=dtype), []
    original = module.parametrizations.weight.original
    for _ in range(20):
        loss = (module.weight - target).abs().square().sum()
        loss.backward()
        losses.append(float(loss))
        with candelabra.no_grad():
            original.sub_(0.02 * original.grad)
        original.grad = None
    assert losses[-1] < losses[0]
    w = module.weight.detach().numpy()
    w = w if shape[-2] <= shape[-1] else w.swapaxes(-1, -2)
    product = w @ w.conj().swapaxes(-1, -2)
    np.testing.assert_allclose(product, np.broadcast_to(np.eye(min(shape[-2:])), product.shape), atol=1e-12)


@pytest.mark.filterwarnings("ignore:`nn.utils.weight_norm`")
@pytest.mark.parametrize(
    "function",
    [parametrizations.weight_norm, parametrizations.spectral_norm, nn.utils.weight_norm, nn.utils.spectral_norm],
)
def test_normalized_weights(function):
    layer = function(nn.Linear(3, 4, **F64))
    x = candelabra.randn(2, 3, **F64)
    # Make two calls in training mode, then backward through both. The power iteration updates its
    # vectors in between.
    (layer(x).sum() - layer(x).square().sum()).backward()
    for name, parameter in layer.named_parameters():
        assert parameter.grad is not None, name
        if name.endswith(("weight_v", "original1")):
            # The norm of the direction has no effect, so the gradient is orthogonal to it.
            np.testing.assert_allclose((parameter * parameter.grad).sum(1).detach().numpy(), 0, atol=1e-10)


def test_what_is_pruned_gets_no_gradient():
    layer = prune.l1_unstructured(nn.Linear(4, 3, **F64), "weight", amount=5)
    layer(candelabra.ones(1, 4, **F64)).sum().backward()
    np.testing.assert_array_equal(layer.weight_orig.grad.numpy(), layer.weight_mask.numpy())


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2, **F64)
        self.tied = self.layer.weight

    def forward(self, x):
        return self.layer(x) + self.tied.sum()


@pytest.mark.filterwarnings("ignore:`nn.utils.stateless")
def test_functional_call():
    model, x = Tied(), candelabra.randn(3, 2, **F64)
    weight = candelabra.ones(2, 2, **F64).requires_grad_()
    stateless.functional_call(model, {"layer.weight": weight}, x).sum().backward()
    # The weight has two names: one use in the product, one in the sum.
    np.testing.assert_allclose(weight.grad.numpy(), np.ones((2, 1)) * x.numpy().sum(0) + 6)
    assert model.layer.weight.grad is None and isinstance(model.layer.weight, nn.Parameter)


def test_data_parallel():
    model = nn.Sequential(nn.Linear(3, 4, **F64), nn.Tanh(), nn.Linear(4, 2, **F64))
    spread, x = nn.DataParallel(model, ["cpu", "cpu", "cpu"]), candelabra.randn(7, 3, **F64)
    spread(x).square().sum().backward()
    found = [p.grad.numpy().copy() for p in model.parameters()]
    model.zero_grad()
    model(x).square().sum().backward()
    for ours, parameter in zip(found, model.parameters(), strict=True):
        np.testing.assert_allclose(parameter.grad.numpy(), ours)
    with candelabra.no_grad():
        assert not spread(x).requires_grad


def test_backward_hooks_of_one_name_only():
    layer = nn.Linear(2, 2)
    handle = layer.register_backward_hook(lambda *_: None)
    with pytest.raises(
        RuntimeError, match="Cannot use both regular backward hooks and full backward hooks on a single Module"
    ):
        layer.register_full_backward_hook(lambda *_: None)
    handle.remove()
    layer.register_full_backward_hook(lambda *_: None)
    everywhere = nn.modules.module.register_module_full_backward_hook(lambda *_: None)
    try:
        with pytest.raises(RuntimeError, match="as a global Module hook"):
            nn.modules.module.register_module_backward_hook(lambda *_: None)
    finally:
        everywhere.remove()


def test_gradients_after_parameters_were_swapped(monkeypatch):
    monkeypatch.setattr(Conversion, "_swaps", True)
    layer = nn.Linear(2, 2)
    layer(candelabra.ones(1, 2)).sum().backward()
    layer.double()
    layer(candelabra.ones(1, 2, dtype=candelabra.float64)).sum().backward()
    assert layer.weight.grad.tolist() == [[2, 2], [2, 2]]
