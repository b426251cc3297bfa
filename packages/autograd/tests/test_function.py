"""Test custom autograd functions."""

from __future__ import annotations

import gc
import weakref

import numpy
import pytest

import candelabra
from candelabra import autograd
from candelabra.autograd import Function
from candelabra.autograd.function import once_differentiable


def leaf(*values):
    return candelabra.tensor(values, dtype=candelabra.float64, requires_grad=True)


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x**2


def test_first_and_second_derivative():
    x = leaf(0.5, 2.0)
    assert autograd.gradcheck(Cube.apply, x)
    assert autograd.gradgradcheck(Cube.apply, x)
    y = Cube.apply(x)
    assert y.grad_fn.name() == "CubeBackward"
    assert type(y.grad_fn) is Cube._backward_cls


def test_attributes_and_constants_on_ctx():
    class Scale(Function):
        @staticmethod
        def forward(ctx, x, factor, names):
            ctx.factor = factor
            ctx.names = names
            return x * factor

        @staticmethod
        def backward(ctx, grad):
            assert ctx.names == ["a"]
            assert ctx.needs_input_grad == (True, False, False)
            return grad * ctx.factor, None, None

    x = leaf(1.0, 2.0)
    Scale.apply(x, 3, ["a"]).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_saved_result():
    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            result = x.exp()
            ctx.save_for_backward(result)
            return result

        @staticmethod
        def backward(ctx, grad):
            (result,) = ctx.saved_tensors
            return grad * result

    x = leaf(0.5, 1.0)
    assert autograd.gradcheck(Exp.apply, x)
    assert autograd.gradgradcheck(Exp.apply, x)
    gc.collect()
    gc.disable()
    try:
        y = Exp.apply(x)
        reference = weakref.ref(y.grad_fn)
        del y
        assert reference() is None
    finally:
        gc.enable()


def test_setup_context():
    class Multiply(Function):
        @staticmethod
        def forward(x, y):
            return x * y, x + y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, of_product, of_sum):
            x, y = ctx.saved_tensors
            return of_product * y + of_sum, of_product * x + of_sum

    assert autograd.gradcheck(Multiply.apply, (leaf(1.0, 2.0), leaf(3.0, 4.0)))
    assert autograd.gradgradcheck(Multiply.apply, (leaf(1.0, 2.0), leaf(3.0, 4.0)))


def test_several_results_of_which_one_is_used():
    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            assert isinstance(a, candelabra.Tensor)
            return a * 2 + b * 3

    x = leaf(1.0)
    _, second = Two.apply(x)
    assert second.output_nr == 1
    second.sum().backward()
    assert x.grad.item() == 3.0


def test_without_materialized_grads():
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            seen.append((a is None, b is None))
            return b * 3

    x = leaf(1.0)
    Two.apply(x)[1].sum().backward()
    assert seen == [(True, False)]


def test_mark_non_differentiable():
    class Sorted(Function):
        @staticmethod
        def forward(ctx, x):
            values, indices = x.sort()
            rounded = values.round()
            ctx.mark_non_differentiable(rounded)
            ctx.save_for_backward(indices)
            return values, indices, rounded

        @staticmethod
        def backward(ctx, of_values, of_indices, of_rounded):
            (indices,) = ctx.saved_tensors
            return candelabra.zeros_like(of_values).scatter(0, indices, of_values)

    x = leaf(3.0, 1.0, 2.0)
    values, indices, rounded = Sorted.apply(x)
    assert values.requires_grad
    assert not indices.requires_grad
    assert not rounded.requires_grad
    (values * candelabra.tensor([1.0, 2.0, 3.0], dtype=candelabra.float64)).sum().backward()
    assert x.grad.tolist() == [3.0, 1.0, 2.0]


