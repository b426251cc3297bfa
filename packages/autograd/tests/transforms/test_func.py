"""Test function transforms: gradients, JVPs, VJPs, Jacobians and Hessians in any nesting, and
functional_call.
"""

from __future__ import annotations

import threading

import pytest

import candelabra
from candelabra import Tensor, ops
from candelabra.func import functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap

D = candelabra.float64


def _x(*shape):
    return candelabra.randn(*shape, dtype=D)


def close(a, b):
    assert candelabra.allclose(a, b, rtol=1e-9, atol=1e-9)


def test_grad_of_a_polynomial_and_of_its_gradient():
    x = candelabra.tensor(2.0, dtype=D)
    cube = lambda x: x**3  # noqa: E731
    for times, expected in enumerate((12.0, 12.0, 6.0, 0.0)):
        function = cube
        for _ in range(times + 1):
            function = grad(function)
        assert function(x).item() == pytest.approx(expected)
        assert not function(x).requires_grad


def test_layers_do_not_see_each_other():
    # The inner derivative is 1 for every x.
    made = grad(lambda x: x * grad(lambda y: x + y)(candelabra.tensor(1.0)))(candelabra.tensor(5.0))
    assert made.item() == 1.0
    made = jvp(
        lambda x: x * jvp(lambda y: x + y, (x,), (candelabra.tensor(1.0),))[1],
        (candelabra.tensor(5.0),),
        (candelabra.tensor(1.0),),
    )
    assert made[1].item() == 1.0


def test_grad_with_respect_to_several_arguments():
    x, y = _x(3), _x(3)
    f = lambda x, y: (x * y.sin()).sum()  # noqa: E731
    of_x, of_y = grad(f, argnums=(0, 1))(x, y)
    close(of_x, y.sin())
    close(of_y, x * y.cos())
    close(grad(f, argnums=-1)(x, y), x * y.cos())
    (gradient, (value, aux)) = grad_and_value(lambda x: (x.sum(), x * 2), has_aux=True)(x)
    close(gradient, candelabra.ones(3, dtype=D))
    close(value, x.sum())
    close(aux, x * 2)
    assert type(aux) is Tensor
    nested = grad(lambda d: (d["a"] * d["b"][0]).sum())({"a": x, "b": [y]})
    close(nested["a"], y)
    close(nested["b"][0], x)


def test_results_lie_on_the_tape_of_what_was_captured():
    w = candelabra.tensor(3.0, dtype=D, requires_grad=True)
    gradient = grad(lambda x: x * x * w)(candelabra.tensor(2.0, dtype=D))
    gradient.backward()
    assert w.grad.item() == 4.0
    with candelabra.no_grad():
        assert not grad(lambda x: x * x * w)(candelabra.tensor(2.0, dtype=D)).requires_grad


def test_what_is_switched_off_inside_is_constant():
    def f(x):
        with candelabra.no_grad():
            constant = x**2
        return (x - constant).sum()

    x = _x(3)
    close(grad(f)(x), candelabra.ones(3, dtype=D))
    close(grad(lambda x: (x.detach() * x).sum())(x), x)
    close(grad(lambda x: grad(lambda x: (x.detach() * x).sum())(x).sum())(x), candelabra.zeros(3, dtype=D))


def test_in_place_operations_and_views():
    def f(x):
        y = candelabra.zeros(3, dtype=x.dtype)
        y[0] = x
        y[1].add_(x * x)
        z = y * 2
        z.mul_(x)
        return z.sum()

    x = candelabra.tensor(2.0, dtype=D)
    assert grad(f)(x).item() == 32.0
    assert grad(grad(f))(x).item() == 28.0
    assert jacfwd(grad(f))(x).item() == 28.0
    assert jacfwd(jacfwd(f))(x).item() == 28.0
    assert vmap(grad(f))(candelabra.stack([x, x])).tolist() == [32.0, 32.0]
    assert grad(lambda x: vmap(f)(x).sum())(candelabra.stack([x, x])).tolist() == [32.0, 32.0]


