"""Test parametrizations, and orthogonal, spectral and weight norm with their older forms."""

import copy
import pickle

import numpy as np
import pytest
from nn_numerics import array, assert_close, tensor
from scipy.linalg import expm

import candelabra
from candelabra import nn
from candelabra.nn.utils import parametrizations, parametrize

F64 = {"dtype": candelabra.float64}


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).transpose(-1, -2)

    def right_inverse(self, x):
        return x.triu()


class Half(nn.Module):
    def forward(self, x):
        return x * 0.5

    def right_inverse(self, x):
        return x * 2


class RankOne(nn.Module):
    def forward(self, a, b):
        return a.unsqueeze(-1) * b.unsqueeze(-2)

    def right_inverse(self, m):
        return m[:, 0].clone(), m[0].clone()


def test_one_and_two_parametrizations():
    layer = nn.Linear(3, 3, **F64)
    before = array(layer.weight).copy()
    parameter = layer.weight
    assert parametrize.register_parametrization(layer, "weight", Symmetric()) is layer
    symmetric = np.triu(before) + np.triu(before, 1).T
    assert_close(layer.weight, symmetric)
    assert type(layer).__name__ == "ParametrizedLinear" and parametrize.type_before_parametrizations(layer) is nn.Linear
    assert list(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    assert layer.parametrizations.weight.original is parameter  # an optimizer keeps updating it
    parametrize.register_parametrization(layer, "weight", Half())
    assert_close(layer.weight, symmetric / 2)
    layer.weight = candelabra.eye(3, **F64)
    assert_close(layer.weight, np.eye(3))
    assert_close(layer.parametrizations.weight.original, 2 * np.eye(3))
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and layer.weight is parameter and not hasattr(layer, "parametrizations")
    assert_close(layer.weight, np.eye(3))


def test_copies_are_independent():
    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Half())
    copied = copy.deepcopy(layer)
    with candelabra.no_grad():
        copied.parametrizations.weight.original.fill_(4)
    assert (array(copied.weight) == 2).all() and not (array(layer.weight) == 2).any()
    parametrize.remove_parametrizations(copied, "weight", leave_parametrized=False)
    assert (array(copied.weight) == 4).all() and parametrize.is_parametrized(layer, "weight")
    assert layer.weight.shape == (2, 2)
    with pytest.raises(
        RuntimeError, match="Serialization of parametrized modules is only supported through state_dict"
    ):
        pickle.dumps(layer)


def test_several_originals_buffers_and_transfer():
    layer = parametrize.register_parametrization(nn.Linear(3, 2, **F64), "weight", RankOne())
    a, b = array(layer.parametrizations.weight.original0), array(layer.parametrizations.weight.original1)
    assert_close(layer.weight, np.outer(a, b))
    assert layer.parametrizations.weight.original0.requires_grad
    with pytest.raises(ValueError, match="Cannot leave unparametrized"):
        parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    other = parametrize.transfer_parametrizations_and_params(layer, nn.Linear(3, 2, **F64))
    assert_close(other.weight, np.outer(a, b))
    parametrize.remove_parametrizations(layer, "weight")
    assert isinstance(layer.weight, nn.Parameter) and list(layer.state_dict()) == ["bias", "weight"]
    norm = parametrize.register_parametrization(nn.BatchNorm1d(2), "running_mean", Half())
    parametrize.register_parametrization(norm, "weight", Half())
    assert dict(norm.named_buffers()).keys() >= {"parametrizations.running_mean.original"}
    parametrize.remove_parametrizations(norm, "running_mean")
    assert "running_mean" in norm._buffers and parametrize.is_parametrized(norm, "weight")
    assert not parametrize.is_parametrized(norm, "running_mean") and norm(candelabra.ones(3, 2)).shape == (3, 2)


def test_cached():
    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Half())
    assert layer.weight is not layer.weight
    with parametrize.cached(), parametrize.cached():
        assert layer.weight is layer.weight
    assert layer.weight is not layer.weight


def returning(value, inverse=None):
    class Returns(nn.Module):
        def forward(self, x):
            return value(x)

    if inverse is not None:
        Returns.right_inverse = lambda self, x: inverse(x)
    return Returns()


@pytest.mark.parametrize(
    ("module", "text"),
    [
        (returning(lambda x: x[:1]), "may not change the shape of the tensor, unless `unsafe` flag is enabled"),
        (returning(lambda x: x.double()), "may not change the dtype of the tensor, unless `unsafe` flag is enabled"),
        (returning(lambda x: 3), "A parametrization must return a tensor. Got int."),
        (returning(lambda x: x, lambda x: 3), "'right_inverse' must return a Tensor or a Sequence of tensors"),
        (returning(lambda x: x, lambda x: [3]), "Got element 0 of the sequence with type int"),
        (
            returning(lambda x: x, lambda x: x.double()),
            "When `right_inverse` outputs one tensor, it may not change the dtype",
        ),
    ],
)
def test_refused(module, text):
    layer = nn.Linear(2, 3)
    with pytest.raises(ValueError) as caught:
        parametrize.register_parametrization(layer, "weight", module)
    assert text in str(caught.value) and type(layer) is nn.Linear and layer.weight.shape == (3, 2)


