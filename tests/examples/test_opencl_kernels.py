"""Test the OpenCL kernels of pooling, attention, losses of classes, group normalization and
advanced indexing beside the CPU's results: strides, empty tensors, repeated and bad indices.
"""

from __future__ import annotations

import itertools
import os

import numpy as np
import pytest

import candelabra
from candelabra.backends import tiers

pytest.importorskip("candelabra_opencl", reason="the example backend is not installed: nox -s tests-examples does it")

try:
    candelabra.backends.load("opencl")
except candelabra.BackendError as error:
    if os.environ.get("CANDELABRA_REQUIRE_OPENCL"):
        raise
    pytest.skip(f"no OpenCL device: {error}", allow_module_level=True)

ops = candelabra.ops
FLOATS = (candelabra.float32, candelabra.float64, candelabra.float16, candelabra.bfloat16)
TOLERANCES = {
    candelabra.float64: 1e-10, candelabra.float32: 2e-5, candelabra.float16: 4e-3, candelabra.bfloat16: 3e-2,
}  # fmt: skip


def values(*shape, dtype=candelabra.float32, seed=0):
    drawn = np.random.default_rng(seed).uniform(-2, 2, shape)
    return candelabra.tensor(drawn.tolist()).reshape(shape).to(dtype)


def strided(tensor):
    """Return a tensor with these elements whose strides are neither contiguous nor
    channels-last.
    """
    if tensor.ndim == 0:
        return tensor
    order = tuple(reversed(range(tensor.ndim)))
    return tensor.permute(order).repeat_interleave(2, 0).contiguous()[::2].permute(order)


def flat(result):
    return list(itertools.chain(*map(flat, result))) if isinstance(result, (list, tuple)) else [result]


def compare(operator, *arguments):
    """Compare an operator on both devices, with contiguous and with strided arguments."""
    before = candelabra.backends.fallback_calls("opencl").get(operator, 0)
    expected = flat(getattr(ops, operator)(*arguments))
    for device in ("opencl", "strided"):
        given = [argument_on(argument, device) for argument in arguments]
        for ours, theirs in zip(expected, flat(getattr(ops, operator)(*given)), strict=True):
            assert theirs.dtype is ours.dtype and theirs.shape == ours.shape
            assert theirs.device.type == "opencl"
            tolerance = TOLERANCES.get(ours.dtype, 0)
            np.testing.assert_allclose(
                np.array(theirs.tolist()), np.array(ours.tolist()), rtol=tolerance, atol=tolerance, equal_nan=True
            )
    assert candelabra.backends.fallback_calls("opencl").get(operator, 0) == before, "the CPU has computed it"
    return expected


def argument_on(value, device):
    if isinstance(value, candelabra.Tensor):
        on_device = value.to("opencl")
        return strided(on_device) if device == "strided" else on_device
    if isinstance(value, (list, tuple)) and any(isinstance(part, candelabra.Tensor) for part in value):
        return [argument_on(part, device) for part in value]
    return value


def test_the_device_has_the_fast_tier():
    found = tiers.tier_of("opencl")
    assert found.missing["required"] == [] and found.missing["fast"] == []


# ---- pooling


@pytest.mark.parametrize("dtype", [*FLOATS, candelabra.int64, candelabra.uint8], ids=str)
def test_maximum_pooling(dtype):
    x = (values(2, 3, 7, 9) * 3).to(dtype)
    for arguments in (
        ([3, 2], [2, 2], [1, 0], [1, 1], False),
        ([3, 3], [2, 3], [1, 1], [2, 1], True),
        ([2, 2], [1, 1], [0, 0], [3, 4], False),
    ):
        out, indices = compare("max_pool", x, *arguments)
        if dtype in FLOATS:
            compare("max_pool_backward", values(*out.shape, dtype=dtype, seed=1), indices, list(x.shape))
    compare("max_pool", x[0], [3], [2], [1], [1], True)  # (N, C, W)
    compare("max_pool", x.reshape(1, 3, 2, 7, 9), [2, 2, 3], [1, 2, 2], [1, 0, 1], [1, 1, 1], True)
    assert compare("max_pool", x[:0], [3, 3], [2, 2], [1, 1], [1, 1], False)[0].numel() == 0


