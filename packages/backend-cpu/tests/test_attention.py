"""Test the attention and CTC kernels against NumPy and SciPy: blocks, layouts and thread counts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax
from values import FLOATS, assert_values, random_tensor, tensor, wide

import candelabra
from candelabra import ops


def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float, mask: np.ndarray | None = None) -> np.ndarray:
    scores = q @ k.swapaxes(-1, -2) * scale
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    return softmax(scores, -1) @ v


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("sizes", [(1, 1, 1), (64, 128, 8), (65, 129, 3), (3, 300, 16), (200, 7, 1)])
def test_blocks(dtype: str, sizes: tuple[int, int, int]) -> None:
    length, keys, width = sizes
    q, k, v = (
        random_tensor((2, 3, n, width), dtype, "contiguous", seed) for seed, n in enumerate((length, keys, keys))
    )
    scale = width**-0.5
    expected = reference(wide(q), wide(k), wide(v), scale)
    assert_values(
        ops._scaled_dot_product_attention(q, k, v, None, False, scale)[0], expected, scale=np.abs(wide(v)).max() * 4
    )


def test_views() -> None:
    # The layout that projections produce: heads are a part of the last dimension.
    packed = random_tensor((2, 70, 3 * 4 * 8), "float32", "contiguous", 0)
    q, k, v = (part.view(2, 70, 4, 8).transpose(1, 2) for part in packed.chunk(3, -1))
    expected = reference(wide(q), wide(k), wide(v), 0.3)
    assert_values(ops._scaled_dot_product_attention(q, k, v, None, False, 0.3)[0], expected, scale=8)
    backwards = [x.flip(2).flip(2).transpose(2, 3).contiguous().transpose(2, 3) for x in (q, k, v)]
    assert_values(ops._scaled_dot_product_attention(*backwards, None, False, 0.3)[0], expected, scale=8)


def test_causal_is_a_mask() -> None:
    q, k, v = (random_tensor((1, 2, n, 4), "float64", "contiguous", n) for n in (150, 190, 190))
    expected = reference(wide(q), wide(k), wide(v), 0.5, np.tri(150, 190, dtype=bool))
    assert_values(ops._scaled_dot_product_attention(q, k, v, None, True, 0.5)[0], expected, scale=8)


def test_rows_that_see_nothing() -> None:
    q, k, v = (random_tensor((1, 1, 3, 2), "float64", "contiguous", n) for n in range(3))
    mask = tensor(np.array([[True, True, True], [False, False, False], [False, True, False]]))
    output, logarithms = ops._scaled_dot_product_attention(q, k, v, mask, False, 1.0)
    assert output[0, 0, 1].tolist() == [0.0, 0.0]
    assert output[0, 0, 2].tolist() == v[0, 0, 1].tolist()
    assert logarithms[0, 0, 1].item() == np.inf
    slopes = ops._scaled_dot_product_attention_backward(
        candelabra.ones_like(output), q, k, v, mask, output, logarithms, False, 1.0
    )
    assert slopes[0][0, 0, 1].tolist() == [0.0, 0.0]
    assert all(np.isfinite(wide(slope)).all() for slope in slopes)


def test_nan_and_infinity_pass() -> None:
    q, k, v = (random_tensor((1, 1, 2, 2), "float32", "contiguous", n) for n in range(3))
    q[0, 0, 0, 0] = float("nan")
    output = ops._scaled_dot_product_attention(q, k, v, None, False, 1.0)[0]
    assert output[0, 0, 0].isnan().all() and not output[0, 0, 1].isnan().any()
    hidden = candelabra.tensor([[float("nan"), float("-inf")]])
    assert ops._scaled_dot_product_attention(k, k, v, hidden, False, 1.0)[0].isnan().all()


def test_large_scores_do_not_overflow() -> None:
    q = candelabra.full((1, 1, 2, 1), 1e4)
    k = candelabra.tensor([[[[1e4], [-1e4], [1e4]]]])
    v = candelabra.tensor([[[[1.0], [5.0], [3.0]]]])
    assert ops._scaled_dot_product_attention(q, k, v, None, False, 1.0)[0].flatten().tolist() == [2.0, 2.0]


def test_threads() -> None:
    q, k, v = (random_tensor((2, 4, 130, 16), "float32", "contiguous", n) for n in range(3))
    count = candelabra.get_num_threads()
    made = []
    try:
        for threads in (1, 2, 3):
            candelabra.set_num_threads(threads)
            output, logarithms = ops._scaled_dot_product_attention(q, k, v, None, True, 0.25)
            made.append(
                [
                    output,
                    *ops._scaled_dot_product_attention_backward(output, q, k, v, None, output, logarithms, True, 0.25),
                ]
            )
    finally:
        candelabra.set_num_threads(count)
    for other in made[1:]:
        assert all(one.tolist() == two.tolist() for one, two in zip(made[0], other, strict=True))


def test_shapes_are_checked() -> None:
    x = candelabra.ones(1, 2, 3, 4)
    with pytest.raises(RuntimeError, match="do not fit"):
        ops._scaled_dot_product_attention(x, candelabra.ones(1, 2, 3, 5), x, None, False, 1.0)
    with pytest.raises(RuntimeError, match="cannot be broadcast"):
        ops._scaled_dot_product_attention(x, x, x, candelabra.ones(2, 3), False, 1.0)
    with pytest.raises(RuntimeError, match="same dtype"):
        ops._scaled_dot_product_attention(x, x.double(), x, None, False, 1.0)
    with pytest.raises(RuntimeError, match="attn_mask"):
        ops._scaled_dot_product_attention(x, x, x, candelabra.ones(3, 3, dtype=candelabra.int64), False, 1.0)
    with pytest.raises(NotImplementedError, match="Int"):
        ops._scaled_dot_product_attention(x.int(), x.int(), x.int(), None, False, 1.0)


def test_ctc_strides_and_errors() -> None:
    scores = random_tensor((4, 2, 3), "float64", "contiguous", 0).log_softmax(2)
    targets = candelabra.tensor([[1, 2], [2, 1]])
    straight = ops._ctc_loss(scores, targets, [4, 4], [2, 1], 0, False)[0]
    turned = scores.permute(2, 0, 1).contiguous().permute(1, 2, 0)
    assert (
        ops._ctc_loss(turned, targets.t().contiguous().t(), [4, 4], [2, 1], 0, False)[0].tolist() == straight.tolist()
    )
    with pytest.raises(IndexError, match="target 7 is out of bounds"):
        ops._ctc_loss(scores, candelabra.tensor([[1, 7], [2, 1]]), [4, 4], [2, 1], 0, False)
    for match, arguments in (
        ("at most 4", (targets, [5, 4], [2, 1], 0)),
        ("at least 0", (targets, [-1, 4], [2, 1], 0)),
        ("at least 0", (targets, [4, 4], [2, -1], 0)),
        ("at least 3", (targets, [4, 4], [3, 1], 0)),
        ("batch_size", (targets, [4], [2, 1], 0)),
        ("label range", (targets, [4, 4], [2, 1], 3)),
        ("have size 3", (candelabra.tensor([1, 2]), [4, 4], [2, 1], 0)),
    ):
        with pytest.raises(RuntimeError, match=match):
            ops._ctc_loss(scores, *arguments, False)


def test_ctc_passes_nan_on() -> None:
    scores = candelabra.full((3, 2, 3), -1.0)
    scores[1, 0, 1] = float("nan")
    losses = ops._ctc_loss(scores, candelabra.tensor([[1], [1]]), [3, 3], [1, 1], 0, False)[0]
    assert losses.isnan().tolist() == [True, False]
