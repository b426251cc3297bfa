"""The decompositions of composite operators, called directly: against NumPy and SciPy, and their
gradients against differences.
"""

import numpy as np
import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

from scipy import special

import candelabra as c
from candelabra.catalogue import OPERATORS
from candelabra.catalogue.declaration import COMPOSITE

_rng = np.random.default_rng(11)
X = _rng.standard_normal((4, 5)) * 3
EDGES = np.array([-1000.0, -50.0, -1e-9, 0.0, 1e-9, 50.0, 1000.0, np.inf, -np.inf, np.nan])


def sigmoid(x):
    return special.expit(x)


def softplus(x, beta=1.0, threshold=20.0):
    return np.where(x * beta > threshold, x, np.log1p(np.exp(np.minimum(x * beta, threshold))) / beta)


FORMULAS = {
    "gelu": (lambda x: x * special.ndtr(x), {}),
    "gelu tanh": (
        lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
        {"approximate": "tanh"},
    ),
    "silu": (lambda x: x * sigmoid(x), {}),
    "mish": (lambda x: x * np.tanh(np.logaddexp(0, x)), {}),
    "log_sigmoid": (lambda x: -np.logaddexp(0, -x), {}),
    "softplus": (softplus, {}),
    "softplus beta": (lambda x: softplus(x, 2.0, 3.0), {"beta": 2, "threshold": 3}),
    "elu": (lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))), {}),
    "elu scaled": (
        lambda x: np.where(x > 0, 1.5 * x, 0.7 * 1.5 * np.expm1(np.minimum(2 * x, 0))),
        {"alpha": 0.7, "scale": 1.5, "input_scale": 2},
    ),
    "leaky_relu": (lambda x: np.where(x > 0, x, 0.1 * x), {"negative_slope": 0.1}),
    "logit": (special.logit, {}),
    "logit eps": (lambda x: special.logit(np.clip(x, 0.2, 0.8)), {"eps": 0.2}),
}


def test_every_composite_operator_has_a_decomposition():
    assert [
        name for name, operator in OPERATORS.items() if operator.tags & COMPOSITE and operator.composite is None
    ] == []


@pytest.mark.parametrize("name", FORMULAS)
def test_activations(name):
    formula, keywords = FORMULAS[name]
    got = OPERATORS[name.split()[0]].composite(c.tensor(X), **keywords).numpy()
    np.testing.assert_allclose(got, formula(X), rtol=2e-9 if name == "softplus" else 1e-12, atol=1e-15)


@pytest.mark.parametrize("name", FORMULAS)
def test_activations_at_the_edges(name):
    formula, keywords = FORMULAS[name]
    # What overflows in the formulas stays finite in the decompositions; gelu and silu of -inf are 0
    # * inf, as in PyTorch.
    edges = EDGES[:7]
    with np.errstate(all="ignore"):
        wanted = formula(edges)
    got = OPERATORS[name.split()[0]].composite(c.tensor(edges), **keywords).numpy()
    np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-12)
    assert np.isnan(OPERATORS[name.split()[0]].composite(c.tensor(EDGES[9:]), **keywords).numpy()).all()


@pytest.mark.parametrize("dtype,tolerance", [("float16", 2e-3), ("bfloat16", 2e-2)])
@pytest.mark.parametrize("name", FORMULAS)
def test_activations_of_half_precision(name, dtype, tolerance):
    formula, keywords = FORMULAS[name]
    x = c.tensor(X).to(getattr(c, dtype))
    got = OPERATORS[name.split()[0]].composite(x, **keywords)
    assert got.dtype is x.dtype
    np.testing.assert_allclose(got.double().numpy(), formula(x.double().numpy()), rtol=tolerance, atol=tolerance)


def derivative(formula, x, h=1e-6):
    return (formula(x + h) - formula(x - h)) / (2 * h)


@pytest.mark.parametrize("name", ["gelu", "gelu tanh", "silu"])
def test_activation_gradients(name):
    formula, keywords = FORMULAS[name]
    grad = _rng.standard_normal(X.shape)
    got = OPERATORS[name.split()[0] + "_backward"].composite(c.tensor(grad), c.tensor(X), **keywords).numpy()
    np.testing.assert_allclose(got, grad * derivative(formula, X), rtol=1e-6, atol=1e-8)


