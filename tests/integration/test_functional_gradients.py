"""Test gradients of candelabra.nn.functional and top-level functions by finite differences."""

from __future__ import annotations

import math

import numpy as np
import pytest

import candelabra
from candelabra import nn
from candelabra.autograd import gradcheck
from candelabra.nn import functional as F

INDICES, OFFSETS = candelabra.tensor([0, 1, 2, 2, 5, 6, 1]), candelabra.tensor([0, 2, 2, 6])


@pytest.fixture
def leaf():
    generator = np.random.default_rng(0)
    return lambda *shape: candelabra.tensor(generator.standard_normal(shape)).requires_grad_()


def test_attention_masks(leaf):
    tensors = [leaf(2, 3, 4), leaf(2, 5, 4), leaf(2, 5, 3)]
    assert gradcheck(F.scaled_dot_product_attention, (*tensors, leaf(3, 5)))
    hidden = candelabra.tensor([[True] * 5, [False] * 5, [True, False] * 2 + [True]])
    assert gradcheck(lambda *x: F.scaled_dot_product_attention(*x, hidden), tensors)


@pytest.mark.parametrize("need_weights", [True, False])
def test_multi_head_attention(leaf, need_weights):
    def heads(q, k, v, w, b, out, mask):
        return F.multi_head_attention_forward(
            q, k, v, 4, 2, w, b, None, None, False, 0.0, out, None, attn_mask=mask, need_weights=need_weights
        )[0]

    assert gradcheck(
        heads, (leaf(3, 1, 4), leaf(2, 1, 4), leaf(2, 1, 4), leaf(12, 4), leaf(12), leaf(4, 4), leaf(3, 2))
    )


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 2])
def test_bags(leaf, mode, padding):
    assert gradcheck(lambda w: F.embedding_bag(INDICES, w, OFFSETS, mode=mode, padding_idx=padding), leaf(7, 3))


def test_weights_of_samples(leaf):
    def function(table, weights):
        return F.embedding_bag(INDICES, table, OFFSETS, mode="sum", per_sample_weights=weights)

    assert gradcheck(function, (leaf(7, 3), leaf(7)))


def test_gradient_by_frequency(leaf):
    used = (np.bincount(INDICES.numpy(), minlength=7) > 0).astype(float)
    for function in (
        lambda table: F.embedding(INDICES, table, scale_grad_by_freq=True),
        lambda table: F.embedding_bag(INDICES, table, OFFSETS, mode="sum", scale_grad_by_freq=True),
    ):
        table = leaf(7, 3)
        function(table).sum().backward()
        np.testing.assert_allclose(table.grad.numpy(), np.repeat(used[:, None], 3, 1))
    np.testing.assert_allclose(
        F.embedding(INDICES, table, scale_grad_by_freq=True).detach().numpy(), table.detach().numpy()[INDICES.numpy()]
    )


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
def test_segments(leaf, reduce):
    lengths = candelabra.tensor([2, 1, 3])
    assert gradcheck(lambda x: candelabra.segment_reduce(x, reduce, lengths=lengths), leaf(6, 3))


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, np.inf])
def test_pdist(leaf, p):
    assert gradcheck(lambda x: F.pdist(x, p), leaf(5, 4))


def test_statistics_of_groups(leaf):
    assert gradcheck(lambda x: candelabra.native_group_norm(x, None, None, 2, 4, 3, 2, 1e-5), leaf(2, 4, 3))


@pytest.mark.parametrize(("name", "gates"), [("rnn_tanh", 1), ("rnn_relu", 1), ("gru", 3), ("lstm", 4)])
def test_recurrent(leaf, name, gates):
    function, states = getattr(candelabra, name), 2 if name == "lstm" else 1

    def net(x, *rest):
        hx, params = rest[:states], rest[states:]
        return function(x, hx if states == 2 else hx[0], params, True, 1, 0.0, False, False, False)

    def packed(x, *rest):
        hx, params = rest[:states], rest[states:]
        sizes = candelabra.tensor([2, 1])
        return function(x, sizes, hx if states == 2 else hx[0], params, True, 1, 0.0, False, False)

    rest = [leaf(1, 2, 3) for _ in range(states)] + [
        leaf(*shape) for shape in ((gates * 3, 2), (gates * 3, 3), (gates * 3,), (gates * 3,))
    ]
    assert gradcheck(net, (leaf(2, 2, 2), *rest))
    assert gradcheck(packed, (leaf(3, 2), *rest))


def test_multilabel_margin(leaf):
    target = candelabra.tensor([[1, -1, 0, 0], [3, 2, -1, 0]])
    assert gradcheck(lambda x: F.multilabel_margin_loss(x, target), leaf(2, 4))


def test_ctc(leaf):
    targets = candelabra.tensor([[1, 1, 2], [2, 0, 0], [1, 2, 0]])

    def loss(x):
        return F.ctc_loss(x.log_softmax(2), targets, [5, 5, 5], [3, 1, 2])

    assert gradcheck(loss, leaf(5, 3, 3))
    x = leaf(5, 3, 3)
    F.ctc_loss(x.log_softmax(2), targets, [2, 5, 5], [3, 1, 2], reduction="sum", zero_infinity=True).backward()
    assert bool((x.grad[:, 0] == 0).all())
    assert bool((x.grad[:, 1] != 0).any())


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_linear_cross_entropy_in_pieces(leaf, reduction):
    x, w, b, target = leaf(7, 3), leaf(5, 3), leaf(5), candelabra.tensor([0, 1, 4, 1, 2, 3, 1])
    gradients = []
    for options in (
        None,
        nn.LinearCrossEntropyOptions(batch_chunk_size=2, chunking_method=None),
        nn.LinearCrossEntropyOptions(),
    ):
        for tensor in (x, w, b):
            tensor.grad = None
        loss = F.linear_cross_entropy(x, w, target, linear_bias=b, ignore_index=1, reduction=reduction, options=options)
        loss.sum().backward()
        gradients.append([tensor.grad.numpy().copy() for tensor in (x, w, b)])
    for other in gradients[1:]:
        for one, two in zip(gradients[0], other, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-10, atol=1e-12)


def test_unpooling_and_fractional_pooling() -> None:
    generator = np.random.default_rng(8)
    values, indices = F.max_pool2d(candelabra.tensor(generator.standard_normal((2, 3, 6, 8))), 2, return_indices=True)
    assert gradcheck(lambda x: F.max_unpool2d(x, indices, 2), values.requires_grad_())
    for pool, sizes, kernel, output in (
        (F.fractional_max_pool2d, (7, 9), (2, 3), (4, 5)),
        (F.fractional_max_pool3d, (6, 7, 5), (2, 3, 2), (3, 2, 3)),
    ):
        samples = candelabra.tensor(generator.random((1, 2, len(sizes))))
        x = candelabra.tensor(generator.permutation(2 * math.prod(sizes)).reshape(1, 2, *sizes) / 10.0).requires_grad_()
        assert gradcheck(lambda x, p=pool, k=kernel, o=output, s=samples: p(x, k, o, _random_samples=s), x)


def test_multilabel_margins_of_many_pairs() -> None:
    """More pairs than one block holds, with no pair at the kink."""
    generator = np.random.default_rng(9)
    target = np.stack([generator.permutation(40) for _ in range(6)])
    for row, count in enumerate((0, 1, 5, 20, 39, 40)):
        if count < 40:
            target[row, count] = -1
    x = candelabra.tensor(generator.standard_normal((6, 40))).requires_grad_()
    assert gradcheck(lambda x: F.multilabel_margin_loss(x, candelabra.tensor(target), reduction="none"), x)