def test_maximum_pooling_of_nan_infinity_and_padding():
    nan, infinity = float("nan"), float("inf")
    x = candelabra.tensor([[[[nan, 1.0, nan, -infinity], [2.0, 2.0, -infinity, -infinity]]]])
    for kernel in ([2, 2], [1, 2], [2, 1]):
        compare("max_pool", x, kernel, kernel, [0, 0], [1, 1], False)
    # A dilated window may be padding only: its index is -1, and it has no gradient.
    out, indices = compare("max_pool", candelabra.ones(1, 1, 1, 1), [2, 2], [1, 1], [1, 1], [2, 2], False)
    assert indices.tolist() == [[[[-1]]]]
    compare("max_pool_backward", out, indices, [1, 1, 1, 1])


@pytest.mark.parametrize("dtype", [*FLOATS, candelabra.int64], ids=str)
def test_average_pooling(dtype):
    x = (values(2, 3, 8, 5) * 9).to(dtype)
    for arguments in (
        ([3, 2], [2, 2], [1, 0], False, True, None),
        ([3, 3], [2, 2], [1, 1], True, False, None),
        ([4, 3], [3, 3], [1, 1], True, True, None),
        ([2, 2], [3, 1], [0, 1], False, True, 7),
    ):
        (out,) = compare("avg_pool", x, *arguments)
        compare("avg_pool_backward", (values(*out.shape) * 9).to(dtype), list(x.shape), *arguments)
    compare("avg_pool", x[0], [3], [2], [1], True, False, None)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_adaptive_pooling(dtype):
    x = values(2, 3, 7, 5, dtype=dtype)
    for sizes in ([1, 1], [3, 2], [7, 5], [10, 6], [0, 2]):
        (out,) = compare("adaptive_avg_pool", x, sizes)
        compare("adaptive_avg_pool_backward", values(*out.shape, dtype=dtype), list(x.shape))
        compare("adaptive_max_pool", x, sizes)


def test_pooling_keeps_channels_last():
    x = values(2, 16, 6, 6).to(memory_format=candelabra.channels_last)
    out, _ = ops.max_pool(x.to("opencl"), [2, 2], [2, 2], [0, 0], [1, 1], False)
    assert out.is_contiguous(memory_format=candelabra.channels_last)
    compare("max_pool", x, [3, 3], [2, 2], [1, 1], [1, 1], False)
    compare("avg_pool", x, [3, 3], [2, 2], [1, 1], False, True, None)


@pytest.mark.parametrize("index", [4, -2])
def test_bad_indices_of_pooling(index):
    grad, indices = candelabra.ones(1, 1, 1, 2), candelabra.tensor([[[[0, index]]]])
    for device in ("cpu", "opencl"):
        with pytest.raises(IndexError, match=rf"index {index} is out of bounds for a plane of 4 elements"):
            ops.max_pool_backward(grad.to(device), indices.to(device), [1, 1, 2, 2])


# ---- advanced indexing


@pytest.mark.parametrize(
    "dtype",
    [*FLOATS, candelabra.int64, candelabra.int8, candelabra.uint8, candelabra.bool, candelabra.complex64],
    ids=str,
)
def test_advanced_indexing(dtype):
    x = (values(4, 5, 3) * 5).to(dtype)
    rows, columns = candelabra.tensor([[0, -1, 2], [0, 0, -4]]), candelabra.tensor([4, -5, 1])
    for indices in ([rows], [None, columns], [rows, columns], [None, columns, columns % 3], [rows, None, columns % 3]):
        (read,) = compare("index", x, indices)
        compare("index_put", x, indices, (values(*read.shape, seed=2) * 5).to(dtype), False)
        compare("index_put", x, indices, (values(1, seed=2) * 5).to(dtype), False)
        if dtype is not candelabra.complex64:  # the CPU adds complex numbers
            compare("index_put", x, indices, (values(*read.shape, seed=3) * 5).to(dtype), True)


