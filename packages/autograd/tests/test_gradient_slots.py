"""Slots of leaves: complete gradients go into buckets, and Python is called once a bucket."""

from __future__ import annotations

import gc
import weakref

import pytest

import candelabra
from candelabra import _C
from candelabra.autograd.engine import queue_callback
from candelabra.autograd.hooks import add_slot


class Observer:
    """Notes what the buckets tell, and has a flat tensor for each."""

    def __init__(self, leaves, numbers=None, keeps_views=False, separate=()):
        self.leaves, self.events = leaves, []
        numbers = [0] * len(leaves) if numbers is None else numbers
        self.flats = []
        views = [None] * len(leaves)
        for number in range(max(numbers) + 1):
            members = [index for index, each in enumerate(numbers) if each == number and index not in separate]
            sizes = [leaves[index].numel() for index in members]
            self.flats.append(candelabra.full((sum(sizes),), 7.0))
            pieces = self.flats[-1].split(sizes) if sizes else ()
            for index, piece in zip(members, pieces, strict=True):
                views[index] = piece.view(leaves[index].shape)
        self.views = views
        self.native = _C.GradientBuckets(leaves, self)
        self.native.assign(numbers, views, keeps_views)
        for index, leaf in enumerate(leaves):
            add_slot(leaf, self.native.slot(index))

    def on_start(self):
        self.events.append("start")
        queue_callback(lambda: self.events.append(("end", self.native.end())))

    def on_full(self, number):
        self.events.append(number)

    def on_repeated(self, index):
        raise RuntimeError(f"twice: {index}")


def leaves_of(count):
    return [candelabra.arange(1.0, 4.0).requires_grad_() for _ in range(count)]


def loss_of(leaves):
    return sum(((leaf * (number + 1)).sum() for number, leaf in enumerate(leaves)), candelabra.zeros(()))


@pytest.mark.parametrize("keeps_views", [False, True])
def test_gradients_lie_in_the_buckets_which_are_full_in_order(keeps_views):
    a, b, c = leaves = leaves_of(3)
    observer = Observer(leaves, [1, 0, 0], keeps_views)
    observer.native.expect(False)
    loss_of(leaves).backward()
    assert observer.events == ["start", 0, 1, ("end", True)]
    assert observer.native.order == [2, 1, 0]
    assert [flat.tolist() for flat in observer.flats] == [[2.0] * 3 + [3.0] * 3, [1.0] * 3]
    for flat in observer.flats:
        flat.mul_(10)
    assert a.grad.tolist() == [10.0 if keeps_views else 1.0] * 3
    observer.native.write_back(None)
    assert [leaf.grad.tolist() for leaf in (a, b, c)] == [[10.0] * 3, [20.0] * 3, [30.0] * 3]
    assert all((leaf.grad is view) == keeps_views for leaf, view in zip(leaves, observer.views, strict=True))


def test_gradients_accumulate_where_they_are():
    (leaf,) = leaves_of(1)
    observer = Observer([leaf], keeps_views=True)
    for factor in (2.0, 3.0, 4.0):
        observer.native.expect(False)
        (leaf * factor).sum().backward()
    assert leaf.grad is observer.views[0]
    assert leaf.grad.tolist() == observer.flats[0].tolist() == [9.0] * 3
    # A gradient of the program's own is accumulated into, and then moves into the bucket.
    own = leaf.grad = candelabra.ones(3)
    observer.native.expect(False)
    (leaf * 2).sum().backward()
    assert own.tolist() == [3.0] * 3 and leaf.grad is observer.views[0] and leaf.grad.tolist() == [3.0] * 3


def test_buckets_that_expect_nothing_leave_gradients_alone():
    (leaf,) = leaves_of(1)
    observer = Observer([leaf], keeps_views=True)
    (leaf * 2).sum().backward()
    assert leaf.grad.tolist() == [2.0] * 3 and observer.flats[0].tolist() == [7.0] * 3 and observer.events == []
    observer.native.expect(False)
    observer.native.pause()
    (leaf * 2).sum().backward()
    assert not observer.native.is_expecting and observer.events == [] and leaf.grad.tolist() == [4.0] * 3


