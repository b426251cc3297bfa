"""RoI align and RoI pooling, with gradients, and their position-sensitive forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
import references
from regions import rois

import candelabra
from candelabra import ops, vision_ops
from candelabra.autograd import gradcheck

#: Operators with further arguments, after the spatial scale.
CASES = [
    *(("roi_align", (3, 2, ratio, aligned)) for ratio in (-1, 0, 2, 3) for aligned in (False, True)),
    ("roi_align", (7, 7, 2, True)),
    ("roi_pool", (3, 2)),
    ("roi_pool", (7, 7)),
    ("ps_roi_align", (3, 2, -1)),
    ("ps_roi_align", (3, 2, 2)),
    ("ps_roi_pool", (3, 2)),
]
NAMES = ["roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool"]
MORE = {"roi_align": (2, 2, 2, True), "roi_pool": (2, 2), "ps_roi_align": (2, 2, 2), "ps_roi_pool": (2, 2)}


def tensor(array, dtype="float64"):
    return candelabra.tensor(array.tolist(), dtype=getattr(candelabra, dtype))


def first(result):
    return result[0] if isinstance(result, tuple) else result


@pytest.mark.parametrize(("name", "arguments"), CASES)
@pytest.mark.parametrize("scale", [0.5, 1.0])
def test_values(random, name, arguments, scale):
    x, regions = random.standard_normal((2, 12, 9, 11)), rois(random, 6, 2, 9 / scale, 11 / scale)
    expected = getattr(references, name)(x, regions, scale, *arguments)
    result = getattr(vision_ops, name)(tensor(x), tensor(regions), scale, *arguments)
    np.testing.assert_allclose(first(result).numpy(), first(expected), atol=1e-12)
    if name == "roi_pool":
        assert result[1].dtype == candelabra.int32
        assert result[1].tolist() == expected[1].tolist()
    elif name.startswith("ps"):
        assert result[1].flatten(1).tolist() == [list(range(12))] * 6


@pytest.mark.parametrize(
    ("sizes", "ratio"),
    [
        ((1, 2, 40, 50), -1),
        ((1, 3, 40, 50), 2),
        ((1, 1, 1, 1), -1),
        ((2, 3, 1, 7), 2),
        ((1, 70, 6, 5), 1),
        ((1, 1, 4, 3), 70),
    ],
)
def test_roi_align_of_other_sizes(random, sizes, ratio):
    x, regions = random.standard_normal(sizes), rois(random, 3, sizes[0], *sizes[2:])
    expected = references.roi_align(x, regions, 1.0, 2, 3, ratio, True)
    result = vision_ops.roi_align(tensor(x), tensor(regions), 1.0, 2, 3, ratio, True)
    np.testing.assert_allclose(result.numpy(), expected, atol=1e-11)


@pytest.mark.parametrize(("name", "arguments"), CASES)
def test_gradients(random, name, arguments):
    x = tensor(random.standard_normal((2, 6, 5, 6))).requires_grad_()
    regions = tensor(rois(random, 4, 2, 5, 6))
    if arguments[0] == 7:
        arguments = (2, 2, *arguments[2:])
    if name.startswith("ps"):
        arguments = (3, 1, *arguments[2:])
    assert gradcheck(lambda x: first(getattr(vision_ops, name)(x, regions, 0.9, *arguments)), x)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("name", NAMES)
def test_narrow_dtypes(random, name, dtype):
    """Half precisions are computed in float32 and rounded once."""
    x = tensor(random.standard_normal((2, 8, 9, 11)), dtype).requires_grad_()
    regions = tensor(rois(random, 5, 2, 9, 11), dtype)
    wide = x.detach().double().requires_grad_()
    result = first(getattr(vision_ops, name)(x, regions, 0.5, *MORE[name]))
    expected = first(getattr(vision_ops, name)(wide, regions.double(), 0.5, *MORE[name]))
    weights = tensor(random.standard_normal(tuple(result.shape)), dtype)
    result.backward(weights)
    expected.backward(weights.double())
    assert result.dtype == x.grad.dtype == x.dtype
    step = candelabra.finfo(x.dtype).eps
    for one, other in ((result, expected), (x.grad, wide.grad)):
        assert candelabra.allclose(one.double(), other, rtol=2 * step, atol=4 * step * 0.1 + 1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_strided_tensors(random, name):
    x, regions = random.standard_normal((2, 8, 9, 11)), tensor(rois(random, 5, 2, 9, 11))
    call = getattr(vision_ops, name)
    expected = first(call(tensor(x), regions, 1.0, *MORE[name]))
    last = tensor(x.transpose(0, 2, 3, 1)).permute(0, 3, 1, 2).requires_grad_()
    spread = tensor(np.repeat(x, 2, 3))[..., ::2]
    of_columns = candelabra.stack(list(regions.unbind(1))).T
    assert not last.is_contiguous()
    assert not of_columns.is_contiguous()
    result = first(call(last, of_columns, 1.0, *MORE[name]))
    assert candelabra.equal(result, expected)
    assert candelabra.equal(first(call(spread, regions, 1.0, *MORE[name])), expected)
    # The gradient of sum() has no strides.
    result.sum().backward()
    one = tensor(x).requires_grad_()
    first(call(one, regions, 1.0, *MORE[name])).backward(candelabra.ones_like(expected))
    assert candelabra.equal(last.grad, one.grad)


@pytest.mark.parametrize("name", NAMES)
def test_no_boxes_and_no_images(name):
    call = getattr(vision_ops, name)
    x = candelabra.randn(2, 8, 5, 5, requires_grad=True)
    result = first(call(x, candelabra.empty(0, 5), 1.0, *MORE[name]))
    assert result.shape[0] == 0
    result.sum().backward()
    assert candelabra.equal(x.grad, candelabra.zeros(2, 8, 5, 5))
    assert first(call(candelabra.empty(0, 8, 5, 5), candelabra.empty(0, 5), 1.0, *MORE[name])).shape[0] == 0
    with pytest.raises(IndexError, match="box 0 is of image 0, but the batch has 0"):
        call(candelabra.empty(0, 8, 5, 5), candelabra.zeros(1, 5), 1.0, *MORE[name])


@pytest.mark.parametrize("image", [2.0, -1.0, 1e30, -math.inf, math.nan])
@pytest.mark.parametrize("name", NAMES)
def test_boxes_of_images_that_are_not_there(name, image):
    regions = candelabra.tensor([[0.0, 0, 0, 2, 2], [image, 0, 0, 2, 2]])
    with pytest.raises(IndexError, match="box 1 is of image"):
        getattr(vision_ops, name)(candelabra.zeros(2, 8, 5, 5), regions, 1.0, *MORE[name])


HUGE = [
    [0.0, -1e30, -1e30, 1e30, 1e30],
    [0.0, -3e38, 0, 3e38, 3],
    [0.0, 0, 0, math.inf, math.inf],
    [0.0, -math.inf, -math.inf, math.inf, math.inf],
    [0.0, math.nan, 0, 3, 3],
    [0.0, 0, math.nan, 3, math.nan],
    [0.0, 1e9, 1e9, 2e9, 2e9],
    [0.0, 4, 4, 1, 1],
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("ratio", [-1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_hostile_boxes(name, ratio, dtype):
    """They read and write within the image, and end."""
    arguments = (2, 2, ratio, False) if name == "roi_align" else (2, 2, ratio) if name == "ps_roi_align" else (2, 2)
    for scale in (1.0, 1e30, math.nan, math.inf):
        x = candelabra.ones(1, 8, 5, 5, dtype=getattr(candelabra, dtype), requires_grad=True)
        result = first(getattr(vision_ops, name)(x, candelabra.tensor(HUGE, dtype=x.dtype), scale, *arguments))
        finite = result[~result.isnan()]
        assert bool((finite.abs() <= 1.001).all())
        result.sum().backward()
        assert x.grad.shape == x.shape


def test_a_huge_box_is_the_mean_of_the_image():
    x = candelabra.arange(12.0, dtype=candelabra.float64).reshape(1, 1, 3, 4)
    # One sample for each unit; most are outside and count as zero.
    size = 4000.0
    box = candelabra.tensor([[0.0, -size, -size, size, size]], dtype=candelabra.float64)
    result = vision_ops.roi_align(x, box, 1.0, 1, 1, -1, False)
    expected = references.roi_align(x.numpy(), box.numpy() / 100, 1.0, 1, 1, -1, False) / 100**2
    assert result.item() == pytest.approx(expected.item(), rel=0.05)


def test_nan_of_pixels_stays_where_it_is():
    x = candelabra.zeros(1, 1, 6, 6)
    x[0, 0, 0, 0] = math.nan
    box = candelabra.tensor([[0.0, 3, 3, 5, 5], [0.0, 0, 0, 2, 2], [0.0, -90, -90, -80, -80]])
    assert vision_ops.roi_align(x, box, 1.0, 1, 1, 2, True).isnan().flatten().tolist() == [False, True, False]
    # As in torchvision, the maximum passes over NaN.
    assert vision_ops.roi_pool(x, box, 1.0, 1, 1)[0].flatten().tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("name", NAMES)
def test_errors(name):
    call = getattr(vision_ops, name)
    x, regions = candelabra.zeros(1, 8, 5, 5), candelabra.zeros(1, 5)
    with pytest.raises(RuntimeError, match=r"rois must have shape as Tensor\[K, 5\]"):
        call(x, candelabra.zeros(1, 4), 1.0, *MORE[name])
    with pytest.raises(IndexError):
        call(x, candelabra.zeros(5), 1.0, *MORE[name])
    with pytest.raises(IndexError):
        call(x[0], regions, 1.0, *MORE[name])
    with pytest.raises(RuntimeError, match="but got 5 dimensions"):
        call(x[None], regions, 1.0, *MORE[name])
    with pytest.raises(RuntimeError, match="same type as tensor for rois; but type .*float32 does not equal .*float64"):
        call(x, regions.double(), 1.0, *MORE[name])
    with pytest.raises(NotImplementedError):
        call(x.long(), regions.long(), 1.0, *MORE[name])
    with pytest.raises(RuntimeError, match="must not be negative"):
        call(x, regions, 1.0, -1, *MORE[name][1:])
    if name.startswith("ps"):
        for pooled in ((3, 1), (0, 1)):
            with pytest.raises(RuntimeError, match="channels must be a multiple of pooling height"):
                call(x, regions, 1.0, *pooled, *MORE[name][2:])
    else:
        assert first(call(x, regions, 1.0, 0, *MORE[name][1:])).shape == (1, 8, 0, 2)


def test_backward_operators_check_what_they_get():
    torchvision, grad, regions = ops.torchvision, candelabra.ones(1, 8, 2, 2), candelabra.zeros(1, 5)
    sizes = (1, 8, 5, 5)
    assert torchvision._roi_align_backward(grad, regions, 1.0, 2, 2, *sizes, 2, True).shape == sizes
    with pytest.raises(RuntimeError, match=r"grad to have the sizes \[1, 9, 2, 2\]"):
        torchvision._roi_align_backward(grad, regions, 1.0, 2, 2, 1, 9, 5, 5, 2, True)
    with pytest.raises(RuntimeError, match="must not be negative"):
        torchvision._roi_align_backward(grad, regions, 1.0, 2, 2, 1, 8, -5, 5, 2, True)
    positions = candelabra.zeros(1, 8, 2, 2, dtype=candelabra.int32)
    for at in (25, -2, 2**31 - 1):
        with pytest.raises(IndexError, match=f"argmax has {at}, outside of the image"):
            torchvision._roi_pool_backward(grad, regions, positions + at, 1.0, 2, 2, *sizes)
    with pytest.raises(RuntimeError, match="expected argmax to be of dtype int32"):
        torchvision._roi_pool_backward(grad, regions, positions.long(), 1.0, 2, 2, *sizes)
    with pytest.raises(RuntimeError, match="expected channel_mapping to be of dtype int32"):
        torchvision._ps_roi_pool_backward(grad[:, :2], regions, positions, 1.0, 2, 2, *sizes)
