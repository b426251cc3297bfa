"""Test gradients of indexing and indexed assignment that combine several operators."""

from __future__ import annotations

import numpy as np
import pytest

import candelabra
from candelabra.autograd import gradcheck, gradgradcheck


def leaf(*shape: int, dtype=candelabra.float64):
    return candelabra.randn(*shape, dtype=dtype, generator=candelabra.Generator().manual_seed(2)).requires_grad_()


def test_index_fill_with_a_number_on_the_tape():
    x, value = leaf(2, 3), leaf()
    index = candelabra.tensor([0, 2])
    assert gradcheck(lambda x, value: x.index_fill(1, index, value), (x, value))
    assert gradgradcheck(lambda x, value: x.index_fill(1, index, value), (x, value))
    assert gradcheck(lambda x, value: (x * 1).index_fill_(-1, index, value), (x, value))
    assert gradcheck(lambda value: candelabra.zeros(3, dtype=candelabra.float64).index_fill(0, index, value), (value,))


def test_draws_have_a_gradient_of_zeros():
    p = candelabra.full((3,), 0.5).requires_grad_()
    for draws in (candelabra.bernoulli(p), p.bernoulli(0.25)):
        assert draws.requires_grad
        (slope,) = candelabra.autograd.grad(draws.sum(), p)
        assert slope.tolist() == [0, 0, 0]
    assert not candelabra.bernoulli(p.detach()).requires_grad


@pytest.mark.parametrize("dtype", [candelabra.float64, candelabra.complex128])
@pytest.mark.parametrize("edge_order", [1, 2])
def test_differences_on_grids(dtype, edge_order):
    x = leaf(3, 4, dtype=dtype)
    places = [
        candelabra.tensor([0.0, 1.0, 3.0]).to(candelabra.float64),
        candelabra.tensor([0.0, 0.5, 2.0, 2.5]).to(candelabra.float64),
    ]
    for spacing in (None, 0.5, places):
        assert gradcheck(
            lambda x, spacing=spacing: candelabra.gradient(x, spacing=spacing, edge_order=edge_order), (x,)
        )


def test_complex_logcumsumexp():
    x = leaf(2, 5, dtype=candelabra.complex128)
    assert gradcheck(lambda x: candelabra.logcumsumexp(3 * x, 1), (x,))


def test_sums_into_whole_numbers_do_not_record():
    x = leaf(3)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        candelabra.sum(x, 0, out=candelabra.empty((), dtype=candelabra.int64))
    out = candelabra.empty((), dtype=candelabra.int64)
    assert candelabra.sum(x.detach(), 0, out=out) is out
    assert out.item() == int(np.trunc(x.tolist()).sum())


def test_values_with_dimensions_of_size_1_in_front() -> None:
    x = candelabra.zeros(5, 5, 4, requires_grad=True)
    values = candelabra.ones(1, 1, 1, 1, requires_grad=True)
    weights = candelabra.arange(100.0).reshape(5, 5, 4)
    (x.index_put((candelabra.tensor([2]), candelabra.tensor([4])), values) * weights).sum().backward()
    assert values.grad is not None and x.grad is not None
    assert values.grad.tolist() == [[[[float(sum(range(56, 60)))]]]]
    assert x.grad.sum().item() == sum(range(100)) - sum(range(56, 60))