def test_the_last_of_many_equal_indices_wins_and_sums_are_in_order():
    generator = np.random.default_rng(0)
    indices = candelabra.tensor(generator.integers(-7, 7, 3000).tolist())
    for shape in ((7,), (7, 4)):
        x, y = values(*shape), values(3000, *shape[1:], seed=1)
        for accumulate in (False, True):
            compare("index_put", x, [indices], y, accumulate)
            on_device = [
                ops.index_put(x.to("opencl"), [indices.to("opencl")], y.to("opencl"), accumulate) for _ in range(3)
            ]
            assert all(result.tolist() == on_device[0].tolist() for result in on_device)


def test_indexing_of_nothing():
    x, none = values(4, 5), candelabra.zeros(0, dtype=candelabra.int64)
    compare("index", x, [none])
    compare("index_put", x, [none], candelabra.zeros(0, 5), True)
    compare("index", x[:, :0], [candelabra.tensor([3, 0])])
    compare("index_put", x[:, :0], [candelabra.tensor([3, 0])], candelabra.zeros(2, 0), False)
    compare("index", x, [None, None])


def test_bad_indices_name_the_dimension_and_write_nothing():
    for device in ("cpu", "opencl"):
        x = candelabra.zeros(4, 5, device=device)
        good, bad = candelabra.tensor([0, 3], device=device), candelabra.tensor([1, -6], device=device)
        for read in (
            lambda x=x, good=good, bad=bad: x[good, bad],
            lambda x=x, good=good, bad=bad: x.index_put_((good, bad), candelabra.ones(2, device=x.device)),
            lambda x=x, bad=bad: x[:, :0].T.clone()[:, bad],
        ):
            with pytest.raises(IndexError, match=r"index -6 is out of bounds for dimension 1 with size [45]"):
                read()
        assert x.tolist() == [[0.0] * 5] * 4


# ---- losses of classes


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_losses_of_classes(dtype, reduction):
    number = ("none", "mean", "sum").index(reduction)
    weight = values(70, dtype=dtype, seed=3).abs()
    for weights in (None, weight):
        scores, target = values(6, 70, dtype=dtype), candelabra.tensor([69, 3, 5, 0, 3, 12])
        loss, total, statistics = compare("cross_entropy_forward", scores, target, weights)  # mean
        loss, total, statistics = ops.cross_entropy_forward(
            scores, target, weights, ignore_index=3, reduction=reduction
        )
        theirs = ops.cross_entropy_forward(
            *(argument_on(given, "strided") for given in (scores, target, weights)), ignore_index=3, reduction=reduction
        )
        for ours, other in zip((loss, total, statistics), theirs, strict=True):
            np.testing.assert_allclose(other.tolist(), ours.tolist(), rtol=TOLERANCES[dtype], atol=TOLERANCES[dtype])
        grad = values(*loss.shape, dtype=dtype, seed=4)
        compare("cross_entropy_backward", grad, scores, target, weights, 3, reduction, total, statistics)
        for shape in ((6, 70), (2, 70, 3), (1, 70, 2, 3)):
            scores, target = values(*shape, dtype=dtype), target.reshape(shape[:1] + shape[2:])
            loss, total = compare("nll_loss_forward", scores, target, weights, number, 3)
            grad = values(*loss.shape, dtype=dtype, seed=4)
            compare("nll_loss_backward", grad, scores, target, weights, number, 3, total)


