"""Non-maximum suppression, and the overlap of rotated boxes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from references import iou, nms
from regions import boxes

import candelabra
from candelabra import vision_ops

DTYPES = ["float16", "bfloat16", "float32", "float64"]


def tensor(array, dtype="float64"):
    return candelabra.tensor(array.tolist(), dtype=getattr(candelabra, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [1, 7, 40, 300])
def test_nms_is_greedy(random, dtype, count):
    given, scores = tensor(boxes(random, count).round(), dtype), tensor(random.permutation(count) / 64, dtype)
    wide = given.to(candelabra.float64), scores.to(candelabra.float64)
    for threshold in (0.0, 0.31, 0.71, 1.0):
        kept = vision_ops.nms(given, scores, threshold)
        assert kept.dtype == candelabra.int64
        assert kept.tolist() == nms(wide[0].numpy(), wide[1].numpy(), threshold)


def test_nms_with_equal_scores_keeps_the_first(random):
    given, scores = boxes(random, 200), random.integers(0, 3, 200) / 2
    kept = vision_ops.nms(tensor(given), tensor(scores), 0.4)
    assert kept.tolist() == nms(given, scores, 0.4)


def test_nms_of_strided_tensors(random):
    given, scores = boxes(random, 50), random.uniform(0, 1, 50)
    expected = nms(given, scores, 0.5)
    spread = tensor(np.repeat(given.T, 2, 1)).T[::2]
    assert not spread.is_contiguous()
    assert vision_ops.nms(spread, tensor(np.repeat(scores, 3))[::3], 0.5).tolist() == expected


def test_nms_compares_with_the_threshold_in_double():
    # The overlap is the float next to 1/3, which is greater than 1/3.
    given = candelabra.tensor([[0.0, 0.0, 2.0, 1.0], [1.0, 0.0, 3.0, 1.0]])
    scores = candelabra.tensor([1.0, 0.5])
    overlap = float(candelabra.tensor(1.0) / 3)
    assert vision_ops.nms(given, scores, overlap).tolist() == [0, 1]
    assert vision_ops.nms(given, scores, math.nextafter(overlap, 0)).tolist() == [0]
    assert vision_ops.nms(given, scores, math.nan).tolist() == [0, 1]


def test_nms_with_nan():
    nan = math.nan
    given = candelabra.tensor([[0.0, 0, 9, 9], [0, 0, 9, 9], [nan, 0, 9, 9], [0, 0, 9, 9]])
    # NaN is the greatest score, as in sort(). Boxes with NaN suppress nothing.
    assert vision_ops.nms(given, candelabra.tensor([0.1, nan, 0.7, 0.2]), 0.5).tolist() == [1, 2]
    infinite = candelabra.tensor([[-math.inf, 0, math.inf, 1], [0, 0, 1, 1]])
    assert vision_ops.nms(infinite, candelabra.tensor([1.0, 0.5]), 0.5).tolist() == [0, 1]


def test_nms_of_nothing():
    kept = vision_ops.nms(candelabra.empty(0, 4), candelabra.empty(0), 0.5)
    assert kept.shape == (0,)
    assert kept.dtype == candelabra.int64


@pytest.mark.parametrize(
    ("shape", "score_shape", "error", "match"),
    [
        ((3, 5), (3,), RuntimeError, "4 elements in dimension 1, got 5"),
        ((3,), (3,), RuntimeError, "2d tensor, got 1D"),
        ((3, 4), (3, 1), RuntimeError, "1d tensor, got 2D"),
        ((3, 4), (2,), RuntimeError, "same number of elements in dimension 0, got 3 and 2"),
    ],
)
def test_nms_of_other_shapes(shape, score_shape, error, match):
    with pytest.raises(error, match=match):
        vision_ops.nms(candelabra.zeros(shape), candelabra.zeros(score_shape), 0.5)


def test_nms_of_other_dtypes():
    with pytest.raises(RuntimeError, match="dets should have the same type as scores"):
        vision_ops.nms(candelabra.zeros(2, 4), candelabra.zeros(2, dtype=candelabra.float64), 0.5)
    with pytest.raises(NotImplementedError, match="nms"):
        vision_ops.nms(candelabra.zeros(2, 4, dtype=candelabra.int64), candelabra.zeros(2, dtype=candelabra.int64), 0.5)


# ---- rotated boxes


def centered(box):
    return [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2, box[2] - box[0], box[3] - box[1]]


@pytest.mark.parametrize("angle", [0, 90, 180, -270, 360])
def test_box_iou_rotated_by_right_angles(random, angle):
    first, second = boxes(random, 6), boxes(random, 5)
    turned = [centered(box) for box in second]
    if angle % 180:
        turned = [[x, y, height, width] for x, y, width, height in turned]
    one = candelabra.tensor([[*centered(box), 0.0] for box in first], dtype=candelabra.float64)
    two = candelabra.tensor([[*box, float(angle)] for box in turned], dtype=candelabra.float64)
    result = vision_ops.box_iou_rotated(one, two)
    assert result.dtype == candelabra.float32
    expected = [[iou(a, b) for b in second] for a in first]
    np.testing.assert_allclose(result.numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_box_iou_rotated_of_known_shapes(dtype):
    square = candelabra.tensor([[0.0, 0, 2, 2, 0], [0, 0, 4, 2, 0]], dtype=getattr(candelabra, dtype))
    turned = candelabra.tensor(
        [[0.0, 0, 2, 2, 45], [0, 0, 2, 2, 0], [9, 9, 2, 2, 30], [0, 0, 0, 2, 0]], dtype=getattr(candelabra, dtype)
    )
    octagon = 8 * (math.sqrt(2) - 1)
    ious = vision_ops.box_iou_rotated(square, turned)
    assert ious[0].tolist() == pytest.approx([octagon / (8 - octagon), 1.0, 0.0, 0.0], abs=1e-5)
    assert ious[1, 1].item() == pytest.approx(0.5)


def test_box_iou_rotated_is_symmetric(random):
    given = np.concatenate(
        [random.uniform(0, 20, (30, 2)), random.uniform(1, 15, (30, 2)), random.uniform(-400, 400, (30, 1))], 1
    )
    one = tensor(given)
    ious = vision_ops.box_iou_rotated(one, one)
    assert candelabra.allclose(ious, ious.T, atol=1e-6)
    assert candelabra.allclose(ious.diag(), candelabra.ones(30))
    shifted = one + candelabra.tensor([1e4, -1e4, 0, 0, 720], dtype=candelabra.float64)
    assert candelabra.allclose(vision_ops.box_iou_rotated(shifted, shifted), ious, atol=1e-5)


def test_box_iou_rotated_of_bad_arguments():
    assert vision_ops.box_iou_rotated(candelabra.zeros(0, 5), candelabra.zeros(3, 5)).shape == (0, 3)
    with pytest.raises(RuntimeError, match=r"boxes2 should have shape \(M, 5\), got \[3, 4\]"):
        vision_ops.box_iou_rotated(candelabra.zeros(1, 5), candelabra.zeros(3, 4))
    with pytest.raises(RuntimeError, match="must have the same dtype"):
        vision_ops.box_iou_rotated(candelabra.zeros(1, 5), candelabra.zeros(3, 5).double())
    nans = vision_ops.box_iou_rotated(candelabra.full((1, 5), math.nan), candelabra.ones(1, 5))
    assert not nans.item() > 0
