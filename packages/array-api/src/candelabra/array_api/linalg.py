"""The extension ``linalg`` of the array API standard 2024.12."""

from __future__ import annotations

import builtins
from typing import Literal, NamedTuple

import candelabra
from candelabra import Tensor

from .array_object import Array, as_array, fresh
from .data_types import Dtype, finfo
from .elementwise import promoted
from .linear_algebra import matmul, matrix_transpose, tensordot, vecdot
from .statistical import sum as _sum

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power", "matrix_rank",
    "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip


class EighResult(NamedTuple):
    """What `eigh` returns."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """What `qr` returns."""

    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """What `slogdet` returns."""

    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    """What `svd` returns."""

    U: Array
    S: Array
    Vh: Array


def cholesky(x: Array, /, *, upper: builtins.bool = False) -> Array:
    """Cholesky factor of a symmetric or Hermitian positive definite matrix: the lower one, or the
    upper one.

    Raises
    ------
    candelabra.linalg.LinAlgError
        If the matrix is not positive definite.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.linalg.cholesky(xp.asarray([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]])
    """
    return fresh(candelabra.linalg.cholesky(x, upper=upper))


def cross(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Vector product of vectors of three elements along an axis.

    Raises
    ------
    ValueError
        If the axis is not of size 3 in both.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.linalg.cross(xp.asarray([1, 0, 0]), xp.asarray([0, 1, 0]))
    Array([0, 0, 1])
    """
    first, second = promoted("cross", x1, x2)
    for x in (first, second):
        if not -x.ndim <= axis < x.ndim:
            raise IndexError(f"cross(): axis {axis} is out of range for {x.ndim} dimensions")
        if x.shape[axis] != 3:
            raise ValueError(f"cross(): axis {axis} of shape {tuple(x.shape)} is not of size 3")
    # The axis is counted in what the operands are broadcast to; operands of fewer dimensions get
    # leading ones.
    shape = candelabra.broadcast_shapes(first.shape, second.shape)
    return fresh(
        candelabra.linalg.cross(candelabra.broadcast_to(first, shape), candelabra.broadcast_to(second, shape), dim=axis)
    )


def det(x: Array, /) -> Array:
    """Determinant.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.linalg.det(xp.asarray([[2.0, 0.0], [0.0, 3.0]]))
    Array(6.)
    """
    return fresh(candelabra.linalg.det(x))


def diagonal(x: Array, /, *, offset: int = 0) -> Array:
    """A diagonal of a matrix: the main one, one above it (positive offset), or below it (negative).

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.linalg.diagonal(xp.asarray([[1, 2], [3, 4]]), offset=1)
    Array([2])
    """
    if x.ndim < 2:
        raise ValueError(f"diagonal(): expected an array of two dimensions at least, got {x.ndim}")
    rows, columns = x.shape[-2:]
    if not -rows < offset < columns and offset != 0:
        return fresh(x.new_empty((*x.shape[:-2], 0)))
    return fresh(candelabra.diagonal(x, offset, -2, -1))


def eigh(x: Array, /) -> EighResult:
    """Eigenvalues, ascending, and eigenvectors of a symmetric or Hermitian matrix.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.linalg.eigh(xp.asarray([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    Array([1., 2.])
    """
    values, vectors = candelabra.linalg.eigh(x)
    return EighResult(fresh(values), fresh(vectors))


def eigvalsh(x: Array, /) -> Array:
    """Eigenvalues, ascending, of a symmetric or Hermitian matrix.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.linalg.eigvalsh(xp.asarray([[2.0, 0.0], [0.0, 1.0]]))
    Array([1., 2.])
    """
    return fresh(candelabra.linalg.eigvalsh(x))


def inv(x: Array, /) -> Array:
    """Inverse of a square matrix.

    Raises
    ------
    candelabra.linalg.LinAlgError
        If the matrix is singular.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.abs(xp.linalg.inv(xp.asarray([[2.0, 0.0], [0.0, 4.0]])))
    Array([[0.5000, 0.0000],
           [0.0000, 0.2500]])
    """
    return fresh(candelabra.linalg.inv(x))


def matrix_norm(
    x: Array, /, *, keepdims: builtins.bool = False, ord: float | Literal["fro", "nuc"] | None = "fro"
) -> Array:
    """Norm of a matrix, or of each of a stack.

    Parameters
    ----------
    x : Array
        Of two dimensions or more.
    keepdims : bool
        Whether the two last dimensions stay, as of size 1.
    ord : {"fro", "nuc", 1, -1, 2, -2, inf, -inf}
        Frobenius norm, sum of singular values, greatest or smallest sum of a column (1), of a row
        (inf), or singular value (2).

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.linalg.matrix_norm(xp.asarray([[3.0, 0.0], [0.0, 4.0]]))
    Array(5.)
    """
    if ord == 0:
        raise ValueError("matrix_norm(): there is no norm of order 0")
    return fresh(candelabra.linalg.matrix_norm(x, "fro" if ord is None else ord, keepdim=keepdims))


def matrix_power(x: Array, n: int, /) -> Array:
    """Power of a square matrix; negative powers are those of the inverse.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.linalg.matrix_power(xp.asarray([[1.0, 1.0], [0.0, 1.0]]), 3)
    Array([[1., 3.],
           [0., 1.]])
    """
    return as_array(candelabra.linalg.matrix_power(x, n), x)


def matrix_rank(x: Array, /, *, rtol: float | Array | None = None) -> Array:
    """Number of singular values above `rtol` times the greatest.

    Parameters
    ----------
    x : Array
        Of two dimensions or more.
    rtol : float or Array, optional
        The greater size of the matrix times the data type's epsilon by default.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.linalg.matrix_rank(xp.asarray([[1.0, 2.0], [2.0, 4.0]]))
    Array(1)
    """
    return fresh(candelabra.linalg.matrix_rank(x, atol=0.0, rtol=_tolerance(x, rtol)))


