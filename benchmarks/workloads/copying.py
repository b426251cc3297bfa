"""Copies: between layouts and dtypes, flip, roll and pad."""

from __future__ import annotations

from typing import Any

from ..inputs import integers, normal
from ..workload import both_ways, forward

IMAGES = normal(8, 16, 64, 64)


def _padded(mode: str, **options: Any) -> Any:
    return lambda xp, x: xp.nn.functional.pad(x, (3, 3, 3, 3), mode, **options)


WORKLOADS = [
    forward("clone, 1 K", lambda xp, x: x.clone(), normal(1_000)),
    forward("clone, 100 K", lambda xp, x: x.clone(), normal(100_000)),
    forward("clone, 10 M", lambda xp, x: x.clone(), normal(10_000_000)),
    forward("contiguous, 64 x 64, transposed", lambda xp, x: x.contiguous(), normal(64, 64, layout="transposed")),
    forward("contiguous, 512 x 512, transposed", lambda xp, x: x.contiguous(), normal(512, 512, layout="transposed")),
    forward(
        "contiguous, 2048 x 2048, transposed", lambda xp, x: x.contiguous(), normal(2048, 2048, layout="transposed")
    ),
    forward(
        "contiguous, 2048 x 2048, transposed, float64",
        lambda xp, x: x.contiguous(),
        normal(2048, 2048, layout="transposed", dtype="float64"),
    ),
    forward(
        "contiguous, 2048 x 2048, transposed, bfloat16",
        lambda xp, x: x.contiguous(),
        normal(2048, 2048, layout="transposed", dtype="bfloat16"),
    ),
    forward(
        "contiguous, 2048 x 2048, transposed, uint8",
        lambda xp, x: x.contiguous(),
        integers(255, 2048, 2048, layout="transposed", dtype="uint8"),
    ),
    forward("contiguous, 4 M, every second element", lambda xp, x: x.contiguous(), normal(4_000_000, layout="strided")),
    forward(
        "contiguous, 2048 x 2048, one row expanded", lambda xp, x: x.contiguous(), normal(2048, 2048, layout="expanded")
    ),
    forward(
        "to channels last, 16 x 64 x 56 x 56",
        lambda xp, x: x.contiguous(memory_format=xp.channels_last),
        normal(16, 64, 56, 56),
    ),
    forward(
        "from channels last, 16 x 64 x 56 x 56",
        lambda xp, x: x.contiguous(),
        normal(16, 64, 56, 56, layout="channels_last"),
    ),
    forward(
        "from channels last, 32 x 3 x 224 x 224",
        lambda xp, x: x.contiguous(),
        normal(32, 3, 224, 224, layout="channels_last"),
    ),
    forward(
        "permute (0, 2, 1, 3), 8 x 256 x 8 x 64",
        lambda xp, x: x.permute(0, 2, 1, 3).contiguous(),
        normal(8, 256, 8, 64),
    ),
    forward(
        "reverse all dimensions, 128 x 128 x 128", lambda xp, x: x.permute(2, 1, 0).contiguous(), normal(128, 128, 128)
    ),
    forward("to bfloat16, 4 M", lambda xp, x: x.to(xp.bfloat16), normal(4_000_000), tolerance=1e-2),
    forward("to float32, 4 M of bfloat16", lambda xp, x: x.float(), normal(4_000_000, dtype="bfloat16")),
    forward("to float16, 4 M", lambda xp, x: x.half(), normal(4_000_000), tolerance=1e-2),
    forward("to float64, 4 M", lambda xp, x: x.double(), normal(4_000_000)),
    forward("to float32, 4 M of uint8", lambda xp, x: x.float(), integers(255, 4_000_000, dtype="uint8")),
    forward("to int64, 4 M", lambda xp, x: x.long(), normal(4_000_000)),
    forward("copy_, 4 M", lambda xp, a, b: a.copy_(b), normal(4_000_000), normal(4_000_000, number=1), read=16_000_000),
    forward("fill of columns, 2048 x 2048", lambda xp, x: x[:, ::2].fill_(1.0), normal(2048, 2048), read=8e6),
    forward("flip, 2048 x 2048, columns", lambda xp, x: x.flip(1), normal(2048, 2048)),
    forward("roll, 2048 x 2048", lambda xp, x: x.roll((5, 7), (0, 1)), normal(2048, 2048)),
    forward(
        "roll, 8x16x64x64, channels last",
        lambda xp, x: x.roll((1, 2), (2, 3)),
        normal(8, 16, 64, 64, layout="channels_last"),
    ),
    forward(
        "pad zeros 8x16x64x64 by 3, channels last",
        _padded("constant", value=0.0),
        normal(8, 16, 64, 64, layout="channels_last"),
    ),
    forward("rot90, 1024 x 1024", lambda xp, x: xp.rot90(x), normal(1024, 1024)),
    forward("pad zeros 8x16x64x64 by 3", _padded("constant", value=0.0), IMAGES),
    forward("pad reflect 8x16x64x64 by 3", _padded("reflect"), IMAGES),
    forward("pad replicate 8x16x64x64 by 3", _padded("replicate"), IMAGES),
    forward("pad circular 8x16x64x64 by 3", _padded("circular"), IMAGES),
    forward("pad zeros 1x3x8x8 by 3", _padded("constant", value=0.0), normal(1, 3, 8, 8)),
    both_ways("pad reflect, forward and backward", _padded("reflect"), normal(8, 16, 64, 64, grad=True), linear=True),
    both_ways(
        "permute, contiguous, forward and backward, 8 x 256 x 8 x 64",
        lambda xp, x: x.permute(0, 2, 1, 3).contiguous(),
        normal(8, 256, 8, 64, grad=True),
        linear=True,
    ),
]
