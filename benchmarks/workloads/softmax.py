"""Softmax and log-softmax."""

from __future__ import annotations

from ..inputs import normal
from ..workload import both_ways, forward

N = 4096 * 1000

WORKLOADS = [
    forward("softmax, 32 x 10", lambda xp, x: xp.softmax(x, 1), normal(32, 10)),
    forward("softmax, 256 x 256", lambda xp, x: xp.softmax(x, 1), normal(256, 256)),
    forward("softmax, 4096 x 1000", lambda xp, x: xp.softmax(x, 1), normal(4096, 1000), operations=18 * N),
    forward(
        "softmax, 4096 x 1000, transposed",
        lambda xp, x: xp.softmax(x, 1),
        normal(4096, 1000, layout="transposed"),
        operations=18 * N,
    ),
    forward("softmax of columns, 4096 x 1000", lambda xp, x: xp.softmax(x, 0), normal(4096, 1000), operations=18 * N),
    forward(
        "softmax, 4096 x 1000, bfloat16",
        lambda xp, x: xp.softmax(x, 1),
        normal(4096, 1000, dtype="bfloat16"),
        operations=18 * N,
    ),
    forward("softmax, 64 x 32,000", lambda xp, x: xp.softmax(x, 1), normal(64, 32_000), operations=18 * 64 * 32_000),
    forward("log_softmax, 32 x 10", lambda xp, x: xp.log_softmax(x, 1), normal(32, 10)),
    forward("log_softmax, 4096 x 1000", lambda xp, x: xp.log_softmax(x, 1), normal(4096, 1000), operations=18 * N),
    both_ways(
        "softmax, forward and backward, 4096 x 1000",
        lambda xp, x: xp.softmax(x, 1),
        normal(4096, 1000, grad=True),
        operations=22 * N,
    ),
    both_ways(
        "log_softmax, forward and backward, 4096 x 1000",
        lambda xp, x: xp.log_softmax(x, 1),
        normal(4096, 1000, grad=True),
        operations=34 * N,
    ),
]
