"""Concatenating and repeating tensors."""

from __future__ import annotations

from ..inputs import normal
from ..workload import both_ways, forward

WORKLOADS = [
    forward("cat of two, 1 K", lambda xp, a, b: xp.cat((a, b)), normal(1_000), normal(1_000, number=1)),
    forward("cat of two, 100 K", lambda xp, a, b: xp.cat((a, b)), normal(100_000), normal(100_000, number=1)),
    forward("cat of two, 4 M", lambda xp, a, b: xp.cat((a, b)), normal(4_000_000), normal(4_000_000, number=1)),
    forward("cat of columns, 2048 x 1024 twice", lambda xp, a, b: xp.cat((a, b), 1), normal(2048, 1024), normal(2048, 1024, number=1)),
    forward("cat of columns, transposed", lambda xp, a, b: xp.cat((a, b), 1), *(normal(2048, 1024, layout="transposed", number=n) for n in (0, 1))),
    forward("cat of 100 of 64 x 64", lambda xp, *given: xp.cat(given), *(normal(64, 64, number=n) for n in range(100))),
    forward("stack of 32 of 128 x 128", lambda xp, *given: xp.stack(given), *(normal(128, 128, number=n) for n in range(32))),
    forward("stack at the end, 4 of 1 M", lambda xp, *given: xp.stack(given, -1), *(normal(1_000_000, number=n) for n in range(4))),
    forward("repeat, 512 x 512 by (4, 4)", lambda xp, x: x.repeat(4, 4), normal(512, 512)),
    forward("repeat_interleave, 500 x 400 by 2", lambda xp, x: xp.repeat_interleave(x, 2, 1), normal(500, 400)),
    forward("cartesian_prod, 1000 by 1000", lambda xp, a, b: xp.cartesian_prod(a, b), normal(1000), normal(1000, number=1)),
    both_ways(
        "cat of columns, forward and backward, 2048 x 1024 twice", lambda xp, a, b: xp.cat((a, b), 1),
        normal(2048, 1024, grad=True), normal(2048, 1024, grad=True, number=1), linear=True),
]  # fmt: skip
