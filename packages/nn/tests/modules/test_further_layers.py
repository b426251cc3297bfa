"""Test 3-D layers, unpooling, adaptive softmax, bags, shuffles, and further losses and norms."""

import numpy as np
import pytest
from nn_numerics import array, assert_close, tensor

import candelabra
from candelabra import nn

F64 = {"dtype": candelabra.float64}


def windows(x, kernel, stride):
    """Return all windows over the last dimensions: (..., positions..., window...)."""
    view = np.lib.stride_tricks.sliding_window_view(x, kernel, axis=tuple(range(x.ndim - len(kernel), x.ndim)))
    steps = tuple(slice(None, None, s) for s in stride)
    return view[(slice(None),) * (x.ndim - len(kernel)) + steps]


def test_convolution_in_three_dimensions(rng):
    layer = nn.Conv3d(2, 3, (2, 1, 3), stride=(1, 2, 1), padding=(1, 0, 1), padding_mode="circular", **F64)
    x = rng.standard_normal((2, 2, 4, 5, 6))
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (0, 0), (1, 1)], mode="wrap")
    expected = np.einsum("ncdhwijk,ocijk->nodhw", windows(padded, (2, 1, 3), (1, 2, 1)), array(layer.weight))
    assert_close(layer(tensor(x)), expected + array(layer.bias)[:, None, None, None])
    # A transposed convolution is the adjoint of the convolution with the same weight.
    plain = nn.Conv3d(2, 3, 2, 2, bias=False, **F64)
    transposed = nn.ConvTranspose3d(3, 2, 2, 2, bias=False, **F64)
    transposed.weight = plain.weight
    y = rng.standard_normal((2, 3, 2, 2, 3))
    np.testing.assert_allclose(
        (array(plain(tensor(x[:, :, :, :4]))) * y).sum(),
        (array(transposed(tensor(y))) * x[:, :, :, :4]).sum(),
        rtol=1e-10,
    )
    assert transposed(tensor(y), output_size=(5, 5, 6)).shape == (2, 2, 5, 5, 6)


def test_pooling_in_three_dimensions(rng):
    x = rng.standard_normal((2, 3, 4, 5, 6))
    seen = windows(x, (2, 2, 2), (2, 2, 2))
    assert_close(nn.MaxPool3d(2)(tensor(x)), seen.max((-3, -2, -1)))
    assert_close(nn.AvgPool3d(2)(tensor(x)), seen.mean((-3, -2, -1)))
    assert_close(nn.LPPool3d(2, 2)(tensor(x)), np.sqrt((seen**2).sum((-3, -2, -1))))
    assert_close(nn.AdaptiveAvgPool3d((2, 1, 3))(tensor(x)), windows(x, (2, 5, 2), (2, 5, 2)).mean((-3, -2, -1)))
    values, places = nn.AdaptiveMaxPool3d((2, 1, 3), return_indices=True)(tensor(x))
    assert_close(values, windows(x, (2, 5, 2), (2, 5, 2)).max((-3, -2, -1)))
    assert_close(
        values, np.take_along_axis(x.reshape(2, 3, -1), array(places).reshape(2, 3, -1), 2).reshape(2, 3, 2, 1, 3)
    )


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_unpooling_inverts_pooling(rng, dims):
    x = rng.standard_normal((2, 3, *[4] * dims))
    values, places = getattr(nn, f"MaxPool{dims}d")(2, return_indices=True)(tensor(x))
    restored = array(getattr(nn, f"MaxUnpool{dims}d")(2)(values, places))
    assert np.array_equal(np.sort(restored[restored != 0]), np.sort(array(values).ravel()))
    assert (restored[restored != 0] == x[restored != 0]).all()
    larger = getattr(nn, f"MaxUnpool{dims}d")(2)(values, places, output_size=[5] * dims)
    assert larger.shape == (2, 3, *[5] * dims)