def test_gradients_from_results():
    grad = _rng.standard_normal(X.shape)
    g = c.tensor(grad)
    y = sigmoid(X)
    np.testing.assert_allclose(
        OPERATORS["sigmoid_backward"].composite(g, c.tensor(y)).numpy(), grad * y * (1 - y), rtol=1e-12
    )
    y = np.tanh(X)
    np.testing.assert_allclose(
        OPERATORS["tanh_backward"].composite(g, c.tensor(y)).numpy(), grad * (1 - y * y), rtol=1e-9
    )
    y = np.tanh(X + 1j)
    np.testing.assert_allclose(
        OPERATORS["tanh_backward"].composite(g.to(c.complex128), c.tensor(y)).numpy(),
        grad * (1 - y * y).conj(),
        rtol=1e-9,
    )
    np.testing.assert_array_equal(
        OPERATORS["threshold_backward"].composite(g, c.tensor(X), 0.5).numpy(), np.where(X > 0.5, grad, 0)
    )


def test_gelu_refuses_an_unknown_approximation():
    with pytest.raises(RuntimeError, match="none or tanh"):
        OPERATORS["gelu"].composite(c.ones(1), approximate="cubic")


# ---- softmax


def softmax(x, axis):
    return special.softmax(x, axis)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_softmax(dim):
    x, grad = c.tensor(X * 100), _rng.standard_normal(X.shape)
    y = softmax(X * 100, dim)
    np.testing.assert_allclose(OPERATORS["softmax"].composite(x, dim).numpy(), y, rtol=1e-12, atol=1e-300)
    logs = special.log_softmax(X * 100, dim)
    np.testing.assert_allclose(OPERATORS["log_softmax"].composite(x, dim).numpy(), logs, rtol=1e-12, atol=1e-12)
    got = OPERATORS["softmax_backward"].composite(c.tensor(grad), c.tensor(y), dim).numpy()
    np.testing.assert_allclose(got, y * (grad - (grad * y).sum(dim, keepdims=True)), rtol=1e-10, atol=1e-15)
    got = OPERATORS["log_softmax_backward"].composite(c.tensor(grad), c.tensor(logs), dim).numpy()
    np.testing.assert_allclose(got, grad - np.exp(logs) * grad.sum(dim, keepdims=True), rtol=1e-10, atol=1e-12)


def test_softmax_of_nothing_and_of_one():
    assert OPERATORS["softmax"].composite(c.zeros(0, 3), 0).shape == (0, 3)
    assert OPERATORS["softmax"].composite(c.tensor(5.0), 0).item() == 1
    assert OPERATORS["softmax"].composite(c.tensor([1, 2]), 0, c.float64).dtype is c.float64
    assert OPERATORS["softmax"].composite(c.ones(3, dtype=c.float16), 0).dtype is c.float16


# ---- the others


def test_embedding():
    weight, indices = _rng.standard_normal((5, 3)), np.array([[0, 4], [2, 2]])
    got = OPERATORS["embedding"].composite(c.tensor(weight), c.tensor(indices))
    np.testing.assert_array_equal(got.numpy(), weight[indices])
    assert OPERATORS["embedding"].composite(c.tensor(weight), c.zeros(0, 2, dtype=c.int64)).shape == (0, 2, 3)
    grad = _rng.standard_normal((2, 2, 3))
    wanted = np.zeros((5, 3))
    np.add.at(wanted, indices, grad)
    got = OPERATORS["embedding_backward"].composite(c.tensor(grad), c.tensor(indices), 5)
    np.testing.assert_allclose(got.numpy(), wanted)
    wanted[2] = 0
    got = OPERATORS["embedding_backward"].composite(c.tensor(grad), c.tensor(indices), 5, 2)
    np.testing.assert_allclose(got.numpy(), wanted)


def test_linear():
    weight, bias = _rng.standard_normal((3, 5)), _rng.standard_normal(3)
    for shape in ((5,), (4, 5), (2, 4, 5), (0, 5), (2, 0, 5)):
        x = _rng.standard_normal(shape)
        got = OPERATORS["linear"].composite(c.tensor(x), c.tensor(weight), c.tensor(bias))
        np.testing.assert_allclose(got.numpy(), x @ weight.T + bias, rtol=1e-12)
        got = OPERATORS["linear"].composite(c.tensor(x), c.tensor(weight))
        np.testing.assert_allclose(got.numpy(), x @ weight.T, rtol=1e-12)


