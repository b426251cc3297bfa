"""References of factorizations: the product of the factors must be the input."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from candelabra.testing.sampling import COMPLEX, Input, Reference, Sample, Samples, numbers

Array = np.ndarray
DTYPES = ("float32", "float64", *COMPLEX)
SQUARE: tuple[tuple[int, ...], ...] = ((3, 3), (1, 1), (2, 4, 4), (0, 0), (0, 3, 3), (17, 17))
ANY: tuple[tuple[int, ...], ...] = (*SQUARE, (5, 3), (3, 5), (2, 4, 1), (0, 4), (4, 0))


def matrices(
    shapes: tuple[tuple[int, ...], ...],
    keywords: tuple[dict[str, Any], ...] = ({},),
    make: Callable[[Array], Array] | None = None,
) -> Samples:
    """Yield calls with matrices of these shapes, in several layouts. `make` transforms random
    matrices into the required kind.
    """

    def samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
        for shape in shapes:
            for layout in ("contiguous", "strided", "offset") if shape[0] else ("contiguous",):
                values = numbers(rng, dtype, shape, -2, 2)
                for chosen in keywords:
                    yield Sample((Input(values if make is None else make(values), dtype, layout),), chosen)

    return samples


def adjoint(a: Array) -> Array:
    return np.conj(np.swapaxes(a, -1, -2))


def definite(a: Array) -> Array:
    """Return Hermitian positive-definite matrices."""
    return a @ adjoint(a) + np.eye(a.shape[-1])


def far(name: str, left: Array, right: Array, a: Array) -> str | None:
    """Return a message if two arrays differ by more than rounding in the dtype of `a`, which its
    values reveal.
    """
    if left.shape != right.shape:
        return f"{name}: shape {left.shape}, expected {right.shape}"
    scale = max(1.0, float(np.abs(right).max(initial=0))) * max(1, a.shape[-1], a.shape[-2])
    # Here a float32 result is stored in float64; its values show its precision.
    single = bool(np.all(left.astype(np.complex64 if np.iscomplexobj(left) else np.float32) == left))
    worst = float(np.abs(left - right).max(initial=0))
    return f"{name}: off by {worst}" if not worst <= scale * (2e-5 if single else 1e-12) else None


def product_of(factors: Callable[..., Array]) -> Callable[..., str | None]:
    """Compare the product of the results with the argument."""

    def compare(results: tuple[Array, ...], a: Array, **keywords: Any) -> str | None:
        made = factors(*results, **keywords)
        return far("the product of the factors", _rounded(made, results[0]), a, a)

    return compare


def _rounded(values: Array, like: Array) -> Array:
    """Round values to single precision if the input is representable in it."""
    narrow = np.complex64 if np.iscomplexobj(like) else np.float32
    if like.size and np.all(like.astype(narrow) == like):
        return values.astype(np.complex64 if np.iscomplexobj(values) else np.float32).astype(values.dtype)
    return values


def _cholesky(L: Array, info: Array, upper: bool = False) -> Array:
    assert not info.any()
    return adjoint(L) @ L if upper else L @ adjoint(L)


def permuted(pivots: Array, rows: Array) -> Array:
    """Apply getrf's row swaps in reverse."""
    rows = rows.copy()
    for batch in np.ndindex(rows.shape[:-2]):
        for i in range(pivots.shape[-1] - 1, -1, -1):
            j = int(pivots[batch][i]) - 1
            rows[batch][[i, j]] = rows[batch][[j, i]]
    return rows


def _lu(LU: Array, pivots: Array, info: Array, pivot: bool = True) -> Array:
    m, n = LU.shape[-2:]
    k = min(m, n)
    L = np.tril(LU[..., :k], -1) + np.eye(m, k)
    return permuted(pivots, L @ np.triu(LU[..., :k, :]))


def _lu_of(results: tuple[Array, ...], a: Array, pivot: bool = True) -> str | None:
    return far("P @ L @ U", _rounded(_lu(results[0], results[1], results[2]), results[0]), a, a)


def _dominant(a: Array) -> Array:
    """Make matrices diagonally dominant, so that elimination needs no pivoting."""
    return a + 8 * np.eye(*a.shape[-2:])


def _qr(results: tuple[Array, ...], a: Array, mode: str = "reduced") -> str | None:
    Q, R = results
    if not np.array_equal(R, np.triu(R)):
        return "R is not upper triangular"
    if mode == "r":
        return far("R^H R", _rounded(adjoint(R) @ R, R), adjoint(a) @ a, a)
    unit = np.broadcast_to(np.eye(Q.shape[-1]), (*Q.shape[:-2], Q.shape[-1], Q.shape[-1]))
    return far("Q @ R", _rounded(Q @ R, R), a, a) or far("Q^H Q", _rounded(adjoint(Q) @ Q, Q), unit, a)


