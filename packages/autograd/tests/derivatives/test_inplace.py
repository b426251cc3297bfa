"""Test gradients of in-place operations on tensors and views, against out-of-place versions."""

from __future__ import annotations

import numpy
import pytest
from samples import samples

import candelabra
from candelabra import autograd
from candelabra.autograd.recording import AUTOGRAD_FUNCTIONS
from candelabra.catalogue import OPERATORS


def leaf(*shape, seed=0):
    values = numpy.random.default_rng(seed).uniform(0.5, 1.5, shape)
    return candelabra.tensor(values, requires_grad=True)


def gradients(function, *leaves):
    made = function(*leaves)
    return [part.detach().numpy() for part in autograd.grad((made * made).sum(), leaves, materialize_grads=True)]


def check(in_place, reference, *leaves):
    for ours, theirs in zip(gradients(in_place, *leaves), gradients(reference, *leaves), strict=True):
        numpy.testing.assert_allclose(ours, theirs, rtol=1e-12)
    assert autograd.gradcheck(in_place, leaves)
    assert autograd.gradgradcheck(in_place, leaves)


def test_object_stays_and_gets_a_history():
    x = leaf(3)
    y = x * 1
    same = y
    made = y.mul_(2)
    assert made is same
    assert y.grad_fn.name() == "MulBackward0"
    assert y._version == 1


def test_chain_of_in_place_operations():
    def in_place(x):
        y = x * 1
        y.mul_(2)
        y.add_(1)
        y.sin_()
        return y

    check(in_place, lambda x: (x * 2 + 1).sin(), leaf(3))


def test_operand_requires_grad_and_self_does_not():
    def in_place(x):
        y = candelabra.ones(3, dtype=candelabra.float64)
        y.mul_(x)
        y.add_(x, alpha=2)
        assert y.requires_grad
        return y

    check(in_place, lambda x: 3 * x, leaf(3))


def test_self_as_its_own_operand():
    def in_place(x):
        y = x * 1
        y.mul_(y)
        y.add_(y)
        return y

    check(in_place, lambda x: 2 * x * x, leaf(3))


def test_operand_that_is_a_view_of_self():
    def in_place(x):
        y = x * 1
        y.mul_(y.view(3))
        return y

    check(in_place, lambda x: x * x, leaf(3))


@pytest.mark.parametrize(
    "name",
    sorted(
        name
        for name, operator in OPERATORS.items()
        if operator.inplace is not None and operator.inplace.inplace_autograd_function is not None
    ),
)
def test_every_in_place_operator(name):
    """Compare each in-place operator with the out-of-place one, on the samples whose result has the
    shape of the first argument.
    """
    operator, checked = OPERATORS[name], 0
    # The incomplete gamma functions have no gradient for their first argument.
    for arguments, keywords in samples(name, candelabra.float64) if name not in ("igamma", "igammac") else []:
        first = arguments[0]
        if not isinstance(first, candelabra.Tensor) or not first.requires_grad:
            continue
        tensors = [one for one in arguments if isinstance(one, candelabra.Tensor) and one.requires_grad]
        made = operator(*arguments, **keywords)
        if made.shape != first.shape or made.dtype is not first.dtype:
            continue
        weight = candelabra.linspace(0.5, 1.5, made.numel(), dtype=candelabra.float64).reshape(made.shape)
        expected = autograd.grad((made * weight).sum(), tensors)
        changed = first * 1
        result = operator.inplace(changed, *arguments[1:], **keywords)
        assert result is changed
        numpy.testing.assert_allclose(result.detach().numpy(), made.detach().numpy(), rtol=1e-12)
        for ours, theirs in zip(autograd.grad((result * weight).sum(), tensors), expected, strict=True):
            numpy.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-10, atol=1e-12)
        # The same on a view.
        base = candelabra.stack([first * 1, first * 1])
        operator.inplace(base[0], *arguments[1:], **keywords)
        for ours, theirs in zip(autograd.grad((base[0] * weight).sum(), tensors), expected, strict=True):
            numpy.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-10, atol=1e-12)
        checked += 1
    assert checked or name in ("abs_", "igamma", "igammac") or name in AUTOGRAD_FUNCTIONS


