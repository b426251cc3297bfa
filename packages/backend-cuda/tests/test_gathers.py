"""Test scatter reductions, embedding bags, distances, CTC and pairwise losses on a GPU against the
CPU.
"""

from __future__ import annotations

import numpy as np
import pytest

import candelabra

RANDOM = np.random.default_rng(7)
FLOATS = ["float64", "float32", "float16", "bfloat16"]
DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint16",
    "uint32",
    "uint64",
    *FLOATS,
    "complex64",
    "complex128",
]
ROUNDING = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "complex64": 2.0**-23}


def made(sizes: tuple[int, ...], dtype: str) -> candelabra.Tensor:
    """Return values of a dtype: small integers, or normally distributed ones."""
    if dtype.startswith("complex"):
        values = RANDOM.normal(size=sizes) + 1j * RANDOM.normal(size=sizes)
    elif "float" in dtype:
        values = RANDOM.normal(size=sizes)
    else:
        values = RANDOM.integers(-5 if dtype.startswith("int") else 0, 6, size=sizes)
    return candelabra.tensor(values).to(getattr(candelabra, dtype))


def compare(got: candelabra.Tensor, want: candelabra.Tensor, units: float = 16) -> None:
    assert got.dtype == want.dtype and got.shape == want.shape
    wide = candelabra.complex128 if want.is_complex() else candelabra.float64
    tolerance = units * ROUNDING.get(str(want.dtype).split(".")[-1], 2.0**-52)
    np.testing.assert_allclose(got.cpu().to(wide).numpy(), want.to(wide).numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.same_as_cpu
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_scatter_reduce(cuda, dtype, reduce, include_self):
    if (dtype == "bool" and reduce == "mean") or (dtype.startswith("complex") and reduce in ("amax", "amin")):
        pytest.skip("not defined")
    for sizes, from_sizes, dim in [((7, 5), (90, 4), 0), ((3, 6, 2), (3, 40, 2), 1), ((4,), (300,), 0)]:
        self, source = made(sizes, dtype), made(from_sizes, dtype)
        if reduce == "prod" and dtype.startswith(("float", "bfloat", "complex")):
            source = source / source.abs().to(source.dtype)  # products within the range
        index = candelabra.tensor(RANDOM.integers(0, sizes[dim], size=from_sizes))
        want = self.scatter_reduce(dim, index, source, reduce, include_self=include_self)
        got = self.to(cuda).scatter_reduce(dim, index.to(cuda), source.to(cuda), reduce, include_self=include_self)
        compare(got, want, 64)


def test_scatter_reduce_of_strides_and_specials(cuda):
    self = candelabra.tensor([[1.0, np.nan, -np.inf], [np.inf, 0.0, 5.0]])
    source = candelabra.tensor(RANDOM.normal(size=(6, 4))).to(candelabra.float32)
    source[2, 1] = np.nan
    index = candelabra.tensor(RANDOM.integers(0, 3, size=(4, 6))).t()
    for reduce in ("sum", "mean", "amax", "amin"):
        want = self.t().scatter_reduce(0, index[:, :2], source[:, ::2], reduce)
        got = self.to(cuda).t().scatter_reduce(0, index.to(cuda)[:, :2], source.to(cuda)[:, ::2], reduce)
        np.testing.assert_allclose(got.cpu().numpy(), want.numpy(), rtol=1e-5)
    empty = candelabra.zeros(0, dtype=candelabra.int64)
    assert self.to(cuda).scatter_reduce(
        0, empty.reshape(0, 3).to(cuda), source.to(cuda)[:0, :3], "sum"
    ).cpu().shape == (2, 3)
    with pytest.raises(RuntimeError, match="out of bounds"):
        candelabra.zeros(3, device=cuda).scatter_reduce(
            0, candelabra.tensor([3]).to(cuda), candelabra.ones(1).to(cuda), "sum"
        ).cpu()


@pytest.mark.parametrize("by_frequency", [False, True])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_embedding_bag(cuda, dtype, mode, by_frequency):
    if mode == "max" and by_frequency:
        pytest.skip("not supported")
    for rows, columns, count, offsets, padding in [
        (11, 5, 60, [0, 3, 3, 20, 60], None),
        (4, 130, 33, [0, 1, 30], 2),
        (9, 1, 200, [0, 150], None),
        (3, 7, 0, [0, 0], None),
        (6, 3, 25, [0, 20, 4, 11, 4], None),
        (6, 3, 25, [0, 60, 4], None),
    ]:
        weight, indices = made((rows, columns), dtype), candelabra.tensor(RANDOM.integers(0, rows, size=count))
        bags = candelabra.tensor(offsets)
        weights = made((count,), dtype) if mode == "sum" and not by_frequency else None
        results = []
        for device in ("cpu", cuda):
            table = weight.detach().to(device).requires_grad_()
            own = weights.to(device) if weights is not None else None
            out = candelabra.nn.functional.embedding_bag(
                indices.to(device), table, bags.to(device), mode=mode, scale_grad_by_freq=by_frequency, per_sample_weights=own,
                padding_idx=padding,
            )  # fmt: skip
            out.backward(made_once(out.shape, dtype).to(device))
            results.append((out.detach(), table.grad))
        compare(results[1][0], results[0][0], 64)
        compare(results[1][1], results[0][1], 64)


def made_once(sizes: tuple[int, ...], dtype: str) -> candelabra.Tensor:
    """Return the same values each time."""
    values = np.random.default_rng(3).normal(size=tuple(sizes))
    return candelabra.tensor(values).to(getattr(candelabra, dtype))


def test_embedding_bag_refuses(cuda):
    table, indices = candelabra.ones(3, 2, device=cuda), candelabra.tensor([0, 1, 3]).to(cuda)
    bag = candelabra.nn.functional.embedding_bag
    with pytest.raises(RuntimeError, match="out of bounds|num_embeddings"):
        bag(indices, table, candelabra.tensor([0, 1]).to(cuda)).cpu()
    for offsets, said in (
        ([1, 2], "However, got 1"),
        ([0, 9], r"length\(2\) but got offsets\[-1\] of 9"),
        ([0, -1], "but got -1"),
    ):
        with pytest.raises(RuntimeError, match=said):
            bag(indices[:2], table, candelabra.tensor(offsets).to(cuda)).cpu()


@pytest.mark.same_as_cpu
@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, np.inf, 0.5, 3.0])
@pytest.mark.parametrize("dtype", FLOATS)
def test_distances(cuda, dtype, p):
    for first, second in [
        ((5, 3), (7, 3)),
        ((2, 70, 40), (2, 65, 40)),
        ((3, 1), (1100, 1)),
        ((2, 300), (600, 300)),
        ((4, 0), (3, 0)),
    ]:
        x, y = made(first, dtype), made(second, dtype)
        grad = made((*first[:-1], second[-2]), dtype)
        want = candelabra.ops._cdist_forward(x, y, p)
        got = candelabra.ops._cdist_forward(x.to(cuda), y.to(cuda), p)
        compare(got, want, 64)
        back = candelabra.ops._cdist_backward(grad.to(cuda), x.to(cuda), y.to(cuda), want.to(cuda), p)
        wanted = candelabra.ops._cdist_backward(grad, x, y, want, p)
        wide = candelabra.float64
        scale = max(1.0, float(wanted.to(wide).abs().max())) if wanted.numel() else 1.0
        tolerance = 256 * ROUNDING.get(dtype, 2.0**-52)
        np.testing.assert_allclose(
            back.cpu().to(wide).numpy(), wanted.to(wide).numpy(), rtol=tolerance, atol=tolerance * scale
        )
    x = made((67, 9), dtype)
    compare(candelabra.ops._pdist_forward(x.to(cuda), p), candelabra.ops._pdist_forward(x, p), 64)