class DoubleInPlace(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def test_mark_dirty():
    x = leaf(1.0, 2.0)
    y = x * 3
    z = DoubleInPlace.apply(y)
    assert z is y
    assert y.grad_fn.name() == "DoubleInPlaceBackward"
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad has been used in an in-place operation"):
        DoubleInPlace.apply(leaf(1.0))


def test_mark_dirty_on_a_view():
    x = leaf(1.0, 2.0)
    y = x * 3
    DoubleInPlace.apply(y[0])
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 3.0]


def test_dirty_has_to_be_returned():
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad

    with pytest.raises(RuntimeError, match="marked as dirty"):
        Wrong.apply(leaf(1.0) * 1)


def test_input_handed_through():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 10

    x = leaf(1.0)
    y = Same.apply(x)
    assert y is not x
    assert x.is_leaf
    y.sum().backward()
    assert x.grad.item() == 10.0
    plain = candelabra.ones(1)
    assert Same.apply(plain) is not plain


def test_once_differentiable():
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            assert not candelabra.is_grad_enabled()
            return grad * 2 * x

    x = leaf(3.0)
    (first,) = autograd.grad(Square.apply(x).sum(), x, create_graph=True)
    assert first.item() == 6.0
    with pytest.raises(
        RuntimeError, match="trying to differentiate twice a function that was marked with @once_differentiable"
    ):
        first.sum().backward()


