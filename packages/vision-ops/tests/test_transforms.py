"""The operators under autocast, vmap and fake tensors, on the device meta, and differentiated
twice.
"""

from __future__ import annotations

import pytest

import candelabra
from candelabra import library, ops, vision_ops
from candelabra.fake_tensor import DynamicOutputShapeException, FakeTensorMode

BOXES = [[0.0, 1.0, 1.0, 4.0, 5.0], [0.0, 0.5, 0.0, 3.0, 3.0]]
MORE = {"roi_align": (2, 2, 2, True), "roi_pool": (2, 2), "ps_roi_align": (2, 2, 2), "ps_roi_pool": (2, 2)}


def call(name, x, boxes):
    result = getattr(vision_ops, name)(x, boxes, 1.0, *MORE[name])
    return result[0] if isinstance(result, tuple) else result


def convolution(device="cpu"):
    sizes = ((1, 2, 5, 5), (3, 2, 1, 1), (1, 2, 5, 5), (1, 1), (3,))
    tensors = [candelabra.rand(*size, device=device, dtype=candelabra.float64) for size in sizes]
    return *tensors, 1, 1, 0, 0, 1, 1, 1, 1, False


def test_autocast_computes_in_float32():
    x, boxes = candelabra.rand(1, 4, 6, 6).bfloat16(), candelabra.tensor(BOXES).bfloat16()
    with candelabra.autocast("cpu"):
        pooled = vision_ops.roi_align(x, boxes.float(), 1.0, 2, 2, 2, True)
        kept = vision_ops.nms(boxes[:, 1:], candelabra.tensor([0.25, 0.5]), 0.9)
    # Without autocast, tensors of two dtypes are refused.
    with pytest.raises(RuntimeError, match="same type"):
        vision_ops.roi_align(x, boxes.float(), 1.0, 2, 2, 2, True)
    assert pooled.dtype == candelabra.bfloat16
    assert candelabra.equal(pooled, vision_ops.roi_align(x.float(), boxes.float(), 1.0, 2, 2, 2, True).bfloat16())
    assert kept.tolist() == [1, 0]


def test_autocast_has_gradients():
    x = candelabra.rand(1, 4, 6, 6).bfloat16().requires_grad_()
    with candelabra.autocast("cpu"):
        vision_ops.roi_align(x, candelabra.tensor(BOXES), 1.0, 2, 2, 2, True).sum().backward()
    assert x.grad.dtype == candelabra.bfloat16
    assert x.grad.sum().item() == pytest.approx(2 * 4 * 4, rel=0.02)


@pytest.mark.parametrize("name", ["roi_pool", "ps_roi_align", "ps_roi_pool"])
def test_autocast_leaves_the_others_alone_on_the_cpu(name):
    x = candelabra.rand(1, 4, 6, 6)
    with candelabra.autocast("cpu"):
        assert call(name, x, candelabra.tensor(BOXES)).dtype == candelabra.float32
        with pytest.raises(RuntimeError, match="same type"):
            call(name, x.bfloat16(), candelabra.tensor(BOXES))


@pytest.mark.parametrize("name", MORE)
def test_the_device_meta(name):
    x, boxes = candelabra.zeros(1, 8, 6, 6, device="meta"), candelabra.zeros(3, 5, device="meta")
    result = call(name, x, boxes)
    assert result.device.type == "meta"
    assert result.shape == (3, 2 if name.startswith("ps") else 8, 2, 2)
    with pytest.raises(RuntimeError, match="rois must have shape"):
        call(name, x, boxes[:, 1:])


def test_the_device_meta_of_other_operators():
    tensors = [value.to("meta") if isinstance(value, candelabra.Tensor) else value for value in convolution()]
    result = vision_ops.deform_conv2d(*tensors)
    assert result.shape == (1, 3, 5, 5)
    assert result.device.type == "meta"
    grads = ops.torchvision._deform_conv2d_backward(result, *tensors)
    assert [grad.shape for grad in grads] == [tensor.shape for tensor in tensors[:5]]
    with pytest.raises(NotImplementedError, match="the shape of its result depends on data"):
        vision_ops.nms(candelabra.zeros(3, 4, device="meta"), candelabra.zeros(3, device="meta"), 0.5)


def test_fake_tensors():
    with FakeTensorMode():
        x, boxes = candelabra.zeros(1, 8, 6, 6), candelabra.zeros(3, 5)
        assert vision_ops.roi_align(x, boxes, 1.0, 2, 2, 2, True).shape == (3, 8, 2, 2)
        with pytest.raises(DynamicOutputShapeException):
            vision_ops.nms(boxes[:, 1:], boxes[:, 0], 0.5)


@pytest.mark.parametrize("name", MORE)
def test_opcheck(name):
    x = candelabra.rand(1, 8, 6, 6, dtype=candelabra.float64, requires_grad=True)
    boxes = candelabra.tensor(BOXES, dtype=candelabra.float64)
    checked = library.opcheck(getattr(vision_ops, name), (x, boxes, 1.0, *MORE[name]))
    assert set(checked.values()) == {"SUCCESS"}


def test_opcheck_of_other_operators():
    given = [value.requires_grad_() if isinstance(value, candelabra.Tensor) else value for value in convolution()]
    assert set(library.opcheck(vision_ops.deform_conv2d, tuple(given)).values()) == {"SUCCESS"}
    boxes = candelabra.tensor(BOXES)[:, 1:]
    assert set(library.opcheck(vision_ops.nms, (boxes, candelabra.tensor([0.1, 0.2]), 0.5)).values()) == {"SUCCESS"}


@pytest.mark.parametrize("name", MORE)
def test_vmap(name):
    x, boxes = candelabra.rand(3, 1, 8, 6, 6), candelabra.tensor(BOXES)
    result = candelabra.vmap(lambda x: call(name, x, boxes))(x)
    assert candelabra.equal(result, candelabra.stack([call(name, one, boxes) for one in x]))


@pytest.mark.parametrize("name", MORE)
def test_second_derivatives_are_refused(name):
    x = candelabra.rand(1, 8, 6, 6, requires_grad=True)
    result = call(name, x, candelabra.tensor(BOXES))
    (grad,) = candelabra.autograd.grad(result.square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match=f"double backwards on {name} not supported"):
        grad.sum().backward()


@pytest.mark.parametrize("name", MORE)
def test_threads_do_not_change_gradients(name):
    """Each element of a gradient belongs to one thread."""
    candelabra.manual_seed(0)
    x, boxes = candelabra.rand(1, 64, 40, 40), candelabra.rand(50, 5) * candelabra.tensor([0, 40, 40, 40, 40])
    grads = []
    before = candelabra.get_num_threads()
    try:
        for threads in (1, 4):
            candelabra.set_num_threads(threads)
            given = x.clone().requires_grad_()
            call(name, given, boxes).square().sum().backward()
            grads.append(given.grad)
    finally:
        candelabra.set_num_threads(before)
    assert candelabra.equal(*grads)


@pytest.mark.parametrize("name", ["qnms", "qroi_align"])
def test_quantized_tensors_are_refused(name):
    zeros = candelabra.zeros(1, 5, dtype=candelabra.int8)
    arguments = (zeros, zeros[0], 0.5) if name == "qnms" else (zeros, zeros, 1.0, 0, 1.0, 0, 1.0, 1, 1, 1, True)
    with pytest.raises(NotImplementedError, match="no quantized tensors"):
        getattr(ops.torchvision, name)(*arguments)