@pytest.mark.parametrize(
    ("module", "text"),
    [
        (returning(lambda x: x[:1]), "may not change the shape of the tensor, unless the `unsafe` flag is enabled"),
        (returning(lambda x: 3), "A parametrization must return a tensor. Got int."),
        (returning(lambda x: x, lambda x: 3), "parametrization.right_inverse must return a tensor. Got: int"),
        (returning(lambda x: x, lambda x: x[:1]), "must have the same shape as module.weight"),
    ],
)
def test_refused_as_second(module, text):
    layer = parametrize.register_parametrization(nn.Linear(2, 3), "weight", Half())
    with pytest.raises(ValueError) as caught:
        parametrize.register_parametrization(layer, "weight", module)
    assert text in str(caught.value) and len(layer.parametrizations.weight) == 1


def test_errors():
    layer = parametrize.register_parametrization(nn.Linear(2, 3), "weight", returning(lambda x: x))
    with pytest.raises(RuntimeError, match="does not implement right_inverse"):
        layer.weight = candelabra.ones(3, 2)
    with pytest.raises(
        ValueError, match="does not have a parameter, a buffer, or a parametrized element with name 'x'"
    ):
        parametrize.register_parametrization(layer, "x", Half())
    with pytest.raises(ValueError, match="does not have a parametrization on bias"):
        parametrize.remove_parametrizations(layer, "bias")
    with pytest.raises(ValueError, match="requires one or more modules"):
        parametrize.ParametrizationList([], candelabra.ones(1))
    pair = parametrize.register_parametrization(nn.Linear(2, 2), "weight", RankOne())
    pair.parametrizations.weight[0].__class__.right_inverse = lambda self, m: (m[0],)
    try:
        with pytest.raises(ValueError, match="sequence of tensors of length 2. Got a sequence of length 1"):
            pair.weight = candelabra.ones(2, 2)
    finally:
        RankOne.right_inverse = lambda self, m: (m[:, 0].clone(), m[0].clone())


# ---- orthogonal


@pytest.mark.parametrize("dtype", [candelabra.float64, candelabra.complex128])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2), (2, 3, 5)])
@pytest.mark.parametrize("kind", ["matrix_exp", "cayley", "householder", None])
def test_orthogonal(kind, shape, dtype):
    module = nn.Module()
    module.weight = nn.Parameter(candelabra.randn(shape, dtype=dtype))
    if dtype.is_complex and kind == "householder":
        with pytest.raises(ValueError, match="does not support complex"):
            parametrizations.orthogonal(module, "weight", kind)
        return
    parametrizations.orthogonal(module, "weight", kind)
    original = module.parametrizations.weight.original
    for _ in range(2):
        w = array(module.weight)
        wide = shape[-2] <= shape[-1]
        product = w @ w.conj().swapaxes(-1, -2) if wide else w.conj().swapaxes(-1, -2) @ w
        np.testing.assert_allclose(product, np.broadcast_to(np.eye(min(shape[-2:])), product.shape), atol=1e-12)
        # The weight is orthogonal for every original. Only its lower triangle varies: the signs of
        # the reflections, on the diagonal, are not trained.
        with candelabra.no_grad():
            original.add_(0.3 * candelabra.randn(shape, dtype=dtype).tril(-1))


def test_orthogonal_keeps_an_orthogonal_weight_and_follows_the_formulas(rng):
    q, _ = np.linalg.qr(rng.standard_normal((3, 3)))
    layer = nn.Linear(3, 3, **F64)
    with candelabra.no_grad():
        layer.weight.copy_(tensor(q))
    for kind in ("matrix_exp", "cayley", "householder"):
        assert_close(parametrizations.orthogonal(copy.deepcopy(layer), "weight", kind).weight, q, atol=1e-10)
    x = np.tril(rng.standard_normal((3, 3)))
    skew = x - x.T
    for kind, expected in (
        ("matrix_exp", expm(skew)),
        ("cayley", np.linalg.solve(np.eye(3) - skew / 2, np.eye(3) + skew / 2)),
    ):
        plain = parametrizations.orthogonal(copy.deepcopy(layer), "weight", kind, use_trivialization=False)
        with candelabra.no_grad():
            plain.parametrizations.weight.original.copy_(tensor(x))
        assert_close(plain.weight, expected, atol=1e-10)
        with pytest.raises(NotImplementedError, match="not possible to assign"):
            plain.weight = tensor(q)
    reflected = parametrizations.orthogonal(copy.deepcopy(layer), "weight", "householder", use_trivialization=False)
    assert_close(reflected.weight, q, atol=1e-10)


def test_orthogonal_errors():
    for name, text in (
        ("x", "has no parameter or buffer with name 'x'"),
        ("bias", "Expected a matrix or batch of matrices"),
    ):
        with pytest.raises(ValueError, match=text):
            parametrizations.orthogonal(nn.Linear(2, 2), name)
    with pytest.raises(ValueError, match="orthogonal_map has to be one of"):
        parametrizations.orthogonal(nn.Linear(2, 2), orthogonal_map="x")


