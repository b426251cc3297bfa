"""Test cdist and pdist beyond the conformance suite: any norm, threads, values that are not
finite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from values import random_tensor, wide

import candelabra
from candelabra import ops
from candelabra.testing import conformance


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    before = candelabra.get_num_threads()
    yield candelabra.set_num_threads
    candelabra.set_num_threads(before)


@pytest.mark.parametrize("name", ["_cdist_forward", "_cdist_backward"])
def test_conformance(name: str) -> None:
    (outcome,) = conformance.run("cpu", [name])
    assert outcome.kernel
    assert outcome.failures == []
    assert outcome.passed > 0


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_threads_change_nothing(dtype: str, threads: Callable[[int], None]) -> None:
    table = random_tensor((300, 40), dtype, "contiguous", 4)
    rows = random_tensor((500, 40), dtype, "contiguous", 6)
    results = []
    for count in (1, 2, 3):
        threads(count)
        results.append(wide(ops._cdist_forward(table, rows, 2.0)))
    assert all(np.array_equal(results[0], other) for other in results[1:])


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("p", [0.3, 1.5, 3.0, 7.0])
@pytest.mark.parametrize(
    ("rows", "others", "terms"), [(3, 1, 4), (5, 7, 3), (9, 63, 130), (4, 65, 2), (70, 130, 1), (2, 3, 0)]
)
def test_any_norm(rows: int, others: int, terms: int, p: float, dtype: str) -> None:
    first, second = (
        random_tensor((rows, terms), dtype, "contiguous", 1),
        random_tensor((others, terms), dtype, "contiguous", 2),
    )
    tolerance = {"float32": 1e-5, "float64": 1e-13, "bfloat16": 1e-2}[dtype]
    a, b = wide(first).astype("float64"), wide(second).astype("float64")
    expected = (np.abs(a[:, None] - b[None]) ** p).sum(-1) ** (1 / p)
    np.testing.assert_allclose(wide(ops._cdist_forward(first, second, p)), expected, rtol=tolerance, atol=0)
    np.testing.assert_allclose(
        wide(ops._pdist_forward(first, p)),
        ((np.abs(a[:, None] - a[None]) ** p).sum(-1) ** (1 / p))[np.triu_indices(rows, 1)],
        rtol=tolerance,
        atol=0,
    )


def test_values_that_are_not_finite() -> None:
    x = candelabra.tensor(
        [[0.0, 1.0], [np.inf, 1.0], [np.nan, 0.0], [-np.inf, np.inf], [0.0, 1.0]], dtype=candelabra.float64
    )
    with np.errstate(invalid="ignore"):
        expected = (np.abs(wide(x)[:, None] - wide(x)[None]) ** 3).sum(-1) ** (1 / 3)
    np.testing.assert_allclose(wide(ops._cdist_forward(x, x, 3.0)), expected, rtol=1e-14)