def _tolerance(x: Tensor, rtol: float | Array | None) -> float | Tensor:
    """Relative tolerance of singular values; the default is the standard's."""
    return builtins.max(x.shape[-2:]) * finfo(x.dtype).eps if rtol is None else rtol


def outer(x1: Array, x2: Array, /) -> Array:
    """All products of an element of one vector with an element of another.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.linalg.outer(xp.asarray([1, 2]), xp.asarray([3, 4]))
    Array([[3, 4],
           [6, 8]])
    """
    first, second = promoted("outer", x1, x2)
    if first.ndim != 1 or second.ndim != 1:
        raise ValueError(f"outer(): expected vectors, got shapes {tuple(first.shape)} and {tuple(second.shape)}")
    return fresh(candelabra.mul(first.unsqueeze(1), second.unsqueeze(0)))


def pinv(x: Array, /, *, rtol: float | Array | None = None) -> Array:
    """Pseudo-inverse (Moore and Penrose) of a matrix.

    Parameters
    ----------
    x : Array
        Of two dimensions or more.
    rtol : float or Array, optional
        Singular values up to `rtol` times the greatest count as 0; by default the greater size of
        the matrix times the data type's epsilon.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.linalg.pinv(xp.asarray([[2.0, 0.0], [0.0, 0.0]]))
    Array([[0.5000, 0.0000],
           [0.0000, 0.0000]])
    """
    return fresh(candelabra.linalg.pinv(x, atol=0.0, rtol=_tolerance(x, rtol)))


def qr(x: Array, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """QR factorization: a matrix with orthonormal columns times an upper triangular one.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> q, r = xp.linalg.qr(xp.ones((3, 2)))
    >>> q.shape, r.shape
    (candelabra.Size([3, 2]), candelabra.Size([2, 2]))
    """
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr(): mode must be 'reduced' or 'complete', not {mode!r}")
    q, r = candelabra.linalg.qr(x, mode)
    return QRResult(fresh(q), fresh(r))


def slogdet(x: Array, /) -> SlogdetResult:
    """Sign, and logarithm of the absolute value, of the determinant.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.linalg.slogdet(xp.asarray([[-1.0]])).sign
    Array(-1.)
    """
    sign, logabsdet = candelabra.linalg.slogdet(x)
    return SlogdetResult(fresh(sign), fresh(logabsdet))


def solve(x1: Array, x2: Array, /) -> Array:
    """Solution of linear systems.

    Parameters
    ----------
    x1 : Array
        Square matrices, shape (..., n, n).
    x2 : Array
        Right-hand sides: a vector, of shape (n,), or matrices, of shape (..., n, k).

    Raises
    ------
    candelabra.linalg.LinAlgError
        If a matrix is singular.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.linalg.solve(xp.asarray([[2.0, 0.0], [0.0, 4.0]]), xp.asarray([2.0, 2.0]))
    Array([1.0000, 0.5000])
    """
    first, second = promoted("solve", x1, x2)
    if second.ndim == 1:
        return fresh(candelabra.linalg.solve(first, second.unsqueeze(-1)).squeeze(-1))
    # Broadcast first, so that no stack of vectors is seen in it.
    batch = candelabra.broadcast_shapes(first.shape[:-2], second.shape[:-2])
    first = candelabra.broadcast_to(first, (*batch, *first.shape[-2:]))
    second = candelabra.broadcast_to(second, (*batch, *second.shape[-2:]))
    return fresh(candelabra.linalg.solve(first, second))


def svd(x: Array, /, *, full_matrices: builtins.bool = True) -> SVDResult:
    """Singular value decomposition: ``U @ diag(S) @ Vh``.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.linalg.svd(xp.asarray([[3.0, 0.0], [0.0, 4.0]])).S
    Array([4., 3.])
    """
    u, s, vh = candelabra.linalg.svd(x, full_matrices)
    return SVDResult(fresh(u), fresh(s), fresh(vh))


def svdvals(x: Array, /) -> Array:
    """Singular values, in descending order.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.linalg.svdvals(xp.asarray([[3.0, 0.0], [0.0, 4.0]]))
    Array([4., 3.])
    """
    return fresh(candelabra.linalg.svdvals(x))


def trace(x: Array, /, *, offset: int = 0, dtype: Dtype | None = None) -> Array:
    """Sum of a diagonal of a matrix, or of each of a stack; integers are widened to 64 bits.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.linalg.trace(xp.asarray([[1, 2], [3, 4]]))
    Array(5)
    """
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(
    x: Array, /, *, axis: int | tuple[int, ...] | None = None, keepdims: builtins.bool = False, ord: float = 2
) -> Array:
    """Norm of vectors along axes; of all elements, if there are none given.

    Parameters
    ----------
    x : Array
        Of a floating-point or complex data type.
    axis : int or tuple of int, optional
        The axes over which the elements make a vector.
    keepdims : bool
        Whether the axes stay, as of size 1.
    ord : float
        Which norm: ``sum(abs(x)**ord)**(1 / ord)``; inf and -inf are the greatest and smallest
        magnitude, 0 counts.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.linalg.vector_norm(xp.asarray([3.0, 4.0]))
    Array(5.)
    """
    if axis == () or (axis is None and x.ndim == 0):
        return fresh(candelabra.linalg.vector_norm(x.unsqueeze(-1), ord, -1))
    return fresh(candelabra.linalg.vector_norm(x, ord, axis, keepdims))