def test_view_changes_base():
    def in_place(x):
        y = x * 1
        y[0].mul_(3)
        return y

    check(in_place, lambda x: x * candelabra.tensor([[3.0], [1.0]], dtype=candelabra.float64), leaf(2, 3))


def test_base_changes_view():
    def in_place(x):
        y = x * 1
        v = y[0]
        y.mul_(3)
        return v * 2

    check(in_place, lambda x: x[0] * 6, leaf(2, 3))


def test_view_changes_another_view():
    def in_place(x):
        y = x * 1
        a, b = y[0], y[:, 1]
        a.mul_(3)
        return b.exp()

    check(in_place, lambda x: (x * candelabra.tensor([[3.0], [1.0]], dtype=candelabra.float64))[:, 1].exp(), leaf(2, 3))


def test_view_of_a_view():
    def in_place(x):
        y = x * 1
        v = y[1:]
        w = v[:, 1:].t()
        w.mul_(2)
        v[0].add_(1)
        return y * v.sum()

    def reference(x):
        factor = numpy.ones((3, 3))
        factor[1:, 1:] = 2
        shift = numpy.zeros((3, 3))
        shift[1] = 1
        y = x * candelabra.tensor(factor) + candelabra.tensor(shift)
        return y * y[1:].sum()

    check(in_place, reference, leaf(3, 3))


def test_history_of_views_follows():
    x = leaf(2, 3)
    y = x * 1
    before = y[0]
    y[1].add_(1)
    assert y.grad_fn.name() == "CopySlices"
    assert before.grad_fn.name() == "AsStridedBackward0"
    assert not before.is_leaf


def test_write_of_a_tensor_that_requires_grad_into_zeros():
    def in_place(a, b):
        out = candelabra.zeros(3, 2, dtype=candelabra.float64)
        view = out[2]
        assert not view.requires_grad
        out[0] = a
        out[1] = b * a
        assert view.requires_grad
        return out + view

    check(in_place, lambda a, b: candelabra.stack([a, a * b, a * 0]), leaf(2), leaf(2, seed=1))


def test_setitem_with_masks_and_indices():
    index = candelabra.tensor([2, 0])

    def in_place(a, b):
        out = a * 1
        out[index] = b
        out[candelabra.tensor([False, True, False])] = 2.0
        return out

    def reference(a, b):
        return candelabra.stack([b[1], candelabra.full((2,), 2.0, dtype=candelabra.float64), b[0]])

    check(in_place, reference, leaf(3, 2), leaf(2, 2, seed=1))


def test_fill_and_copy_cut_the_old_history():
    x, y = leaf(3), leaf(3, seed=1)
    a = x * 1
    a.fill_(2)
    assert autograd.grad(a.sum(), x)[0].tolist() == [0.0, 0.0, 0.0]
    b = x * 1
    b.copy_(y)
    of_x, of_y = autograd.grad((b * b).sum(), (x, y))
    assert of_x.tolist() == [0.0, 0.0, 0.0]
    numpy.testing.assert_allclose(of_y.numpy(), 2 * y.detach().numpy())


def test_copy_broadcasts_and_converts():
    x = candelabra.ones(2, dtype=candelabra.float32, requires_grad=True)
    out = candelabra.zeros(3, 2, dtype=candelabra.float64)
    out.copy_(x)
    (out * 2).sum().backward()
    assert x.grad.dtype is candelabra.float32
    assert x.grad.tolist() == [6.0, 6.0]


def test_copy_to_integers_is_not_recorded():
    x = leaf(2)
    out = candelabra.zeros(2, dtype=candelabra.int64)
    out.copy_(x)
    assert not out.requires_grad


@pytest.mark.parametrize("name", ["uniform_", "normal_", "bernoulli_", "exponential_"])
def test_random_fills(name):
    x = leaf(4)
    y = x * 1
    getattr(y, name)()
    assert autograd.grad((y * x).sum(), x)[0].tolist() == y.tolist()
    with candelabra.no_grad():
        generator = candelabra.Generator()
        generator.manual_seed(7)
        plain = getattr(candelabra.zeros(4, dtype=candelabra.float64), name)(generator=generator)
    generator.manual_seed(7)
    assert getattr(x * 1, name)(generator=generator).tolist() == plain.tolist()


