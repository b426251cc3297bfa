"""Test embedding, dropout, padding, distances, attention and flattening."""

import importlib.util
import warnings

import numpy as np
import pytest
from nn_numerics import array, assert_close, tensor
from scipy import special
from scipy.spatial import distance

import candelabra
from candelabra import nn
from candelabra.nn import functional as F

ones = candelabra.ones


def test_embedding(rng):
    table, numbers = rng.standard_normal((5, 3)), np.array([[1, 4], [0, 1]])
    assert_close(F.embedding(tensor(numbers), tensor(table)), table[numbers])
    assert_close(F.embedding(tensor(numbers, candelabra.int32), tensor(table), padding_idx=-1), table[numbers])
    layer = nn.Embedding.from_pretrained(tensor(table), padding_idx=1)
    assert not layer.weight.requires_grad and layer.num_embeddings == 5 and layer.embedding_dim == 3
    assert_close(layer(tensor(3)), table[3])
    made = nn.Embedding(4, 3, padding_idx=-2)
    assert made.padding_idx == 2 and array(made.weight)[2].tolist() == [0, 0, 0] and (array(made.weight)[1] != 0).all()


def test_embedding_max_norm(rng):
    table = rng.standard_normal((4, 3)) * 3
    weight = tensor(table)
    norms = np.linalg.norm(table, axis=1, keepdims=True)
    scaled = table * np.where(norms > 1, 1 / (norms + 1e-7), 1)
    scaled[3] = table[3]  # not looked up, so not renormalized
    assert_close(F.embedding(tensor([0, 1, 0, 2]), weight, max_norm=1.0), scaled[[0, 1, 0, 2]])
    assert_close(weight, scaled)


def test_one_hot():
    np.testing.assert_array_equal(array(F.one_hot(tensor([[1, 0], [2, 2]]))), np.eye(3, dtype=int)[[[1, 0], [2, 2]]])
    assert F.one_hot(tensor(1), 4).tolist() == [0, 1, 0, 0]
    assert F.one_hot(tensor(np.zeros(0, int)), 3).shape == (0, 3)


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda: F.one_hot(ones(2)), RuntimeError, "only applicable to index tensor of type LongTensor"),
        (lambda: F.one_hot(tensor([-1])), RuntimeError, "Class values must be non-negative."),
        (lambda: F.one_hot(tensor([3]), 2), RuntimeError, "Class values must be smaller than num_classes."),
        (lambda: F.one_hot(tensor([3]), 0), RuntimeError, "num_classes should be positive"),
        (
            lambda: F.one_hot(tensor(np.zeros(0, int))),
            RuntimeError,
            "Can not infer total number of classes from empty tensor.",
        ),
        (lambda: F.embedding(tensor([7]), ones(2, 2)), IndexError, "index 7 is out of bounds"),
        (lambda: F.embedding(tensor([1.0]), ones(2, 2)), RuntimeError, "Expected tensor for argument #1 'indices'"),
        (
            lambda: F.embedding(tensor([1]), ones(2, 2), padding_idx=2),
            AssertionError,
            "Padding_idx must be within num_embeddings",
        ),
        (lambda: F.dropout(ones(2), -0.1), ValueError, "dropout probability has to be between 0 and 1, but got -0.1"),
        (lambda: F.dropout1d(ones(2)), RuntimeError, "Expected 2D or 3D input, but received a 1D input"),
        (lambda: F.feature_alpha_dropout(ones(2), training=True), RuntimeError, "requires at least 2 dimensions"),
        (lambda: F.pad(ones(2, 3), (1, 1, 1)), RuntimeError, "Padding length must be divisible by 2"),
        (lambda: F.pad(ones(3), (1, 1, 1, 1)), RuntimeError, "less than or equal to two times the input dimension"),
        (
            lambda: F.pad(ones(2, 3), (3, 0), mode="reflect"),
            RuntimeError,
            "Padding size should be less than the corresponding input",
        ),
        (lambda: F.pad(ones(2, 3), (4, 0), mode="circular"), RuntimeError, "wrapping around more than once"),
        (lambda: F.pad(ones(2, 3), (1, 1), mode="x"), NotImplementedError, "Unrecognised padding mode x"),
        (
            lambda: F.pad(ones(2, 3), (1, 1, 1, 1), mode="reflect"),
            NotImplementedError,
            "Padding size 4 is not supported for 2D input",
        ),
        (lambda: F.pad(ones(2, 3), (1, 1), mode="reflect", value=1.0), RuntimeError, "doesn't take in value argument"),
        (lambda: F.pad(ones(3), (-2, -2)), RuntimeError, "resulted in a negative output size"),
        (
            lambda: F.cosine_similarity(tensor([1]), tensor([1]), 0),
            RuntimeError,
            "expected common dtype to be floating point",
        ),
        (
            lambda: F.scaled_dot_product_attention(ones(2), ones(2, 2), ones(2, 2)),
            RuntimeError,
            "at least 2 dimensional",
        ),
        (
            lambda: F.scaled_dot_product_attention(
                ones(2, 2), ones(2, 2), ones(2, 2), attn_mask=ones(2, 2), is_causal=True
            ),
            RuntimeError,
            "Explicit attn_mask should not be set when is_causal=True",
        ),
        (
            lambda: F.scaled_dot_product_attention(ones(3, 2, 2), ones(2, 2, 2), ones(2, 2, 2), enable_gqa=True),
            RuntimeError,
            "must divide the number of heads",
        ),
    ],
)
def test_errors(act, error, text):
    with pytest.raises(error) as caught:
        act()
    assert text in str(caught.value)


