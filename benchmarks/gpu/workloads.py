"""The workloads for GPUs, with their limits."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import models

#: Builds the work for a framework on a device. The last argument selects sizes for an emulated
#: device.
Make = Callable[[Any, str, bool], Callable[[], Any]]


@dataclass(frozen=True)
class GPUWorkload:
    """One line of the table.

    Attributes
    ----------
    kind
        ``"memory"``: the limit is a share of the copy's bandwidth. ``"matmul"`` and
        ``"training"``: the limit is a ratio to PyTorch's time. ``"launch"``: the limit is a ratio
        to PyTorch's host time per call.
    bytes, operations
        The minimum of bytes moved, and the operations, both at full size.
    limit
        The minimum share of the bandwidth, or the maximum ratio to PyTorch's time.
    tf32
        Whether float32 matrix products may use TF32.
    """

    name: str
    kind: str
    make: Make
    limit: float
    bytes: float = 0.0
    operations: float = 0.0
    tf32: bool = False


LARGE, TINY = 1 << 28, 1 << 12


def _count(tiny: bool) -> int:
    return TINY if tiny else LARGE


def copy(xp: Any, device: str, tiny: bool) -> Callable[[], Any]:
    """Copy one gibibyte, which measures the bandwidth."""
    x = xp.zeros(_count(tiny), device=device)
    y = xp.empty_like(x)
    return lambda: y.copy_(x)


def elementwise(function: Callable[..., Any], count: int, dtype: str = "float32") -> Make:
    """Apply a function to `count` tensors, out of place."""

    def make(xp: Any, device: str, tiny: bool) -> Callable[[], Any]:
        given = [xp.rand(_count(tiny), device=device).to(getattr(xp, dtype)) + 0.5 for _ in range(count)]
        return lambda: function(xp, *given)

    return make


def of_rows(function: Callable[..., Any], rows: int, columns: int, dtype: str = "float32") -> Make:
    """Apply a function to a matrix."""

    def make(xp: Any, device: str, tiny: bool) -> Callable[[], Any]:
        sizes = (64, 64) if tiny else (rows, columns)
        x = xp.rand(*sizes, device=device).to(getattr(xp, dtype))
        return lambda: function(xp, x)

    return make


def product(size: int, dtype: str) -> Make:
    """Multiply square matrices."""

    def make(xp: Any, device: str, tiny: bool) -> Callable[[], Any]:
        n = 32 if tiny else size
        a, b = (xp.randn(n, n, device=device).to(getattr(xp, dtype)) for _ in range(2))
        return lambda: a @ b

    return make


def call(function: Callable[..., Any], *sizes: int) -> Make:
    """Call an operator on small tensors."""

    def make(xp: Any, device: str, tiny: bool) -> Callable[[], Any]:
        x, y = xp.rand(*sizes, device=device), xp.rand(*sizes, device=device)
        return lambda: function(xp, x, y)

    return make


def _memory(name: str, make: Make, elements: float, item: int = 4, limit: float = 0.85) -> GPUWorkload:
    return GPUWorkload(name, "memory", make, limit, bytes=elements * item)


def _matmul(size: int, dtype: str, tf32: bool = False) -> GPUWorkload:
    shown = "tf32" if tf32 else dtype
    return GPUWorkload(
        f"matmul {shown}, {size} x {size}",
        "matmul",
        product(size, dtype),
        1 / 0.98,
        operations=2.0 * size**3,
        tf32=tf32,
    )


def _launch(name: str, make: Make) -> GPUWorkload:
    return GPUWorkload(name, "launch", make, 0.5)


COPY = _memory("copy_, 1 GiB", copy, 2 * LARGE, limit=0.0)
SIDE = math.isqrt(LARGE)
WORKLOADS = [
    COPY,
    _memory("add", elementwise(lambda xp, a, b: a + b, 2), 3 * LARGE),
    _memory("mul by a number", elementwise(lambda xp, a: a * 2.5, 1), 2 * LARGE),
    _memory("exp", elementwise(lambda xp, a: a.exp(), 1), 2 * LARGE),
    _memory("gelu", elementwise(lambda xp, a: xp.nn.functional.gelu(a), 1), 2 * LARGE),
    _memory("where", elementwise(lambda xp, a, b: xp.where(a > 1, a, b), 2), 3 * LARGE + LARGE / 2 + LARGE, limit=0.0),
    _memory("add, bfloat16", elementwise(lambda xp, a, b: a + b, 2, "bfloat16"), 3 * LARGE, 2),
    _memory("float32 to bfloat16", elementwise(lambda xp, a: a.to(xp.bfloat16), 1), 1.5 * LARGE),
    _memory("add_, in place", elementwise(lambda xp, a, b: a.add_(b, alpha=1e-6), 2), 3 * LARGE),
    _memory("sum of all", of_rows(lambda xp, x: x.sum(), SIDE, SIDE), LARGE),
    _memory("sum of rows", of_rows(lambda xp, x: x.sum(1), SIDE, SIDE), LARGE),
    _memory("sum of columns", of_rows(lambda xp, x: x.sum(0), SIDE, SIDE), LARGE),
    _memory("sum of short rows", of_rows(lambda xp, x: x.sum(1), LARGE // 64, 64), LARGE),
    _memory("sum of all, bfloat16", of_rows(lambda xp, x: x.sum(), SIDE, SIDE, "bfloat16"), LARGE, 2),
    _memory("amax of rows", of_rows(lambda xp, x: x.amax(1), SIDE, SIDE), LARGE),
    _memory("argmax of rows", of_rows(lambda xp, x: x.argmax(1), SIDE, SIDE), LARGE),
    _memory("mean and variance of rows", of_rows(lambda xp, x: xp.var_mean(x, 1), SIDE, SIDE), LARGE),
    _memory("softmax of rows of 1024", of_rows(lambda xp, x: x.softmax(1), LARGE // 1024, 1024), 2 * LARGE),
    _memory("layer norm of rows of 1024", of_rows(lambda xp, x: xp.nn.functional.layer_norm(x, x.shape[1:]), LARGE // 1024, 1024), 2 * LARGE),
    _matmul(8192, "bfloat16"), _matmul(8192, "float16"), _matmul(8192, "float32"), _matmul(8192, "float32", tf32=True),
    _matmul(4096, "float64"), _matmul(1024, "bfloat16"), _matmul(1024, "float32"),
    GPUWorkload("ResNet-50, 64 x 224 x 224, bfloat16, SGD", "training", models.resnet_step, 1.0),
    GPUWorkload("GPT-2 small, 8 x 1024, bfloat16, AdamW", "training", models.gpt_step, 1.0),
    _launch("add of 16 numbers", call(lambda xp, x, y: x + y, 16)),
    _launch("add_ of 16 numbers", call(lambda xp, x, y: x.add_(y), 16)),
    _launch("relu of 16 numbers", call(lambda xp, x, y: x.relu(), 16)),
    _launch("sum of 16 numbers", call(lambda xp, x, y: x.sum(), 16)),
    _launch("mm of 16 x 16", call(lambda xp, x, y: x @ y, 16, 16)),
    _launch("view and slice", call(lambda xp, x, y: x.view(4, 4)[1:, 2], 16)),
]  # fmt: skip