def householder(a: Array, tau: Array) -> Array:
    """Multiply the reflections one by one."""
    m, n = a.shape[-2:]
    result = np.broadcast_to(np.eye(m, n), a.shape).astype(a.dtype)
    for i in range(tau.shape[-1] - 1, -1, -1):
        v = np.tril(a, -1)[..., i : i + 1] + np.eye(m, n)[:, i : i + 1]
        result = result - tau[..., i, None, None] * v @ (adjoint(v) @ result)
    return result


def _geqrf(results: tuple[Array, ...], a: Array) -> str | None:
    packed, tau = results
    m, n = a.shape[-2:]
    square = np.concatenate([packed, np.zeros((*packed.shape[:-1], max(0, m - n)), packed.dtype)], -1)[..., :m]
    return far("Q @ R", _rounded(householder(square, tau) @ np.triu(packed), packed), a, a)


def _reflections(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape in ((4, 4), (5, 3), (2, 4, 2), (3, 0)):
        for count in {shape[-1], max(0, shape[-1] - 1)}:
            a, tau = numbers(rng, dtype, shape, -1, 1), numbers(rng, dtype, (*shape[:-2], count), -1, 1)
            yield Sample((Input(a, dtype), Input(tau, dtype)))


def symmetric(a: Array) -> Array:
    return a + np.swapaxes(a, -1, -2)


def _ldl(results: tuple[Array, ...], a: Array, hermitian: bool = False) -> str | None:
    """Check the shapes, and the lower triangle of a matrix that needs no pivoting. The solver's
    tests check the values.
    """
    LD, _pivots, info = results
    if info.any():
        return "info is not zero"
    if not np.array_equal(LD, np.tril(LD)):
        return "LD is not lower triangular"
    D = np.diagonal(LD, 0, -2, -1)
    L = np.tril(LD, -1) + np.eye(LD.shape[-1])
    made = (L * D[..., None, :]) @ (adjoint(L) if hermitian else np.swapaxes(L, -1, -2))
    return far("L @ D @ L^T", _rounded(made, LD), a, a)


def _exchanged(a: Array, dim: int, backwards: bool) -> Array:
    lines = np.moveaxis(a, dim, -1)
    orders = np.empty(lines.shape, np.int64)
    for index in np.ndindex(lines.shape[:-1]):
        order = list(range(lines.shape[-1]))
        for i in range(len(order))[:: -1 if backwards else 1]:
            pivot = lines[index][i] - 1
            order[i], order[pivot] = order[pivot], order[i]
        orders[index] = order
    return np.moveaxis(orders, -1, dim)


def _exchanges(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape, dim in (
        ((5,), 0),
        ((3, 7), -1),
        ((7, 3), 0),
        ((2, 9, 4), 1),
        ((0,), 0),
        ((0, 3), 1),
        ((1,), 0),
        ((2, 130), 1),
    ):
        for layout in ("contiguous", "strided", "offset") if shape[0] else ("contiguous",):
            for backwards in (False, True):
                yield Sample((Input(rng.integers(1, shape[dim] + 1, shape), dtype, layout), dim, backwards))


def _nothing(*arguments: Any, **keywords: Any) -> None:
    return None


_BOTH: tuple[dict[str, Any], ...] = ({}, {"upper": True})
REFERENCES: dict[str, Reference] = {
    "linalg_cholesky_ex": Reference(_nothing, matrices(SQUARE, _BOTH, definite), DTYPES, compare=product_of(_cholesky)),
    "linalg_lu_factor_ex": Reference(
        _nothing, matrices(ANY, ({}, {"pivot": False}), _dominant), DTYPES, compare=_lu_of
    ),
    "_lu_pivots_to_permutation": Reference(_exchanged, _exchanges, ("int32", "int64")),
    "linalg_ldl_factor_ex": Reference(
        _nothing, matrices(SQUARE, ({"hermitian": True},), definite), DTYPES, compare=_ldl
    ),
    "geqrf": Reference(_nothing, matrices(ANY), DTYPES, compare=_geqrf),
    "linalg_qr": Reference(_nothing, matrices(ANY, ({}, {"mode": "complete"}, {"mode": "r"})), DTYPES, compare=_qr),
    "linalg_householder_product": Reference(householder, _reflections, DTYPES, 60),
}