@pytest.mark.parametrize("inplace", [False, True])
def test_dropout(inplace):
    x = ones(200, 200)
    y = F.dropout(x, 0.3, inplace=inplace)
    assert (y is x) == inplace
    values = array(y)
    np.testing.assert_allclose(np.unique(values), [0, 1 / 0.7], rtol=1e-6)
    assert abs((values == 0).mean() - 0.3) < 0.01
    x = ones(3)
    assert F.dropout(x, 0.5, training=False) is x and F.dropout(x, 0.0) is x
    assert array(F.dropout(ones(3), 1.0, inplace=inplace)).tolist() == [0, 0, 0]
    layer = nn.Dropout(0.5, inplace)
    assert (array(layer(ones(1000))) == 0).any() and (array(layer.eval()(ones(1000))) == 1).all()


def test_dropout_is_seeded():
    candelabra.manual_seed(7)
    one = array(F.dropout(ones(100)))
    candelabra.manual_seed(7)
    np.testing.assert_array_equal(one, array(F.dropout(ones(100))))


@pytest.mark.parametrize("inplace", [False, True])
def test_dropout_of_channels(inplace):
    for layer, shape in ((nn.Dropout1d, (50, 40, 6)), (nn.Dropout2d, (50, 40, 2, 3))):
        planes = array(layer(0.4, inplace)(ones(*shape))).reshape(2000, 6)
        assert (planes == planes[:, :1]).all() and abs((planes[:, 0] == 0).mean() - 0.4) < 0.05
        np.testing.assert_allclose(planes.max(), 1 / 0.6, rtol=1e-6)
    rows = array(F.dropout1d(ones(1000, 4), inplace=inplace))
    assert (rows == rows[:, :1]).all() and 0.4 < (rows[:, 0] == 0).mean() < 0.6
    assert array(F.dropout1d(ones(2, 3, 4), 1.0)).sum() == 0
    with pytest.warns(UserWarning, match="assuming that channel-wise 1-D dropout behavior is desired"):
        F.dropout2d(ones(2, 3, 4))
    with pytest.warns(UserWarning, match="Received a 2-D input to dropout2d, which is deprecated"):
        F.dropout2d(ones(2, 3))


