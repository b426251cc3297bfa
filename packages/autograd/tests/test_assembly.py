"""Test gradients of tensors that were split into views: assembled in one buffer, in any order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import candelabra
from candelabra.autograd.assembly import Assembly

#: The shape of the tensor that is split.
SHAPE = (6, 5, 4)


def _views() -> st.SearchStrategy[tuple[str, tuple[int, ...]]]:
    select = st.tuples(
        st.just("select"),
        st.integers(0, 2).flatmap(lambda d: st.tuples(st.just(d), st.integers(-SHAPE[d], SHAPE[d] - 1))),
    )
    narrow = st.tuples(
        st.just("narrow"),
        st.integers(-3, 2).flatmap(
            lambda d: st.integers(0, SHAPE[d]).flatmap(
                lambda at: st.tuples(st.just(d), st.just(at), st.integers(0, SHAPE[d] - at))
            )
        ),
    )
    strided = st.tuples(
        st.just("slice"), st.tuples(st.integers(0, 2), st.integers(-6, 6), st.integers(-6, 6), st.integers(1, 3))
    )
    diagonal = st.tuples(st.just("diagonal"), st.tuples(st.integers(-2, 2), st.just(0), st.just(2)))
    return st.one_of(select, narrow, strided, diagonal)


def _of_tensor(x: candelabra.Tensor, kind: str, arguments: tuple[int, ...]) -> candelabra.Tensor:
    if kind == "slice":
        dim, start, end, step = arguments
        return x[(slice(None),) * dim + (slice(start, end, step),)]
    return getattr(x, kind)(*arguments)


def _mark(array: np.ndarray, kind: str, arguments: tuple[int, ...], factor: float) -> None:
    """Add a factor to the elements that a view covers."""
    if kind == "select":
        dim, index = arguments
        array[(slice(None),) * dim + (index,)] += factor
    elif kind == "narrow":
        dim, start, length = arguments
        array[(slice(None),) * (dim % 3) + (slice(start, start + length),)] += factor
    elif kind == "slice":
        dim, start, end, step = arguments
        array[(slice(None),) * dim + (slice(start, end, step),)] += factor
    else:
        offset, dim1, dim2 = arguments
        positions = np.zeros(array.shape, dtype=bool)
        for i in range(array.shape[dim1]):
            j = i + offset
            if 0 <= j < array.shape[dim2]:
                index: list[object] = [slice(None)] * 3
                index[dim1], index[dim2] = i, j
                positions[tuple(index)] = True
        array[positions] += factor


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("way", ["leaf", "node", "captured leaf", "captured node"])
@settings(max_examples=25, deadline=None)
@given(views=st.lists(_views(), min_size=1, max_size=6), whole_at=st.one_of(st.none(), st.integers(0, 6)))
def test_any_parts_in_any_order(tracked, create_graph, way, views, whole_at):
    import candelabra.autograd.assembly as module

    before = module._WORTH_TRACKING
    module._WORTH_TRACKING = 0 if tracked else 1 << 30
    try:
        x = candelabra.zeros(SHAPE, dtype=candelabra.float64, requires_grad=True)
        y = x * 3 if "node" in way else x
        expected = np.zeros(SHAPE)
        total = candelabra.zeros((), dtype=candelabra.float64)
        for number, (kind, arguments) in enumerate(views):
            if number == whole_at:
                total = total + (y * 7.0).sum()
                expected += 7
            total = total + (_of_tensor(y, kind, arguments) * float(number + 1)).sum()
            _mark(expected, kind, arguments, number + 1.0)
        target = y if way == "captured node" else x
        if "captured" in way:
            (grad,) = candelabra.autograd.grad(total, target, create_graph=create_graph)
        else:
            total.backward(create_graph=create_graph)
            grad = x.grad
        np.testing.assert_array_equal(
            grad.detach().numpy(), expected * (3 if way in ("node", "captured node") and target is x else 1)
        )
    finally:
        module._WORTH_TRACKING = before


@given(bounds=st.permutations(range(0, 20, 2)), extra=st.lists(st.integers(0, 19), max_size=4))
@settings(max_examples=50, deadline=None)
def test_slices_in_any_order_leave_gaps_at_zero(bounds, extra):
    x = candelabra.zeros(20, 1024, requires_grad=True)
    y = x + 0
    expected = np.zeros(20)
    total = candelabra.zeros(())
    for start in bounds[:7]:
        total = total + y[start : start + 2].sum()
        expected[start : start + 2] += 1
    for at in extra:
        total = total + y[at].sum()
        expected[at] += 1
    total.backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.repeat(expected[:, None], 1024, 1))


def test_a_gradient_that_others_hold_is_not_added_to():
    x = candelabra.zeros(3, 2, requires_grad=True)
    y = x * 1
    part = y[0]
    given_gradient = candelabra.ones(3, 2)
    candelabra.autograd.backward([y, part], [given_gradient, candelabra.ones(2)])
    np.testing.assert_array_equal(given_gradient.numpy(), np.ones((3, 2)))
    np.testing.assert_array_equal(x.grad.numpy(), [[2, 2], [1, 1], [1, 1]])


def test_parts_add_to_the_gradient_that_a_leaf_has():
    x = candelabra.zeros(3, 2, requires_grad=True)
    (x[1] * 2).sum().backward()
    kept = x.grad
    (x[0] * 3 + x[1]).sum().backward()
    assert x.grad is kept
    np.testing.assert_array_equal(kept.numpy(), [[3, 3], [3, 3], [0, 0]])


def test_hooks_see_the_whole_gradient():
    x = candelabra.zeros(3, 2, requires_grad=True)
    y = x * 2
    seen = []
    x.register_hook(lambda grad: seen.append(grad.tolist()))
    y.register_hook(lambda grad: seen.append(grad.tolist()))
    (y[0] + y[2] * 5).sum().backward()
    assert seen == [[[1, 1], [0, 0], [5, 5]], [[2, 2], [0, 0], [10, 10]]]


def test_hooks_of_a_leaf_see_parts_as_one():
    x = candelabra.zeros(3, requires_grad=True)
    seen = []
    x.register_hook(lambda grad: seen.append(grad.tolist()))
    (x[0] + x[1:].sum() * 2).backward()
    assert seen == [[1, 2, 2]]
    np.testing.assert_array_equal(x.grad.numpy(), [1, 2, 2])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex128"])
def test_other_dtypes(dtype):
    x = candelabra.zeros(4, 3, dtype=getattr(candelabra, dtype), requires_grad=True)
    y = x * 1
    total = (y[1:3] * 2).sum() + y[:, 0].sum()
    (total.real if total.is_complex() else total).backward()
    assert x.grad.dtype is x.dtype
    np.testing.assert_array_equal(
        x.grad.to(candelabra.complex128).real.numpy(), [[1, 0, 0], [3, 2, 2], [3, 2, 2], [1, 0, 0]]
    )


def test_gradients_of_gradients_of_parts():
    x = candelabra.randn(5, 3, dtype=candelabra.float64, requires_grad=True)

    def function(x):
        y = x * x
        rows = y.unbind(0)
        first, second = y.split([2, 3])
        return (rows[0] * rows[3] + first.sum(0) * second[1]).sin()

    assert candelabra.autograd.gradcheck(function, (x,))
    assert candelabra.autograd.gradgradcheck(function, (x,))


def test_batches_of_gradients():
    x = candelabra.randn(4, 3, dtype=candelabra.float64, requires_grad=True)
    y = x**2
    out = y[0] * y[2] + y[3]
    vectors = candelabra.eye(3, dtype=candelabra.float64)
    (together,) = candelabra.autograd.grad(out, x, vectors, retain_graph=True, is_grads_batched=True)
    for number in range(3):
        (alone,) = candelabra.autograd.grad(out, x, vectors[number], retain_graph=True)
        np.testing.assert_allclose(together[number].detach().numpy(), alone.numpy())


def test_taking_a_sequence_apart_reads_it_once():
    """Each part's gradient is copied into place. No part allocates a gradient of the full size."""
    made = []
    original = Assembly.__init__

    def counted(self, node, part):
        made.append(node.value_self_shape)
        original(self, node, part)

    Assembly.__init__ = counted
    try:
        x = candelabra.zeros(64, 32, 16, requires_grad=True)
        y = x * 1
        total = candelabra.zeros(32, 16)
        for step in y.unbind(0):
            total = total + step
        total.sum().backward()
    finally:
        Assembly.__init__ = original
    assert made == [(64, 32, 16)]
    np.testing.assert_array_equal(x.grad.numpy(), np.ones((64, 32, 16)))