def test_complex_views_of_parts():
    x = leaf(3)

    def in_place(x):
        z = candelabra.complex(x, x * 2)
        candelabra.view_as_real(z)[..., 0].mul_(3)
        return candelabra.view_as_real(z)

    check(in_place, lambda x: candelabra.stack([3 * x, 2 * x], -1), x)


def test_base_that_is_not_contiguous():
    def in_place(x):
        y = (x * 1).t().clone(memory_format=candelabra.preserve_format)
        y[0].mul_(2)
        return y

    check(in_place, lambda x: x.t() * candelabra.tensor([[2.0], [1.0]], dtype=candelabra.float64), leaf(3, 2))


def test_in_place_on_a_view_made_without_recording():
    x = leaf(2, 2)
    y = x * 1
    with candelabra.no_grad():
        v = y[0]
    y.mul_(2)
    assert v.requires_grad
    (v * 3).sum().backward()
    assert x.grad.tolist() == [[6.0, 6.0], [0.0, 0.0]]


def test_retain_grad_follows():
    x = leaf(2)
    y = x * 1
    y.retain_grad()
    y.mul_(3)
    (y * 5).sum().backward()
    assert y.grad.tolist() == [5.0, 5.0]
    assert x.grad.tolist() == [15.0, 15.0]


def test_detach_in_place():
    x = leaf(2)
    y = x * 1
    y.detach_()
    assert y.is_leaf
    assert not y.requires_grad
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        (x * 1)[0].detach_()


def test_detached_tensor_shares_the_version():
    x = leaf(2)
    y = x * 1
    z = y * y
    y.detach().zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_failed_operation_leaves_the_tensor_as_it_was():
    x = leaf(2)
    y = x * 1
    node = y.grad_fn
    with pytest.raises(RuntimeError):
        y.add_(candelabra.ones(3, dtype=candelabra.float64))
    assert y.grad_fn is node
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("other", [2.0, "a tensor that requires grad"])
@pytest.mark.parametrize("make_base", [lambda leaf: leaf, lambda leaf: leaf * 2])
def test_view_made_without_recording_is_not_changed_with_it(make_base, other):
    base = make_base(candelabra.ones(3, requires_grad=True))
    with candelabra.no_grad():
        view = base[0]
        view_of_view = base[1:][0]
    factor = other if isinstance(other, float) else candelabra.ones((), requires_grad=True)
    for changed in (view, view_of_view):
        with pytest.raises(
            RuntimeError,
            match="A view was created in no_grad mode and is being modified inplace with grad mode enabled",
        ):
            changed.mul_(factor)
    with candelabra.no_grad():
        view.mul_(3.0)
    assert base.tolist()[0] == 3 * base.tolist()[1]


def test_views_of_what_needs_no_gradient_may_be_changed():
    data = candelabra.ones(3)
    with candelabra.no_grad():
        view = data[0]
    view.mul_(2.0)
    assert data.tolist() == [2.0, 1.0, 1.0]
    leaf = candelabra.ones(3, requires_grad=True)
    with candelabra.no_grad():
        detached = leaf.detach()
    detached.mul_(2.0)
    assert leaf.tolist() == [2.0, 2.0, 2.0]


def test_views_of_inference_mode_are_not_changed_in_place_while_recording():
    base = candelabra.ones(4, requires_grad=True) * 1
    with candelabra.inference_mode():
        view = base[:2]
        view.mul_(2)
    assert not view.is_inference()
    with pytest.raises(RuntimeError, match="A view was created in .*views of inference mode are refused too"):
        view.mul_(2)
    plain = candelabra.ones(4)
    with candelabra.inference_mode():
        view = plain[:2]
    assert view.add_(1).tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="views of inference mode are refused too"):
        view.mul_(candelabra.ones(2, requires_grad=True))
