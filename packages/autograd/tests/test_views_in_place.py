"""Views that change in place: their shape with their history, and outputs of functions of
several views.
"""

from __future__ import annotations

import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra


def test_transpose_in_place_continues_the_history():
    x = candelabra.ones(2, 3, requires_grad=True)
    y = x * 2
    y.transpose_(0, 1)
    assert y.shape == (3, 2)
    (y * candelabra.arange(6.0).view(3, 2)).sum().backward()
    assert x.grad.tolist() == [[0, 4, 8], [2, 6, 10]]


def test_transpose_in_place_of_a_view():
    x = candelabra.ones(2, 3, requires_grad=True)
    y = x * 2
    row = y[0:1]
    row.transpose_(0, 1)
    row.mul_(3)
    y.sum().backward()
    assert row.shape == (3, 1)
    assert x.grad.tolist() == [[6, 6, 6], [2, 2, 2]]


def test_other_shapes_in_place():
    x = candelabra.ones(2, 3, requires_grad=True)
    y = x * 2
    assert y.t_().unsqueeze_(0).squeeze_(0).shape == (3, 2)
    y.as_strided_((3,), (1,)).sum().backward()
    assert x.grad.tolist() == [[2, 2, 2], [0, 0, 0]]
    with pytest.raises(
        RuntimeError, match="^a leaf Variable that requires grad is being used in an in-place operation"
    ):
        x.transpose_(0, 1)


_SEVERAL = {
    "chunk": lambda x: x.chunk(2),
    "split": lambda x: x.split(1),
    "unbind": lambda x: x.unbind(),
    "iteration": list,
    "split_with_sizes": lambda x: x.split([1, 1]),
}


@pytest.mark.parametrize("name", _SEVERAL)
def test_one_of_several_views_is_not_changed_in_place(name):
    views_of = _SEVERAL[name]
    x = candelabra.ones(2, 2, requires_grad=True) * 2
    part = views_of(x)[0]
    with pytest.raises(
        RuntimeError, match="^Output 0 of .* is a view and is being modified inplace. This view is the output"
    ):
        part.mul_(2)
    with pytest.raises(RuntimeError, match="is the output of a function that returns multiple views"):
        part[0].mul_(2)
    with pytest.raises(RuntimeError, match="is the output of a function that returns multiple views"):
        views_of(candelabra.ones(2, 2))[0].mul_(candelabra.ones(1, requires_grad=True))
    with candelabra.no_grad():
        part.mul_(2)
    views_of(candelabra.ones(2, 2))[0].mul_(2)
    assert x[0].tolist() == [4, 4]


def test_a_lazy_clone_has_a_history():
    x = candelabra.ones(3, requires_grad=True)
    clone = x._lazy_clone()
    (clone * 2).sum().backward()
    assert clone.requires_grad and x.grad.tolist() == [2, 2, 2]
