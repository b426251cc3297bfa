"""References of linear solvers, by NumPy and SciPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from candelabra.testing.reference.factorization import (
    DTYPES,
    SQUARE,
    _nothing,
    adjoint,
    definite,
    far,
    matrices,
    permuted,
)
from candelabra.testing.sampling import Input, Reference, Sample, Samples, numbers

Array = np.ndarray
_PAIRS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((3, 3), (3, 2)), ((1, 1), (1, 1)), ((2, 4, 4), (2, 4, 3)), ((4, 4), (2, 4, 1)), ((2, 1, 3, 3), (4, 3, 2)), ((3, 3), (3, 0)),
    ((0, 0), (0, 2)), ((0, 2, 2), (0, 2, 1)),
)  # fmt: skip


def _dominant(a: Array) -> Array:
    return a + 4 * np.eye(a.shape[-1])


def systems(*keywords: dict[str, Any], right: bool = False) -> Samples:
    """Yield a well-conditioned matrix and right-hand sides; with `right`, for ``left=False``."""

    def samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
        for first, second in _PAIRS:
            for layout in ("contiguous", "strided"):
                a, b = _dominant(numbers(rng, dtype, first, -1, 1)), numbers(rng, dtype, second, -2, 2)
                for chosen in keywords:
                    transposed = np.swapaxes(b, -1, -2) if chosen.get("left") is False else b
                    yield Sample(
                        (Input(a, dtype), Input(transposed, dtype, layout if transposed.size else "contiguous")), chosen
                    )

    return samples


def _solved(a: Array, b: Array) -> Array:
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return np.linalg.solve(np.broadcast_to(a, (*batch, *a.shape[-2:])), np.broadcast_to(b, (*batch, *b.shape[-2:])))


def _solve(a: Array, b: Array) -> tuple[Array, Array]:
    result = _solved(a, b)
    return result, np.zeros(result.shape[:-2], np.int64)


def _invert(a: Array) -> tuple[Array, Array]:
    return np.linalg.inv(a), np.zeros(a.shape[:-2], np.int64)


def _triangular(a: Array, b: Array, upper: bool, left: bool = True, unitriangular: bool = False) -> Array:
    a = np.triu(a) if upper else np.tril(a)
    if unitriangular:
        a = a * (1 - np.eye(a.shape[-1])) + np.eye(a.shape[-1])
    if left:
        return _solved(a, b)
    return np.swapaxes(_solved(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)), -1, -2)


def _packed(a: Array) -> tuple[Array, Array]:
    """Return the LU factors and pivots of some matrix."""
    n = a.shape[-1]
    pivots = np.broadcast_to(np.maximum(np.arange(n) + 1, n - np.arange(n)), a.shape[:-1]).astype(np.int64)
    return a, pivots


def _matrix_of(LU: Array, pivots: Array) -> Array:
    return permuted(pivots, (np.tril(LU, -1) + np.eye(LU.shape[-1])) @ np.triu(LU))


def _lu_solve(LU: Array, pivots: Array, b: Array, adjoint_: bool = False) -> Array:
    a = _matrix_of(LU, pivots)
    return _solved(adjoint(a) if adjoint_ else a, b)


def _factored(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for first, second in _PAIRS:
        LU, pivots = _packed(_dominant(numbers(rng, dtype, first, -1, 1)))
        for flag in (False, True):
            yield Sample(
                (Input(LU, dtype), Input(pivots, "int32"), Input(numbers(rng, dtype, second, -2, 2), dtype), flag)
            )


def _ldl_solve(LD: Array, pivots: Array, b: Array, hermitian: bool = False) -> Array:
    L, D = np.tril(LD, -1) + np.eye(LD.shape[-1]), np.diagonal(LD, 0, -2, -1)
    if hermitian:
        D = D.real
    return _solved((L * D[..., None, :]) @ (adjoint(L) if hermitian else np.swapaxes(L, -1, -2)), b)


def _ldl_factored(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for first, second in _PAIRS:
        LD = np.tril(_dominant(numbers(rng, dtype, first, -1, 1)))
        pivots = np.broadcast_to(np.arange(first[-1]) + 1, first[:-1])
        yield Sample((Input(LD, dtype), Input(pivots, "int32"), Input(numbers(rng, dtype, second, -2, 2), dtype)))


def _cholesky_solve(b: Array, factor: Array, upper: bool = False) -> Array:
    return _solved(adjoint(factor) @ factor if upper else factor @ adjoint(factor), b)


def _choleskys(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for first, second in _PAIRS:
        factor = np.tril(_dominant(numbers(rng, dtype, first, -1, 1)))
        for upper in (False, True):
            given = np.swapaxes(factor, -1, -2) if upper else factor
            yield Sample((Input(numbers(rng, dtype, second, -2, 2), dtype), Input(given, dtype), upper))


def _problems(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape, columns in (((5, 3), 2), ((3, 5), 1), ((2, 4, 4), 3), ((4, 1), 1)):
        a, b = numbers(rng, dtype, shape, -2, 2), numbers(rng, dtype, (*shape[:-1], columns), -2, 2)
        for driver in ("gels", "gelsy", "gelsd", "gelss"):
            yield Sample((Input(a, dtype), Input(b, dtype), 1e-6, driver))


def _lstsq(results: tuple[Array, ...], a: Array, b: Array, rcond: float, driver: str) -> str | None:
    solution = results[0][..., : a.shape[-1], :]
    if not (results[1] == min(a.shape[-2:])).all():
        return f"rank {results[1]}"
    if driver in ("gelsd", "gelss"):
        wrong = far("singular values", results[2], np.linalg.svd(a, compute_uv=False), a)
        if wrong:
            return wrong
    return far("the solution", solution, np.linalg.pinv(a) @ b, a)


def _slogdet(a: Array) -> tuple[Array, Array]:
    sign, logarithm = np.linalg.slogdet(a)
    return np.asarray(sign), np.asarray(logarithm)


def _pseudoinverses(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    real = {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
    zero = Input(np.zeros(()), real)
    for shape in ((4, 3), (3, 4), (2, 3, 3), (0, 3), (3, 0)):
        yield Sample((Input(numbers(rng, dtype, shape, -2, 2), dtype), zero, zero))
    yield Sample((Input(definite(numbers(rng, dtype, (3, 3), -1, 1)), dtype), zero, zero, True))


_TRIANGULAR = [
    {"upper": upper, "left": left, "unitriangular": unit} for upper in (False, True) for left in (False, True) for unit in (False, True)
]  # fmt: skip
REFERENCES: dict[str, Reference] = {
    "linalg_solve_ex": Reference(_solve, systems({}), DTYPES, 60),
    "linalg_inv_ex": Reference(_invert, matrices(SQUARE, make=_dominant), DTYPES, 60),
    "linalg_solve_triangular": Reference(_triangular, systems(*_TRIANGULAR), DTYPES, 100),
    "linalg_lu_solve": Reference(_lu_solve, _factored, DTYPES, 200),
    "linalg_ldl_solve": Reference(_ldl_solve, _ldl_factored, DTYPES, 200),
    "linalg_lstsq_driver": Reference(_nothing, _problems, DTYPES, compare=_lstsq),
    "cholesky_solve": Reference(_cholesky_solve, _choleskys, DTYPES, 200),
    "linalg_det": Reference(np.linalg.det, matrices(SQUARE, make=_dominant), DTYPES, 200),
    "linalg_slogdet": Reference(_slogdet, matrices(SQUARE, make=_dominant), DTYPES, 60),
    "linalg_pinv_atol_rtol": Reference(
        lambda a, atol, rtol, hermitian=False: np.linalg.pinv(a), _pseudoinverses, DTYPES, 200
    ),
}