def test_mv_stack_rsub_logsumexp():
    v = _rng.standard_normal(5)
    np.testing.assert_allclose(OPERATORS["mv"].composite(c.tensor(X), c.tensor(v)).numpy(), X @ v, rtol=1e-12)
    with pytest.raises(RuntimeError, match=r"mat \(4x5\), vec \(4\)"):
        OPERATORS["mv"].composite(c.tensor(X), c.ones(4, dtype=c.float64))
    np.testing.assert_array_equal(
        OPERATORS["stack"].composite([c.tensor(X), c.tensor(X)], 2).numpy(), np.stack([X, X], 2)
    )
    np.testing.assert_allclose(OPERATORS["rsub"].composite(c.tensor(X), 2, alpha=3).numpy(), 2 - 3 * X)
    got = OPERATORS["logsumexp"].composite(c.tensor(X * 1000), [1])
    np.testing.assert_allclose(got.numpy(), special.logsumexp(X * 1000, 1), rtol=1e-12)
    assert OPERATORS["logsumexp"].composite(c.zeros(0, 2), [0]).tolist() == [-np.inf, -np.inf]
    assert OPERATORS["logsumexp"].composite(c.tensor([np.inf, 0.0]), 0).item() == np.inf


def test_dropout():
    c.manual_seed(4)
    x = c.ones(10000)
    output, mask = OPERATORS["native_dropout"].composite(x, 0.25)
    kept = mask.float().mean().item()
    assert abs(kept - 0.75) < 0.02 and mask.dtype is c.bool
    np.testing.assert_allclose(output.numpy(), mask.numpy() / 0.75, rtol=1e-6)
    output, mask = OPERATORS["native_dropout"].composite(x, 1.0)
    assert output.abs().sum().item() == 0 and not mask.any()


# ---- normalization


def reference_norm(x, axes, eps):
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    rstd = 1 / np.sqrt(var + eps)
    return (x - mean) * rstd, mean, rstd


def channels(v, ndim):
    return v.reshape((1, -1) + (1,) * (ndim - 2))


def numerical_gradient(f, x, grad, h=1e-6):
    result = np.zeros_like(x)
    for at in np.ndindex(*x.shape):
        up, down = x.copy(), x.copy()
        up[at] += h
        down[at] -= h
        result[at] = ((f(up) - f(down)) * grad).sum() / (2 * h)
    return result


@pytest.mark.parametrize("shape", [(3, 2), (3, 2, 4), (2, 3, 2, 2)])
@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm(shape, affine):
    x = _rng.standard_normal(shape)
    axes = tuple(d for d in range(x.ndim) if d != 1)
    w = _rng.standard_normal(shape[1]) if affine else None
    b = _rng.standard_normal(shape[1]) if affine else None
    tw, tb = (c.tensor(p) if affine else None for p in (w, b))

    def formula(values):
        y = reference_norm(values, axes, 1e-3)[0]
        return y * channels(w, x.ndim) + channels(b, x.ndim) if affine else y

    running_mean, running_var = c.zeros(shape[1], dtype=c.float64), c.ones(shape[1], dtype=c.float64)
    output, mean, rstd = OPERATORS["native_batch_norm"].composite(
        c.tensor(x), tw, tb, running_mean, running_var, True, 0.1, 1e-3
    )
    np.testing.assert_allclose(output.numpy(), formula(x), rtol=1e-10)
    np.testing.assert_allclose(mean.numpy(), x.mean(axes), atol=1e-12)
    np.testing.assert_allclose(rstd.numpy(), 1 / np.sqrt(x.var(axes) + 1e-3), rtol=1e-10)
    np.testing.assert_allclose(running_mean.numpy(), 0.1 * x.mean(axes), atol=1e-12)
    np.testing.assert_allclose(running_var.numpy(), 0.9 + 0.1 * x.var(axes, ddof=1), rtol=1e-10)
    grad = _rng.standard_normal(shape)
    grads = OPERATORS["native_batch_norm_backward"].composite(c.tensor(grad), c.tensor(x), tw, mean, rstd, True)
    np.testing.assert_allclose(grads[0].numpy(), numerical_gradient(formula, x, grad), rtol=1e-5, atol=1e-7)
    if affine:
        np.testing.assert_allclose(grads[1].numpy(), (grad * reference_norm(x, axes, 1e-3)[0]).sum(axes), rtol=1e-10)
        np.testing.assert_allclose(grads[2].numpy(), grad.sum(axes), rtol=1e-10, atol=1e-12)
    else:
        assert grads[1].numel() == grads[2].numel() == 0