@pytest.mark.parametrize("dims", [2, 3])
def test_fractional_pooling(rng, dims):
    x = rng.permutation(2 * 3 * 6**dims).reshape(2, 3, *[6] * dims) + 0.0
    layer = getattr(nn, f"FractionalMaxPool{dims}d")(2, output_ratio=0.5, return_indices=True)
    values, places = layer(tensor(x))
    assert values.shape == (2, 3, *[3] * dims)
    flat = np.take_along_axis(x.reshape(2, 3, -1), array(places).reshape(2, 3, -1), 2)
    assert (array(values).reshape(2, 3, -1) == flat).all()
    samples = candelabra.rand(2, 3, dims, **F64)
    fixed = getattr(nn, f"FractionalMaxPool{dims}d")(2, 3, _random_samples=samples)
    assert candelabra.equal(fixed(tensor(x)), fixed(tensor(x)))


def test_padding_in_three_dimensions(rng):
    x = rng.standard_normal((1, 2, 3, 4, 5))
    pads = [(0, 0), (0, 0), (1, 0), (1, 1), (0, 2)]
    given = (0, 2, 1, 1, 1, 0)
    for layer, mode in ((nn.ReflectionPad3d, "reflect"), (nn.ReplicationPad3d, "edge"), (nn.CircularPad3d, "wrap")):
        assert_close(layer(given)(tensor(x)), np.pad(x, pads, mode=mode))
    assert_close(nn.ConstantPad3d(given, 2.5)(tensor(x)), np.pad(x, pads, constant_values=2.5))
    assert_close(nn.ZeroPad3d(1)(tensor(x)), np.pad(x, [(0, 0), (0, 0)] + [(1, 1)] * 3))
    for layer in (nn.CircularPad1d, nn.CircularPad2d, nn.CircularPad3d):
        with pytest.raises(ValueError, match=r"D input \(got 6D input\)"):
            layer(1)(candelabra.ones(1, 1, 1, 2, 2, 2))


def test_normalizations(rng):
    x = rng.standard_normal((3, 4, 2, 3, 2))
    mean, var = x.mean((0, 2, 3, 4), keepdims=True), x.var((0, 2, 3, 4), keepdims=True)
    expected = (x - mean) / np.sqrt(var + 1e-5)
    assert_close(nn.BatchNorm3d(4, **F64)(tensor(x)), expected)
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm3d(4, **F64), nn.ReLU()))
    assert type(converted[0]) is nn.SyncBatchNorm and list(converted.state_dict()) == list(
        nn.Sequential(nn.BatchNorm3d(4)).state_dict()
    )
    assert_close(converted[0](tensor(x)), expected)
    each = (x - x.mean((2, 3, 4), keepdims=True)) / np.sqrt(x.var((2, 3, 4), keepdims=True) + 1e-5)
    assert_close(nn.InstanceNorm3d(4)(tensor(x)), each)
    with pytest.raises(ValueError, match="expected 5D input"):
        nn.BatchNorm3d(4)(candelabra.ones(2, 4, 2, 2))
    with pytest.raises(ValueError, match="number of input channels should be non-zero"):
        nn.SyncBatchNorm(0)(candelabra.ones(2, 0))
    with pytest.raises(ValueError, match="batch_norm eps must be positive during training"):
        nn.BatchNorm1d(2, eps=0.0)(candelabra.ones(2, 2))
    empty = nn.BatchNorm1d(2)
    empty(candelabra.ones(0, 2))
    assert empty.running_var.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("size", [3, 4, 5])
def test_cross_map_normalization(rng, size):
    x = rng.standard_normal((2, 6, 3, 2))
    reach = (size - 1) // 2
    sums = np.array([(x[:, max(c - reach, 0) : c + reach + 1] ** 2).sum(1) for c in range(6)]).swapaxes(0, 1)
    assert_close(nn.CrossMapLRN2d(size, 0.1, 0.5, 2)(tensor(x)), x * (2 + 0.1 / size * sums) ** -0.5)
    with pytest.raises(ValueError, match="CrossMapLRN2d: Expected input to be 4D, got 3D instead"):
        nn.CrossMapLRN2d(3)(candelabra.ones(1, 2, 3))


