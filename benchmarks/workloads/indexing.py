"""Indexing by integers and by masks, and embeddings."""

from __future__ import annotations

from typing import Any

from ..inputs import booleans, integers, normal, uniform
from ..workload import Workload, both_ways, forward

ROW_BYTES = 65536 * 64 * 4


def _bags(mode: str, weighted: bool = False) -> Any:
    def function(xp: Any, table: Any, index: Any, offsets: Any, *weights: Any) -> Any:
        return xp.nn.functional.embedding_bag(
            index, table, offsets, mode=mode, per_sample_weights=weights[0] if weighted else None
        )

    return function


def _put(xp: Any, x: Any, index: Any, values: Any) -> Any:
    return x.index_put((index,), values, accumulate=True)


def _bag_rows() -> list[Workload]:
    table, index = normal(10000, 64), integers(10000, 4096)
    # Bags of sixteen elements each.
    moved: dict[str, Any] = {"read": 4096 * (64 * 4 + 8)}

    def with_offsets(function: Any) -> Any:
        return lambda xp, table, index, *weights: function(xp, table, index, xp.arange(0, 4096, 16), *weights)

    return [
        forward("embedding_bag sum, 256 bags of 16 x 64", with_offsets(_bags("sum")), table, index, **moved),
        forward("embedding_bag sum, weights", with_offsets(_bags("sum", True)), table, index, uniform(4096), **moved),
        forward("embedding_bag mean", with_offsets(_bags("mean")), table, index, **moved),
        forward("embedding_bag max", with_offsets(_bags("max")), table, index, **moved),
        both_ways(
            "embedding_bag mean, forward and backward",
            with_offsets(_bags("mean")),
            normal(10000, 64, grad=True),
            index,
            **moved,
        ),
    ]


def _scattered(reduce: str) -> Any:
    return lambda xp, base, index, source: xp.scatter_reduce(base, 0, index, source, reduce)