def test_a_leaf_that_is_used_several_times_arrives_once():
    a, b = leaves = leaves_of(2)
    observer = Observer(leaves)
    observer.native.expect(False)
    ((a * b).sum() + (a[1:] * 3).sum() + (a * a).sum()).backward()
    assert observer.events == ["start", 0, ("end", True)]
    assert a.grad.tolist() == observer.flats[0][:3].tolist() == [3.0, 9.0, 12.0]
    assert b.grad.tolist() == observer.flats[0][3:].tolist() == [1.0, 2.0, 3.0]


def test_slots_come_after_all_hooks():
    (leaf,) = leaves_of(1)
    observer = Observer([leaf])
    calls = []

    def accumulated(tensor):
        calls.append(("accumulated", tensor.grad.tolist()))
        tensor.grad.mul_(10)

    leaf.register_hook(lambda grad: calls.append(("tensor", grad.tolist())) or grad + 1)
    handle = leaf.register_post_accumulate_grad_hook(accumulated)
    observer.native.expect(False)
    (leaf * 2).sum().backward()
    assert calls == [("tensor", [2.0] * 3), ("accumulated", [3.0] * 3)]
    assert observer.flats[0].tolist() == leaf.grad.tolist() == [30.0] * 3
    handle.remove()
    leaf.grad = None
    observer.native.expect(False)
    (leaf * 2).sum().backward()
    assert observer.flats[0].tolist() == leaf.grad.tolist() == [3.0] * 3


def test_two_buckets_may_have_a_slot_of_one_leaf():
    (leaf,) = leaves_of(1)
    first, second = Observer([leaf]), Observer([leaf])
    second.native.expect(False)
    (leaf * 2).sum().backward()
    assert first.events == [] and second.events == ["start", 0, ("end", True)]
    assert first.flats[0].tolist() == [7.0] * 3 and second.flats[0].tolist() == [2.0] * 3


@pytest.mark.parametrize("keeps_views", [False, True])
def test_gradients_of_other_layouts_and_owners(keeps_views):
    leaf = candelabra.arange(6.0).view(2, 3).t().requires_grad_()
    observer = Observer([leaf], keeps_views=keeps_views)
    for grad in (
        candelabra.arange(6.0).view(3, 2),
        candelabra.arange(6.0).view(2, 3).t(),
        candelabra.ones(1, 1).expand(3, 2),
    ):
        leaf.grad = None
        observer.native.expect(False)
        (leaf * 1).backward(grad)
        assert leaf.grad.tolist() == grad.tolist() == observer.views[0].tolist()
        leaf.grad.add_(1)
        assert grad.tolist() != leaf.grad.tolist()


def test_a_gradient_that_the_program_holds_is_not_taken():
    (leaf,) = leaves_of(1)
    observer = Observer([leaf])
    observer.native.expect(False)
    kept = []
    y = leaf * 2
    y.register_hook(kept.append)
    y.grad_fn.register_hook(lambda inputs, outputs: kept.extend(inputs))
    y.sum().backward()
    assert leaf.grad is not kept[-1] and leaf.grad.data_ptr() != kept[-1].data_ptr()


def test_what_is_missing_comes_in_a_later_pass_or_by_mark():
    a, b = leaves = leaves_of(2)
    observer = Observer(leaves)
    observer.native.expect(False)
    a.sum().backward()
    assert observer.events == ["start", ("end", False)] and observer.native.order == [0]
    b.sum().backward()
    assert observer.events[2:] == ["start", 0, ("end", True)]
    with pytest.raises(RuntimeError, match="twice: 0"):
        a.sum().backward()
    a.grad = b.grad = None
    observer.native.expect(False)
    observer.native.mark([1])
    a.sum().backward()
    assert observer.flats[0].tolist() == [1.0] * 3 + [0.0] * 3 and b.grad is None
    observer.native.write_back([True, False])
    assert b.grad is None
    observer.native.write_back([True, True])
    assert b.grad.tolist() == [0.0] * 3 and b.grad.data_ptr() != observer.views[1].data_ptr()


