"""A device with exactly the kernels of the tier "required" (few.py) computes what the CPU computes.
There is no CPU fallback but where a test switches it on.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from few_and_cpu import on_both, values

import candelabra
from candelabra import _C, nn
from candelabra.backends import tiers
from candelabra.catalogue import OPERATORS
from candelabra.testing import conformance
from candelabra.testing.conformance import _stable
from candelabra.testing.reference import references
from candelabra.testing.sampling import TOLERANCES, Input

F = nn.functional


# ---- the tiers


def test_the_required_tier_is_small():
    required = tiers.operators_of("required")
    assert len(required) <= 64
    assert set(required) <= set(tiers.primitives())


def test_every_primitive_has_a_tier_or_a_decomposition():
    placed = {*tiers.operators_of("required"), *tiers.operators_of("complete")}
    assert [name for name in tiers.primitives() if name not in placed and not tiers.is_decomposed(name)] == []
    # No decomposition ends in itself.
    assert [name for name in tiers.operators_of("required") if tiers.is_decomposed(name)] == []


def test_tier_of():
    assert tiers.tier_of("cpu") == ("complete", {"required": [], "fast": [], "complete": []})
    reached, missing = tiers.tier_of("few")
    assert reached == "required"
    assert missing["required"] == []
    assert missing["fast"] == tiers.operators_of("fast")
    with pytest.raises(ValueError, match="there is no tier 'some'"):
        tiers.operators_of("some")


# ---- every operator

#: Composites that end in primitives of the tier "complete".
INCOMPLETE = {"cholesky_solve", "linalg_det", "linalg_slogdet", "linalg_pinv_atol_rtol"}
WITH_RESULT = [
    name for name in conformance.applicable() if name not in INCOMPLETE and name not in tiers.operators_of("complete")
]


@pytest.mark.parametrize("part", range(8))
def test_conformance(part):
    outcomes = conformance.run("few", WITH_RESULT[part::8])
    assert [failure for outcome in outcomes for failure in outcome.failures] == []
    assert {outcome.operator: outcome.missing for outcome in outcomes if outcome.state != "passed"} == {}


def test_what_is_missing_says_so():
    matrix = candelabra.eye(2, device="few")
    with pytest.raises(NotImplementedError, match="linalg_lu_factor_ex has no kernel on device few"):
        candelabra.linalg.det(matrix)
    print(f"{len(WITH_RESULT)} of {len(conformance.applicable())} operators run on the tier required alone")


def test_the_fallback_computes_the_rest():
    rest = [name for name in conformance.applicable() if name not in WITH_RESULT]
    candelabra.backends.cpu_fallback("few")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            outcomes = conformance.run("few", rest)
    finally:
        candelabra.backends.cpu_fallback("few", False)
    assert [failure for outcome in outcomes for failure in outcome.failures] == []
    assert [outcome.operator for outcome in outcomes if outcome.state != "passed"] == []
    # What has a decomposition does not fall back.
    assert set(candelabra.backends.fallback_calls("few")) <= set(tiers.operators_of("complete"))


# ---- against the CPU: dtypes, sizes, strides, changed arguments, random numbers


def made(value, device):
    if isinstance(value, Input):
        return value.tensor(device)
    return [made(part, device) for part in value] if isinstance(value, list) else value


def flat(value):
    if isinstance(value, (list, tuple)):
        return [tensor for part in value for tensor in flat(part)]
    return [value] if isinstance(value, candelabra.Tensor) else []


def outcome(operator, sample, device):
    arguments = [made(argument, device) for argument in sample.arguments]
    keywords = {name: made(value, device) for name, value in sample.keywords.items()}
    if "device" in operator.parameters:
        keywords["device"] = device
    _C.manual_seed(7)
    result = operator(*arguments, **keywords)
    tensors = [*flat(result), *flat(arguments)]
    forms = [(type(result).__name__, tensor.dtype, tuple(tensor.shape), tensor.stride()) for tensor in tensors]
    state = _C.default_generator(candelabra.device(device)).get_state().tolist()
    return [conformance.values_of(tensor) for tensor in tensors], (forms, state)


DECOMPOSED = [name for name in WITH_RESULT if name in tiers.primitives() and tiers.is_decomposed(name)]


@pytest.mark.parametrize("part", range(4))
def test_results_are_those_of_the_cpu(part):
    known = references()
    for name in DECOMPOSED[part::4]:
        for dtype in known[name].dtypes:
            # Of integers, many results are float32.
            tolerance = 4 * TOLERANCES.get(dtype, TOLERANCES["float32"]) * known[name].tolerance
            for sample in known[name].samples(np.random.default_rng(_stable(name + dtype)), dtype):
                ours, our_form = outcome(OPERATORS[name], sample, "few")
                theirs, their_form = outcome(OPERATORS[name], sample, "cpu")
                assert our_form == their_form, f"{name}({sample})"
                for a, b in zip(ours, theirs, strict=True):
                    with np.errstate(all="ignore"):
                        close = np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)
                    assert close, f"{name}({sample}): {a} instead of {b}"


def test_promotion_out_and_in_place():
    def compute(device):
        a, b = values(3, 4, device=device), candelabra.arange(12, device=device).reshape(3, 4)
        yield from (
            b.square(),
            (b > 3).mean(dtype=candelabra.float32),
            a.clamp(min=b),
            b.remainder(2.5),
            (b > 5).any(1),
        )
        yield from (a.double().lerp(a.double() * 2, 0.25), candelabra.hypot(a, b.float()), b.true_divide(3).ceil())
        out = candelabra.empty(0, device=device)
        yield candelabra.addmm(a[:, :3], a, a.t(), out=out)
        yield out
        transposed = candelabra.empty(4, 3, device=device).t()
        candelabra.square(a, out=transposed)
        yield transposed
        changed = a.clone()
        changed[:, 1].clamp_(0, 1)
        changed.t().masked_fill_(changed.t() > 1, -3).addcmul_(a.t(), a.t(), value=0.5)
        yield changed
        yield from (candelabra.tensor(2.5, device=device).round(), candelabra.empty(0, 3, device=device).mean(0))

    on_both(compute)


def test_joining_tensors_without_elements():
    for dtype in (candelabra.float32, candelabra.int64):
        part = candelabra.empty(0, dtype=dtype, device="few")
        whole = candelabra.cat([part, part])
        assert (whole.device, whole.dtype, whole.shape) == (part.device, dtype, (0,))
        assert candelabra.cat([part, candelabra.ones(2, dtype=dtype, device="few")]).tolist() == [1, 1]


def test_batches_of_images_keep_their_order():
    def images(device):
        return values(2, 3, 4, 5, device=device).to(memory_format=candelabra.channels_last)

    for function in (
        *(lambda x, mode=mode: F.interpolate(x, scale_factor=2, mode=mode) for mode in ("nearest", "bilinear")),
        *(lambda x, mode=mode: F.pad(x, (1, 2, 0, 1), mode) for mode in ("constant", "reflect", "circular")),
        F.dropout, lambda x: F.pad(x, (1, 2)), lambda x: F.batch_norm(x, None, None, training=True), lambda x: F.max_pool2d(x, 2),
    ):  # fmt: skip
        on_both(lambda device, function=function: [function(images(device))])
        assert function(images("few")).stride() == function(images("cpu")).stride()


def _channels_last(t):
    return t.contiguous(memory_format=candelabra.channels_last)


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: candelabra.stack([x, x], 1),
        lambda x: candelabra.stack([x, x], -1),
        lambda x: candelabra.softmax(x, 1),
        lambda x: candelabra.log_softmax(x, 1),
        lambda x: F.layer_norm(x, x.shape[2:]),
        lambda x: F.rms_norm(x, x.shape[2:]),
        lambda x: F.batch_norm(x, None, None, training=True),
        lambda x: F.group_norm(x, 1),
        lambda x: candelabra.kthvalue(x, 1, 1),
    ],
    ids=[
        "stack",
        "stack_last",
        "softmax",
        "log_softmax",
        "layer_norm",
        "rms_norm",
        "batch_norm",
        "group_norm",
        "kthvalue",
    ],
)
@pytest.mark.parametrize(
    "arranged",
    [lambda t: t, lambda t: t.transpose(1, 3), lambda t: t.permute(2, 0, 3, 1), _channels_last, lambda t: t[:, ::2]],
    ids=["rows", "transposed", "permuted", "channels_last", "steps"],
)
def test_strides_are_those_of_the_cpu(compute, arranged):
    def strides(device):
        x = arranged(candelabra.arange(240.0, device=device).reshape(2, 4, 6, 5)).detach().requires_grad_()
        results = compute(x)
        results = list(results) if isinstance(results, tuple) else [results]
        ones = candelabra.ones_like(results[0])
        for grad in (ones, ones.transpose(0, -1).contiguous().transpose(0, -1)):
            results += candelabra.autograd.grad(results[0], x, grad, retain_graph=True)
        return [result.stride() for result in results]

    assert strides("few") == strides("cpu")


def test_random_numbers():
    def compute(device):
        yield candelabra.bernoulli(candelabra.full((9,), 0.5, device=device))
        yield candelabra.empty(9, device=device).exponential_()
        yield candelabra.empty(9, device=device, dtype=candelabra.float64).exponential_(2.0)
        yield candelabra.randperm(11, device=device)
        yield F.dropout(candelabra.ones(9, device=device))
        yield candelabra.rand(3, device=device)

    on_both(compute)


def test_versions_rise_once():
    x = values(3, device="few")
    x.clamp_(0, 1)
    assert x._version == 1
    x.bernoulli_(0.5)
    assert x._version == 2
    assert x.square()._version == 0


def test_errors_are_those_of_the_cpu():
    def error(call, device):
        try:
            call(values(2, 3, device=device), candelabra.tensor([0, 5], device=device))
        except Exception as raised:
            return type(raised), str(raised)
        return None

    for call in (
        lambda x, i: x.index_select(1, i), lambda x, i: x[i], lambda x, i: x.take(i * 9), lambda x, i: F.nll_loss(x, i),
        lambda x, i: x.index_add(1, i, x[:, :2]), lambda x, i: x.index_put((i,), x[0]), lambda x, i: candelabra.addmm(x, x, x), lambda x, i: x.topk(4),
        lambda x, i: x.sum().masked_scatter(x > -9, x[0]), lambda x, i: candelabra.cat([x, x[0]]),
    ):  # fmt: skip
        assert error(call, "few") == error(call, "cpu") is not None


def test_results_share_no_memory_with_arguments():
    x = candelabra.arange(3, device="few")
    for result in (x.round(), candelabra.ops.index(x, []), candelabra.ops.index_put(x, [], candelabra.zeros_like(x))):
        result += 1
        assert x.tolist() == [0, 1, 2]


def test_sizes_beyond_the_memory_are_refused_at_once():
    with pytest.raises(RuntimeError):
        candelabra.randperm(2**44, device="few")
    with pytest.raises(RuntimeError):
        F.adaptive_avg_pool1d(values(1, 1, 4, device="few"), 2**44)


def test_a_decomposition_may_refuse_a_call():
    with pytest.raises(NotImplementedError, match="\"erfc\" not implemented for 'ComplexFloat' on device few"):
        candelabra.ones(2, dtype=candelabra.complex64, device="few").erfc()


# ---- autograd


def test_the_operator_itself_is_recorded():
    x = values(2, 2, device="few", requires_grad=True)
    for result, node in ((x.square(), "Square"), (candelabra.addmm(x, x, x), "Addmm"), (x.clamp(0, 1), "Clamp")):
        assert type(result.grad_fn).__name__.startswith(node)


def test_hooks_see_the_operator_alone():
    seen = []

    def hook(operator, *rest):
        seen.append(operator.name)
        return NotImplemented

    x = values(2, 2, device="few")
    before = _C.set_dispatch_hook(hook)
    try:
        OPERATORS["var"](x)
    finally:
        _C.set_dispatch_hook(before)
    assert seen == ["var"]


def test_gradients():
    def compute(device):
        x = values(3, 4, device=device, requires_grad=True)
        y = (x.sigmoid() * x.cumprod(1)).topk(2, 1).values.std(0).sum()
        (gradient,) = candelabra.autograd.grad(y, x, create_graph=True)
        yield from (y, gradient, *candelabra.autograd.grad(gradient.square().sum(), x))

    on_both(compute)


def test_a_refused_composite_changes_nothing(device):
    mean, variance = candelabra.zeros(3, device=device), candelabra.ones(3, device=device)
    for sizes, weight in (((2, 4, 2), None), ((2, 3, 2), candelabra.ones(5, device=device))):
        with pytest.raises(RuntimeError, match="batch_norm"):
            F.batch_norm(candelabra.ones(sizes, device=device), mean, variance, weight, training=True)
    assert mean.tolist() == [0, 0, 0] and variance.tolist() == [1, 1, 1]


def test_decompositions_of_nothing():
    """Losses without classes, pooling to nothing and attention without keys, as the CPU has
    them.
    """
    found = []
    for device in ("cpu", "few"):
        scores, ignored = candelabra.zeros(3, 0, device=device), candelabra.full((3,), -100, device=device)
        losses = [F.nll_loss(scores, ignored, reduction=reduction) for reduction in ("none", "mean", "sum")]
        pooled = OPERATORS["adaptive_avg_pool_backward"](candelabra.zeros(2, 3, 0, 0, device=device), [2, 3, 4, 4])
        query, key = candelabra.ones(1, 1, 2, 4, device=device), candelabra.ones(1, 1, 0, 4, device=device)
        attended = OPERATORS["_scaled_dot_product_attention"](query, key, key, None, False, 1.0)
        found.append([tensor.cpu().numpy() for tensor in (*losses, pooled, *attended)])
    for computed, expected in zip(*found, strict=True):
        np.testing.assert_array_equal(computed, expected)