_FUNCTIONS = {
    "elementwise": lambda x: x.sin() * x.exp(),
    "product": lambda x: x @ x.t(),
    "softmax": lambda x: candelabra.softmax(x, 0),
    "norm": lambda x: candelabra.linalg.vector_norm(x),
    "inverse": lambda x: candelabra.linalg.inv(x @ x.t() + candelabra.eye(x.shape[0], dtype=x.dtype)),
    "sorted": lambda x: x.sort(0)[0].cumsum(0),
    "layer norm": lambda x: ops.native_layer_norm(x, (x.shape[1],), None, None, 1e-3)[0],
    "attention": lambda x: ops._scaled_dot_product_attention(
        x[None, None], x[None, None].sin(), x[None, None], None, False, 0.7
    )[0],
    "convolution": lambda x: ops.convolution(x[None], x[None, :, :1].cos(), None, [1], [0], [1], 1),
    "batch norm": lambda x: ops.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-3)[0],
    "pooling": lambda x: ops.max_pool(x[None], [2], [2], [0], [1], False)[0],
    "complex": lambda x: candelabra.fft.fft(x).abs(),
    "indexing": lambda x: x[[1, 0]] * x.t()[:, 1:],
}


def _of_last_loop(function, x):
    """Compute the Jacobian with one backward per row."""
    from candelabra.autograd.functional import jacobian

    return jacobian(function, x)


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_jacobians_and_hessians(name):
    function = _FUNCTIONS[name]
    x = _x(2, 2) if name == "indexing" else _x(3, 2)
    expected = _of_last_loop(function, x)
    close(jacrev(function)(x), expected)
    close(jacfwd(function)(x), expected)
    close(jacrev(function, chunk_size=2)(x), expected)
    weights = candelabra.cos(candelabra.arange(function(x).numel(), dtype=D)).reshape(function(x).shape)

    def total(x):
        return (function(x) * weights).sum()

    second = candelabra.autograd.functional.hessian(total, x)
    for made in (hessian(total)(x), jacrev(jacrev(total))(x), jacfwd(jacfwd(total))(x), jacrev(jacfwd(total))(x)):
        assert candelabra.allclose(made, second, rtol=1e-7, atol=1e-7)


def test_structures_of_jacobians():
    x, y = _x(2), _x(3)
    function = lambda x, y: {"a": x.sum() * y, "b": (x * 2,)}  # noqa: E731
    for jacobian in (jacrev, jacfwd):
        made = jacobian(function, argnums=(0, 1))(x, y)
        assert made["a"][0].shape == (3, 2) and made["a"][1].shape == (3, 3)
        assert made["b"][0][0].shape == (2, 2) and made["b"][0][1].shape == (2, 3)
        close(made["a"][1], candelabra.eye(3, dtype=D) * x.sum())
        close(made["b"][0][1], candelabra.zeros(2, 3, dtype=D))
        assert jacobian(lambda x: (x**2, x), has_aux=True)(x)[1].shape == (2,)
        assert isinstance(jacobian(lambda x: x, argnums=(0,))(x), tuple)
        assert jacobian(lambda x: x.new_zeros(0))(x).shape == (0, 2)


def test_vjp_and_jvp_are_transposes():
    x, u, v = _x(4), _x(3), _x(4)
    matrix = _x(3, 4)
    function = lambda x: (matrix @ x.exp()).sin()  # noqa: E731
    value, pull = vjp(function, x)
    same, moved = jvp(function, (x,), (v,))
    close(value, same)
    close((u * moved).sum(), (pull(u)[0] * v).sum())
    again = pull(u)[0]
    close(again, pull(u)[0])
    value, push = linearize(function, x)
    close(push(v), moved)
    close(push(2 * v), 2 * moved)


def test_per_sample_gradients():
    weight, data = _x(2, 3), _x(5, 3)
    loss = lambda weight, row: (weight @ row).sin().sum()  # noqa: E731
    made = vmap(grad(loss), in_dims=(None, 0))(weight, data)
    expected = candelabra.stack([(weight @ row).cos().unsqueeze(1) * row for row in data])
    close(made, expected)
    # Second derivatives with respect to a tensor without a batch dimension.
    second = jacrev(lambda weight: vmap(grad(loss), in_dims=(None, 0))(weight, data).sum())(weight)
    expected = candelabra.stack([-(weight @ row).sin().unsqueeze(1) * row * row.sum() for row in data]).sum(0)
    close(second, expected)