# ---- weight norm and spectral norm, and their older forms


@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm(dim):
    layer = nn.Linear(3, 2, **F64)
    before = array(layer.weight).copy()
    axes = {0: 1, 1: 0, None: (0, 1)}[dim]
    lengths = np.sqrt((before**2).sum(axes, keepdims=dim is not None))
    parametrizations.weight_norm(layer, dim=dim)
    assert_close(layer.weight, before)
    assert_close(layer.parametrizations.weight.original0.reshape(lengths.shape), lengths)
    with pytest.warns(FutureWarning, match="deprecated"):
        older = nn.utils.weight_norm(nn.Linear(3, 2, **F64), dim=dim)
    layer.load_state_dict(older.state_dict())
    assert_close(layer.weight, array(older.weight))
    with candelabra.no_grad():
        older.weight_g.mul_(3)
    x = candelabra.ones(1, 3, **F64)
    assert_close(older(x), 3 * array(layer.weight).sum(1)[None] + array(older.bias))
    nn.utils.remove_weight_norm(older)
    assert isinstance(older.weight, nn.Parameter) and list(older.state_dict()) == ["bias", "weight"]
    assert_close(older.weight, 3 * array(layer.weight))


@pytest.mark.filterwarnings("ignore:`nn.utils.weight_norm`")
@pytest.mark.parametrize(
    "make",
    [lambda: nn.Linear(3, 4, **F64), lambda: nn.Conv2d(2, 3, 2, **F64), lambda: nn.ConvTranspose1d(2, 3, 2, **F64)],
)
def test_spectral_norm(make):
    for function in (parametrizations.spectral_norm, nn.utils.spectral_norm):
        layer = make()
        rows = 1 if isinstance(layer, nn.ConvTranspose1d) else 0
        before = array(layer.weight).copy()
        function(layer, n_power_iterations=200)
        x = (
            candelabra.ones(1, 3, **F64)
            if isinstance(layer, nn.Linear)
            else candelabra.ones((1, 2, 5, 5)[: layer.weight.ndim], **F64)
        )
        layer(x)
        largest = np.linalg.svd(np.moveaxis(before, rows, 0).reshape(before.shape[rows], -1), compute_uv=False)[0]
        assert_close(layer.weight, before / largest, rtol=1e-6)
        layer.eval()
        assert candelabra.equal(layer(x), layer(x))
        if function is nn.utils.spectral_norm:
            fresh = function(make())
            fresh.load_state_dict(layer.state_dict())
            assert candelabra.equal(fresh.eval()(x), layer.eval()(x))
            nn.utils.remove_spectral_norm(layer)
            assert list(layer.state_dict()) == ["bias", "weight"] and not layer._load_state_dict_pre_hooks
            assert_close(layer.weight, before / largest, rtol=1e-6)


def test_spectral_norm_of_a_vector_and_of_older_state():
    layer = parametrizations.spectral_norm(nn.Linear(2, 3, **F64), "bias")
    assert abs(float(layer.bias.square().sum()) - 1) < 1e-12
    source = nn.utils.spectral_norm(nn.Linear(3, 2, **F64), n_power_iterations=300)
    source(candelabra.ones(1, 3, **F64))
    state = dict(source.state_dict())
    v = state.pop("weight_v")
    state["weight"] = source.weight.detach()
    older = nn.utils.spectral_norm(nn.Linear(3, 2, **F64))
    older.load_state_dict(state)
    assert_close(older.weight_v, array(v), rtol=1e-6)


@pytest.mark.filterwarnings("ignore:`nn.utils.weight_norm`")
@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda: nn.utils.remove_weight_norm(nn.Linear(1, 1)), ValueError, "weight_norm of 'weight' not found in"),
        (lambda: nn.utils.remove_spectral_norm(nn.Linear(1, 1)), ValueError, "spectral_norm of 'weight' not found in"),
        (lambda: nn.utils.weight_norm(nn.utils.weight_norm(nn.Linear(1, 1))), RuntimeError, "Cannot register two weight_norm hooks"),
        (lambda: nn.utils.weight_norm(nn.LazyLinear(1)), ValueError, "can't have uninitialized parameters"),
        (lambda: nn.utils.spectral_norm(nn.LazyLinear(1)), ValueError, "can't have uninitialized parameters"),
        (lambda: nn.utils.spectral_norm(nn.Linear(1, 1, bias=False), "bias"), ValueError, "cannot be applied as parameter `bias` is None"),
        (lambda: nn.utils.spectral_norm(nn.Linear(1, 1), n_power_iterations=0), ValueError, "n_power_iterations to be positive"),
        (lambda: parametrizations.spectral_norm(nn.Linear(1, 1), n_power_iterations=0), ValueError, "n_power_iterations to be positive"),
        (lambda: parametrizations.spectral_norm(nn.Linear(1, 1), dim=2), IndexError, r"expected to be in range of [-2, 1] but got 2"),
    ],
)  # fmt: skip
def test_norm_errors(act, error, text):
    with pytest.raises(error) as caught:
        act()
    assert text in str(caught.value)
