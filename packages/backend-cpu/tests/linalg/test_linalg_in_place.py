"""Products are bitwise the same in place, with ``out=`` and in new memory, in every layout."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import candelabra
from candelabra import Tensor
from candelabra.testing.sampling import values_of

DTYPES = ["float16", "bfloat16", "float32", "float64", "complex64", "complex128", "int64"]
#: (m, k, n): tiny, a row, a column, odd, tall, wide, deep, k = 0, split into parts, and sizes left
#: to the library's threads.
SIZES = [
    (1, 1, 1), (2, 3, 4), (6, 7, 8), (1, 70, 33), (37, 65, 1), (33, 129, 47), (600, 40, 12), (3, 1000, 400), (64, 4099, 40), (5, 0, 6),
    (200, 300, 10), (260, 270, 250), (520, 530, 540),
]  # fmt: skip
#: (batch, m, k, n).
BATCHES = [
    (1, 3, 4, 5),
    (5, 6, 7, 8),
    (7, 3, 4, 5),
    (40, 16, 17, 18),
    (9, 1, 64, 3),
    (9, 5, 90, 1),
    (3, 2, 0, 3),
    (2, 260, 270, 250),
]
#: (beta, alpha). Integer dtypes truncate them.
FACTORS = [(1, 1), (2, 3), (0.5, 1), (1, -0.25), (0, 1), (0, 2)]


@pytest.fixture(params=[1, 2], autouse=True)
def _threads(request: pytest.FixtureRequest) -> Iterator[None]:
    before = candelabra.get_num_threads()
    candelabra.set_num_threads(request.param)
    yield
    candelabra.set_num_threads(before)


def random(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Tensor:
    generator = np.random.default_rng([seed, *shape])
    if dtype == "int64":
        return candelabra.tensor(generator.integers(-100, 100, shape))
    values = generator.standard_normal(shape)
    if dtype.startswith("complex"):
        values = values + 1j * generator.standard_normal(shape)
    return candelabra.tensor(values).to(getattr(candelabra, dtype))


def bits(tensor: Tensor) -> bytes:
    return np.ascontiguousarray(values_of(tensor)).tobytes()


def at_an_odd_offset(values: Tensor) -> Tensor:
    return candelabra.zeros(values.numel() + 3, dtype=values.dtype)[3:].view(values.shape)


def rows_apart(values: Tensor) -> Tensor:
    *batch, n = values.shape
    return candelabra.zeros((*batch, n + 7), dtype=values.dtype)[..., 2 : n + 2]


def transposed(values: Tensor) -> Tensor:
    if values.ndim < 2:
        return candelabra.zeros(values.shape, dtype=values.dtype)
    return candelabra.zeros(values.mT.shape, dtype=values.dtype).mT


def stepped(values: Tensor) -> Tensor:
    return candelabra.zeros([2 * n for n in values.shape], dtype=values.dtype)[
        tuple(slice(None, None, 2) for _ in values.shape)
    ]


LAYOUTS: list[Callable[[Tensor], Tensor]] = [candelabra.empty_like, at_an_odd_offset, rows_apart, transposed, stepped]


def check_added(name: str, self: Tensor, *factors: Tensor, beta: float, alpha: float, **keywords: Any) -> None:
    """Compare all variants of one call, with `self` and the result in every layout."""
    function = getattr(candelabra, name)
    scales = {"beta": beta, "alpha": alpha, **keywords}
    expected = bits(function(self, *factors, **scales))
    for layout in LAYOUTS:
        said = f"{name} {[list(factor.shape) for factor in factors]}, {scales}, {layout.__name__}"
        placed = layout(self).copy_(self)
        assert bits(function(placed, *factors, **scales)) == expected, f"of self: {said}"
        out = layout(self)
        function(self, *factors, **scales, out=out)
        assert bits(out) == expected, f"out=: {said}"
        if hasattr(placed, f"{name}_"):
            getattr(placed, f"{name}_")(*factors, **scales)
            assert bits(placed) == expected, f"in place: {said}"
            placed.copy_(self)
        function(placed, *factors, **scales, out=placed)
        assert bits(placed) == expected, f"out=self: {said}"


def check_out(function: Callable[..., Tensor], *factors: Tensor) -> None:
    new = function(*factors)
    for layout in LAYOUTS:
        out = layout(new)
        function(*factors, out=out)
        assert bits(out) == bits(new), f"{[list(factor.shape) for factor in factors]} {layout.__name__}"


def factors_of(m: int, k: int, n: int, dtype: str) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield both factors contiguous, and both transposed."""
    yield random((m, k), dtype), random((k, n), dtype, 1)
    if m * k * n < 1e7:
        yield random((k, m), dtype).mT, random((n, k), dtype, 1).mT


