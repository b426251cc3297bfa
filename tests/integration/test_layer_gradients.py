"""Test gradients of layers and losses against finite differences in float64."""

import numpy as np
import pytest

import candelabra
from candelabra import nn
from candelabra.autograd import gradcheck, gradgradcheck
from candelabra.nn import functional as F

#: Layers, with the shape of their input.
LAYERS = {
    "Linear": (lambda: nn.Linear(3, 2), (4, 3)),
    "Conv1d": (lambda: nn.Conv1d(2, 4, 3, stride=2, padding=1, groups=2), (2, 2, 7)),
    "Conv2d": (lambda: nn.Conv2d(2, 3, (3, 2), padding=1, dilation=(1, 2)), (2, 2, 5, 5)),
    "Conv2d same": (lambda: nn.Conv2d(2, 3, 4, padding="same"), (1, 2, 5, 5)),
    "Conv2d circular": (lambda: nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular"), (1, 2, 4, 4)),
    "Conv2d reflect": (lambda: nn.Conv2d(2, 2, 3, padding=1, padding_mode="reflect"), (2, 4, 4)),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(2, 3, 3, stride=2, output_padding=1), (2, 2, 4)),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(4, 2, 3, stride=2, padding=1, groups=2), (1, 4, 3, 3)),
    "MaxPool2d": (lambda: nn.MaxPool2d(2, padding=1), (1, 2, 5, 5)),
    "AvgPool2d": (lambda: nn.AvgPool2d(3, 2, 1, count_include_pad=False), (1, 2, 5, 5)),
    "AvgPool1d": (lambda: nn.AvgPool1d(2, ceil_mode=True), (2, 5)),
    "AdaptiveAvgPool2d": (lambda: nn.AdaptiveAvgPool2d(3), (1, 2, 5, 4)),
    "AdaptiveMaxPool1d": (lambda: nn.AdaptiveMaxPool1d(3), (2, 7)),
    "LPPool1d": (lambda: nn.LPPool1d(2, 2), (1, 2, 6)),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(3), (5, 3)),
    "BatchNorm2d eval": (lambda: nn.BatchNorm2d(2).eval(), (2, 2, 3, 3)),
    "LayerNorm": (lambda: nn.LayerNorm((2, 3)), (4, 2, 3)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), (2, 4, 3)),
    "InstanceNorm1d": (lambda: nn.InstanceNorm1d(3, affine=True), (2, 3, 4)),
    "RMSNorm": (lambda: nn.RMSNorm(4), (3, 4)),
    "LocalResponseNorm": (lambda: nn.LocalResponseNorm(2), (2, 4, 3)),
    "PReLU": (lambda: nn.PReLU(3), (2, 3, 2)),
    "GLU": (lambda: nn.GLU(), (3, 4)),
    "Softmax": (lambda: nn.Softmax(1), (3, 4)),
    "LogSoftmax": (lambda: nn.LogSoftmax(0), (3, 4)),
    "ReflectionPad2d": (lambda: nn.ReflectionPad2d((1, 2, 0, 1)), (1, 3, 4)),
    "ReplicationPad1d": (lambda: nn.ReplicationPad1d((2, 1)), (2, 3)),
    "CircularPad1d": (lambda: nn.CircularPad1d(2), (2, 3)),
    "ConstantPad2d": (lambda: nn.ConstantPad2d((1, 0, -1, 2), 3.0), (2, 3, 4)),
    "Unflatten": (lambda: nn.Unflatten(1, (2, 2)), (3, 4)),
    **{
        name: (getattr(nn, name), (3, 5))
        for name in (
            "ReLU", "ReLU6", "Hardtanh", "Sigmoid", "Hardsigmoid", "Tanh", "SiLU", "Mish", "Hardswish", "ELU", "CELU", "SELU", "GELU",
            "Hardshrink", "LeakyReLU", "LogSigmoid", "Softplus", "Softshrink", "Softsign", "Tanhshrink", "Softmax2d",
        )
        if name != "Softmax2d"
    },
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_layer(rng, name):
    make, shape = LAYERS[name]
    layer = make().double()
    # Avoid kinks of piecewise functions, and ties for maxima.
    x = rng.permutation(np.linspace(-2.03, 2.11, int(np.prod(shape)))).reshape(shape)
    inputs = (candelabra.tensor(x, requires_grad=True), *layer.parameters())

    def call(x, *parameters):
        return layer(x)

    assert gradcheck(call, inputs)


@pytest.mark.parametrize(
    "name", ["Linear", "Conv2d", "ConvTranspose1d", "BatchNorm1d", "LayerNorm", "GroupNorm", "GELU", "Softmax", "Tanh"]
)
def test_second_derivatives(rng, name):
    make, shape = LAYERS[name]
    layer = make().double()
    x = candelabra.tensor(rng.standard_normal(shape), requires_grad=True)
    assert gradgradcheck(lambda x: layer(x), (x,))


def positive(rng, *shape):
    return rng.random(shape) * 0.8 + 0.1


