"""Batch, layer, group, instance and root-mean-square normalization."""

from __future__ import annotations

from typing import Any

from ..inputs import normal
from ..workload import both_ways, forward, layer

IMAGES = (16, 64, 56, 56)


def _batch_norm(xp: Any, x: Any) -> Any:
    return xp.nn.functional.batch_norm(x, None, None, training=True)


def _inference(xp: Any, x: Any, mean: Any) -> Any:
    return xp.nn.functional.batch_norm(x, mean, mean * mean + 1, mean, mean)


WORKLOADS = [
    layer(
        "nn.LayerNorm, forward and backward, 32 x 128",
        lambda xp: xp.nn.LayerNorm(128),
        normal(32, 128, grad=True),
        backward=True,
    ),
    forward("batch_norm, training, 16 x 64 x 56 x 56", _batch_norm, normal(*IMAGES)),
    forward("batch_norm, training, channels last", _batch_norm, normal(*IMAGES, layout="channels_last")),
    forward("batch_norm, inference, 16 x 64 x 56 x 56", _inference, normal(*IMAGES), normal(64)),
    forward("batch_norm, inference, 1 x 64 x 14 x 14", _inference, normal(1, 64, 14, 14), normal(64)),
    layer(
        "nn.BatchNorm2d, forward and backward",
        lambda xp: xp.nn.BatchNorm2d(64),
        normal(*IMAGES, grad=True),
        backward=True,
    ),
    layer(
        "nn.BatchNorm1d, forward and backward, 32 x 128",
        lambda xp: xp.nn.BatchNorm1d(128),
        normal(32, 128, grad=True),
        backward=True,
    ),
    forward("layer_norm, 32 x 128", lambda xp, x: xp.nn.functional.layer_norm(x, (128,)), normal(32, 128)),
    forward("layer_norm, 256 x 512", lambda xp, x: xp.nn.functional.layer_norm(x, (512,)), normal(256, 512)),
    forward(
        "layer_norm, 4096 x 768",
        lambda xp, x, w, b: xp.nn.functional.layer_norm(x, (768,), w, b),
        normal(4096, 768),
        normal(768),
        normal(768, number=1),
    ),
    forward(
        "layer_norm, 4096 x 768, bfloat16",
        lambda xp, x: xp.nn.functional.layer_norm(x, (768,)),
        normal(4096, 768, dtype="bfloat16"),
    ),
    forward(
        "layer_norm, 4096 x 768, transposed",
        lambda xp, x: xp.nn.functional.layer_norm(x, (768,)),
        normal(4096, 768, layout="transposed"),
    ),
    layer(
        "nn.LayerNorm, forward and backward, 4096 x 768",
        lambda xp: xp.nn.LayerNorm(768),
        normal(4096, 768, grad=True),
        backward=True,
    ),
    forward(
        "group_norm, 16 x 64 x 56 x 56, 8 groups", lambda xp, x: xp.nn.functional.group_norm(x, 8), normal(*IMAGES)
    ),
    layer(
        "nn.GroupNorm, forward and backward",
        lambda xp: xp.nn.GroupNorm(8, 64),
        normal(*IMAGES, grad=True),
        backward=True,
    ),
    layer(
        "nn.GroupNorm, channels last, forward and backward",
        lambda xp: xp.nn.GroupNorm(8, 64),
        normal(*IMAGES, layout="channels_last", grad=True),
        backward=True,
    ),
    forward(
        "group_norm, 16 x 64 x 56 x 56, 8 groups, channels last",
        lambda xp, x: xp.nn.functional.group_norm(x, 8),
        normal(*IMAGES, layout="channels_last"),
    ),
    forward(
        "batch_norm, inference, 16 x 64 x 56 x 56, bfloat16",
        lambda xp, x, m, v: xp.nn.functional.batch_norm(x, m, v.abs() + 1),
        normal(*IMAGES, dtype="bfloat16"),
        normal(64, dtype="bfloat16"),
        normal(64, dtype="bfloat16", number=1),
        tolerance=5e-2,
    ),
    forward("instance_norm, 16 x 64 x 56 x 56", lambda xp, x: xp.nn.functional.instance_norm(x), normal(*IMAGES)),
    forward("rms_norm, 4096 x 768", lambda xp, x: xp.nn.functional.rms_norm(x, (768,)), normal(4096, 768)),
    both_ways(
        "rms_norm, forward and backward, 4096 x 768",
        lambda xp, x: xp.nn.functional.rms_norm(x, (768,)),
        normal(4096, 768, grad=True),
    ),
    forward("normalize, 4096 x 768", lambda xp, x: xp.nn.functional.normalize(x, dim=1), normal(4096, 768)),
    forward(
        "local_response_norm, 4 x 64 x 28 x 28",
        lambda xp, x: xp.nn.functional.local_response_norm(x, 5),
        normal(4, 64, 28, 28),
    ),
]
