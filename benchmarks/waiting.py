"""Rows of the table for operators that people wait for: resampling, bags of embeddings, searching, attention."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

Work = Callable[[], Any]
Make = Callable[[ModuleType], Work]


def _forward(function: Callable[[ModuleType, Any], Any], *shape: int, channels_last: bool = False) -> Make:
    def make(xp: ModuleType) -> Work:
        x = xp.randn(*shape)
        if channels_last:
            x = x.to(memory_format=xp.channels_last)

        return lambda: function(xp, x)

    return make


def _both_ways(function: Callable[[ModuleType, Any], Any], *shape: int) -> Make:
    """Forward and backward."""

    def make(xp: ModuleType) -> Work:
        x = xp.randn(*shape, requires_grad=True)
        ones = xp.ones_like(function(xp, x).detach())

        def run() -> None:
            function(xp, x).backward(ones)
            x.grad = None

        return run

    return make


def _interpolated(mode: str, size: Any, **options: Any) -> Callable[[ModuleType, Any], Any]:
    return lambda xp, x: xp.nn.functional.interpolate(x, size=size, mode=mode, **options)


def _sampled(mode: str, padding: str) -> Callable[[ModuleType, Any], Any]:
    grids: dict[str, Any] = {}

    def function(xp: ModuleType, x: Any) -> Any:
        if xp.__name__ not in grids:
            grids[xp.__name__] = xp.rand(x.shape[0], *x.shape[2:], x.ndim - 2) * 2.2 - 1.1
        return xp.nn.functional.grid_sample(x, grids[xp.__name__], mode, padding, align_corners=False)

    return function


def _bags(mode: str, weighted: bool = False, backward: bool = False) -> Make:
    def make(xp: ModuleType) -> Work:
        table = xp.randn(10000, 64, requires_grad=backward)
        input = xp.randint(0, 10000, (4096,))
        offsets = xp.arange(0, 4096, 16)
        weights = xp.rand(4096) if weighted else None

        def run() -> Any:
            made = xp.nn.functional.embedding_bag(input, table, offsets, mode=mode, per_sample_weights=weights)
            if backward:
                made.backward(xp.ones_like(made))
                table.grad = None
            return made

        return run

    return make


def _searched(xp: ModuleType, x: Any) -> Any:
    return xp.searchsorted(x[:4096].cumsum(0), x)


def _attended(causal: bool, dtype: str, backward: bool = False) -> Make:
    def make(xp: ModuleType) -> Work:
        kind = getattr(xp, dtype)
        q, k, v = (xp.randn(2, 8, 1024, 64).to(kind).requires_grad_(backward) for _ in range(3))

        def run() -> Any:
            made = xp.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
            if backward:
                made.backward(made.detach())
                q.grad = k.grad = v.grad = None
            return made

        return run

    return make


def _reduced(reduce: str) -> Make:
    def make(xp: ModuleType) -> Work:
        base, index, src = xp.zeros(1000, 64), xp.randint(0, 1000, (16384, 64)), xp.rand(16384, 64)
        return lambda: xp.scatter_reduce(base, 0, index, src, reduce)

    return make


def _index_reduced(reduce: str) -> Make:
    def make(xp: ModuleType) -> Work:
        base, index, src = xp.zeros(1000, 64), xp.randint(0, 1000, (16384,)), xp.rand(16384, 64)
        return lambda: xp.index_reduce(base, 0, index, src, reduce)

    return make


def _index_added(xp: ModuleType) -> Work:
    base, index, src = xp.zeros(1000, 64), xp.randint(0, 1000, (16384,)), xp.rand(16384, 64)
    return lambda: base.index_add(0, index, src)


#: Name and work of each row.
ROWS: list[tuple[str, Make]] = [
    ("interpolate bilinear 8x16x64x64 to 128", _forward(_interpolated("bilinear", 128), 8, 16, 64, 64)),
    ("interpolate bilinear, channels last", _forward(_interpolated("bilinear", 128), 8, 16, 64, 64, channels_last=True)),
    ("interpolate bilinear, forward and backward", _both_ways(_interpolated("bilinear", 128), 8, 16, 64, 64)),
    ("interpolate nearest 8x16x64x64 to 128", _forward(_interpolated("nearest", 128), 8, 16, 64, 64)),
    ("interpolate nearest, forward and backward", _both_ways(_interpolated("nearest", 128), 8, 16, 64, 64)),
    ("interpolate bicubic 8x16x64x64 to 128", _forward(_interpolated("bicubic", 128), 8, 16, 64, 64)),
    ("interpolate antialiased 8x3x256x256 to 96", _forward(_interpolated("bilinear", 96, antialias=True), 8, 3, 256, 256)),
    ("interpolate trilinear 2x4x32x32x32 to 64", _forward(_interpolated("trilinear", 64), 2, 4, 32, 32, 32)),
    ("interpolate area 8x16x128x128 to 60", _forward(_interpolated("area", 60), 8, 16, 128, 128)),
    ("embedding_bag sum, 256 bags of 16 x 64", _bags("sum")),
    ("embedding_bag sum, weights", _bags("sum", weighted=True)),
    ("embedding_bag mean", _bags("mean")),
    ("embedding_bag max", _bags("max")),
    ("embedding_bag mean, forward and backward", _bags("mean", backward=True)),
    ("grid_sample bilinear 4x16x64x64", _forward(_sampled("bilinear", "zeros"), 4, 16, 64, 64)),
    ("grid_sample bilinear, forward and backward", _both_ways(_sampled("bilinear", "zeros"), 4, 16, 64, 64)),
    ("grid_sample nearest, border", _forward(_sampled("nearest", "border"), 4, 16, 64, 64)),
    ("grid_sample bicubic, reflection", _forward(_sampled("bicubic", "reflection"), 4, 16, 64, 64)),
    ("grid_sample bilinear 2x4x16x32x32", _forward(_sampled("bilinear", "zeros"), 2, 4, 16, 32, 32)),
    ("searchsorted 100000 in 4096", _forward(_searched, 100000)),
    ("scatter_reduce amax 16384x64 into 1000", _reduced("amax")),
    ("scatter_reduce mean", _reduced("mean")),
    ("scatter_reduce prod", _reduced("prod")),
    ("index_reduce amax 16384x64 into 1000", _index_reduced("amax")),
    ("index_add 16384x64 into 1000", _index_added),
    ("pixel_shuffle 8x64x32x32 by 4", _forward(lambda xp, x: xp.nn.functional.pixel_shuffle(x, 4), 8, 64, 32, 32)),
    ("channel_shuffle 8x64x32x32 by 4", _forward(lambda xp, x: xp.nn.functional.channel_shuffle(x, 4), 8, 64, 32, 32)),
    ("pad reflect 8x16x64x64 by 3", _forward(lambda xp, x: xp.nn.functional.pad(x, (3, 3, 3, 3), "reflect"), 8, 16, 64, 64)),
    (
        "pad reflect, forward and backward",
        _both_ways(lambda xp, x: xp.nn.functional.pad(x, (3, 3, 3, 3), "reflect"), 8, 16, 64, 64),
    ),
    ("pad replicate 8x16x64x64 by 3", _forward(lambda xp, x: xp.nn.functional.pad(x, (3, 3, 3, 3), "replicate"), 8, 16, 64, 64)),
    ("pad circular 8x16x64x64 by 3", _forward(lambda xp, x: xp.nn.functional.pad(x, (3, 3, 3, 3), "circular"), 8, 16, 64, 64)),
    ("attention 2x8x1024x64", _attended(False, "float32")),
    ("attention 2x8x1024x64, causal", _attended(True, "float32")),
    ("attention, forward and backward", _attended(False, "float32", backward=True)),
    ("attention, bfloat16", _attended(False, "bfloat16")),
    ("tanh, 4 million float32", _forward(lambda xp, x: xp.tanh(x), 4_000_000)),
    ("erf, 4 million float32", _forward(lambda xp, x: xp.erf(x), 4_000_000)),
    ("log, 4 million float32", _forward(lambda xp, x: xp.log(x), 4_000_000)),
    ("x ** 1.7, 4 million float32", _forward(lambda xp, x: x**1.7, 4_000_000)),
    ("sort of rows, 2048 x 512", _forward(lambda xp, x: xp.sort(x, 1), 2048, 512)),
    ("cdist 500 x 500 rows of 400", _forward(lambda xp, x: xp.cdist(x, x), 500, 400)),
    ("cdist, forward and backward", _both_ways(lambda xp, x: xp.cdist(x, x[:100]), 200, 50)),
    ("cummax of columns, 500 x 400", _forward(lambda xp, x: xp.cummax(x, 0).values, 500, 400)),
    ("repeat_interleave 500 x 400 by 2", _forward(lambda xp, x: xp.repeat_interleave(x, 2, 1), 500, 400)),
    ("isin 200000 in 1000", _forward(lambda xp, x: xp.isin(x, x[:1000]), 200_000)),
    ("cumsum of rows, 2048 x 1024", _forward(lambda xp, x: xp.cumsum(x, 1), 2048, 1024)),
    ("cumsum of columns, 2048 x 1024", _forward(lambda xp, x: xp.cumsum(x, 0), 2048, 1024)),
]
