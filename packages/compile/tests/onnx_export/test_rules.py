"""Each rule: ONNX Runtime computes what the operator computes."""

import pytest

pytest.importorskip("onnx", reason="the export writes its files with onnx: pip install onnx")
pytest.importorskip("onnxruntime", reason="the oracle of these tests: pip install onnxruntime")

from onnx_oracle import assert_same, check, exported

import candelabra
import candelabra.nn.functional as F
from candelabra.export.graph import find_operator
from candelabra.onnx.rules import RULES

X = candelabra.tensor([[-2.5, -0.75, 0.0, 0.25], [0.5, 1.5, 2.0, 3.25]])
Y = candelabra.tensor([[1.0, -2.0, 0.5, 3.0], [2.0, -1.5, 4.0, 0.75]])
POSITIVE = X.abs() + 0.125
UNIT = X / 4
INTS, OTHER_INTS = candelabra.tensor([[-7, 5, 0, 9], [8, -3, 2, 1]]), candelabra.tensor([[2, -3, 4, 5], [3, 2, -5, 1]])
BOOLS, OTHER_BOOLS = X > 0, Y > 0
NANS = candelabra.tensor([1.0, float("nan"), float("inf"), -float("inf")])
BATCH = candelabra.arange(48.0).reshape(2, 4, 6).sin()
IMAGE = candelabra.arange(2 * 4 * 6 * 5.0).reshape(2, 4, 6, 5).cos()
INDEX = candelabra.tensor([2, 0, -1])


def _in_place(x):
    y = x.clone()
    y[:, 1:3] = 7
    y[0] += y[1]
    view = y.view(-1)[2:]
    view.mul_(2)
    y[0].t()[1] = 3
    return y, view, y[:, ::2].relu_()