def test_batch_norm_in_evaluation():
    x, m, v = _rng.standard_normal((3, 2, 4)), _rng.standard_normal(2), _rng.random(2) + 0.5
    output, mean, rstd = OPERATORS["native_batch_norm"].composite(
        c.tensor(x), None, None, c.tensor(m), c.tensor(v), False, 0.1, 1e-5
    )
    np.testing.assert_allclose(output.numpy(), (x - channels(m, 3)) / np.sqrt(channels(v, 3) + 1e-5), rtol=1e-10)
    grad = _rng.standard_normal(x.shape)
    got = OPERATORS["native_batch_norm_backward"].composite(c.tensor(grad), c.tensor(x), None, mean, rstd, False)[0]
    np.testing.assert_allclose(got.numpy(), grad / np.sqrt(channels(v, 3) + 1e-5), rtol=1e-10)
    with pytest.raises(ValueError, match="running_mean"):
        OPERATORS["native_batch_norm"].composite(c.tensor(x), None, None, None, None, False, 0.1, 1e-5)


@pytest.mark.parametrize("affine", [True, False])
def test_layer_norm(affine):
    x = _rng.standard_normal((3, 2, 4))
    w, b = (_rng.standard_normal((2, 4)) for _ in range(2))
    tw, tb = (c.tensor(p) if affine else None for p in (w, b))

    def formula(values):
        y = reference_norm(values, (1, 2), 1e-3)[0]
        return y * w + b if affine else y

    output, mean, rstd = OPERATORS["native_layer_norm"].composite(c.tensor(x), [2, 4], tw, tb, 1e-3)
    np.testing.assert_allclose(output.numpy(), formula(x), rtol=1e-10)
    assert mean.shape == rstd.shape == (3, 1, 1)
    grad = _rng.standard_normal(x.shape)
    grads = OPERATORS["native_layer_norm_backward"].composite(c.tensor(grad), c.tensor(x), [2, 4], mean, rstd, tw)
    np.testing.assert_allclose(grads[0].numpy(), numerical_gradient(formula, x, grad), rtol=1e-5, atol=1e-7)
    if affine:
        np.testing.assert_allclose(grads[1].numpy(), (grad * reference_norm(x, (1, 2), 1e-3)[0]).sum(0), rtol=1e-10)
        np.testing.assert_allclose(grads[2].numpy(), grad.sum(0), rtol=1e-10)
    with pytest.raises(RuntimeError, match="normalized_shape"):
        OPERATORS["native_layer_norm"].composite(c.tensor(x), [3], None, None, 1e-5)


@pytest.mark.parametrize("affine", [True, False])
def test_group_norm(affine):
    x = _rng.standard_normal((2, 4, 3))
    w, b = (_rng.standard_normal(4) for _ in range(2))
    tw, tb = (c.tensor(p) if affine else None for p in (w, b))

    def formula(values):
        y = reference_norm(values.reshape(2, 2, 6), 2, 1e-3)[0].reshape(x.shape)
        return y * channels(w, 3) + channels(b, 3) if affine else y

    output, mean, rstd = OPERATORS["native_group_norm"].composite(c.tensor(x), tw, tb, 2, 1e-3)
    np.testing.assert_allclose(output.numpy(), formula(x), rtol=1e-10)
    assert mean.shape == rstd.shape == (2, 2)
    grad = _rng.standard_normal(x.shape)
    grads = OPERATORS["native_group_norm_backward"].composite(c.tensor(grad), c.tensor(x), mean, rstd, tw, 2)
    np.testing.assert_allclose(grads[0].numpy(), numerical_gradient(formula, x, grad), rtol=1e-5, atol=1e-7)
    if affine:
        plain = reference_norm(x.reshape(2, 2, 6), 2, 1e-3)[0].reshape(x.shape)
        np.testing.assert_allclose(grads[1].numpy(), (grad * plain).sum((0, 2)), rtol=1e-10)
        np.testing.assert_allclose(grads[2].numpy(), grad.sum((0, 2)), rtol=1e-10)
    with pytest.raises(RuntimeError, match="num_groups=3"):
        OPERATORS["native_group_norm"].composite(c.tensor(x), None, None, 3, 1e-5)


def test_statistics_of_half_precision_are_float32():
    x = c.tensor(_rng.standard_normal((2, 4, 3))).half()
    for made in (
        OPERATORS["native_layer_norm"].composite(x, [3], None, None, 1e-5),
        OPERATORS["native_group_norm"].composite(x, None, None, 2, 1e-5),
        OPERATORS["native_batch_norm"].composite(x, None, None, None, None, True, 0.1, 1e-5),
    ):
        assert [t.dtype for t in made] == [c.float16, c.float32, c.float32]
