"""Test attention at sizes that use AMX where available, forward and backward, against float64."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

import candelabra
from candelabra import ops

# Relative to the largest element. In float32, scores of up to 14 carry errors of 128 roundings into
# their exponentials. In bfloat16, weights and gradients are rounded to bfloat16.
TOLERANCE = {"float32": 5e-6, "bfloat16": 2.5e-2}
SCALE = 0.3


def numbers(seed: int, *sizes: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(sizes)


def made(values: np.ndarray, dtype: str) -> candelabra.Tensor:
    return candelabra.tensor(values.astype(np.float32)).to(getattr(candelabra, dtype))


def wide(x: candelabra.Tensor) -> np.ndarray:
    return x.float().numpy().astype(np.float64)


def reference(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, grad: np.ndarray, added: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the result and the gradients of query, key and value. There may be fewer key heads."""
    share = q.shape[1] // k.shape[1]
    keys, values = k.repeat(share, 1), v.repeat(share, 1)
    scores = q @ keys.swapaxes(-1, -2) * SCALE
    weights = softmax(scores if added is None else scores + added, -1)
    out = weights @ values
    slopes = weights * (grad @ values.swapaxes(-1, -2) - (grad * out).sum(-1, keepdims=True)) * SCALE
    shared = (*k.shape[:2], share)
    of_key = (slopes.swapaxes(-1, -2) @ q).reshape(*shared, *k.shape[2:]).sum(2)
    of_value = (weights.swapaxes(-1, -2) @ grad).reshape(*shared, *v.shape[2:]).sum(2)
    return out, slopes @ keys, of_key, of_value


def check(got: candelabra.Tensor, expected: np.ndarray, dtype: str) -> None:
    assert np.abs(wide(got) - expected).max() <= TOLERANCE[dtype] * np.abs(expected).max()


def compute(
    inputs: list[candelabra.Tensor], mask: candelabra.Tensor | None, causal: bool
) -> tuple[candelabra.Tensor, candelabra.Tensor, candelabra.Tensor, candelabra.Tensor]:
    q, k, v, grad = inputs
    out, logarithms = ops._scaled_dot_product_attention(q, k, v, mask, causal, SCALE)
    return out, *ops._scaled_dot_product_attention_backward(grad, q, k, v, mask, out, logarithms, causal, SCALE)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(
    ("heads", "key_heads", "queries", "keys", "width", "columns", "causal"),
    [
        (8, 8, 64, 64, 64, 64, False),
        (8, 8, 128, 128, 32, 32, True),
        (2, 2, 200, 333, 64, 64, False),
        (2, 2, 200, 333, 40, 72, True),
        (4, 2, 300, 600, 33, 16, True),
        (4, 4, 17, 1000, 16, 16, False),
        (2, 1, 700, 50, 128, 20, True),
    ],
)
def test_sizes(
    dtype: str, heads: int, key_heads: int, queries: int, keys: int, width: int, columns: int, causal: bool
) -> None:
    inputs = [
        made(numbers(0, 1, heads, queries, width), dtype),
        made(numbers(1, 1, key_heads, keys, width), dtype),
        made(numbers(2, 1, key_heads, keys, columns), dtype),
        made(numbers(3, 1, heads, queries, columns), dtype),
    ]
    added = np.where(np.tri(queries, keys, dtype=bool), 0, -np.inf) if causal else None
    for got, expected in zip(compute(inputs, None, causal), reference(*map(wide, inputs), added), strict=True):
        check(got, expected, dtype)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("kind", ["bool", "numbers", "of keys", "of queries", "turned"])
