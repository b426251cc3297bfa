"""Cumulative sums, products and maxima and minima."""

from __future__ import annotations

from ..inputs import integers, normal, uniform
from ..workload import both_ways, forward

WORKLOADS = [
    forward("cumsum, 1 K", lambda xp, x: xp.cumsum(x, 0), normal(1_000)),
    forward("cumsum, 100 K", lambda xp, x: xp.cumsum(x, 0), normal(100_000)),
    forward("cumsum, 4 M", lambda xp, x: xp.cumsum(x, 0), normal(4_000_000), tolerance=1e-3),
    forward("cumsum, 4 M, int64", lambda xp, x: xp.cumsum(x, 0), integers(100, 4_000_000)),
    forward("cumsum of rows, 2048 x 1024", lambda xp, x: xp.cumsum(x, 1), normal(2048, 1024)),
    forward("cumsum of columns, 2048 x 1024", lambda xp, x: xp.cumsum(x, 0), normal(2048, 1024)),
    forward(
        "cumsum of rows, 2048 x 1024, transposed",
        lambda xp, x: xp.cumsum(x, 1),
        normal(2048, 1024, layout="transposed"),
    ),
    forward(
        "cumsum of rows, 2048 x 512, every second column", lambda xp, x: xp.cumsum(x[:, ::2], 1), normal(2048, 1024)
    ),
    forward(
        "cumsum of columns, 1024 x 2048, one column expanded",
        lambda xp, x: xp.cumsum(x.expand(1024, 2048), 0),
        normal(1024, 1),
    ),
    forward(
        "cumprod of rows, 1024 x 1024, complex64",
        lambda xp, x: xp.cumprod(x, 1),
        normal(1024, 1024, dtype="complex64"),
        comparable=False,
    ),
    forward("cumprod of rows, 2048 x 1024", lambda xp, x: xp.cumprod(x, 1), uniform(2048, 1024, low=0.99, high=1.01)),
    forward("cummax of rows, 2048 x 1024", lambda xp, x: xp.cummax(x, 1), normal(2048, 1024)),
    forward("cummax of columns, 500 x 400", lambda xp, x: xp.cummax(x, 0), normal(500, 400)),
    forward("logcumsumexp of rows, 512 x 1024", lambda xp, x: xp.logcumsumexp(x, 1), normal(512, 1024)),
    forward("diff, 4 M", lambda xp, x: xp.diff(x), normal(4_000_000)),
    both_ways(
        "cumsum of rows, forward and backward, 2048 x 1024",
        lambda xp, x: xp.cumsum(x, 1),
        normal(2048, 1024, grad=True),
        linear=True,
    ),
]