def function_with(backward, forward=lambda ctx, x: x * 2):
    return type("Made", (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


def test_wrong_gradients():
    x = leaf(1.0, 2.0, 3.0)
    with pytest.raises(
        RuntimeError, match=r"function MadeBackward returned an incorrect number of gradients \(expected 1, got 2\)"
    ):
        function_with(lambda ctx, grad: (grad, grad)).apply(x).sum().backward()
    with pytest.raises(
        RuntimeError,
        match=r"Function MadeBackward returned an invalid gradient at index 0 - got \[7\] but expected shape compatible with \[3\]",
    ):
        function_with(lambda ctx, grad: grad.sum().expand(7)).apply(x).sum().backward()
    with pytest.raises(RuntimeError, match=r"expected Variable or None \(got int\)"):
        function_with(lambda ctx, grad: 3).apply(x).sum().backward()
    with pytest.raises(RuntimeError, match="different than None at position 2"):
        function_with(lambda ctx, grad: (grad, grad), lambda ctx, x, n: x * n).apply(x, 2).sum().backward()
    with pytest.raises(NotImplementedError, match="You must implement either the backward or vjp method"):
        type("Made", (Function,), {"forward": staticmethod(lambda ctx, x: x * 2)}).apply(x).sum().backward()


def test_gradients_are_brought_to_the_input():
    x = candelabra.ones(3, requires_grad=True)
    function_with(lambda ctx, grad: candelabra.ones(2, 3, dtype=candelabra.float64)).apply(x).sum().backward()
    assert x.grad.dtype is candelabra.float32
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_none_gradient_and_trailing_nones():
    x, y = leaf(1.0), leaf(2.0)
    made = function_with(lambda ctx, grad: (None, grad, None, None), lambda ctx, a, b: a + b)
    made.apply(x, y).sum().backward()
    assert x.grad is None
    assert y.grad.item() == 1.0


def test_saved_tensors_are_checked_and_freed():
    x = leaf(1.0, 2.0)
    y = x * 1
    z = Cube.apply(y)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    z = Cube.apply(x).sum()
    z.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        z.backward()


def test_only_tensors_are_saved():
    with pytest.raises(TypeError, match="save_for_backward can only save variables"):
        function_with(lambda ctx, grad: grad, lambda ctx, x: ctx.save_for_backward(3)).apply(leaf(1.0))


def test_not_instantiated():
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        made = Cube()
    with pytest.raises(RuntimeError, match="Legacy autograd function with non-static forward method is deprecated"):
        made(leaf(1.0))


def test_an_input_returned_as_is_is_saved_as_the_input():
    seen = []

    class Same(candelabra.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            seen.append(ctx.saved_tensors[0])
            return grad

    x = leaf(1.0)
    Same.apply(x).sum().backward()
    assert seen[0].requires_grad and seen[0].grad_fn is None and seen[0].data_ptr() == x.data_ptr()


def test_without_recording():
    with candelabra.no_grad():
        assert not Cube.apply(leaf(1.0)).requires_grad
    assert not Cube.apply(candelabra.ones(1)).requires_grad


def test_results_in_containers():
    made = function_with(lambda ctx, a, b: a + b, lambda ctx, x: [x * 1, x * 2])
    results = made.apply(leaf(1.0))
    assert isinstance(results, list)
    assert all(one.requires_grad for one in results)


def test_vjp_is_another_name_of_backward():
    made = type(
        "Made",
        (Function,),
        {"forward": staticmethod(lambda ctx, x: x * 2), "vjp": staticmethod(lambda ctx, grad: grad * 2)},
    )
    x = leaf(1.0)
    made.apply(x).sum().backward()
    numpy.testing.assert_array_equal(x.grad.numpy(), [2.0])


def test_results_that_are_no_tensors_are_returned_as_they_are():
    class Count(Function):
        @staticmethod
        def forward(ctx, x):
            return {"number": x.numel()}

    assert Count.apply(candelabra.ones(2, requires_grad=True)) == {"number": 2}


def test_marks_and_formulas_are_checked():
    class Marked(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_non_differentiable(3)
            return x * 2

    with pytest.raises(RuntimeError, match="^mark_non_differentiable only accepts variable arguments"):
        Marked.apply(candelabra.ones(2, requires_grad=True))

    class Both(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad

        @staticmethod
        def vjp(ctx, grad):
            return grad

    with pytest.raises(
        RuntimeError, match="^Implementing both 'backward' and 'vjp' for a custom Function is not allowed"
    ):
        Both.apply(candelabra.ones(2, requires_grad=True)).sum().backward()

    class Saving(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, 3)
            return x * 2

    with pytest.raises(TypeError, match="^save_for_backward can only save variables, but argument 1 is of type int"):
        Saving.apply(candelabra.ones(2, requires_grad=True))


def test_gradients_of_results_that_have_none():
    seen = []

    class Several(candelabra.autograd.Function):
        @staticmethod
        def forward(ctx, x, materialize):
            constant = x.clone()
            ctx.mark_non_differentiable(constant)
            ctx._materialize_non_diff_grads = materialize
            return x.clone(), constant, 3

        @staticmethod
        def backward(ctx, *gradients):
            seen.append(gradients[1:])
            return gradients[0], None

    for materialize in (True, False):
        Several.apply(leaf(1.0), materialize)[0].sum().backward()
    assert seen[0][0].tolist() == [0.0] and seen[0][1] is None
    assert seen[1] == (None, None)


def test_views_that_a_function_returns_are_not_changed_in_place():
    class Flat(candelabra.autograd.Function):
        @staticmethod
        def forward(ctx, x, count):
            views = [x.view(-1) for _ in range(count)]
            return views[0] if count == 1 else tuple(views)

        @staticmethod
        def backward(ctx, *grads):
            return sum(grads).view(2, 2), None

    class Same(candelabra.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad

    x = candelabra.ones(2, 2, requires_grad=True) * 1
    for of in (lambda: Flat.apply(x, 1), lambda: Same.apply(x)):
        with pytest.raises(RuntimeError, match="Output 0 of .* This view was created inside a custom Function"):
            of().mul_(2)
    with pytest.raises(RuntimeError, match="Output 1 of Flat is a view .* function that returns multiple views"):
        Flat.apply(x, 2)[1].mul_(2)


def test_only_tensors_are_marked_dirty():
    class Marks(candelabra.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(3)
            return x * 2

    with pytest.raises(RuntimeError, match="mark_dirty can only accept variables, but argument 0 is of type int"):
        Marks.apply(candelabra.ones(1, requires_grad=True))
