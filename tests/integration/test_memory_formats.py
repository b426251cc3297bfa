"""Test that channels-last input gives the same values, and channels-last results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import candelabra
from candelabra.nn import functional as F

Tensor = candelabra.Tensor
Function = Callable[[Tensor], Tensor]
FORMATS = {2: candelabra.channels_last, 3: candelabra.channels_last_3d}


def _functions(dims: int) -> dict[str, Function]:
    def pool(name: str, *arguments: Any, **options: Any) -> Function:
        return lambda x: getattr(F, f"{name}{dims}d")(x, *arguments, **options)

    scale = candelabra.linspace(0.5, 2, 8, dtype=candelabra.float64)
    linear = "bilinear" if dims == 2 else "trilinear"
    return {
        "batch_norm": lambda x: F.batch_norm(x, None, None, scale, scale, True),
        "batch_norm by running figures": lambda x: F.batch_norm(x, 2 * scale, scale + 1, scale),
        "group_norm": lambda x: F.group_norm(x, 4, scale, scale),
        "max_pool": pool("max_pool", 3, 2, 1),
        "avg_pool": pool("avg_pool", 2),
        "avg_pool of overlapping windows": pool("avg_pool", 3, 1, 1, count_include_pad=False),
        "adaptive_avg_pool": pool("adaptive_avg_pool", 3),
        "adaptive_avg_pool to one": pool("adaptive_avg_pool", 1),
        "adaptive_max_pool": pool("adaptive_max_pool", 3),
        "nearest": lambda x: F.interpolate(x, scale_factor=2),
        "nearest-exact": lambda x: F.interpolate(x, size=(3,) * dims, mode="nearest-exact"),
        "linear": lambda x: F.interpolate(x, scale_factor=1.5, mode=linear),
        "linear, fewer": lambda x: F.interpolate(x, size=(4,) * dims, mode=linear, align_corners=True),
        "area": lambda x: F.interpolate(x, size=(3,) * dims, mode="area"),
        "reflect": lambda x: F.pad(x, (1, 2) * dims, mode="reflect"),
        "replicate": lambda x: F.pad(x, (2, 1) * dims, mode="replicate"),
        "constant": lambda x: F.pad(x, (1, -1, 2, 0), value=3.0),
        "constant, channels": lambda x: F.pad(x, (0, 1) * dims + (2, 1, 0, 1), value=3.0),
        "cat": lambda x: candelabra.cat([x, 2 * x], 1),
        "relu": F.relu,
        "prelu": lambda x: F.prelu(x, scale),
        "dropout by nothing": lambda x: F.dropout(x, 0.0, True),
        "add": lambda x: x + scale.view(-1, *[1] * dims),
    }


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("name", list(_functions(2)))
def test_channels_stay_last(rng: np.random.Generator, dims: int, name: str) -> None:
    function, order = _functions(dims)[name], FORMATS[dims]
    values = candelabra.tensor(rng.standard_normal((2, 8, 7, 6, 5)[: dims + 2]))
    plain, turned = values.clone().requires_grad_(), values.contiguous(memory_format=order).requires_grad_()
    expected, result = function(plain), function(turned)
    assert result.is_contiguous(memory_format=order)
    np.testing.assert_allclose(result.detach().numpy(), expected.detach().numpy(), rtol=1e-12, atol=1e-12)
    weight = candelabra.tensor(rng.standard_normal(tuple(expected.shape)))
    for made in (expected * weight, result * weight):
        made.sum().backward()
    np.testing.assert_allclose(turned.grad.numpy(), plain.grad.numpy(), rtol=1e-10, atol=1e-10)
    with candelabra.no_grad():
        assert function(values).is_contiguous()


def test_places_of_maxima(rng: np.random.Generator) -> None:
    values = candelabra.tensor(rng.standard_normal((2, 9, 6, 6)))
    turned = values.contiguous(memory_format=candelabra.channels_last)
    (expected, places), (result, found) = (F.max_pool2d(x, 2, return_indices=True) for x in (values, turned))
    assert found.is_contiguous(memory_format=candelabra.channels_last)
    np.testing.assert_array_equal(found.numpy(), places.numpy())
    back = F.max_unpool2d(result, found, 2)
    assert back.is_contiguous(memory_format=candelabra.channels_last)
    np.testing.assert_array_equal(back.numpy(), F.max_unpool2d(expected, places, 2).numpy())


def test_a_batch_in_parts_with_gaps_is_no_such_order(rng: np.random.Generator) -> None:
    values = candelabra.tensor(rng.standard_normal((2, 8, 4, 4, 4)))
    gaps = values.contiguous(memory_format=candelabra.channels_last_3d)[:, ::2]
    for function in (
        lambda x: F.max_pool3d(x, 2),
        lambda x: F.pad(x, (1,) * 6, mode="replicate"),
        lambda x: F.pad(x, (1, 1)),
    ):
        result = function(gaps)
        np.testing.assert_array_equal(result.numpy(), function(gaps.contiguous()).numpy())
    # Pad three of four dimensions: a volume without a batch.
    single = values[0].permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    for mode in ("reflect", "replicate", "circular"):
        result = F.pad(single, (1, 2, 0, 1, 2, 1), mode=mode)
        np.testing.assert_array_equal(result.numpy(), F.pad(single.contiguous(), (1, 2, 0, 1, 2, 1), mode=mode).numpy())