def log_softmax(x):
    return x - x.max(-1, keepdims=True) - np.log(np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True))


def test_adaptive_softmax(rng):
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 12, [4, 7], div_value=2.0, head_bias=True, **F64)
    x, target = rng.standard_normal((5, 8)), np.array([0, 5, 11, 3, 7])
    head = log_softmax(x @ array(layer.head.weight).T + array(layer.head.bias))
    full = [head[:, :4]]
    for i in range(2):
        inner, outer = (array(linear.weight) for linear in layer.tail[i])
        assert inner.shape == (8 // 2 ** (i + 1), 8)
        full.append(log_softmax(x @ inner.T @ outer.T) + head[:, 4 + i : 5 + i])
    full = np.concatenate(full, 1)
    np.testing.assert_allclose(np.exp(full).sum(1), 1)
    output, loss = layer(tensor(x), tensor(target))
    expected = full[np.arange(5), target]
    assert_close(output, expected)
    assert_close(loss, -expected.mean())
    assert_close(layer.log_prob(tensor(x)), full)
    assert array(layer.predict(tensor(x))).tolist() == full.argmax(1).tolist()
    assert_close(layer(tensor(x[1]), tensor(5)).output, expected[1])
    before = array(layer.head.weight).copy()
    layer.reset_parameters()
    assert not (array(layer.head.weight) == before).any()
    for given, text in (
        ([0, 12, 0, 0, 0], "Target values should be in [0, 11], but values in range [0, 12] were found"),
        ([0], "same size in the batch dimension"),
        (0, "0D target tensor expects 1D input tensors"),
        ([[0]], "multi-target not supported"),
    ):
        with pytest.raises(RuntimeError) as caught:
            layer(tensor(x), candelabra.tensor(given))
        assert text in str(caught.value)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags(rng, mode):
    bag = nn.EmbeddingBag(6, 3, mode=mode, padding_idx=-1, **F64)
    table = array(bag.weight)
    assert not table[5].any()
    reduce = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode]
    indices = np.array([0, 2, 2, 5, 4, 1])
    expected = [reduce(table[[0, 2, 2]], 0), np.zeros(3), reduce(table[[4, 1]], 0)]
    assert_close(bag(tensor(indices), tensor(np.array([0, 3, 3]))), [expected[0], np.zeros(3), expected[2]])
    assert_close(bag(tensor(indices.reshape(2, 3))), [reduce(table[[0, 2, 2]], 0), reduce(table[[4, 1]], 0)])
    ended = nn.EmbeddingBag.from_pretrained(tensor(table), mode=mode, include_last_offset=True)
    assert_close(ended(tensor(indices[:3]), tensor(np.array([0, 3]))), [expected[0]])
    assert not ended.weight.requires_grad
    if mode == "sum":
        weights = rng.random((2, 3))
        assert_close(
            bag(tensor(indices.reshape(2, 3)), per_sample_weights=tensor(weights)),
            (table[indices.reshape(2, 3)] * weights[..., None]).sum(1),
        )


def test_rearrangements(rng):
    x = rng.standard_normal((2, 8, 3, 3))
    shuffled = nn.PixelShuffle(2)(tensor(x))
    assert_close(shuffled, x.reshape(2, 2, 2, 2, 3, 3).transpose(0, 1, 4, 2, 5, 3).reshape(2, 2, 6, 6))
    assert_close(nn.PixelUnshuffle(2)(shuffled), x)
    assert_close(nn.ChannelShuffle(2)(tensor(x)), x.reshape(2, 2, 4, 3, 3).swapaxes(1, 2).reshape(x.shape))
    columns = nn.Unfold(2)(tensor(x))
    assert_close(columns, windows(x, (2, 2), (1, 1)).transpose(0, 1, 4, 5, 2, 3).reshape(2, 32, 4))
    counts = np.outer([1, 2, 1], [1, 2, 1])
    assert_close(nn.Fold(3, 2)(columns), x * counts)
    assert_close(nn.Upsample(scale_factor=2)(tensor(x)), x.repeat(2, -1).repeat(2, -2))
    assert_close(nn.UpsamplingNearest2d(6)(tensor(x)), x.repeat(2, -1).repeat(2, -2))
    large = array(nn.UpsamplingBilinear2d(5)(tensor(x)))
    np.testing.assert_allclose(large[..., ::2, ::2], x)
    np.testing.assert_allclose(large[..., 0, 1], x[..., 0, :2].mean(-1))
    assert nn.Upsample(scale_factor=(1, 2)).scale_factor == (1.0, 2.0)


