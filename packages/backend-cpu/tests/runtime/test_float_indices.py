"""Floats that become indices, counts and sizes: hostile numbers give an error or a valid result.

The effect of a wrong index depends on what lies behind it. Under ``nox -s sanitize`` these calls
reveal undefined conversions; otherwise they reveal only faults.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import candelabra as c
from candelabra import ops

INF, NAN = math.inf, math.nan
HOSTILE = [
    NAN,
    INF,
    -INF,
    1e300,
    -1e300,
    3e38,
    -3e38,
    2.0**63,
    -(2.0**63) - 2048,
    2.0**31,
    -(2.0**31) - 1,
    5e-324,
    -0.5,
]
#: The errors that may reject a number. Any other, such as Python's own OverflowError, means that
#: the case was not considered.
REFUSALS = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError, MemoryError)
#: The address-space limit: larger requests may fail.
MEMORY = 8 << 30


def images(dtype: Any = c.float32) -> Any:
    return c.arange(9, dtype=dtype).reshape(1, 1, 3, 3)


def filled(number: float, *sizes: int, dtype: Any = c.float32) -> Any:
    return c.full(sizes, number, dtype=c.float64).to(dtype)


CALLS: dict[str, Callable[[float], Any]] = {
    "arange end": lambda h: c.arange(h),
    "arange end of whole numbers": lambda h: c.arange(0, h, dtype=c.int32),
    "arange start": lambda h: c.arange(h, 1),
    "arange step": lambda h: c.arange(0, 1, h),
    "arange step of whole numbers": lambda h: c.arange(0, 1, h, dtype=c.int64),
    "arange both ends": lambda h: c.arange(-h, h, 1),
    "range end": lambda h: c.range(0, h, 1),
    "range start": lambda h: c.range(h, 1),
    "range step": lambda h: c.range(0, 1, h),
    "linspace ends": lambda h: (c.linspace(h, 1, 5), c.linspace(0, h, 5)),
    "linspace of whole numbers": lambda h: c.linspace(0, h, 5, dtype=c.int64),
    "linspace steps": lambda h: c.linspace(0, 1, h),
    "logspace of whole numbers": lambda h: c.logspace(h, 1, 5, dtype=c.int32),
    "logspace steps": lambda h: c.logspace(0, 1, h),
    "histc min": lambda h: c.histc(c.tensor([1.0, 2.0]), 3, h, 1.0),
    "histc max": lambda h: c.histc(c.tensor([1.0, 2.0]), 3, 0.0, h),
    "histc data": lambda h: c.histc(c.tensor([h, 1.0]), 3),
    "histc data of float64": lambda h: c.histc(c.tensor([h, -h, 1.0], dtype=c.float64), 300),
    "histc data outside": lambda h: c.histc(c.tensor([h, 1.0]), 3, 0.0, 2.0),
    "histc bins": lambda h: c.histc(c.tensor([1.0]), h),
    "_histc": lambda h: ops._histc(c.tensor([1.0, -1.0]), 3, h, 1.0),
    "histogram range": lambda h: c.histogram(c.tensor([1.0, 2.0]), 3, range=(h, 1.0)),
    "histogram data": lambda h: c.histogram(c.tensor([h, 1.0]), 3),
    "histogram data of float64": lambda h: c.histogram(c.tensor([h, -h, 1.0], dtype=c.float64), 3),
    "histogram data outside": lambda h: c.histogram(c.tensor([h, 1.0]), 3, range=(0.0, 2.0)),
    "histogram edges": lambda h: c.histogram(c.tensor([h, 1.0]), c.tensor([0.0, h])),
    "histogramdd data": lambda h: c.histogramdd(c.tensor([[h, 1.0], [0.0, 0.0]]), [2, 2]),
    "bincount weights": lambda h: c.bincount(c.tensor([1, 2]), c.tensor([h, 1.0])),
    "bincount data": lambda h: c.bincount(c.tensor([h])),
    "bucketize": lambda h: c.bucketize(c.tensor([h]), c.tensor([0.0, 1.0])),
    "searchsorted": lambda h: c.searchsorted(c.tensor([0.0, h]), c.tensor([h, 1.0]), right=True),
    "quantile q": lambda h: c.quantile(c.tensor([1.0, 2.0]), h),
    "quantile q in a tensor": lambda h: c.quantile(c.tensor([1.0, 2.0]), c.tensor([h])),
    "quantile data": lambda h: c.quantile(c.tensor([h, 2.0]), 0.3),
    "nanquantile": lambda h: c.nanquantile(c.tensor([h, 2.0, NAN]), 0.3, interpolation="nearest"),
    "nanquantile q": lambda h: c.nanquantile(c.tensor([1.0, 2.0]), h),
    "median and mode": lambda h: (
        c.tensor([h, 1.0, h]).median(),
        c.tensor([h, 1.0]).mode(),
        c.tensor([h, 1.0]).kthvalue(1),
    ),
    "multinomial": lambda h: c.multinomial(c.tensor([h, 1.0]), 2, replacement=True),
    "bernoulli": lambda h: c.bernoulli(c.tensor([h, 0.5])),
    "bernoulli_": lambda h: c.zeros(3).bernoulli_(h),
    "dropout": lambda h: ops.native_dropout(c.ones(20), h, True),
    "poisson": lambda h: c.poisson(c.tensor([h, 1.0])),
    "binomial": lambda h: c.binomial(c.tensor([abs(h)]), c.tensor([0.5])) if h == h else None,
    "binomial probability": lambda h: c.binomial(c.tensor([5.0]), c.tensor([h])),
    "geometric_": lambda h: c.zeros(3).geometric_(h),
    "exponential_": lambda h: c.zeros(3).exponential_(h),
    "randint": lambda h: c.randint(0, h, (2,)),
    "random_": lambda h: c.zeros(3).random_(0, h),
    "repeat_interleave": lambda h: c.tensor([1, 2]).repeat_interleave(c.tensor([h]).to(c.int32).clamp(0, 3)),
    "chebyshev": lambda h: c.special.chebyshev_polynomial_t(c.tensor([0.5]), h),
    "hermite": lambda h: c.special.hermite_polynomial_h(c.tensor([0.5]), c.tensor([h, 2.0])),
    "laguerre": lambda h: c.special.laguerre_polynomial_l(c.tensor([0.5]), h),
    "zeta": lambda h: c.special.zeta(c.tensor(h), c.tensor([2.0])),
    "polygamma": lambda h: c.polygamma(2, c.tensor([h])),
    "matrix_exp": lambda h: c.matrix_exp(c.tensor([[h, 1.0], [1.0, 1.0]])),
    "var": lambda h: c.var(c.tensor([1.0, 2.0]), correction=h),
    "eigh": lambda h: c.linalg.eigh(c.tensor([[h, 1.0], [1.0, 3.0]])),
    "svd": lambda h: c.linalg.svd(c.tensor([[h, 1.0], [1.0, 3.0]])),
    "lstsq": lambda h: c.linalg.lstsq(c.tensor([[h, 1.0], [1.0, 3.0]]), c.tensor([[1.0], [h]])),
    "sizes": lambda h: (c.zeros(3).roll(h), c.eye(h)),
}
for _dtype in ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "bool"):
    CALLS[f"to {_dtype}"] = lambda h, d=_dtype: (
        filled(h, 70).to(getattr(c, d)),
        filled(h, 70, dtype=c.float64).to(getattr(c, d)),
    )
for _mode in ("bilinear", "nearest", "bicubic"):
    for _padding in ("zeros", "border", "reflection"):
        for _corners in (False, True):
            CALLS[f"grid_sampler {_mode} {_padding} {_corners}"] = lambda h, m=_mode, p=_padding, a=_corners: [
                operation
                for dtype in (c.float32, c.float64, c.float16, c.bfloat16)
                for operation in (
                    ops.grid_sampler(images(dtype), filled(h, 1, 5, 7, 2, dtype=dtype), m, p, a),
                    ops.grid_sampler_backward(
                        c.ones(1, 1, 5, 7, dtype=dtype), images(dtype), filled(h, 1, 5, 7, 2, dtype=dtype), m, p, a
                    ),
                )
            ]
for _mode in ("nearest", "nearest-exact", "linear", "cubic"):
    for _corners in (False, True):
        CALLS[f"resample {_mode} {_corners}"] = lambda h, m=_mode, a=_corners: ops._upsample(
            images(), (4, 5), (h, h), m, a, False
        )
        CALLS[f"resample bytes {_mode} {_corners}"] = lambda h, m=_mode, a=_corners: ops._upsample(
            images(c.uint8), (4, 5), (h, h), m, a, "nearest" not in m
        )


def outcome(call: Callable[[float], Any], number: float) -> str:
    try:
        call(number)
    except REFUSALS as error:
        return type(error).__name__
    return "a result"


@pytest.mark.parametrize("name", CALLS)
def test_hostile_number(name: str) -> None:
    import resource

    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(
        resource.RLIMIT_AS, (MEMORY, limits[1])
    )  # an unchecked size fails to allocate instead of filling memory
    try:
        for number in HOSTILE:
            outcome(CALLS[name], number)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def test_no_number_ends_the_process() -> None:
    """Make all calls several times in one process, so that a write out of bounds shows."""
    program = "import test_float_indices as t\nfor call in t.CALLS.values():\n    for number in t.HOSTILE:\n        t.outcome(call, number)"
    variables = {**os.environ, "PYTHONPATH": os.path.dirname(__file__), "MALLOC_PERTURB_": "165"}
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))\n{program}"
    done = subprocess.run(
        [sys.executable, "-c", limited], capture_output=True, text=True, env=variables, cwd=os.path.dirname(__file__)
    )
    assert done.returncode == 0, done.stderr


def test_refusals_are_those_of_pytorch() -> None:
    for number in (INF, -INF, NAN):
        with pytest.raises(RuntimeError, match="unsupported range"):
            c.range(0, number)
        with pytest.raises(RuntimeError, match="value cannot be converted to type int64_t without overflow"):
            c.linspace(0, number, 3, dtype=c.int64)
    with pytest.raises(RuntimeError, match="value cannot be converted to type int64_t without overflow"):
        c.arange(0, 1, 1e300, dtype=c.int64)
    with pytest.raises(RuntimeError, match="invalid size, possible overflow"):
        c.arange(0, 1e300, dtype=c.int32)
    for q in (NAN, 1.5, -0.1):
        for given in (q, c.tensor([0.5, q])):
            with pytest.raises(RuntimeError, match=r"quantile\(\) q (values )?must be in the range \[0, 1\]"):
                c.quantile(c.tensor([1.0, 2.0]), given)
    with pytest.raises(RuntimeError, match="value cannot be converted to type .* without overflow"):
        c.histogram(c.tensor([1.0]), 3, range=(-1e300, 1.0))


@pytest.mark.parametrize("dtype, number", [(c.float32, 3e38), (c.float64, 1.5e308)])
def test_histogram_of_the_widest_range(dtype: Any, number: float) -> None:
    x = c.tensor([-number, 0.0, 1.0, number], dtype=dtype)
    hist, edges = c.histogram(x, 4)
    assert hist.tolist() == [1, 0, 2, 1]
    assert edges.tolist() == pytest.approx([-number, -number / 2, 0.0, number / 2, number])
    assert c.histogram(x.abs(), 30).hist.tolist() == [2] + 28 * [0] + [2]
    points = c.stack([x, x.flip(0)], 1)
    assert c.histogramdd(points, [2, 2]).hist.tolist() == [[0, 1], [1, 2]]


def test_resample_of_an_extreme_scale() -> None:
    x = images()
    for mode in ("nearest", "nearest-exact", "linear", "cubic"):
        assert ops._upsample(x, (2, 2), (1e-300, 1e-300), mode, False, False).isfinite().all()
        assert ops._upsample(x, (2, 2), (1e300, 1e300), mode, False, False).isfinite().all()


@pytest.mark.parametrize("padding", ["border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_grid_sampler_takes_nan_from_the_beginning(mode: str, padding: str) -> None:
    grid = filled(NAN, 1, 4, 40, 2)
    assert ops.grid_sampler(images() + 1, grid, mode, padding, False).eq(1).all() or mode == "bilinear"
    assert ops.grid_sampler(images() + 1, grid, "nearest", "zeros", False).eq(0).all()