def test_masks(dtype: str, kind: str) -> None:
    heads, queries, keys = 3, 130, 150
    inputs = [made(numbers(n, 2, heads, length, 48), dtype) for n, length in enumerate((queries, keys, keys, queries))]
    generator = np.random.default_rng(9)
    sizes = {"of keys": (1, keys), "of queries": (queries, 1)}.get(kind, (queries, keys))
    if kind in ("bool", "of keys"):
        seen = generator.random(sizes) < 0.7
        seen[:, 5] = True
        mask, added = candelabra.tensor(seen), np.where(seen, 0, -np.inf)
    else:
        mask = made(generator.standard_normal(sizes), dtype)
        added = wide(mask)
        if kind == "turned":
            mask = mask.t().contiguous().t()
    mask = mask.expand(2, heads, queries, keys)
    for got, expected in zip(compute(inputs, mask, False), reference(*map(wide, inputs), added), strict=True):
        check(got, expected, dtype)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_layouts(dtype: str) -> None:
    # Heads as a part of the last dimension, and strided elements.
    packed = made(numbers(0, 2, 100, 3 * 4 * 64), dtype)
    q, k, v = (part.view(2, 100, 4, 64).transpose(1, 2) for part in packed.chunk(3, -1))
    grad = made(numbers(1, 2, 4, 100, 64), dtype)
    straight = compute([x.contiguous() for x in (q, k, v, grad)], None, True)
    for one, two in zip(compute([q, k, v, grad], None, True), straight, strict=True):
        assert (one == two).all()
    turned = [x.transpose(2, 3).contiguous().transpose(2, 3) for x in (q, k, v, grad)]
    for one, two in zip(compute(turned, None, True), straight, strict=True):
        check(one, wide(two), dtype)


def test_extreme_numbers() -> None:
    # In the bf16x3 emulation, parts of these numbers overflow or underflow.
    q, k, v, grad = (made(numbers(n, 1, 2, 150, 64), "float32") for n in range(4))
    for factors in ((1e-25, 1e25, 1.0, 1.0), (1.0, 1.0, 1e30, 1.0), (1.0, 1.0, 1e-30, 1e-4), (1.0, 1.0, 1.0, 1e-35)):
        inputs = [x * factor for x, factor in zip((q, k, v, grad), factors, strict=True)]
        for got, expected in zip(compute(inputs, None, False), reference(*map(wide, inputs), None), strict=True):
            if np.abs(expected).max() > 1e-34:  # smaller values lose precision in float32
                check(got, expected, "float32")


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_nan_stays_in_its_row(dtype: str) -> None:
    q, k, v, _ = (made(numbers(n, 1, 4, 128, 64), dtype) for n in range(4))
    q[0, 1, 70, 3] = float("nan")
    k[0, 2, 9, 0] = float("inf")
    out = ops._scaled_dot_product_attention(q, k, v, None, False, SCALE)[0].float()
    assert out[0, 1, 70].isnan().all()
    assert not out[0, 1, :70].isnan().any() and not out[0, 0].isnan().any() and not out[0, 3].isnan().any()
    # With an infinite key, the score is inf or -inf, by the sign of the query.
    expected = np.isnan(wide(out)[0, 2]).all(-1) | np.isfinite(wide(out)[0, 2]).all(-1)
    assert expected.all()
    up = wide(q)[0, 2, :, 0] > 0
    assert np.isnan(wide(out)[0, 2][up]).all() and np.isfinite(wide(out)[0, 2][~up]).all()


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_rows_that_see_nothing(dtype: str) -> None:
    inputs = [made(numbers(n, 1, 4, 100, 64), dtype) for n in range(4)]
    seen = np.ones((100, 100), dtype=bool)
    seen[33] = False
    out, *slopes = compute(inputs, candelabra.tensor(seen).expand(1, 4, 100, 100), False)
    assert (out[:, :, 33] == 0).all() and (slopes[0][:, :, 33] == 0).all()
    assert all(np.isfinite(wide(slope)).all() for slope in slopes)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_threads(dtype: str) -> None:
    inputs = [made(numbers(n, 1, 3, 300, 64), dtype) for n in range(4)]
    count = candelabra.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            candelabra.set_num_threads(threads)
            results.append(compute(inputs, None, True))
    finally:
        candelabra.set_num_threads(count)
    for other in results[1:]:
        assert all((one == two).all() for one, two in zip(results[0], other, strict=True))