def test_uses_are_counted_and_waited_for():
    a, b = leaves = leaves_of(2)
    observer = Observer(leaves)
    observer.native.expect(True)
    (a.sum() + b.sum()).backward()
    a.sum().backward()
    assert observer.native.uses == [2, 1] and observer.native.order == []
    a.grad = b.grad = None
    observer.native.expect(False)
    (a.sum() + b.sum()).backward()
    assert observer.native.order == [1]
    a.sum().backward()
    assert observer.native.order == [1, 0] and observer.flats[0].tolist() == [2.0] * 3 + [1.0] * 3


def test_a_gradient_that_is_reduced_where_it_is():
    a, b = leaves = leaves_of(2)
    observer = Observer(leaves, separate=(1,))
    observer.native.expect(False)
    loss_of(leaves).backward()
    assert observer.flats[0].tolist() == [1.0] * 3 and b.grad.tolist() == [2.0] * 3
    observer.flats[0].zero_()
    observer.native.write_back(None)
    assert a.grad.tolist() == [0.0] * 3 and b.grad.tolist() == [2.0] * 3


@pytest.mark.parametrize("keeps_views", [False, True])
def test_recorded_gradients(keeps_views):
    (leaf,) = leaves_of(1)
    observer = Observer([leaf], keeps_views=keeps_views)
    observer.native.expect(False)
    (leaf**3).sum().backward(create_graph=True)
    assert observer.flats[0].tolist() == [3.0, 12.0, 27.0] and not observer.flats[0].requires_grad
    assert leaf.grad.requires_grad != keeps_views


def test_backward_of_some_inputs_only():
    a, _ = leaves = leaves_of(2)
    observer = Observer(leaves)
    observer.native.expect(False)
    loss_of(leaves).backward(inputs=leaves)
    assert observer.events == ["start", 0, ("end", True)]
    assert a.grad.tolist() == [1.0] * 3 and observer.flats[0].tolist() == [1.0] * 3 + [2.0] * 3
    observer.native.expect(False)
    (gradient,) = candelabra.autograd.grad((a * 5).sum(), a)
    assert gradient.tolist() == [5.0] * 3 and a.grad.tolist() == [1.0] * 3 and observer.native.order == []


def test_an_error_of_the_observer_ends_the_pass():
    (leaf,) = leaves_of(1)
    observer = Observer([leaf])
    observer.on_full = lambda number: 1 / 0
    observer.native.expect(False)
    with pytest.raises(ZeroDivisionError):
        leaf.sum().backward()


def test_edges_are_counted_through_all_kinds_of_nodes():
    class Twice(candelabra.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y, x * y

        @staticmethod
        def backward(ctx, first, second):
            return first, second

    a, b = leaves = leaves_of(2)
    for leaf in leaves:
        leaf.register_post_accumulate_grad_hook(lambda leaf: None)
    first, second = Twice.apply(a, b * 2)
    total = first.sum() + second[1:].sum() + a[0] + candelabra.stack([a, b]).sum()
    assert _C.count_leaf_edges([total.grad_fn]) == {id(a): 3, id(b): 2}
    assert _C.count_leaf_edges([]) == {}
    with pytest.raises(TypeError):
        _C.count_leaf_edges(total.grad_fn)


def test_wrong_arguments():
    (leaf,) = leaves_of(1)
    buckets = _C.GradientBuckets([leaf], None)
    for arguments, kind in (
        (([0], [], False), ValueError),
        (([], [None], False), ValueError),
        (([1], [None], False), ValueError),
        (([0], [candelabra.ones(2)], False), ValueError),
        (([0], [3], False), ValueError),
        (([-1], [None], False), OverflowError),
        ((0, [None], False), TypeError),
    ):
        with pytest.raises(kind):
            buckets.assign(*arguments)
    with pytest.raises(IndexError):
        buckets.slot(1)
    with pytest.raises(TypeError):
        _C.GradientBuckets([3], None)
    with pytest.raises(TypeError):
        buckets.slot(0).take(leaf)


def test_nothing_stays_of_buckets_and_leaves():
    leaves = leaves_of(2)
    observer = Observer(leaves, keeps_views=True)
    observer.native.expect(False)
    loss_of(leaves).backward()
    gone = [weakref.ref(each) for each in (*leaves, observer)]
    del leaves, observer
    gc.collect()
    assert [each() for each in gone] == [None] * 3
