"""Test custom operators with autograd and transforms: gradients, batches, tangents, errors."""

import doctest
import importlib

import numpy as np
import pytest

import candelabra
from candelabra import Tensor, func, library
from candelabra.autograd import gradcheck, gradgradcheck


def define(name, function, mutates_args=(), **options):
    return library.custom_op(f"testgrad::{name}", function, mutates_args=mutates_args, **options)


def numpy_cube(x: Tensor) -> Tensor:
    return candelabra.from_numpy(x.numpy() ** 3)


def cube_with_gradient(name="cube"):
    operator = define(name, numpy_cube)
    operator.register_autograd(
        lambda ctx, grad: grad * 3 * ctx.saved_tensors[0] ** 2,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
    )
    return operator


def values(*shape, seed=0):
    return candelabra.from_numpy(np.random.default_rng(seed).normal(size=shape))


def test_a_gradient_and_its_gradient():
    cube = cube_with_gradient()
    x = values(4).requires_grad_()
    result = cube(x)
    assert result.grad_fn.name() == "GeneratedBackwardFor_testgrad_cube_defaultBackward"
    result.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 3 * x.detach().numpy() ** 2)
    assert gradcheck(cube, x, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(cube, x)
    assert set(
        library.opcheck(
            cube, (x,), test_utils=("test_schema", "test_autograd_registration", "test_aot_dispatch_dynamic")
        ).values()
    ) == {"SUCCESS"}


def test_without_a_formula_walking_back_says_so():
    operator = define("no_formula", numpy_cube)
    x = values(2).requires_grad_()
    result = operator(x)
    assert result.requires_grad
    with pytest.raises(
        RuntimeError, match="backward through testgrad::no_formula but no autograd formula was registered. Please use"
    ):
        result.sum().backward()
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        func.grad(lambda x: operator(x).sum())(x.detach())
    with candelabra.no_grad():
        assert not operator(x).requires_grad
    with pytest.raises(library.OpCheckError, match="has no gradient"):
        library.opcheck(operator, (x,), test_utils="test_autograd_registration")
    # A formula that is registered later applies to later calls.
    operator.register_autograd(lambda ctx, grad: grad * 0 + 1)
    (grad,) = candelabra.autograd.grad(operator(x).sum(), x)
    assert grad.tolist() == [1.0, 1.0]


def test_transformations():
    cube = cube_with_gradient("transformed")
    x = values(3, 4)
    expected = 3 * x.numpy() ** 2
    np.testing.assert_allclose(func.grad(lambda x: cube(x).sum())(x).numpy(), expected)
    np.testing.assert_allclose(func.vmap(func.grad(lambda row: cube(row).sum()))(x).numpy(), expected)
    value, tangent = func.jvp(cube, (x,), (candelabra.ones_like(x),))
    np.testing.assert_allclose(value.numpy(), x.numpy() ** 3)
    np.testing.assert_allclose(tangent.numpy(), expected)
    np.testing.assert_allclose(func.hessian(lambda row: cube(row).sum())(x[0]).numpy(), np.diag(6 * x[0].numpy()))


def test_lists_options_and_keywords():
    def combine(
        xs: list[Tensor], weight: Tensor | None, scale: float, *, power: int = 1
    ) -> tuple[Tensor, list[Tensor]]:
        raise NotImplementedError

    schema = "(Tensor[] xs, Tensor? weight, float scale, *, int power=1) -> (Tensor, Tensor)"

    def kernel(xs, weight, scale, *, power):
        total = sum(x.numpy() for x in xs)
        weighted = total * (1 if weight is None else weight.numpy())
        return candelabra.from_numpy(weighted * scale), candelabra.from_numpy(total**power)

    operator = define("combine", kernel, schema=schema)
    seen = []

    def setup(ctx, inputs, keyword_only_inputs, output):
        xs, weight, scale = inputs
        seen.append((type(xs), ctx.needs_input_grad, keyword_only_inputs))
        ctx.scale, ctx.power, ctx.weighted = scale, keyword_only_inputs["power"], weight is not None
        ctx.save_for_backward(*xs, *([weight] if weight is not None else []))

    def backward(ctx, of_weighted, of_power):
        saved = list(ctx.saved_tensors)
        weight = saved.pop() if ctx.weighted else None
        total = sum(saved[1:], saved[0])
        each = of_weighted * ctx.scale * (1 if weight is None else weight) + of_power * ctx.power * total ** (
            ctx.power - 1
        )
        return (
            [each if needed else None for needed in ctx.needs_input_grad[0]],
            None if weight is None else of_weighted * total * ctx.scale,
            None,
        )

    operator.register_autograd(backward, setup_context=setup)
    a, b, w = (values(3, seed=seed).requires_grad_() for seed in range(3))
    assert gradcheck(lambda a, b, w: operator([a, b], w, 2.0, power=3), (a, b, w))
    assert gradgradcheck(lambda a, b, w: operator([a, b], w, 2.0, power=3), (a, b, w))
    operator([a, b.detach()], None, 2.0)[0].sum().backward()
    assert a.grad.tolist() == [2.0, 2.0, 2.0]
    assert seen[-1] == (list, ([True, False], False, False), {"power": 1})


def test_results_in_a_list():
    def halves(xs: list[Tensor]) -> list[Tensor]:
        return [candelabra.from_numpy(x.numpy() / 2) for x in xs]

    operator = define("halves", halves)
    operator.register_autograd(lambda ctx, grads: [grad / 2 for grad in grads])
    a, b = values(2).requires_grad_(), values(3).requires_grad_()
    first, second = operator([a, b])
    (first.sum() + 2 * second.sum()).backward()
    assert a.grad.tolist() == [0.5, 0.5]
    assert b.grad.tolist() == [1.0, 1.0, 1.0]


def test_wrong_formulas():
    x = values(2).requires_grad_()
    operator = define("wrong", numpy_cube)
    operator.register_autograd(lambda ctx, grad: (grad, grad))
    with pytest.raises(RuntimeError, match=r"incorrect number of gradients \(expected 1, got 2\)"):
        operator(x).sum().backward()
    operator.register_autograd(lambda ctx, grad: candelabra.ones(5))
    with pytest.raises(RuntimeError, match="invalid gradient at index 0 - got"):
        operator(x).sum().backward()


@pytest.mark.host_only("writes to an array on the memory of a tensor")
def test_operators_that_change_their_arguments():
    def fill(x: Tensor, value: float) -> None:
        x.numpy()[...] = value

    operator = define("fill", fill, mutates_args={"x"})
    x = values(2).requires_grad_()
    with pytest.raises(RuntimeError, match=r"within candelabra.no_grad\(\)"):
        operator(x, 1.0)
    with candelabra.no_grad():
        operator(x, 1.0)
    assert x.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="Cannot register autograd formula for non-functional operator"):
        operator.register_autograd(lambda ctx, grad: grad)
    # An in-place change of a tensor saved earlier is detected.
    y = values(2).requires_grad_()
    z = y * 1
    result = (z * z).sum()
    with candelabra.no_grad():
        operator(z, 2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.backward()


def test_a_rule_for_batches():
    calls = []

    def dot(x: Tensor, y: Tensor) -> Tensor:
        calls.append(tuple(x.shape))
        return candelabra.from_numpy(np.asarray((x.numpy() * y.numpy()).sum(-1)))

    operator = define("dot", dot)
    x, y = values(3, 4), values(4, 3, seed=1)
    expected = (x.numpy() * y.numpy().T).sum(-1)
    one_by_one = func.vmap(operator, in_dims=(0, 1))(x, y)
    np.testing.assert_allclose(one_by_one.numpy(), expected)
    assert calls == [(4,)] * 3

    @library.register_vmap("testgrad::dot")
    def _(info, in_dims, x, y):
        assert (info.batch_size, in_dims) == (3, (0, 1))
        return operator(x, y.movedim(in_dims[1], 0)), 0

    calls.clear()
    np.testing.assert_allclose(func.vmap(operator, in_dims=(0, 1))(x, y).numpy(), expected)
    assert calls == [(3, 4)]
    operator.register_vmap(lambda info, in_dims, x, y: operator(x, y.T))
    with pytest.raises(RuntimeError, match="must return a pair"):
        func.vmap(operator, in_dims=(0, 1))(x, y)


@pytest.mark.host_only("a kernel for the CPU alone")
def test_operators_of_a_library_are_seen_through():
    own = library.Library("testgrad_open", "DEF")
    own.define("wave(Tensor x) -> Tensor")
    own.impl("wave", lambda x: x.sin() * x, "CPU")
    wave = candelabra.ops.testgrad_open.wave
    x = values(3).requires_grad_()
    assert gradcheck(wave, x, check_forward_ad=True)
    np.testing.assert_allclose(func.vmap(wave)(x.detach()).numpy(), np.sin(x.detach().numpy()) * x.detach().numpy())
    library.register_autograd(wave, lambda ctx, grad: grad * 7)
    (grad,) = candelabra.autograd.grad(wave(x).sum(), x)
    assert grad.tolist() == [7.0, 7.0, 7.0]
    own._destroy()


def test_integers_have_no_gradient():
    def split(x: Tensor) -> tuple[Tensor, Tensor]:
        return candelabra.from_numpy(np.sort(x.numpy())), candelabra.from_numpy(np.argsort(x.numpy()))

    operator = define("split", split)
    operator.register_autograd(
        lambda ctx, grad, _: candelabra.zeros_like(grad).scatter(0, ctx.saved_tensors[0], grad),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output[1]),
    )
    x = values(4).requires_grad_()
    ordered, places = operator(x)
    assert ordered.requires_grad
    assert not places.requires_grad
    assert gradcheck(lambda x: operator(x)[0], x)


def test_complex_gradients():
    operator = define("square", lambda x: candelabra.from_numpy(x.numpy() ** 2), schema="(Tensor x) -> Tensor")
    operator.register_autograd(
        lambda ctx, grad: grad * (2 * ctx.saved_tensors[0]).conj(),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
    )
    x = candelabra.complex(values(3), values(3, seed=1)).requires_grad_()
    assert gradcheck(operator, x)


def test_the_profiler_knows_the_name():
    cube = cube_with_gradient("profiled")
    with candelabra.autograd.profiler.profile() as profile:
        cube(values(2))
    assert "testgrad::profiled" in [average.key for average in profile.key_averages()]


@pytest.mark.host_only("kernels for the CPU alone")
@pytest.mark.parametrize("module", ["checking", "definitions", "registration", "schemas"])
def test_the_examples_of_the_library_run(module):
    found = importlib.import_module(f"candelabra.library.{module}")
    result = doctest.testmod(found)
    assert result.attempted > 0
    assert result.failed == 0
