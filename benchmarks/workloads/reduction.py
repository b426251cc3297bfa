"""Reductions over all elements, rows and columns, and of strided and broadcast tensors."""

from __future__ import annotations

from ..inputs import booleans, integers, normal, uniform
from ..workload import both_ways, forward

M = normal(2048, 2048)

WORKLOADS = [
    forward("sum, 1 K", lambda xp, x: x.sum(), normal(1_000)),
    forward("sum, 100 K", lambda xp, x: x.sum(), normal(100_000)),
    forward("sum, 10 M", lambda xp, x: x.sum(), uniform(10_000_000), operations=1e7),
    forward("sum of rows, 64 x 64", lambda xp, x: x.sum(1), normal(64, 64)),
    forward("sum of columns, 64 x 64", lambda xp, x: x.sum(0), normal(64, 64)),
    forward("sum of rows, 256 x 512", lambda xp, x: x.sum(1), normal(256, 512)),
    forward("sum of rows, 2048 x 2048", lambda xp, x: x.sum(1), M),
    forward("sum of columns, 2048 x 2048", lambda xp, x: x.sum(0), M),
    forward("sum of rows, 2048 x 2048, transposed", lambda xp, x: x.sum(1), normal(2048, 2048, layout="transposed")),
    forward("sum, 4 M, every second element", lambda xp, x: x.sum(), normal(4_000_000, layout="strided")),
    forward("sum of 2048 x 2048, one row expanded", lambda xp, x: x.sum(1), normal(2048, 2048, layout="expanded")),
    forward("sum over (0, 2, 3), 16 x 64 x 56 x 56", lambda xp, x: x.sum((0, 2, 3)), normal(16, 64, 56, 56)),
    forward("sum over the middle, 64 x 256 x 256", lambda xp, x: x.sum(1), normal(64, 256, 256)),
    forward("sum of rows of 4, 1 M x 4", lambda xp, x: x.sum(1), normal(1_000_000, 4)),
    forward("sum, 4 M, bfloat16", lambda xp, x: x.sum(), uniform(4_000_000, dtype="bfloat16")),
    forward("sum, 4 M, float64", lambda xp, x: x.sum(), normal(4_000_000, dtype="float64")),
    forward("sum, 4 M, int64", lambda xp, x: x.sum(), integers(100, 4_000_000)),
    forward("sum of bools, 4 M", lambda xp, x: x.sum(), booleans(4_000_000)),
    forward("mean of rows, 2048 x 2048", lambda xp, x: x.mean(1), M),
    forward("var of rows, 2048 x 2048", lambda xp, x: x.var(1), M),
    forward("var of columns, 2048 x 2048", lambda xp, x: x.var(0), M),
    forward("var of rows, 64 x 64", lambda xp, x: x.var(1), normal(64, 64)),
    forward("std, 4 M", lambda xp, x: x.std(), normal(4_000_000)),
    forward("max, 4 M", lambda xp, x: x.max(), normal(4_000_000)),
    forward("amax of rows, 2048 x 2048", lambda xp, x: x.amax(1), M),
    forward("max with indices of rows, 2048 x 2048", lambda xp, x: x.max(1), M),
    forward("max with indices of columns, 2048 x 2048", lambda xp, x: x.max(0), M),
    forward("argmax, 4 M", lambda xp, x: x.argmax(), normal(4_000_000)),
    forward("argmax of rows, 2048 x 2048", lambda xp, x: x.argmax(1), M),
    forward("argmax of rows, 64 x 10", lambda xp, x: x.argmax(1), normal(64, 10)),
    forward("aminmax, 4 M", lambda xp, x: xp.aminmax(x), normal(4_000_000)),
    forward("prod of rows, 2048 x 2048", lambda xp, x: x.prod(1), uniform(2048, 2048, low=0.99, high=1.01)),
    forward(
        "prod of rows, 1024 x 1024, complex64",
        lambda xp, x: x.prod(1),
        normal(1024, 1024, dtype="complex64"),
        comparable=False,
    ),
    forward("amax of columns, 2048 x 2048, uint8", lambda xp, x: x.amax(0), integers(200, 2048, 2048, dtype="uint8")),
    forward(
        "sum of columns, 2048 x 2048, float16",
        lambda xp, x: x.sum(0),
        normal(2048, 2048, dtype="float16"),
        tolerance=1e-2,
    ),
    forward(
        "any, 4 M bools, none true", lambda xp, x: (x != x).any(), integers(2, 4_000_000, dtype="uint8"), written=4e6
    ),
    forward("all of rows, 2048 x 2048", lambda xp, x: x.all(1), booleans(2048, 2048)),
    forward("sum of rows, 2048 x 2048, bool", lambda xp, x: x.sum(1), booleans(2048, 2048)),
    forward("sum, 4 M, int32", lambda xp, x: x.sum(), integers(100, 4_000_000, dtype="int32")),
    forward("norm, 4 M", lambda xp, x: xp.linalg.vector_norm(x), normal(4_000_000)),
    forward("norm of rows, 2048 x 2048", lambda xp, x: xp.linalg.vector_norm(x, dim=1), M),
    forward("logsumexp of rows, 2048 x 2048", lambda xp, x: xp.logsumexp(x, 1), M, operations=16 * 2048 * 2048),
    forward("nansum, 4 M", lambda xp, x: xp.nansum(x), normal(4_000_000)),
    forward("count_nonzero, 4 M", lambda xp, x: xp.count_nonzero(x), integers(2, 4_000_000)),
    forward(
        "norm of order 3, 1 M",
        lambda xp, x: xp.linalg.vector_norm(x, 3),
        normal(1_000_000),
        operations=45e6,
        tolerance=1e-3,
    ),
    forward(
        "logsumexp of rows, 256 x 400, complex64", lambda xp, x: xp.logsumexp(x, 1), normal(256, 400, dtype="complex64")
    ),
    forward("var, 250 x 400, complex64", lambda xp, x: x.var(), normal(250, 400, dtype="complex64")),
    forward(
        "sum along the width, 4 x 16 x 40 x 40, channels last",
        lambda xp, x: x.sum(3),
        normal(4, 16, 40, 40, layout="channels_last"),
    ),
    forward("histc, 1 M in 100", lambda xp, x: xp.histc(x, 100), normal(1_000_000)),
    forward("bincount, 1 M in 1000", lambda xp, x: xp.bincount(x), integers(1000, 1_000_000)),
    both_ways(
        "sum of rows, forward and backward, 2048 x 2048",
        lambda xp, x: x.sum(1),
        normal(2048, 2048, grad=True),
        linear=True,
    ),
    both_ways("var of rows, forward and backward, 2048 x 2048", lambda xp, x: x.var(1), normal(2048, 2048, grad=True)),
]