def scales_of(dtype: str, work: int) -> list[tuple[float, float]]:
    scales = FACTORS[1:2] if work > 1e7 else FACTORS
    return [(int(beta), int(alpha)) for beta, alpha in scales] if dtype == "int64" else [*scales]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_addmm(sizes: tuple[int, int, int], dtype: str) -> None:
    m, k, n = sizes
    if dtype == "int64" and sizes == SIZES[-1]:
        pytest.skip("integers are exact, and slow")
    for a, b in factors_of(*sizes, dtype):
        for beta, alpha in scales_of(dtype, m * k * n):
            check_added("addmm", random((m, n), dtype, 2), a, b, beta=beta, alpha=alpha)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("use_gelu", [False, True])
def test_addmm_with_an_activation(use_gelu: bool, dtype: str) -> None:
    for m, k, n in ((2, 3, 4), (33, 129, 47), (600, 40, 12)):
        a, b = random((m, k), dtype), random((k, n), dtype, 1)
        check_added("_addmm_activation", random((m, n), dtype, 2), a, b, beta=2, alpha=0.5, use_gelu=use_gelu)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", BATCHES, ids=str)
def test_baddbmm_and_addbmm(sizes: tuple[int, int, int, int], dtype: str) -> None:
    count, m, k, n = sizes
    a, b = random((count, m, k), dtype), random((count, k, n), dtype, 1)
    for beta, alpha in scales_of(dtype, m * k * n):
        check_added("baddbmm", random((count, m, n), dtype, 2), a, b, beta=beta, alpha=alpha)
        check_added("addbmm", random((m, n), dtype, 2), a, b, beta=beta, alpha=alpha)


@pytest.mark.parametrize("dtype", DTYPES)
def test_addmv_and_addr(dtype: str) -> None:
    for m, k in ((1, 1), (5, 7), (70, 130), (3, 0)):
        for beta, alpha in scales_of(dtype, m * k):
            vector = random((k,), dtype, 1)
            check_added("addmv", random((m,), dtype, 2), random((m, k), dtype), vector, beta=beta, alpha=alpha)
            check_added("addr", random((m, k), dtype, 2), random((m,), dtype), vector, beta=beta, alpha=alpha)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_mm_and_matmul(sizes: tuple[int, int, int], dtype: str) -> None:
    if dtype == "int64" and sizes == SIZES[-1]:
        pytest.skip("integers are exact, and slow")
    for a, b in factors_of(*sizes, dtype):
        check_out(candelabra.mm, a, b)
        if sizes != SIZES[-1]:
            check_out(candelabra.matmul, a, b)
        check_out(candelabra.mv, a, b[:, 0])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", BATCHES, ids=str)
def test_bmm(sizes: tuple[int, int, int, int], dtype: str) -> None:
    count, m, k, n = sizes
    check_out(candelabra.bmm, random((count, m, k), dtype), random((count, k, n), dtype, 1))
    if m * k * n < 1e7:
        check_out(candelabra.bmm, random((count, k, m), dtype).mT, random((count, n, k), dtype, 1).mT)
    check_out(candelabra.matmul, random((count, m, k), dtype), random((k, n), dtype, 1))


@pytest.mark.parametrize("dtype", DTYPES)
def test_linear_is_addmm_of_its_bias(dtype: str) -> None:
    """linear with a bias equals addmm with the bias as one row."""
    for m, k, n in ((1, 70, 33), (2, 3, 4), (33, 129, 47), (200, 300, 10)):
        x, weight, bias = random((m, k), dtype), random((n, k), dtype, 1), random((n,), dtype, 2)
        expected = bits(candelabra.ops.linear(x, weight, bias))
        assert bits(candelabra.addmm(bias, x, weight.mT)) == expected
        if m == 1:
            assert bits(bias.clone().view(1, n).addmm_(x, weight.mT)) == expected


def test_a_complex_scale_of_infinite_parts() -> None:
    """A real beta must not be applied as a complex number, or infinite parts would become NaN."""
    self = candelabra.tensor([[complex(np.inf, 1.0), complex(2.0, -np.inf)]])
    zeros = candelabra.zeros(1, 2, dtype=self.dtype)
    result = candelabra.addmm(self, zeros[:, :1], zeros[:1], beta=2)
    assert values_of(result).tolist() == [[complex(np.inf, 2.0), complex(4.0, -np.inf)]]