@pytest.mark.parametrize("inplace", [False, True])
def test_alpha_dropout(rng, inplace):
    x = rng.standard_normal((400, 400))
    y = array(nn.AlphaDropout(0.3, inplace)(tensor(x)))
    assert abs(y.mean()) < 0.02 and abs(y.std() - 1) < 0.02
    a = ((1 - 0.3) * (1 + 0.3 * 1.7580993408473766**2)) ** -0.5
    dropped = a * (-1.7580993408473766) * (1 - 0.3)
    assert abs((np.abs(y - dropped) < 1e-9).mean() - 0.3) < 0.01
    planes = array(nn.FeatureAlphaDropout(0.5, inplace)(ones(1000, 4, 2).double()))
    assert (planes == planes[:, :, :1]).all()
    assert nn.AlphaDropout().eval()(t := tensor(x)) is t


MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("shape", "pad"), [((2, 5), (1, 2)), ((2, 3, 5), (3, 0)), ((3, 4, 5), (1, 2, 3, 0)), ((1, 2, 4, 5), (0, 1, 2, 2))]
)
def test_pad(rng, mode, shape, pad):
    x = rng.standard_normal(shape)
    sides = [(0, 0)] * (x.ndim - len(pad) // 2) + [tuple(pad[i : i + 2]) for i in range(len(pad) - 2, -1, -2)]
    assert_close(F.pad(tensor(x), pad, mode), np.pad(x, sides, MODES[mode]))


def test_negative_and_constant_padding(rng):
    x = rng.standard_normal((3, 5))
    assert_close(F.pad(tensor(x), (-1, 2), value=7.0), np.pad(x[:, 1:], [(0, 0), (0, 2)], constant_values=7))
    assert_close(F.pad(tensor(x), (-1, -2)), x[:, 1:-2])
    assert_close(F.pad(tensor(x), (-1, 2), "reflect"), np.pad(x, [(0, 0), (0, 2)], "reflect")[:, 1:])
    assert_close(F.pad(tensor(x), (2, -1), "replicate"), np.pad(x, [(0, 0), (2, 0)], "edge")[:, :-1])
    assert_close(F.pad(tensor(x), (-1, 2), "circular"), np.pad(x[:, 1:], [(0, 0), (0, 2)], "wrap"))
    np.testing.assert_array_equal(array(F.pad(tensor([1, 2]), (1, 0), value=9)), [9, 1, 2])
    y = F.pad(t := tensor(x), (0, 0))
    y.zero_()
    assert_close(t, x)


def test_padding_layers(rng):
    x = rng.standard_normal((2, 3, 4, 5))
    sides = [(0, 0), (0, 0), (3, 1), (1, 2)]
    for name, mode in (
        ("ZeroPad2d", "constant"),
        ("ReflectionPad2d", "reflect"),
        ("ReplicationPad2d", "edge"),
        ("CircularPad2d", "wrap"),
    ):
        assert_close(getattr(nn, name)((1, 2, 3, 1))(tensor(x)), np.pad(x, sides, mode))
    for name, mode in (
        ("ZeroPad1d", "constant"),
        ("ReflectionPad1d", "reflect"),
        ("ReplicationPad1d", "edge"),
        ("CircularPad1d", "wrap"),
    ):
        assert_close(getattr(nn, name)(2)(tensor(x[0])), np.pad(x[0], [(0, 0), (0, 0), (2, 2)], mode))
    assert_close(nn.ConstantPad2d(1, 3.5)(tensor(x)), np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=3.5))
    assert_close(
        nn.ConstantPad1d((0, 1), -1.0)(tensor(x[0])), np.pad(x[0], [(0, 0), (0, 0), (0, 1)], constant_values=-1)
    )