UNARY = [
    *(lambda x, name=name: getattr(x, name)() for name in (
        "abs", "ceil", "floor", "neg", "exp", "sin", "cos", "tan", "atan", "sinh", "cosh", "asinh", "tanh", "erf", "erfc", "sigmoid", "sign",
        "sgn", "square", "exp2", "expm1", "trunc", "frac", "round", "relu", "logical_not", "reciprocal",
    )),
    lambda x: x.round(decimals=1), lambda x: x.clamp(0), lambda x: x.clamp(-1, 1), lambda x: x.clamp(max=0.5), lambda x: x.nan_to_num(),
]  # fmt: skip
OF_POSITIVES = ["sqrt", "rsqrt", "log", "log2", "log10", "log1p"]
OF_UNITS = ["acos", "asin", "atanh"]
BINARY = [
    lambda x, y: (x + y, x - y, x * y, x / y), lambda x, y: candelabra.add(x, y, alpha=2), lambda x, y: candelabra.sub(x, y, alpha=0.5),
    lambda x, y: (x + 1, 2 - x, x * 3, 1 / y, x / 2, 2**x, x**2), lambda x, y: candelabra.div(x, y, rounding_mode="floor"),
    lambda x, y: candelabra.div(x, y, rounding_mode="trunc"), lambda x, y: (x // y, x % y), lambda x, y: candelabra.fmod(x, y),
    lambda x, y: (x.maximum(y), x.minimum(y), x.fmax(y), x.fmin(y)), lambda x, y: (x == y, x != y, x < y, x <= y, x > y, x >= y, x > 0),
    lambda x, y: candelabra.where(x > y, x, 0.0), lambda x, y: x.masked_fill(y > 0, -1e9), lambda x, y: candelabra.lerp(x, y, 0.25),
    lambda x, y: candelabra.addcmul(x, x, y, value=2), lambda x, y: candelabra.addcdiv(x, x, y), lambda x, y: candelabra.atan2(x, y),
    lambda x, y: candelabra.hypot(x, y), lambda x, y: candelabra.logaddexp(x, y), lambda x, y: candelabra.xlogy(x, y.abs()),
    lambda x, y: candelabra.logical_and(x, y), lambda x, y: candelabra.logical_xor(x, y), lambda x, y: x.clamp(min=y),
    lambda x, y: (candelabra.copysign(x, y), candelabra.copysign(y, -0.0 * y.abs()), candelabra.heaviside(x, y), candelabra.cdist(x, y), candelabra.cdist(x[None], y[None], p=1.0)),
    lambda x, y: (candelabra.bucketize(x, y[0].sort().values), candelabra.searchsorted(y.sort().values, x, right=True, out_int32=True)),
    lambda x, y: (x.double() + y, x.half() * 2, x.to(candelabra.int32), x.bool(), x.type_as(y)),
]  # fmt: skip
OF_INTS = [
    lambda x, y: (x + y, x - y, x * y, x / y, x // y, x % y), lambda x, y: (x & y, x | y, x ^ y, ~x), lambda x, y: (x < y, x == 3),
    lambda x, y: candelabra.fmod(x, y), lambda x, y: (x.int() + y, x.float() * y, x * 2.5), lambda x, y: (x.maximum(y), x.clamp(0, 5)),
    lambda x, y: (x.to(candelabra.int8) + y.to(candelabra.int8), x.to(candelabra.uint8).amax(), x.to(candelabra.int16).abs()),
    lambda x, y: (x.sum(), x.prod(0), x.amin(1), x.argmax(1), x.cumsum(1), x.float().mean()), lambda x, y: (x.abs(), x.neg(), x.square()),
]  # fmt: skip
ACTIVATIONS = [
    F.elu, F.selu, F.celu, F.gelu, lambda x: F.gelu(x, approximate="tanh"), F.silu, F.mish, F.softplus, lambda x: F.softplus(x, 2.0, 3.0),
    F.hardswish, F.hardsigmoid, F.hardtanh, F.leaky_relu, F.logsigmoid, F.hardshrink, F.softshrink, lambda x: F.threshold(x, 0.1, 2.0),
    lambda x: F.softmax(x, -1), lambda x: F.log_softmax(x, 0), lambda x: F.prelu(x, candelabra.tensor([0.25])), F.glu, F.softsign,
    lambda x: F.softmax(x, 1, dtype=candelabra.float64), lambda x: candelabra.logit(x.sigmoid(), 1e-3), lambda x: F.celu(x, 0.5),
]  # fmt: skip
REDUCTIONS = [
    lambda x: (x.sum(), x.sum(0), x.sum((0, 2), keepdim=True)), lambda x: (x.mean(), x.mean(-1), x.prod(), x.prod(1)),
    lambda x: (x.amax(), x.amin(1), x.max(), x.min()), lambda x: (*x.max(1), *x.min(-1, keepdim=True)), lambda x: (x.argmax(), x.argmin(1)),
    lambda x: ((x > 0).any(), (x > -2).all(1), x.any(0)), lambda x: candelabra.logsumexp(x, 1), lambda x: (x.var(), x.std(1), x.var(1, correction=0)),
    lambda x: (x.norm(), x.norm(1, 1), x.norm(float("inf"), 2), x.norm(3, 0)), lambda x: x.cumsum(1), lambda x: candelabra.count_nonzero(x > 0, 1),
    lambda x: candelabra.aminmax(x, dim=1), lambda x: candelabra.var_mean(x, 1),
]  # fmt: skip
VIEWS = [
    lambda x: (x.view(8, 6), x.reshape(-1), x.flatten(1), x.unflatten(2, (3, 2))), lambda x: (x.permute(2, 0, 1), x.transpose(0, -1), x[0].t()),
    lambda x: x.movedim(0, 2), lambda x: (x.unsqueeze(1), x[:1].squeeze(0), x[:1].squeeze(), x[None].expand(3, -1, -1, -1)),
    lambda x: (x[0], x[:, -1], x[..., 2]), lambda x: (x[:, 1:3], x[:, ::2], x[:, :, -2:], x.narrow(1, -2, 1)), lambda x: x.split(4, 2), lambda x: x.split([1, 3, 2], 2),
    lambda x: x.chunk(2, 1), lambda x: x.unbind(1), lambda x: candelabra.diagonal(x, 1, 1, 2), lambda x: x.unfold(2, 3, 2),
    lambda x: x.as_strided((2, 2), (6, 1), 3), lambda x: (x.flip(1, 2), x.roll(1, 2), x.repeat(1, 2, 1), x.tile(2)),
    lambda x: (x.tril(), x.triu(1), (x > 0).tril(), x.long().triu()), lambda x: (candelabra.cat([x, x], 1), candelabra.stack([x, x], -1)),
    lambda x: candelabra.cat([x, candelabra.ones(2, 4, 1, dtype=candelabra.int64)], 2), lambda x: x.repeat_interleave(2, 1),
    lambda x: (candelabra.zeros_like(x) + x, candelabra.full((2, 4, 6), 0.5) * x, x.new_ones(3)), lambda x: candelabra.arange(6) + x.long(),
    lambda x: F.pad(x, (1, 2)), lambda x: F.pad(x, (1, -2, 0, 1), value=2), lambda x: F.pad(x, (1, 2), mode="reflect"),
    lambda x: F.pad(x, (1, 2), mode="replicate"), lambda x: F.pad(x, (1, 2), mode="circular"), _in_place,
]  # fmt: skip
INDEXING = [
    lambda x, i: x[i.clamp(0, 1)], lambda x, i: x[:, i], lambda x, i: x[:, i, i], lambda x, i: x[i.clamp(0, 1), :, i], lambda x, i: x[:, i[:, None], i],
    lambda x, i: x.index_select(1, i.clamp(0)), lambda x, i: x.gather(1, i.clamp(0).expand(2, 1, 3)), lambda x, i: x.take(i.clamp(0)),
    lambda x, i: x.scatter(2, i.clamp(0).expand(2, 4, 3), 1.5), lambda x, i: x.scatter(1, i.clamp(0).expand(2, 2, 3), -x),
    lambda x, i: x.scatter_add(2, i.clamp(0).expand(2, 4, 3), x), lambda x, i: x.scatter_reduce(2, i.clamp(0).expand(2, 4, 3), x, "amax"),
    lambda x, i: x.index_put((candelabra.tensor([0, 1]), candelabra.tensor([1, 2])), candelabra.tensor([5.0])),
    lambda x, i: x.index_put((candelabra.tensor([0, 1, 0]), i), x[0, :3], accumulate=True), lambda x, i: x.index_add(1, i.clamp(0), x[:, :3], alpha=2),
    lambda x, i: x.index_copy(2, i.clamp(0), x[:, :, :3]), lambda x, i: x.index_fill(1, i.clamp(0), 9.0), lambda x, i: F.embedding(i.clamp(0), x[0]),
    lambda x, i: (*x.sort(1), *x.sort(2, descending=True), x.argsort(-1)), lambda x, i: (*x.topk(3), *x.topk(2, 1, largest=False)),
    lambda x, i: F.embedding_bag(i.clamp(0)[None].expand(2, 3), x[0]), lambda x, i: candelabra.index_put(x, (x > 0,), candelabra.tensor(3.0)),
]  # fmt: skip
PRODUCTS = [
    lambda x, y: x @ y, lambda x, y: x[0] @ y[0], lambda x, y: x[0] @ y[0, :, 0], lambda x, y: x[0, 0] @ y[0, :, 0], lambda x, y: F.linear(x, y[0].t()),
    lambda x, y: F.linear(x[0], y[0].t(), y[0, 0]), lambda x, y: candelabra.addmm(y[0, 0], x[0], y[0], beta=2, alpha=0.5),
    lambda x, y: candelabra.baddbmm(y[:, :4], x, y, alpha=2), lambda x, y: candelabra.einsum("bij,bjk->bki", x, y),
    lambda x, y: candelabra.addmm(candelabra.ones(1, dtype=candelabra.int64), x[0].long(), y[0].long()),
]  # fmt: skip
IMAGES = [
    lambda x: F.max_pool2d(x, 2, ceil_mode=True), lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), lambda x: F.max_pool2d(x, 2, 1, dilation=2),
    lambda x: F.avg_pool2d(x, 2), lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), lambda x: F.avg_pool2d(x, 2, divisor_override=3),
    lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), lambda x: F.adaptive_avg_pool2d(x, 1), lambda x: F.adaptive_avg_pool2d(x, (4, 3)),
    lambda x: F.adaptive_max_pool2d(x, 1), lambda x: F.adaptive_max_pool2d(x, (3, 5)), lambda x: F.adaptive_max_pool2d(x, (4, 3)),
    lambda x: F.interpolate(x, scale_factor=1.5), lambda x: F.interpolate(x, size=(7, 9), mode="bilinear"),
    lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"), lambda x: F.interpolate(x, size=(9, 9), mode="bilinear", align_corners=True),
    lambda x: F.interpolate(x, scale_factor=2.5, mode="nearest-exact"), lambda x: F.interpolate(x[:, 0], size=8, mode="linear"),
    lambda x: F.interpolate(x, size=(3, 3), mode="area"), lambda x: F.interpolate(x, size=(3, 3), mode="bilinear", antialias=True),
    lambda x: F.grid_sample(x, x[:, :2, :, :].permute(0, 2, 3, 1), align_corners=False), lambda x: F.pixel_shuffle(x, 2),
    lambda x: F.grid_sample(x, x[:, :2].permute(0, 2, 3, 1), "nearest", "border", align_corners=True), lambda x: F.pixel_unshuffle(x[..., :4], 2),
    lambda x: F.channel_shuffle(x, 2), lambda x: F.unfold(x, (2, 3), padding=1, stride=2), lambda x: F.fold(F.unfold(x, 2, stride=2), (6, 4), 2, stride=2),
    lambda x: F.layer_norm(x, (5,)), lambda x: F.layer_norm(x, (6, 5), x[0, 0], x[1, 0]), lambda x: F.group_norm(x, 2, x[0, :, 0, 0], x[1, :, 0, 0]),
    lambda x: F.instance_norm(x), lambda x: F.rms_norm(x, (5,), x[0, 0, 0]), lambda x: F.local_response_norm(x, 3),
    lambda x: F.batch_norm(x, None, None, training=True), lambda x: F.conv2d(x, x[:, :2, :3, :3], groups=2), lambda x: F.conv2d(x, x[:, :, :2, :2], padding="same"),
    lambda x: F.conv_transpose2d(x, x.permute(1, 0, 2, 3)[..., :3], stride=2, padding=1, output_padding=1), lambda x: F.conv1d(x[:, 0], x[0, :, :, :3]),
    lambda x: F.normalize(x), lambda x: F.cosine_similarity(x, x.flip(3)), lambda x: F.lp_pool2d(x.abs(), 2, 2),
    lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True), lambda x: F.scaled_dot_product_attention(x, x, x, attn_mask=x[0, 0] @ x[0, 0].T),
    lambda x: F.scaled_dot_product_attention(x, x[:, :2], x[:, :2], attn_mask=candelabra.ones(6, 6).tril(-1) > 0, enable_gqa=True),
]  # fmt: skip
CLASSES = candelabra.tensor([3, 0])
LOSSES = [
    lambda x, y: F.cross_entropy(x, CLASSES), lambda x, y: F.cross_entropy(x, CLASSES, y[0].abs(), reduction="none"), lambda x, y: F.nll_loss(x, CLASSES),
    lambda x, y: F.nll_loss(x[0], CLASSES[0]), lambda x, y: F.mse_loss(x, y), lambda x, y: F.smooth_l1_loss(x, y), lambda x, y: F.huber_loss(x, y, delta=0.5),
    lambda x, y: F.binary_cross_entropy_with_logits(x, y.sigmoid()), lambda x, y: F.binary_cross_entropy(x.sigmoid(), y.sigmoid()), lambda x, y: F.l1_loss(x, y),
    lambda x, y: F.kl_div(F.log_softmax(x, 1), F.softmax(y, 1), reduction="sum"),
]  # fmt: skip
CASES = {
    "unary": [(one, (X,)) for one in UNARY],
    "positive": [(lambda x, name=name: getattr(x, name)(), (POSITIVE,)) for name in OF_POSITIVES],
    "unit": [(lambda x, name=name: getattr(x, name)(), (UNIT,)) for name in OF_UNITS],
    "acosh": [(candelabra.acosh, (POSITIVE + 1,))],
    "binary": [(one, (X, Y)) for one in BINARY],
    "ints": [(one, (INTS, OTHER_INTS)) for one in OF_INTS],
    "bools": [(lambda x, y: (x & y, x | y, x ^ y, ~x, x + y, x * y, x == y, x.sum()), (BOOLS, OTHER_BOOLS))],
    "nans": [(lambda x: (x.isnan(), x.isinf(), x.isfinite(), x.isposinf(), x.isneginf(), x.nan_to_num(), x.fmax(x[:1])), (NANS,))],
    "activations": [(one, (X,)) for one in ACTIVATIONS],
    "reductions": [(one, (BATCH,)) for one in REDUCTIONS],
    "views": [(one, (BATCH,)) for one in VIEWS],
    "indexing": [(one, (BATCH, INDEX)) for one in INDEXING],
    "products": [(one, (BATCH, BATCH.transpose(1, 2).contiguous())) for one in PRODUCTS],
    "images": [(one, (IMAGE,)) for one in IMAGES],
    "losses": [(one, (X, Y)) for one in LOSSES],
}  # fmt: skip


