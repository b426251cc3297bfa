"""Rearrangements that make a view and then a copy."""

from __future__ import annotations

from ..inputs import normal
from ..workload import both_ways, forward

WORKLOADS = [
    forward("pixel_shuffle 1x16x8x8 by 2", lambda xp, x: xp.nn.functional.pixel_shuffle(x, 2), normal(1, 16, 8, 8)),
    forward(
        "channel_shuffle 2x16x32x32 by 4", lambda xp, x: xp.nn.functional.channel_shuffle(x, 4), normal(2, 16, 32, 32)
    ),
    forward("unfold 1x3x16x16 by 3", lambda xp, x: xp.nn.functional.unfold(x, 3, padding=1), normal(1, 3, 16, 16)),
    forward(
        "pixel_shuffle 8x64x32x32 by 4, channels last",
        lambda xp, x: xp.nn.functional.pixel_shuffle(x, 4),
        normal(8, 64, 32, 32, layout="channels_last"),
    ),
    forward("pixel_shuffle 8x64x32x32 by 4", lambda xp, x: xp.nn.functional.pixel_shuffle(x, 4), normal(8, 64, 32, 32)),
    forward(
        "pixel_unshuffle 8x4x128x128 by 4", lambda xp, x: xp.nn.functional.pixel_unshuffle(x, 4), normal(8, 4, 128, 128)
    ),
    forward(
        "channel_shuffle 8x64x32x32 by 4", lambda xp, x: xp.nn.functional.channel_shuffle(x, 4), normal(8, 64, 32, 32)
    ),
    forward("split in 8 and sum, 2048 x 1024", lambda xp, x: sum(x.split(128, 1)), normal(2048, 1024)),
    forward("windows of 16, step 8, of 1 M, summed", lambda xp, x: x.unfold(0, 16, 8).sum(1), normal(1_000_000)),
    forward("unfold 8x16x64x64 by 3", lambda xp, x: xp.nn.functional.unfold(x, 3, padding=1), normal(8, 16, 64, 64)),
    forward(
        "fold to 8x16x64x64 by 3", lambda xp, x: xp.nn.functional.fold(x, (64, 64), 3, padding=1), normal(8, 144, 4096)
    ),
    both_ways(
        "x[:, 1:], forward and backward, 2048 x 1024",
        lambda xp, x: x[:, 1:] - x[:, :-1],
        normal(2048, 1024, grad=True),
        linear=True,
    ),
    both_ways(
        "chunks of 3, forward and backward, 2048 x 768",
        lambda xp, x: x.chunk(3, 1)[0] * x.chunk(3, 1)[2],
        normal(2048, 768, grad=True),
    ),
]
