"""Pooling."""

from __future__ import annotations

from typing import Any

from ..inputs import normal
from ..workload import both_ways, forward


def _pool(name: str, *arguments: Any, **options: Any) -> Any:
    return lambda xp, x: getattr(xp.nn.functional, name)(x, *arguments, **options)


SHAPE = (16, 64, 112, 112)

WORKLOADS = [
    forward("max_pool2d 3x3, step 2, 16 x 64 x 112 x 112", _pool("max_pool2d", 3, 2, 1), normal(*SHAPE)),
    forward(
        "max_pool2d 3x3, step 2, channels last", _pool("max_pool2d", 3, 2, 1), normal(*SHAPE, layout="channels_last")
    ),
    forward("max_pool2d 2x2, 1 x 16 x 28 x 28", _pool("max_pool2d", 2), normal(1, 16, 28, 28)),
    forward("max_pool2d 2x2, 16 x 64 x 56 x 56", _pool("max_pool2d", 2), normal(16, 64, 56, 56)),
    forward(
        "max_pool2d 2x2, 16 x 64 x 56 x 56, bfloat16", _pool("max_pool2d", 2), normal(16, 64, 56, 56, dtype="bfloat16")
    ),
    forward(
        "max_pool2d 2x2 with indices, 16 x 64 x 56 x 56",
        _pool("max_pool2d", 2, return_indices=True),
        normal(16, 64, 56, 56),
    ),
    both_ways(
        "max_pool2d 3x3, forward and backward, 8 x 64 x 56 x 56",
        _pool("max_pool2d", 3, 2, 1),
        normal(8, 64, 56, 56, grad=True),
    ),
    forward("avg_pool2d 3x3, step 2, 16 x 64 x 112 x 112", _pool("avg_pool2d", 3, 2, 1), normal(*SHAPE)),
    forward("avg_pool2d 2x2, 1 x 16 x 28 x 28", _pool("avg_pool2d", 2), normal(1, 16, 28, 28)),
    both_ways(
        "avg_pool2d 2x2, forward and backward, 8 x 64 x 56 x 56",
        _pool("avg_pool2d", 2),
        normal(8, 64, 56, 56, grad=True),
        linear=True,
    ),
    forward("adaptive_avg_pool2d to 1, 16 x 512 x 7 x 7", _pool("adaptive_avg_pool2d", 1), normal(16, 512, 7, 7)),
    forward("adaptive_avg_pool2d to 7, 16 x 64 x 56 x 56", _pool("adaptive_avg_pool2d", 7), normal(16, 64, 56, 56)),
    both_ways(
        "adaptive_avg_pool2d to 1, forward and backward, 16 x 512 x 7 x 7",
        _pool("adaptive_avg_pool2d", 1),
        normal(16, 512, 7, 7, grad=True),
        linear=True,
    ),
    forward("max_pool1d, 16 x 64 x 4096", _pool("max_pool1d", 2), normal(16, 64, 4096)),
    forward("max_pool3d, 2 x 16 x 32 x 32 x 32", _pool("max_pool3d", 2), normal(2, 16, 32, 32, 32)),
    forward("avg_pool3d, 2 x 16 x 32 x 32 x 32", _pool("avg_pool3d", 2), normal(2, 16, 32, 32, 32)),
    forward(
        "avg_pool2d 3x3, step 2, 8 x 32 x 56 x 56, bfloat16, channels last",
        _pool("avg_pool2d", 3, 2, 1),
        normal(8, 32, 56, 56, dtype="bfloat16", layout="channels_last"),
        tolerance=5e-2,
    ),
    forward("adaptive_max_pool2d to 7, 8 x 32 x 56 x 56", _pool("adaptive_max_pool2d", 7), normal(8, 32, 56, 56)),
    forward("lp_pool2d, 8 x 16 x 56 x 56", _pool("lp_pool2d", 2.0, 2), normal(8, 16, 56, 56)),
]