@pytest.mark.parametrize(
    ("function", "args"),
    [pytest.param(*case, id=f"{family}-{k}") for family, cases in CASES.items() for k, case in enumerate(cases)],
)
def test_rule(function, args):
    check(function, *args, tolerance=2e-5)


def test_rules_are_those_of_operators():
    assert [name for name in RULES if find_operator(name) is None] == []


def test_tensors_of_any_size():
    def made(x):
        rows = x.shape[0]
        return (
            candelabra.ones_like(x), candelabra.full_like(x, 2), candelabra.zeros(rows, 2), candelabra.ones(rows), candelabra.empty_like(x).zero_(),
            x.new_full((rows, rows + 1), 3, dtype=candelabra.int64), candelabra.arange(rows), candelabra.arange(0.5, rows, 2), x.new_empty(rows).fill_(1),
            x.flatten().view(rows, -1), x.sum() / rows, x.std(0), x.sort(0).values, x[-1], x[rows // 2 :], candelabra.ops.rsub(x, x, alpha=2),
            candelabra.logical_or(x, x > 1), x.expand(2, -1, -1), candelabra.eye(4) + x[:1],
        )  # fmt: skip

    program = exported(made, (X,), dynamic_shapes=({0: "rows"},))
    for rows in (2, 5):
        assert_same(program, made, (candelabra.arange(4.0 * rows).reshape(rows, 4).sin(),), 1e-5)


def test_operators_of_training():
    ops = candelabra.ops
    check(lambda x: ops.cross_entropy_forward(x, CLASSES, reduction="sum")[0], X)
    check(lambda x: ops._addmm_activation(x[0], x[:, :2], x), X)
    check(lambda x: ops._addmm_activation(x[0], x[:, :2], x, use_gelu=True), X, tolerance=1e-5)
    program = exported(lambda x: ops.native_dropout(x, 0.5)[0], (candelabra.ones(1000),))
    (found,) = program(candelabra.ones(1000))
    assert set(found.tolist()) == {0.0, 2.0} and 300 < found.count_nonzero() < 700


@pytest.mark.parametrize("dtype", [candelabra.float16, candelabra.float64], ids=str)
def test_dtypes(dtype):
    tolerance = 2e-3 if dtype is candelabra.float16 else 1e-12
    x, image = BATCH.to(dtype), IMAGE.to(dtype)
    check(lambda x: (x + 1, x.sum(1), F.silu(x), x @ x.transpose(1, 2)), x, tolerance=5 * tolerance)
    check(lambda x: (F.softmax(x, 1), F.layer_norm(x, (5,)), x.amax(2)), image, tolerance=5 * tolerance)