def test_modules():
    pytest.importorskip("candelabra.nn")
    layer = candelabra.nn.Linear(3, 2).double()
    parameters = {name: value.detach() for name, value in layer.named_parameters()}
    x = _x(4, 3)
    call = candelabra.func.functional_call
    close(call(layer, parameters, (x,)), layer(x).detach())
    gradients = grad(lambda parameters: call(layer, parameters, (x,)).pow(2).sum())(parameters)
    layer(x).pow(2).sum().backward()
    close(gradients["weight"], layer.weight.grad)
    close(gradients["bias"], layer.bias.grad)
    assert layer.weight.requires_grad
    with pytest.raises(RuntimeError, match="Missing key"):
        call(layer, {"weight": parameters["weight"]}, (x,), strict=True)
    with pytest.raises(RuntimeError, match="Unexpected key"):
        call(layer, parameters | {"other": x}, (x,), strict=True)
    with pytest.raises(ValueError, match="multiple dictionaries"):
        call(layer, (parameters, parameters), (x,))


def test_tied_parameters_and_buffers():
    pytest.importorskip("candelabra.nn")
    first, second = candelabra.nn.Linear(2, 2, bias=False), candelabra.nn.Linear(2, 2, bias=False)
    second.weight = first.weight
    chain = candelabra.nn.Sequential(first, second)
    x = candelabra.ones(1, 2)
    made = candelabra.func.functional_call(chain, {"0.weight": candelabra.eye(2) * 3}, (x,))
    assert made.tolist() == [[9.0, 9.0]]
    norm = candelabra.nn.BatchNorm1d(2)
    values = {"running_mean": candelabra.zeros(2), "running_var": candelabra.ones(2)}
    candelabra.func.functional_call(norm, values, (candelabra.randn(4, 2),))
    assert norm.running_mean.tolist() == [0.0, 0.0]


def test_stacked_modules():
    pytest.importorskip("candelabra.nn")
    layers = [candelabra.nn.Linear(3, 2) for _ in range(4)]
    parameters, buffers = candelabra.func.stack_module_state(layers)
    assert (
        parameters["weight"].shape == (4, 2, 3) and parameters["weight"].requires_grad and parameters["weight"].is_leaf
    )
    x = candelabra.randn(5, 3)
    made = vmap(lambda p, b: candelabra.func.functional_call(layers[0], (p, b), (x,)))(parameters, buffers)
    assert candelabra.allclose(made, candelabra.stack([layer(x) for layer in layers]), atol=1e-6)
    with pytest.raises(RuntimeError, match="at least one model"):
        candelabra.func.stack_module_state([])
    with pytest.raises(RuntimeError, match="same class"):
        candelabra.func.stack_module_state([layers[0], candelabra.nn.Bilinear(2, 2, 2)])
    with pytest.raises(RuntimeError, match="training/eval"):
        candelabra.func.stack_module_state([layers[0], candelabra.nn.Linear(3, 2).eval()])


