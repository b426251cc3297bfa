"""Tensors as Python objects: formatting, resizing, elementwise Python functions, attributes and
questions.
"""

from __future__ import annotations

import copy

import numpy as np
import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra as c


def test_format():
    assert f"{c.tensor(1.2345):.2f}" == "1.23"
    assert f"{c.tensor(7):>4d}" == "   7"
    assert f"{c.tensor([1.5])}" == "tensor([1.5000])"
    with pytest.raises(TypeError, match="format"):
        f"{c.ones(2):.2f}"


def test_reversed_and_iteration():
    x = c.tensor([[1, 2], [3, 4]])
    assert reversed(x).tolist() == [[3, 4], [1, 2]]
    assert [row.tolist() for row in x] == [[1, 2], [3, 4]]


def test_numpy_leaves_operators_to_tensors():
    x = c.tensor([1.0, 2.0], dtype=c.float64)
    assert isinstance(x * np.float64(2), c.Tensor)
    assert isinstance(np.float64(2) * x, c.Tensor)


def test_apply_and_map():
    x = c.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.apply_(lambda v: v * v) is x
    assert x.tolist() == [[1, 4], [9, 16]]
    assert x.map_(c.tensor([10.0, 20.0]), lambda a, b: a + b).tolist() == [[11, 24], [19, 36]]
    assert c.tensor(3.0).apply_(lambda v: -v).item() == -3
    for call in (lambda g: g.apply_(abs), lambda g: x.map_(g, max), lambda g: x.map2_(x, g, max)):
        with pytest.raises(RuntimeError, match="requires grad"):
            call(c.ones(1, requires_grad=True))
    with pytest.raises(TypeError, match="must be real number, not str"):
        x.apply_(str)


def test_resize():
    x = c.arange(6)
    assert x.resize_(2, 2) is x
    assert x.tolist() == [[0, 1], [2, 3]]
    assert x.resize_(6).tolist() == [0, 1, 2, 3, 4, 5]
    assert x.resize_((2, 4)).shape == (2, 4)
    assert x.flatten()[:6].tolist() == [0, 1, 2, 3, 4, 5]
    assert x.resize_(0).numel() == 0
    assert x.resize_as_(c.ones(1, 3)).tolist() == [[0, 1, 2]]
    view = x[0, 1:]
    x.resize_(99)[1] = 7
    assert view.tolist() == [7, 2]
    exported = x.numpy()
    with pytest.raises(RuntimeError, match="not resizable"):
        x.resize_(1000)
    assert exported[1] == 7
    with pytest.raises(RuntimeError, match="require grad"):
        c.ones(2, requires_grad=True).resize_(1)


def test_set():
    x, y = c.zeros(2), c.arange(6)
    assert y.clone().set_(y).is_set_to(y)
    z = c.empty(0, dtype=c.int64).set_(y, 1, (2, 2))
    z[0, 0] = 100
    assert y.tolist() == [0, 100, 2, 3, 4, 5]
    assert x.set_().shape == (0,)
    with pytest.raises(TypeError, match="list"):
        x.set_([1])


def test_shapes_change_in_place():
    x = c.ones(1, 2)
    assert x.t_().shape == (2, 1)
    assert x.squeeze_().shape == (2,)
    assert x.unsqueeze_(0).shape == (1, 2)
    assert x.transpose_(0, 1).shape == (2, 1)
    with pytest.raises(RuntimeError, match="requires grad"):
        c.ones(1, 2, requires_grad=True).squeeze_()


def test_questions():
    x = c.ones(2, 3)
    assert (x.nelement(), x.ndimension(), x.get_device()) == (6, 2, -1)
    assert x.is_cpu
    assert not (x.is_cuda or x.is_sparse or x.is_quantized or x.is_meta or x.is_shared() or x.is_pinned())
    assert x.layout is c.strided
    assert repr(c.strided) == "candelabra.strided"
    assert x.is_same_size(c.zeros(2, 3))
    assert not x.is_same_size(c.zeros(3, 2))
    assert x.is_set_to(x.view(2, 3))
    assert not x.is_set_to(x.clone())
    assert c.is_tensor(x)
    assert c.is_storage(x.untyped_storage())
    assert c.is_floating_point(x)
    assert not c.is_complex(x)
    assert x.untyped_storage().nbytes() == 24


def test_subclass():
    class Weight(c.Tensor):
        pass

    x = c.ones(2)
    y = x.as_subclass(Weight)
    assert type(y) is Weight
    assert y.data_ptr() == x.data_ptr()
    with pytest.raises(TypeError, match="subclass"):
        x.as_subclass(int)


def test_fill_diagonal():
    x = np.zeros((7, 3))
    for wrap in (False, True):
        wanted = x.copy()
        np.fill_diagonal(wanted, 5, wrap)
        assert c.zeros(7, 3).fill_diagonal_(5, wrap).tolist() == wanted.tolist()
    with pytest.raises(RuntimeError, match="larger than 1"):
        c.zeros(3).fill_diagonal_(1)


def test_detach_in_place():
    x = c.ones(2, requires_grad=True)
    assert x.detach_() is x
    assert not x.requires_grad
    with pytest.raises(RuntimeError, match="views"):
        c.ones(2)[:1].detach_()


def test_format_with_a_graph():
    x = c.tensor(2.5, requires_grad=True)
    assert f"{x:.3f}" == "2.500" and f"{x * 2:5.1f}" == "  5.0" and f"{x}" == "2.5"
    with pytest.raises(TypeError, match="unsupported format string"):
        f"{c.ones(2):.3f}"


def test_shallow_copy_shares_the_memory():
    x = c.ones(2, 3, requires_grad=True)
    x.label = "weight"
    y = copy.copy(x.detach()), copy.copy(x)
    assert y[0] is not x and y[0].data_ptr() == x.data_ptr() and not y[0].requires_grad
    assert y[1].requires_grad and y[1].is_leaf and y[1].label == "weight"
    y[0][0, 0] = 7
    assert x[0, 0].item() == 7
