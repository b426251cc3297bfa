"""Sorting, selecting and searching."""

from __future__ import annotations

from ..inputs import integers, normal
from ..workload import forward

WORKLOADS = [
    forward(
        "sort of rows, 1024 x 512, transposed", lambda xp, x: xp.sort(x, 1)[0], normal(1024, 512, layout="transposed")
    ),
    forward("topk 10 of rows, 64 x 100", lambda xp, x: xp.topk(x, 10, 1), normal(64, 100)),
    forward("sort of rows, 64 x 64", lambda xp, x: xp.sort(x, 1)[0], normal(64, 64)),
    forward("sort, 1 K", lambda xp, x: xp.sort(x)[0], normal(1_000)),
    forward("sort, 100 K", lambda xp, x: xp.sort(x)[0], normal(100_000)),
    forward("sort, 1 M", lambda xp, x: xp.sort(x)[0], normal(1_000_000)),
    forward("sort, 1 M, int64", lambda xp, x: xp.sort(x, stable=True)[0], integers(1_000_000, 1_000_000)),
    forward(
        "sort, 1 M, descending, stable", lambda xp, x: xp.sort(x, stable=True, descending=True)[0], normal(1_000_000)
    ),
    forward("sort, 1 M, float64", lambda xp, x: xp.sort(x)[0], normal(1_000_000, dtype="float64")),
    forward("sort of rows, 2048 x 512", lambda xp, x: xp.sort(x, 1)[0], normal(2048, 512)),
    forward("sort of columns, 512 x 2048", lambda xp, x: xp.sort(x, 0)[0], normal(512, 2048)),
    forward(
        "sort of columns, 512 x 2048, transposed",
        lambda xp, x: xp.sort(x, 0)[0],
        normal(512, 2048, layout="transposed"),
    ),
    forward("sort, 1 M, all equal", lambda xp, x: xp.sort(x)[0], integers(1, 1_000_000, dtype="float32")),
    forward("sort, 1 M, uint8", lambda xp, x: xp.sort(x)[0], integers(256, 1_000_000, dtype="uint8")),
    forward("argsort, 1 M", lambda xp, x: xp.argsort(x), normal(1_000_000), comparable=False),
    forward("topk 10 of 1 K", lambda xp, x: xp.topk(x, 10), normal(1_000)),
    forward("topk 100 of 1 M", lambda xp, x: xp.topk(x, 100), normal(1_000_000)),
    forward("topk 10 of rows, 4096 x 1000", lambda xp, x: xp.topk(x, 10, 1), normal(4096, 1000)),
    forward("kthvalue, 1 M", lambda xp, x: xp.kthvalue(x, 500_000)[0], normal(1_000_000)),
    forward("median, 1 M", lambda xp, x: xp.median(x), normal(1_000_000)),
    forward("median of rows, 2048 x 512", lambda xp, x: xp.median(x, 1)[0], normal(2048, 512)),
    forward("median of columns, 512 x 2048", lambda xp, x: xp.median(x, 0)[0], normal(512, 2048)),
    forward("median, 1 M, all equal", lambda xp, x: xp.median(x), integers(1, 1_000_000, dtype="float32")),
    forward("topk 10 of columns, 1000 x 1000", lambda xp, x: xp.topk(x, 10, 0)[0], normal(1000, 1000)),
    forward("unique_consecutive, 1 M", lambda xp, x: xp.unique_consecutive(x), normal(1_000_000)),
    forward("quantile, 1 M", lambda xp, x: xp.quantile(x, 0.9), normal(1_000_000)),
    forward("unique, 1 M of 1000", lambda xp, x: xp.unique(x), integers(1000, 1_000_000)),
    forward("unique with inverse, 100 K", lambda xp, x: xp.unique(x, return_inverse=True), integers(50_000, 100_000)),
    forward("isin, 200 K in 1000", lambda xp, x: xp.isin(x, x[:1000]), normal(200_000)),
    forward(
        "searchsorted, 100 K in 4096",
        lambda xp, s, x: xp.searchsorted(xp.sort(s)[0], x),
        normal(4096, number=1),
        normal(100_000),
    ),
    forward(
        "bucketize, 1 M in 100",
        lambda xp, x, s: xp.bucketize(x, xp.sort(s)[0]),
        normal(1_000_000),
        normal(100, number=1),
    ),
    forward("mode of rows, 1000 x 100", lambda xp, x: xp.mode(x, 1)[0], integers(10, 1000, 100)),
]
