"""``candelabra.linalg``: norms and products of vectors and matrices."""

from __future__ import annotations

from candelabra.catalogue import OPERATORS
from candelabra.composite.linalg import cross as _cross
from candelabra.composite.linalg import matmul, matrix_power
from candelabra.composite.views import wrap_dim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from candelabra._C import Tensor, dtype

__all__ = ["cross", "matmul", "matrix_norm", "matrix_power", "multi_dot", "norm", "vecdot", "vector_norm"]


def vector_norm(
    x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: dtype | None = None, out: Tensor | None = None
) -> Tensor:
    """Compute a vector norm of all elements, or along dimensions.

    Parameters
    ----------
    x : Tensor
        Floating point or complex.
    ord : number
        The order.
    dim : int or sequence of int, optional
        The dimensions that are reduced; all by default.
    keepdim : bool
        Whether they stay, with size 1.
    dtype : dtype, optional
        In which is computed.
    out : Tensor, optional
        Where the result is written.

    Returns
    -------
    Tensor
        ``(sum |x|^ord)^(1/ord)``; inf and -inf give the largest and the smallest magnitude, 0 the number of elements not zero.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.vector_norm(candelabra.tensor([3.0, 4.0]))
    tensor(5.)
    """
    compute = OPERATORS["linalg_vector_norm"]
    return compute(x, ord, dim, keepdim, dtype=dtype) if out is None else compute(x, ord, dim, keepdim, dtype=dtype, out=out)


def matrix_norm(
    A: Tensor,
    ord: Any = "fro",
    dim: Sequence[int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: dtype | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Compute a matrix norm over two dimensions.

    Parameters
    ----------
    A : Tensor
        Floating point or complex.
    ord : str or number
        ``"fro"``; 1 and -1, the largest and the smallest sum of magnitudes of a column; inf and -inf, of a row.
    dim : pair of int
        The dimensions of the matrices.
    keepdim : bool
        Whether they stay, with size 1.
    dtype : dtype, optional
        In which is computed.
    out : Tensor, optional
        Where the result is written.

    Raises
    ------
    NotImplementedError
        For ``"nuc"``, 2 and -2, which need singular values.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.matrix_norm(candelabra.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor(5.)
    """
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {list(dim)}")
    rows, columns = (wrap_dim(d, A.ndim) for d in dim)
    if rows == columns:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    if ord == "fro":
        return vector_norm(A, 2, (rows, columns), keepdim, dtype=dtype, out=out)
    if ord in ("nuc", 2, -2):
        raise NotImplementedError(f"linalg.matrix_norm: order {ord} needs singular values, which no operator computes yet")
    infinity = float("inf")
    if ord not in (1, -1, infinity, -infinity):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    summed, kept = (rows, columns) if ord in (1, -1) else (columns, rows)
    sums = vector_norm(A, 1, (summed,), True, dtype=dtype)
    result = OPERATORS["amax" if ord > 0 else "amin"](sums, (kept,), True)
    if not keepdim:
        result = OPERATORS["squeeze"](OPERATORS["squeeze"](result, max(rows, columns)), min(rows, columns))
    return result if out is None else out.copy_(result)


def norm(
    A: Tensor,
    ord: Any = None,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: dtype | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Compute a vector norm, or a matrix norm where `ord` is given for a matrix or `dim` names two dimensions.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.norm(candelabra.tensor([3.0, 4.0]))
    tensor(5.)
    """
    if isinstance(ord, str) or (ord is not None and (A.ndim == 2 if dim is None else not isinstance(dim, int) and len(dim) == 2)):
        if dim is None:
            if A.ndim != 2:
                raise RuntimeError(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.ndim}D.")
            dim = (0, 1)
        return matrix_norm(A, ord, dim, keepdim, dtype=dtype, out=out)
    if ord is not None and dim is None and A.ndim > 2:
        raise RuntimeError(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.ndim}D.")
    return vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype, out=out)


def cross(input: Tensor, other: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """Compute the cross product of three-dimensional vectors along a dimension.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.cross(candelabra.tensor([1, 0, 0]), candelabra.tensor([0, 1, 0]))
    tensor([0, 0, 1])
    """
    return _cross(input, other, dim, out=out)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """Sum the products of two batches of vectors along a dimension, the first conjugated.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.vecdot(candelabra.tensor([1.0, 2.0]), candelabra.tensor([3.0, 4.0]))
    tensor(11.)
    """
    result = OPERATORS["sum"](x.conj() * y, dim)
    return result if out is None else out.copy_(result)


def multi_dot(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """Multiply matrices in the order that needs the fewest multiplications; the first and the last may be vectors.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.multi_dot([candelabra.ones(2), candelabra.eye(2), candelabra.ones(2)])
    tensor(2.)
    """
    from candelabra.composite.linalg import chain_matmul

    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    matrices = list(tensors)
    row, column = matrices[0].ndim == 1, matrices[-1].ndim == 1
    if row:
        matrices[0] = OPERATORS["unsqueeze"](matrices[0], 0)
    if column:
        matrices[-1] = OPERATORS["unsqueeze"](matrices[-1], 1)
    result = chain_matmul(*matrices)
    if column:
        result = OPERATORS["squeeze"](result, 1)
    if row:
        result = OPERATORS["squeeze"](result, 0)
    return result if out is None else out.copy_(result)