def test_losses_of_nothing_and_of_ignored_classes():
    none = candelabra.zeros(0, dtype=candelabra.int64)
    ignored = candelabra.tensor([-100, -100])
    for reduction, name in enumerate(("none", "mean", "sum")):
        for scores, target in (
            (candelabra.zeros(0, 3), none),
            (values(2, 3), ignored),
            (candelabra.zeros(2, 0), ignored),
        ):
            loss, total = compare("nll_loss_forward", scores, target, None, reduction, -100)
            compare("nll_loss_backward", candelabra.ones(loss.shape), scores, target, None, reduction, -100, total)
            on_device = (scores.to("opencl"), target.to("opencl"))
            expected = ops.cross_entropy_forward(scores, target, reduction=name)
            for ours, theirs in zip(expected, ops.cross_entropy_forward(*on_device, reduction=name), strict=True):
                np.testing.assert_allclose(theirs.tolist(), ours.tolist(), rtol=1e-6, equal_nan=True)


@pytest.mark.parametrize("bad", [3, -1])
def test_bad_classes(bad):
    for device in ("cpu", "opencl"):
        scores, target = candelabra.zeros(2, 3, device=device), candelabra.tensor([0, bad], device=device)
        one, statistics = candelabra.ones((), device=device), candelabra.zeros(2, 2, device=device)
        for call in (
            lambda s=scores, t=target: ops.nll_loss_forward(s, t, None, 1, -100),
            lambda s=scores, t=target, o=one: ops.nll_loss_backward(o, s, t, None, 1, -100, o),
            lambda s=scores, t=target: ops.cross_entropy_forward(s, t),
            lambda s=scores, t=target, o=one, k=statistics: ops.cross_entropy_backward(
                o, s, t, None, -100, "mean", o, k
            ),
        ):
            with pytest.raises(IndexError, match=rf"Target {bad} is out of bounds\."):
                call()


# ---- group normalization


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_group_normalization(dtype):
    for shape, groups in (((2, 6, 5, 7), 3), ((3, 4), 2), ((2, 6, 80), 1), ((2, 4, 3), 4)):
        x, grad = values(*shape, dtype=dtype), values(*shape, dtype=dtype, seed=1)
        for weight in (None, values(shape[1], dtype=dtype, seed=2)):
            _, mean, rstd = compare("native_group_norm", x, weight, weight, groups, 1e-5)
            compare("native_group_norm_backward", grad, x, mean, rstd, weight, groups)


# ---- attention


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("causal", [False, True])
def test_attention(dtype, causal):
    for batch, heads, shared, queries, keys, width, columns in (
        (2, 4, 2, 19, 70, 5, 3), (1, 2, 2, 70, 19, 66, 70), (1, 1, 1, 1, 130, 1, 1),
    ):  # fmt: skip
        query = values(batch, heads, queries, width, dtype=dtype)
        key, value = (values(batch, shared, keys, n, dtype=dtype, seed=n) for n in (width, columns))
        seen = values(batch, 1, queries, keys, seed=5) > -1
        seen[:, :, queries // 2] = False  # a query without keys
        for mask in (None, seen, values(heads, 1, keys, dtype=dtype, seed=6)):
            arguments = (query, key, value, mask)
            out, logsumexp = compare("_scaled_dot_product_attention", *arguments, causal, 0.4)
            grad = values(*out.shape, dtype=dtype, seed=7)
            compare("_scaled_dot_product_attention_backward", grad, *arguments, out, logsumexp, causal, 0.4)


@pytest.mark.parametrize("sizes", [(0, 2, 3, 4, 5, 6), (2, 0, 3, 4, 5, 6), (1, 2, 0, 4, 5, 6), (1, 2, 3, 0, 5, 6),
                                   (1, 2, 3, 4, 0, 6), (1, 2, 3, 4, 5, 0)])  # fmt: skip
def test_attention_over_nothing(sizes):
    batch, heads, queries, keys, width, columns = sizes
    query, key = candelabra.ones(batch, heads, queries, width), candelabra.ones(batch, heads, keys, width)
    value = values(batch, heads, keys, columns)
    out, logsumexp = compare("_scaled_dot_product_attention", query, key, value, None, False, 1.0)
    compare("_scaled_dot_product_attention_backward", out, query, key, value, None, out, logsumexp, False, 1.0)