def test_distances(rng):
    x, y = rng.standard_normal((4, 3)), rng.standard_normal((4, 3))
    cosines = [1 - distance.cosine(a, b) for a, b in zip(x, y, strict=True)]
    assert_close(nn.CosineSimilarity()(tensor(x), tensor(y)), cosines)
    assert_close(
        F.cosine_similarity(tensor(x[:, None]), tensor(y[None]), dim=2), 1 - distance.cdist(x, y, "cosine"), atol=1e-10
    )
    assert_close(F.cosine_similarity(tensor(np.zeros(2)), tensor(np.ones(2)), 0), 0.0)
    for p in (1.0, 2.0, 3.0, np.inf):
        expected = np.linalg.norm(x - y + 1e-6, p, 1)
        assert_close(nn.PairwiseDistance(p)(tensor(x), tensor(y)), expected)
        assert_close(F.pairwise_distance(tensor(x), tensor(y), p, keepdim=True), expected[:, None])


def attention(q, k, v, mask=0.0, scale=None):
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    return special.softmax(q @ np.swapaxes(k, -1, -2) * scale + mask, -1) @ v


def test_attention(rng):
    q, k, v = (rng.standard_normal(s) for s in ((2, 3, 5, 4), (2, 3, 6, 4), (2, 3, 6, 7)))
    t = tensor(q), tensor(k), tensor(v)
    assert_close(F.scaled_dot_product_attention(*t), attention(q, k, v))
    causal = np.where(np.tri(5, 6, dtype=bool), 0, -np.inf)
    assert_close(F.scaled_dot_product_attention(*t, is_causal=True), attention(q, k, v, causal))
    added = rng.standard_normal((5, 6))
    assert_close(F.scaled_dot_product_attention(*t, tensor(added), scale=0.3), attention(q, k, v, added, 0.3))
    seen = rng.random((5, 6)) > 0.5
    seen[:, 0] = True
    assert_close(F.scaled_dot_product_attention(*t, tensor(seen)), attention(q, k, v, np.where(seen, 0, -np.inf)))
    seen[2] = False
    blind = array(F.scaled_dot_product_attention(*t, tensor(seen)))
    assert (blind[:, :, 2] == 0).all() and np.isfinite(blind).all()
    shared = F.scaled_dot_product_attention(
        tensor(rng.standard_normal((1, 6, 5, 4))), t[0][:1], t[0][:1], enable_gqa=True
    )
    assert shared.shape == (1, 6, 5, 4)
    assert (array(F.scaled_dot_product_attention(*t, dropout_p=1.0)) == 0).all()


def test_flatten(rng):
    x = rng.standard_normal((2, 3, 4, 5))
    assert_close(nn.Flatten()(tensor(x)), x.reshape(2, 60))
    assert_close(nn.Flatten(0, 1)(tensor(x)), x.reshape(6, 4, 5))
    assert_close(nn.Unflatten(1, (3, -1))(tensor(x.reshape(2, 60))), x.reshape(2, 3, 20))


def test_everything_public_is_there():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in nn.__all__:
            assert hasattr(nn, name)
        for name in F.__all__:
            assert callable(getattr(F, name)), name
    assert (
        nn.modules.linear.Linear is nn.Linear
        and nn.modules.conv.Conv2d is nn.Conv2d
        and nn.modules.batchnorm.BatchNorm2d is nn.BatchNorm2d
    )
    assert nn.modules.container.Sequential is nn.Sequential and nn.modules.sparse.Embedding is nn.Embedding


def test_data_parallel_uses_the_accelerator():
    candelabra.accelerator.use("cpu")
    try:
        model = nn.DataParallel(nn.Linear(2, 1))
        assert model.device_ids == [candelabra.device("cpu")] * candelabra.accelerator.device_count()
        assert model(candelabra.ones(3, 2)).shape == (3, 1)
        assert nn.DataParallel(nn.Linear(2, 1), device_ids=[0]).device_ids == [candelabra.device("cpu")]
    finally:
        candelabra.accelerator.use(None)


def test_distributed_data_parallel_is_in_another_package():
    parallel = nn.parallel
    assert not hasattr(parallel, "absent")
    if importlib.util.find_spec("candelabra.distributed") is None:
        with pytest.raises(AttributeError, match="pip install candelabra-distributed"):
            parallel.DistributedDataParallel
    else:
        assert issubclass(parallel.DistributedDataParallel, nn.Module)