def test_losses(rng):
    x, target = rng.standard_normal((3, 4)), np.array([[1, 3, -1, 0], [0, -1, 1, 2], [2, 1, 0, 3]])
    expected = []
    for row, classes in zip(x, target, strict=True):
        chosen = list(classes[: list(classes).index(-1)] if -1 in classes else classes)
        others = [c for c in range(4) if c not in chosen]
        expected.append(sum(max(0, 1 - (row[c] - row[o])) for c in chosen for o in others) / 4)
    assert_close(nn.MultiLabelMarginLoss(reduction="none")(tensor(x), tensor(target)), expected)
    # Two frames, one label: it may be in the first, in the second, or in both.
    p = np.array([[0.6, 0.4], [0.3, 0.7]])
    probability = 0.4 * 0.3 + 0.6 * 0.7 + 0.4 * 0.7
    loss = nn.CTCLoss(reduction="sum")(tensor(np.log(p)[:, None]), candelabra.tensor([[1]]), (2,), (1,))
    assert_close(loss, -np.log(probability))
    impossible = nn.CTCLoss(zero_infinity=True)(tensor(np.log(p)[:1, None]), candelabra.tensor([[1, 1]]), (1,), (2,))
    assert float(impossible) == 0
    layer = nn.LinearCrossEntropyLoss(4, 3, bias=True, weight=tensor(np.array([1.0, 2.0, 3.0])), **F64)
    scores = log_softmax(x @ array(layer.linear.weight).T + array(layer.linear.bias))
    classes, weight = np.array([0, 2, 1]), np.array([1.0, 3.0, 2.0])
    assert_close(layer(tensor(x), tensor(classes)), -(weight * scores[np.arange(3), classes]).sum() / weight.sum())
    assert list(layer.state_dict()) == ["weight", "linear.weight", "linear.bias"]
    with pytest.warns(FutureWarning, match="NLLLoss2d has been deprecated"):
        older = nn.NLLLoss2d()
    assert_close(older(tensor(scores), tensor(classes)), -scores[np.arange(3), classes].mean())
    with pytest.warns(FutureWarning, match=r"nn.Container is deprecated"):
        assert nn.Container(a=nn.ReLU()).a is not None


def test_dropout_of_volumes():
    dropped = nn.Dropout3d(0.5)(candelabra.ones(8, 8, 2, 2, 2))
    sums = array(dropped.sum([2, 3, 4]))
    assert set(np.unique(sums)) == {0.0, 16.0}
    assert nn.Dropout3d(0.5).eval()(candelabra.ones(1, 2, 2, 2)).sum() == 8


def test_factory_arguments():
    assert nn.factory_kwargs(None) == {} and nn.factory_kwargs({"device": "cpu", "factory_kwargs": {"dtype": None}}) == {
        "device": "cpu", "dtype": None,
    }  # fmt: skip
    for given, text in (
        ({"x": 1}, "unexpected kwargs {'x'}"),
        ({"factory_kwargs": {"x": 1}}, "unexpected factory_kwargs {'x'}"),
        ({"dtype": 1, "factory_kwargs": {"dtype": 2}}, "dtype specified twice, in **kwargs and in factory_kwargs"),
    ):
        with pytest.raises(TypeError) as caught:
            nn.factory_kwargs(given)
        assert text in str(caught.value)
