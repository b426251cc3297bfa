"""Fake tensors: operators compute shapes, dtypes and devices."""

from __future__ import annotations

import pytest

import candelabra
from candelabra.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)


def test_factories_and_operators_on_a_device_without_a_backend():
    with FakeTensorMode():
        x = candelabra.ones(4, 8, device="xpu")
        made = (x @ candelabra.rand(8, 3, device="xpu")).relu().sum(1) * 2
    assert isinstance(made, FakeTensor)
    assert (made.shape, made.dtype, made.device) == ((4,), candelabra.float32, candelabra.device("xpu"))
    assert repr(made) == "FakeTensor(..., device='xpu', size=(4,))"
    assert made.fake_device == made.device


def test_devices():
    with FakeTensorMode():
        x = candelabra.ones(2, 3, device="xpu")
        assert x.to("cpu").device == candelabra.device("cpu")
        assert x.to("xpu") is x
        assert candelabra.ones(3).to(candelabra.device("xpu")).device.type == "xpu"
        assert (x + candelabra.tensor(1.0)).device.type == "xpu"
        with pytest.raises(RuntimeError, match="found two different devices xpu, cpu"):
            x + candelabra.ones(3)
        with pytest.raises(RuntimeError, match="must match the size"):
            x + candelabra.ones(4, device="xpu")


def test_in_place_and_several_results():
    with FakeTensorMode():
        x = candelabra.zeros(3, 2)
        assert x.add_(1) is x
        values, indices = x.max(0)
        first, second = candelabra.split(x, 2)
    assert (values.shape, indices.dtype) == ((2,), candelabra.int64)
    assert (first.shape, second.shape) == ((2, 2), (1, 2))
    assert x[0].shape == (2,)  # out of the mode, too


def test_from_tensor():
    mode = FakeTensorMode()
    real = candelabra.ones(3, 2).t().requires_grad_()
    fake = mode.from_tensor(real)
    assert (fake.shape, fake.stride(), fake.requires_grad) == ((2, 3), (1, 2), True)
    assert mode.from_tensor(fake) is fake
    real, fake = real.detach(), fake.detach()  # what is recorded needs autograd
    assert isinstance(fake * 2, FakeTensor)
    with pytest.raises(RuntimeError, match="Please convert all Tensors to FakeTensors first"):
        fake + real
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert (candelabra.ones(2, 3) + real.detach()).shape == (2, 3)


def test_what_depends_on_data():
    with FakeTensorMode():
        x = candelabra.ones(3)
        with pytest.raises(DynamicOutputShapeException, match="nonzero"):
            x.nonzero()
        for call in (lambda: x[0].item(), lambda: x.tolist(), lambda: bool(x[0])):
            with pytest.raises(DataDependentOutputException):
                call()