WORKLOADS = [
    forward("index_select, 65,536 rows of 64, transposed", lambda xp, x, i: xp.index_select(x, 0, i), normal(10000, 64, layout="transposed"), integers(10000, 65536), read=ROW_BYTES),
    forward("index_copy, 2048 rows of 512, transposed", lambda xp, x, i: x.index_copy(0, xp.arange(2048), x), normal(2048, 512, layout="transposed"), integers(2, 1)),
    forward("masked_fill, 1 K", lambda xp, x, m: x.masked_fill(m, 0.0), normal(1_000), booleans(1_000)),
    forward("masked_fill, 100 K", lambda xp, x, m: x.masked_fill(m, 0.0), normal(100_000), booleans(100_000)),
    forward("scatter_add, 1 K", lambda xp, x, i, s: x.scatter_add(0, i, s), normal(1_000), integers(1_000, 1_000), uniform(1_000)),
    forward("gather, 1000 x 10 of 10", lambda xp, x, i: xp.gather(x, 1, i), normal(1000, 10), integers(10, 1000, 10)),
    forward("gather of rows, 2048 x 1024", lambda xp, x, i: xp.gather(x, 1, i), normal(2048, 1024), integers(1024, 2048, 1024)),
    forward("gather along columns, 2048 x 1024", lambda xp, x, i: xp.gather(x, 0, i), normal(2048, 1024), integers(2048, 2048, 1024)),
    forward("take_along_dim, 2048 x 256", lambda xp, x, i: xp.take_along_dim(x, i, 1), normal(2048, 256), integers(256, 2048, 256)),
    forward("take, 1 M of 1 M", lambda xp, x, i: xp.take(x, i), normal(1_000_000), integers(1_000_000, 1_000_000)),
    forward("index_select, 1 K of 1 K x 16", lambda xp, x, i: xp.index_select(x, 0, i), normal(1000, 16), integers(1000, 1000)),
    forward(
        "index_select, 65,536 rows of 64", lambda xp, x, i: xp.index_select(x, 0, i), normal(10000, 64), integers(10000, 65536), read=ROW_BYTES
    ),
    forward("index_select of columns, 2048 x 1024", lambda xp, x, i: xp.index_select(x, 1, i), normal(2048, 1024), integers(1024, 1024)),
    forward("x[index], 65,536 rows of 64", lambda xp, x, i: x[i], normal(10000, 64), integers(10000, 65536), read=ROW_BYTES),
    forward("x[i, j], 1 M points", lambda xp, x, i, j: x[i, j], normal(1000, 1000), integers(1000, 1_000_000), integers(1000, 1_000_000, number=1)),
    forward("x[mask], 1 M", lambda xp, x, m: x[m], normal(1_000_000), booleans(1_000_000)),
    forward("masked_fill, 4 M", lambda xp, x, m: x.masked_fill(m, 0.0), normal(4_000_000), booleans(4_000_000)),
    forward("masked_fill of rows, 2048 x 2048", lambda xp, x, m: x.masked_fill(m, 0.0), normal(2048, 2048), booleans(2048, 1)),
    forward("masked_select, 1 M", lambda xp, x, m: xp.masked_select(x, m), normal(1_000_000), booleans(1_000_000)),
    forward("nonzero, 1 M", lambda xp, m: xp.nonzero(m), booleans(1_000_000)),
    forward("scatter of rows, 2048 x 1024", lambda xp, x, i: x.scatter(1, i, 1.0), normal(2048, 1024), integers(1024, 2048, 256)),
    forward(
        "scatter_add 16384x64 into 1000", lambda xp, x, i, s: x.scatter_add(0, i, s), normal(1000, 64), integers(1000, 16384, 64), uniform(16384, 64)
    ),
    forward("scatter_reduce amax 16384x64 into 1000", _scattered("amax"), normal(1000, 64), integers(1000, 16384, 64), uniform(16384, 64)),
    forward("scatter_reduce mean", _scattered("mean"), normal(1000, 64), integers(1000, 16384, 64), uniform(16384, 64)),
    forward("scatter_reduce prod", _scattered("prod"), normal(1000, 64), integers(1000, 16384, 64), uniform(16384, 64)),
    forward(
        "index_reduce amax 16384x64 into 1000", lambda xp, x, i, s: xp.index_reduce(x, 0, i, s, "amax"),
        normal(1000, 64), integers(1000, 16384), uniform(16384, 64),
    ),
    forward("index_add 16384x64 into 1000", lambda xp, x, i, s: x.index_add(0, i, s), normal(1000, 64), integers(1000, 16384), uniform(16384, 64)),
    forward(
        "index_add, 65,536 rows of 64", lambda xp, x, i, s: x.index_add(0, i, s),
        normal(10000, 64), integers(10000, 65536), uniform(65536, 64),
    ),
    forward("index_copy, 10,000 rows of 64", lambda xp, x, i, s: x.index_copy(0, xp.arange(10000), s), normal(20000, 64), integers(2, 1), uniform(10000, 64)),
    forward("index_put, accumulating, 65,536 rows of 64", _put, normal(10000, 64), integers(10000, 65536), uniform(65536, 64)),
    forward("one_hot, 65,536 of 100", lambda xp, i: xp.nn.functional.one_hot(i, 100), integers(100, 65536)),
    forward("tril, 2048 x 2048", lambda xp, x: xp.tril(x), normal(2048, 2048), read=2 * 2048 * 2048),
    forward("embedding, 1 K of 10,000 x 64", lambda xp, t, i: xp.nn.functional.embedding(i, t), normal(10000, 64), integers(10000, 1000), read=264_000),
    forward("embedding, 65,536 of 10,000 x 64", lambda xp, t, i: xp.nn.functional.embedding(i, t), normal(10000, 64), integers(10000, 65536), read=ROW_BYTES),
    both_ways(
        "embedding, forward and backward, 65,536 of 10,000 x 64", lambda xp, t, i: xp.nn.functional.embedding(i, t),
        normal(10000, 64, grad=True), integers(10000, 65536), read=3 * ROW_BYTES,
    ),
    both_ways("x[index], forward and backward, 65,536 rows of 64", lambda xp, x, i: x[i], normal(10000, 64, grad=True), integers(10000, 65536), read=3 * ROW_BYTES),
    both_ways("gather, forward and backward, 2048 x 1024", lambda xp, x, i: xp.gather(x, 1, i), normal(2048, 1024, grad=True), integers(1024, 2048, 1024)),
    *_bag_rows(),
]  # fmt: skip