class _Scaled(candelabra.autograd.Function):
    """x² w, with derivatives scaled by ten, so that a test notices if others are used."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, w):
        return x * x * w

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad * 20 * x * w, grad * x * x * 10

    @staticmethod
    def jvp(ctx, of_x, of_w):
        x, w = ctx.saved_tensors
        return (2 * x * w * of_x + x * x * of_w) * 10


def test_custom_functions():
    x, w = candelabra.tensor([1.0, 2.0, 3.0]), candelabra.tensor(2.0)
    loss = lambda x, w: _Scaled.apply(x, w).sum()  # noqa: E731
    assert grad(loss)(x, w).tolist() == [40.0, 80.0, 120.0]
    assert vmap(grad(loss), (0, None))(x, w).tolist() == [40.0, 80.0, 120.0]
    of_x, of_w = grad(lambda x, w: vmap(lambda x: _Scaled.apply(x, w))(x).sum(), (0, 1))(x, w)
    assert of_x.tolist() == [40.0, 80.0, 120.0] and of_w.item() == 140.0
    assert jvp(loss, (x, w), (candelabra.ones(3), candelabra.ones(())))[1].item() == 380.0
    assert vmap(lambda x: jvp(loss, (x, w), (candelabra.ones(()), candelabra.ones(())))[1])(x).tolist() == [
        50.0,
        120.0,
        210.0,
    ]
    assert jacfwd(grad(loss))(x, w).diagonal().tolist() == [40.0] * 3


def test_a_custom_function_s_own_rule_for_batches():
    class Doubled(candelabra.autograd.Function):
        seen = None

        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, grad):
            return grad * 3

        @staticmethod
        def vmap(info, in_dims, x):
            Doubled.seen = (info.batch_size, in_dims)
            return Doubled.apply(x), in_dims[0]

    x = candelabra.ones(2, 3)
    assert vmap(Doubled.apply, in_dims=1)(x).shape == (3, 2)
    assert Doubled.seen == (3, (1,))
    assert grad(lambda x: vmap(Doubled.apply)(x).sum())(x).tolist() == [[3.0] * 3] * 2


def test_custom_functions_that_cannot_be_transformed():
    class Old(candelabra.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = candelabra.ones(2)
    with pytest.raises(RuntimeError, match="setup_context"):
        grad(lambda x: Old.apply(x).sum())(x)
    with pytest.raises(RuntimeError, match="vmap support"):
        vmap(Old.apply)(x)
    with pytest.raises(NotImplementedError, match="jvp function"):
        jvp(Old.apply, (x,), (x,))


def test_two_threads_do_not_disturb_each_other():
    failures = []

    def work(factor):
        try:
            x = _x(4)
            for _ in range(20):
                close(vmap(grad(lambda x: x**3 * factor))(x), 3 * x**2 * factor)
                y = x.clone().requires_grad_()
                (y**2 * factor).sum().backward()
                close(y.grad, 2 * x * factor)
        except Exception as error:  # re-raised in the main thread
            failures.append(error)

    threads = [threading.Thread(target=work, args=(factor,)) for factor in (2.0, 3.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_an_error_inside_leaves_nothing_behind():
    def fails(x):
        raise ValueError("here")

    for transformed in (
        grad(fails),
        vmap(fails),
        jacfwd(fails),
        lambda x: vjp(fails, x),
        lambda x: jvp(fails, (x,), (x,)),
    ):
        with pytest.raises(ValueError, match="here"):
            transformed(candelabra.ones(2))
    assert candelabra._C.set_dispatch_hook(None) is None
    assert grad(lambda x: x.sum())(candelabra.ones(2)).tolist() == [1.0, 1.0]


def test_errors():
    x = candelabra.ones(2)
    captured = candelabra.zeros(2)
    for function, text in [
        (lambda: grad(lambda x: x)(x), "scalar tensor"),
        (lambda: grad(lambda x: 3)(x), "Expected f\\(\\*args\\) to return a tensor"),
        (lambda: grad(lambda x: x.sum(), has_aux=True)(x), "has_aux is True"),
        (lambda: grad(lambda x: x.sum(), argnums=1)(x), "only 1 positional"),
        (lambda: grad(lambda x: x.sum(), argnums=(0, 0))(x), "unique"),
        (lambda: grad(lambda x: x.sum(), argnums=())(x), "non-empty"),
        (lambda: grad(lambda x: x.sum())(candelabra.ones(2, dtype=candelabra.int64)), "floating point"),
        (lambda: grad(lambda x: x.requires_grad_().sum())(x), "requires_grad_"),
        (lambda: grad(lambda x: captured.add_(x).sum())(x), "mutate a captured Tensor"),
        (lambda: vjp(lambda x: (x, x), x)[1](x), "structure of cotangents"),
        (lambda: vjp(lambda x: (), x), "non-empty output"),
        (lambda: jvp(lambda x: x, x, x), "primals to be a tuple"),
        (lambda: jvp(lambda x: x, (x,), (x, x)), "same python structure"),
        (lambda: jvp(lambda x: x, (x,), (candelabra.ones(3),)), "sizes of its primal"),
        (lambda: jvp(lambda x: candelabra.ones(1), (x,), (x,), strict=True), "independent"),
        (lambda: linearize(lambda x: x, x)[1](candelabra.ones(3)), "same shape"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            function()
    with pytest.raises(ValueError, match="chunk_size"):
        jacrev(lambda x: x, chunk_size=0)
    with pytest.raises(NotImplementedError, match="compiler"):
        functionalize(lambda x: x)


def test_the_tangent_of_a_number_that_is_filled_with():
    index = candelabra.tensor([1])

    def filled(x, value):
        return x.index_fill(0, index, value)

    x, value = candelabra.ones(3), candelabra.tensor(4.0)
    result, tangent = jvp(filled, (x, value), (candelabra.full((3,), 2.0), candelabra.tensor(5.0)))
    assert (result.tolist(), tangent.tolist()) == ([1.0, 4.0, 1.0], [2.0, 5.0, 2.0])
    _, tangent = jvp(
        lambda value: candelabra.zeros(2).index_fill_(0, index, value), (value,), (candelabra.tensor(5.0),)
    )
    assert tangent.tolist() == [0.0, 5.0]


@pytest.mark.parametrize("jacobian", [jacfwd, jacrev])
def test_parameters_get_gradients_through_a_batch_of_jacobians(jacobian):
    weights = [candelabra.randn(4, 3), candelabra.randn(4, 4), candelabra.randn(2, 4)]
    for weight in weights:
        weight.requires_grad_()

    def net(x):
        x = (weights[0] @ x).tanh()
        x = candelabra.ops.gelu(candelabra.sigmoid(weights[1] @ x))
        return weights[2] @ x

    batch = candelabra.randn(5, 3)
    made = vmap(jacobian(net))(batch)
    (made**2).sum().backward()
    batched = [weight.grad for weight in weights]
    for weight in weights:
        weight.grad = None
    one_by_one = candelabra.stack([candelabra.autograd.functional.jacobian(net, x, create_graph=True) for x in batch])
    (one_by_one**2).sum().backward()
    assert candelabra.allclose(made, one_by_one, atol=1e-5)
    for weight, grad_of_batch in zip(weights, batched, strict=True):
        assert candelabra.allclose(grad_of_batch, weight.grad, atol=1e-4)


def test_jacobians_are_of_real_tensors():
    x, z = candelabra.ones(2), candelabra.ones(2, dtype=candelabra.complex64)
    for name, jacobian in (("jacrev", jacrev), ("jacfwd", jacfwd)):
        with pytest.raises(RuntimeError, match=f"^{name}: Expected all inputs to be real but received complex tensor"):
            jacobian(lambda v: (v * v).real)(z)
        with pytest.raises(RuntimeError, match=f"^{name}: Expected all outputs to be real but received complex tensor"):
            jacobian(lambda v: candelabra.complex(v, v))(x)
    with pytest.raises(RuntimeError, match="^jacfwd: Expected all inputs to be real"):
        hessian(lambda v: (v * v).real.sum())(z)


def test_registered_containers():
    from candelabra import pytree
    from candelabra.pytree import registry

    class Pair:
        def __init__(self, first, second):
            self.first, self.second = first, second

    pytree.register_pytree_node(Pair, lambda pair: ([pair.first, pair.second], None), lambda items, _: Pair(*items))
    try:
        x = candelabra.arange(3.0)
        mapped = candelabra.func.vmap(lambda pair: Pair(pair.first + pair.second, pair.first))(Pair(x, x))
        assert mapped.first.tolist() == [0, 2, 4] and mapped.second.tolist() == [0, 1, 2]
        found = candelabra.func.grad(lambda pair: (pair.first * pair.second).sum())(Pair(x, x + 1))
        assert found.first.tolist() == [1, 2, 3] and found.second.tolist() == [0, 1, 2]
    finally:
        registry.forget(Pair)
