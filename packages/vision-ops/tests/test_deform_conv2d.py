"""Deformable convolution and its gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest
import references

import candelabra
from candelabra import nn, ops, vision_ops
from candelabra.autograd import gradcheck

#: Groups, offset groups, whether there is a mask, stride, padding, dilation.
CASES = [
    (1, 1, True, (1, 1), (1, 1), (1, 1)),
    (2, 2, True, (2, 2), (1, 1), (1, 1)),
    (2, 1, False, (1, 1), (0, 0), (2, 2)),
    (1, 4, True, (1, 2), (2, 1), (2, 1)),
]


class Arguments:
    """Random arguments of one case."""

    def __init__(self, random, case, sizes=(2, 4, 6, 7), dtype=candelabra.float64):
        groups, offset_groups, with_mask, self.stride, self.padding, self.dilation = case
        batch, channels, *image = sizes
        kernel = (3, 2)
        out = [
            (image[d] + 2 * self.padding[d] - self.dilation[d] * (kernel[d] - 1) - 1) // self.stride[d] + 1
            for d in range(2)
        ]
        taps = offset_groups * kernel[0] * kernel[1]
        self.groups, self.offset_groups, self.with_mask = groups, offset_groups, with_mask
        arrays = [
            random.standard_normal((batch, channels, *image)),
            random.standard_normal((6, channels // groups, *kernel)),
            random.standard_normal((batch, 2 * taps, *out)) * 1.5,
            random.uniform(0, 1, (batch, taps, *out)) if with_mask else np.zeros((batch, 1)),
            random.standard_normal(6),
        ]
        self.tensors = [candelabra.tensor(array.tolist(), dtype=dtype) for array in arrays]

    @property
    def numbers(self):
        return (*self.stride, *self.padding, *self.dilation, self.groups, self.offset_groups, self.with_mask)

    def expected(self):
        x, weight, offset, mask, bias = (tensor.detach().double().numpy() for tensor in self.tensors)
        mask = mask if self.with_mask else None
        steps = (self.stride, self.padding, self.dilation)
        return references.deform_conv2d(x, weight, offset, mask, bias, *steps, self.groups, self.offset_groups)


@pytest.mark.parametrize("case", CASES)
def test_values(random, case):
    given = Arguments(random, case)
    result = vision_ops.deform_conv2d(*given.tensors, *given.numbers)
    np.testing.assert_allclose(result.numpy(), given.expected(), atol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_gradients(random, case):
    given = Arguments(random, case, (2, 4, 5, 4))
    tensors = [tensor.requires_grad_() for tensor in given.tensors]
    if not given.with_mask:
        tensors[3].requires_grad_(False)
    assert gradcheck(lambda *tensors: vision_ops.deform_conv2d(*tensors, *given.numbers), tensors)


def test_without_offsets_it_is_a_convolution(random):
    given = Arguments(random, CASES[0])
    x, weight, offset, mask, bias = given.tensors
    tensors = [x.requires_grad_(), weight.requires_grad_(), bias.requires_grad_()]
    expected = nn.functional.conv2d(x, weight, bias, padding=1)
    result = vision_ops.deform_conv2d(x, weight, offset * 0, mask * 0 + 1, bias, *given.numbers)
    assert candelabra.allclose(result, expected)
    weights = candelabra.randn(*expected.shape, dtype=expected.dtype)
    expected_grads = candelabra.autograd.grad(expected, tensors, weights)
    for one, other in zip(candelabra.autograd.grad(result, tensors, weights), expected_grads):
        assert candelabra.allclose(one, other)


def test_the_gradient_of_offsets_at_the_border():
    """At one pixel outside of the image, the derivative towards the image counts, as in
    torchvision.
    """
    x = candelabra.tensor([[[[2.0, 3.0]]]])
    weight, bias, mask = candelabra.ones(1, 1, 1, 1), candelabra.zeros(1), candelabra.zeros(1, 1)
    offset = candelabra.tensor([[[[-1.0, 0.0]], [[0.0, 1.0]]]], requires_grad=True)
    result = vision_ops.deform_conv2d(x, weight, offset, mask, bias, 1, 1, 0, 0, 1, 1, 1, 1, False)
    assert result.flatten().tolist() == [0.0, 0.0]
    result.sum().backward()
    assert offset.grad.tolist() == [[[[2.0, 0.0]], [[0.0, 0.0]]]]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_narrow_dtypes(random, dtype):
    given = Arguments(random, CASES[0], dtype=getattr(candelabra, dtype))
    tensors = [tensor.requires_grad_() for tensor in given.tensors]
    result = vision_ops.deform_conv2d(*tensors, *given.numbers)
    assert result.dtype == tensors[0].dtype
    tolerance = 40 * candelabra.finfo(result.dtype).eps
    np.testing.assert_allclose(result.detach().double().numpy(), given.expected(), atol=tolerance, rtol=tolerance)
    result.sum().backward()
    assert all(tensor.grad.dtype == tensor.dtype and bool(tensor.grad.isfinite().all()) for tensor in tensors)


def test_strided_tensors_and_several_parts(random, monkeypatch):
    given = Arguments(random, CASES[1], (5, 4, 6, 7))
    expected = vision_ops.deform_conv2d(*given.tensors, *given.numbers)
    spread = [tensor.repeat_interleave(2, -1)[..., ::2] for tensor in given.tensors]
    assert not any(tensor.is_contiguous() for tensor in spread)
    grads = []
    for elements in (1 << 24, 1):  # one image at a time
        monkeypatch.setattr("candelabra.vision_ops.deformable_convolution._COLUMN_ELEMENTS", elements)
        tensors = [tensor.detach().requires_grad_() for tensor in spread]
        result = vision_ops.deform_conv2d(*tensors, *given.numbers)
        assert candelabra.allclose(result, expected)
        grads.append(candelabra.autograd.grad(result.sin().sum(), tensors))
    for one, other in zip(*grads):
        assert candelabra.allclose(one, other)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e30, -1e30, 2.0**31])
def test_hostile_offsets(random, value):
    """Samples outside of the image are zero."""
    given = Arguments(random, CASES[0])
    given.tensors[2] = candelabra.full_like(given.tensors[2], value)
    tensors = [tensor.requires_grad_() for tensor in given.tensors]
    result = vision_ops.deform_conv2d(*tensors, *given.numbers)
    assert candelabra.allclose(result, tensors[4].reshape(-1, 1, 1).expand_as(result))
    result.sum().backward()
    for tensor in tensors[:4]:
        assert candelabra.equal(tensor.grad, candelabra.zeros_like(tensor))


def test_nan_of_pixels_stays_where_it_is():
    x = candelabra.zeros(1, 1, 3, 3)
    x[0, 0, 0, 0] = math.nan
    weight, bias, mask = candelabra.ones(1, 1, 1, 1), candelabra.zeros(1), candelabra.zeros(1, 1)
    offset = candelabra.zeros(1, 2, 3, 3)
    offset[0, 0, 2] = 5.0  # the last row is sampled outside
    result = vision_ops.deform_conv2d(x, weight, offset, mask, bias, 1, 1, 0, 0, 1, 1, 1, 1, False)
    assert result.isnan().flatten().tolist() == [True] + [False] * 8


def test_no_images():
    x, weight, offset = candelabra.zeros(0, 2, 4, 4), candelabra.zeros(3, 2, 1, 1), candelabra.zeros(0, 2, 4, 4)
    numbers = (1, 1, 0, 0, 1, 1, 1, 1, False)
    result = vision_ops.deform_conv2d(
        x, weight.requires_grad_(), offset, candelabra.zeros(0, 1), candelabra.zeros(3), *numbers
    )
    assert result.shape == (0, 3, 4, 4)
    result.sum().backward()
    assert candelabra.equal(weight.grad, candelabra.zeros(3, 2, 1, 1))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({0: (2, 4, 6)}, "expected input to have 4 dimensions"),
        ({1: (6, 3, 3, 2)}, "does not fit 4 input channels"),
        ({2: (2, 11, 6, 8)}, r"offset.shape\[1\] is not valid: got: 11 expected: 12"),
        ({2: (1, 12, 6, 8)}, "invalid batch size of offset"),
        ({2: (2, 12, 6, 7)}, r"offset output dims: \(6, 7\) - computed output dims: \(6, 8\)"),
        ({3: (2, 5, 6, 8)}, r"mask.shape\[1\] is not valid: got: 5 expected: 6"),
        ({4: (5,)}, "expected bias to have the sizes"),
        ({"stride": (0, 1)}, "stride_h: 0 stride_w: 1"),
        ({"padding": (-1, 1)}, "pad_h: -1 pad_w: 1"),
        ({"dilation": (1, 0)}, "dilation_h: 1 dilation_w: 0"),
        ({"offset_groups": 3}, "no multiple of 3 offset groups"),
        ({"offset_groups": 0}, "no multiple of 0 offset groups"),
        ({"groups": 0}, "does not fit 4 input channels"),
    ],
)
def test_errors(random, change, match):
    given = Arguments(random, CASES[0])
    for place, value in change.items():
        if isinstance(place, str):
            setattr(given, place, value)
        else:
            given.tensors[place] = candelabra.zeros(value, dtype=candelabra.float64)
    with pytest.raises(RuntimeError, match=match):
        vision_ops.deform_conv2d(*given.tensors, *given.numbers)


def test_an_image_smaller_than_the_kernel():
    x, weight = candelabra.zeros(1, 1, 2, 2), candelabra.zeros(1, 1, 3, 3)
    with pytest.raises(RuntimeError, match="computed output dims|Calculated output size too small"):
        vision_ops.deform_conv2d(
            x,
            weight,
            candelabra.zeros(1, 18, 0, 0),
            candelabra.zeros(1, 1),
            candelabra.zeros(1),
            1,
            1,
            0,
            0,
            1,
            1,
            1,
            1,
            False,
        )


def test_the_kernels_check_what_they_get():
    x, offset = candelabra.zeros(1, 2, 4, 4), candelabra.zeros(1, 2, 4, 4)
    steps = ((1, 1), (1, 1), (0, 0), (1, 1))
    kernels = ops.vision_ops
    assert kernels.deformable_im2col(x, offset, None, *steps, 1).shape == (1, 2, 16)
    with pytest.raises(RuntimeError, match="expected offset and mask"):
        kernels.deformable_im2col(x, offset[:, :1], None, *steps, 1)
    with pytest.raises(RuntimeError, match="expected columns"):
        kernels.deformable_col2im(candelabra.zeros(1, 2, 15), x, offset, None, *steps, 1)
    with pytest.raises(RuntimeError, match="multiple of the groups"):
        kernels.deformable_im2col(x, offset, None, *steps, 0)
    with pytest.raises(RuntimeError, match="positive kernel"):
        kernels.deformable_im2col(x, offset, None, (0, 1), *steps[1:], 1)
    with pytest.raises(RuntimeError, match="two numbers"):
        kernels.deformable_im2col(x, offset, None, *steps[:3], (1,), 1)