#: Losses of (input, target), and how both are drawn.
LOSSES = {
    "mse": (F.mse_loss, lambda r: (r.standard_normal((3, 4)), r.standard_normal((3, 4)))),
    "l1": (F.l1_loss, lambda r: (r.standard_normal((3, 4)), r.standard_normal((3, 4)))),
    "smooth l1": (F.smooth_l1_loss, lambda r: (r.standard_normal((3, 4)), r.standard_normal((3, 4)))),
    "huber": (
        lambda x, y: F.huber_loss(x, y, delta=0.5),
        lambda r: (r.standard_normal((3, 4)), r.standard_normal((3, 4))),
    ),
    "cross entropy": (F.cross_entropy, lambda r: (r.standard_normal((3, 4)), r.integers(0, 4, 3))),
    "smoothed": (
        lambda x, y: F.cross_entropy(x, y, label_smoothing=0.2),
        lambda r: (r.standard_normal((3, 4)), r.integers(0, 4, 3)),
    ),
    "probabilities": (F.cross_entropy, lambda r: (r.standard_normal((3, 4)), positive(r, 3, 4))),
    "nll": (F.nll_loss, lambda r: (r.standard_normal((3, 4, 2)), r.integers(0, 4, (3, 2)))),
    "bce": (F.binary_cross_entropy, lambda r: (positive(r, 3, 4), positive(r, 3, 4))),
    "bce logits": (F.binary_cross_entropy_with_logits, lambda r: (r.standard_normal((3, 4)), positive(r, 3, 4))),
    "kl": (lambda x, y: F.kl_div(x, y, reduction="sum"), lambda r: (np.log(positive(r, 3, 4)), positive(r, 3, 4))),
    "poisson": (F.poisson_nll_loss, lambda r: (r.standard_normal((3, 4)), np.floor(5 * positive(r, 3, 4)))),
    "hinge": (F.hinge_embedding_loss, lambda r: (r.standard_normal((3, 4)), np.sign(r.standard_normal((3, 4))))),
    "soft margin": (F.soft_margin_loss, lambda r: (r.standard_normal((3, 4)), np.sign(r.standard_normal((3, 4))))),
    "multi label": (F.multilabel_soft_margin_loss, lambda r: (r.standard_normal((3, 4)), positive(r, 3, 4))),
    "multi margin": (F.multi_margin_loss, lambda r: (r.standard_normal((3, 4)), r.integers(0, 4, 3))),
}


@pytest.mark.parametrize("name", LOSSES)
def test_loss(rng, name):
    loss, draw = LOSSES[name]
    x, y = draw(rng)
    assert gradcheck(lambda x: loss(x, candelabra.tensor(y)), (candelabra.tensor(x, requires_grad=True),))


def test_losses_of_three(rng):
    a, b, c = (candelabra.tensor(rng.standard_normal((3, 4)), requires_grad=True) for _ in range(3))
    assert gradcheck(lambda a, b, c: F.triplet_margin_loss(a, b, c, margin=3.0, swap=True), (a, b, c))
    assert gradcheck(lambda a, b: F.cosine_embedding_loss(a, b, candelabra.tensor([1, -1, 1]), margin=-0.5), (a, b))
    assert gradcheck(lambda a, b: F.gaussian_nll_loss(a, b, c.detach().square() + 0.1), (a, b))
    assert gradcheck(lambda a, b: F.margin_ranking_loss(a, b, candelabra.ones(3, 4), margin=0.3), (a, b))


def test_functions(rng):
    q, k, v = (candelabra.tensor(rng.standard_normal(s), requires_grad=True) for s in ((2, 3, 4), (2, 5, 4), (2, 5, 2)))
    assert gradcheck(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), (q, k, v))
    mask = candelabra.tensor(rng.random((3, 5)) > 0.4)
    assert gradcheck(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, mask), (q, k, v))
    x, y = (candelabra.tensor(rng.standard_normal((3, 4)), requires_grad=True) for _ in range(2))
    assert (
        gradcheck(F.cosine_similarity, (x, y))
        and gradcheck(F.pairwise_distance, (x, y))
        and gradcheck(F.normalize, (x,))
    )
    assert gradcheck(lambda x: F.embedding(candelabra.tensor([0, 2, 2]), x), (x,))
    bilinear = nn.Bilinear(4, 4, 2).double()
    assert gradcheck(lambda x, y, w, b: F.bilinear(x, y, w, b), (x, y, bilinear.weight, bilinear.bias))


def test_padding_row_gets_no_gradient():
    layer = nn.Embedding(4, 2, padding_idx=1)
    layer(candelabra.tensor([1, 2, 2])).sum().backward()
    np.testing.assert_array_equal(layer.weight.grad.numpy(), [[0, 0], [0, 0], [2, 2], [0, 0]])


def test_dropout_passes_the_same_gradient(rng):
    x = candelabra.ones(1000, requires_grad=True)
    y = F.dropout(x, 0.4)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), y.detach().numpy())


def test_edges_of_clipped_activations_have_no_gradient():
    x = candelabra.tensor([-3.0, 0.0, 6.0, 3.0], requires_grad=True)
    F.relu6(x).sum().backward()
    assert x.grad.tolist() == [0, 0, 0, 1]


def test_binary_cross_entropy_at_its_ends_has_finite_gradients():
    p = candelabra.tensor([0.0, 1.0, 0.0, 1.0], requires_grad=True)
    F.binary_cross_entropy(p, candelabra.tensor([0.0, 1.0, 1.0, 0.0]), reduction="sum").backward()
    # As in PyTorch: (p - target) / (p (1 - p)), with a denominator of at least 1e-12.
    np.testing.assert_allclose(p.grad.numpy(), [0, 0, -1e12, 1e12], rtol=1e-6)


def test_clipping_of_real_gradients():
    layer = nn.Linear(3, 3)
    layer(candelabra.ones(2, 3) * 100).sum().backward()
    norm = nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
    total = sum((p.grad.square().sum().item() for p in layer.parameters()), 0.0) ** 0.5
    assert norm.item() > 100 and abs(total - 1) < 1e-4


def test_segments_of_nothing_have_gradients():
    data = candelabra.empty(0, requires_grad=True)
    found = candelabra.segment_reduce(data, "sum", lengths=candelabra.tensor([0, 0]), initial=0)
    found.sum().backward()
    assert found.tolist() == [0.0, 0.0]
    assert data.grad is not None and data.grad.shape == (0,)