@pytest.mark.same_as_cpu
@pytest.mark.parametrize("zero_infinity", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_ctc_loss(cuda, dtype, zero_infinity):
    times, samples, classes = 12, 150, 5  # more samples than one launch takes
    scores = made((times, samples, classes), dtype).log_softmax(2)
    targets = candelabra.tensor(RANDOM.integers(0, classes, size=(samples, 6)))
    inputs, lengths = RANDOM.integers(0, times + 1, size=samples).tolist(), RANDOM.integers(0, 7, size=samples).tolist()
    flat = candelabra.cat([targets[n, :length] for n, length in enumerate(lengths)])
    grad = made((samples,), dtype)
    for labels in (targets, flat):
        want, alpha = candelabra.ops._ctc_loss(scores, labels, inputs, lengths, 1, zero_infinity)
        got, other = candelabra.ops._ctc_loss(scores.to(cuda), labels.to(cuda), inputs, lengths, 1, zero_infinity)
        compare(got, want, 64)
        back = candelabra.ops._ctc_loss_backward(grad, scores, labels, inputs, lengths, want, alpha, 1, zero_infinity)
        own = candelabra.ops._ctc_loss_backward(
            grad.to(cuda), scores.to(cuda), labels.to(cuda), inputs, lengths, got, other, 1, zero_infinity
        )
        compare(own, back, 256)
    with pytest.raises(IndexError):
        candelabra.ops._ctc_loss(scores.to(cuda), (targets + 9).to(cuda), inputs, lengths, 1, False)[0].cpu()


@pytest.mark.parametrize("dtype", FLOATS)
def test_losses_of_pairs(cuda, dtype):
    x, y, grad = made((33, 5), dtype), made((33, 5), dtype), made((33, 5), dtype)
    p, target = x.sigmoid(), y.sigmoid()
    p[0] = candelabra.tensor([0.0, 1.0, 0.5, np.nan, 1.0])
    target[0] = candelabra.tensor([0.0, 1.0, 1.0, 0.5, 0.0])
    ops = candelabra.ops
    for name, arguments in {
        "squared_error": (x, y), "squared_error_backward": (grad, x, y), "huber_error": (x, y, 0.7, 1.5),
        "huber_error_backward": (grad, x, y, 0.7, 1.5), "logits_cross_entropy": (x, target), "logits_cross_entropy_backward": (grad, x, target),
        "probability_cross_entropy": (p, target), "probability_cross_entropy_backward": (grad, p, target),
    }.items():  # fmt: skip
        want = getattr(ops, name)(*arguments)
        compare(getattr(ops, name)(*[a.to(cuda) if isinstance(a, candelabra.Tensor) else a for a in arguments]), want)
