"""Test gradients of attention and of the CTC loss against finite differences."""

from __future__ import annotations

import pytest

import candelabra
from candelabra import ops
from candelabra.autograd import grad, gradcheck, gradgradcheck


def leaf(*shape: int):
    return candelabra.randn(
        *shape, dtype=candelabra.float64, generator=candelabra.Generator().manual_seed(1)
    ).requires_grad_()


def test_fused_and_decomposed_gradients_agree():
    query, key, value = leaf(1, 2, 70, 4), leaf(1, 2, 140, 4), leaf(1, 2, 140, 3)
    output, _ = ops._scaled_dot_product_attention(query, key, value, None, True, 0.5)
    weight = candelabra.ones_like(output)
    fused = grad(output, (query, key, value), weight, retain_graph=True)
    decomposed = grad(output, (query, key, value), weight, create_graph=True)
    for one, other in zip(fused, decomposed, strict=True):
        assert candelabra.allclose(one, other, rtol=1e-9, atol=1e-11)


def test_ctc_behind_a_softmax():
    targets = candelabra.tensor([[1, 1, 2], [2, 0, 0]])

    def loss(x):
        return ops._ctc_loss(x.log_softmax(2), targets, [5, 3], [3, 1], 0, False)[0]

    assert gradcheck(loss, leaf(5, 2, 3))


def test_ctc_of_no_path():
    x = leaf(2, 1, 3)
    targets = candelabra.tensor([[1, 1, 1]])
    for zero_infinity in (True, False):
        losses = ops._ctc_loss(x.log_softmax(2), targets, [2], [3], 0, zero_infinity)[0]
        assert losses.tolist() == [float("inf")]
        (slope,) = grad(losses.sum(), x)
        assert bool((slope == 0).all()) if zero_infinity else bool(slope.isnan().any())


@pytest.mark.parametrize("zero_infinity", [False, True])
@pytest.mark.parametrize(
    ("targets", "input_lengths", "target_lengths"),
    [
        ([[1, 2, 0], [1, 1, 2]], [6, 4], [2, 3]),  # one row per sequence, with a repeated label
        ([3, 1, 2, 1], [5, 3, 5], [1, 0, 3]),  # concatenated targets, one of them empty
        ([[2]], [1], [1]),
        ([[]], [3], [0]),
    ],
)
def test_second_derivative_of_ctc(targets, input_lengths, target_lengths, zero_infinity):
    targets = candelabra.tensor(targets, dtype=candelabra.int64)

    def loss(x):
        return ops._ctc_loss(x.log_softmax(2), targets, input_lengths, target_lengths, 0, zero_infinity)[0]

    x = leaf(max(input_lengths), len(input_lengths), 4)
    losses = loss(x)
    (fused,) = grad(losses.sum(), x, retain_graph=True)
    (recorded,) = grad(losses.sum(), x, create_graph=True)
    assert candelabra.allclose(fused, recorded, rtol=1e-10, atol=1e-12)
    assert gradgradcheck(loss, x)


def test_recorded_gradient_of_ctc_of_no_path():
    x = leaf(2, 1, 3)
    for zero_infinity in (True, False):
        losses = ops._ctc_loss(x.log_softmax(2), candelabra.tensor([[1, 1, 1]]), [2], [3], 0, zero_infinity)[0]
        (slope,) = grad(losses.sum(), x, create_graph=True)
        assert bool((slope == 0).all()) if zero_infinity else bool(slope.isnan().any())


def test_second_derivative_of_attention_with_numbers_added():
    added = candelabra.zeros(1, 1, 3, 3, dtype=candelabra.float64)
    tensors = (leaf(1, 1, 3, 2), leaf(1, 1, 3, 2), leaf(1, 1, 3, 2))
    assert gradgradcheck(lambda q, k, v: ops._scaled_dot_product_attention(q, k, v, added, False, 1.0)[0], tensors)
