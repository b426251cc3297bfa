"""Products of vectors and matrices, and functions of matrices."""

from __future__ import annotations

from candelabra import _C
from candelabra.catalogue import OPERATORS
from candelabra.composite import FUNCTIONS
from candelabra.composite.linalg.linalg import cross as _cross
from candelabra.composite.linalg.linalg import matmul, matrix_power
from candelabra.composite.linalg.matrix_exp import matrix_exp
from candelabra.dispatch_hooks import computed

from .errors import give

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor


def cross(input: Tensor, other: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """Compute the cross product of three-dimensional vectors along a dimension.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.cross(candelabra.tensor([1, 0, 0]), candelabra.tensor([0, 1, 0]))
    tensor([0, 0, 1])
    """
    return _cross(input, other, dim, out=out)


@computed("fast")
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """Compute the dot products of two batches of vectors along a dimension. The first factor is
    conjugated.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.vecdot(candelabra.tensor([1.0, 2.0]), candelabra.tensor([3.0, 4.0]))
    tensor(11.)
    """
    for argument in (x, y):
        if not (argument.dtype.is_floating_point or argument.dtype.is_complex):
            raise RuntimeError(
                f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {argument.dtype}; convert with .to(candelabra.float32)"
            )
    result = OPERATORS["sum"](x.conj() * y, dim)
    return give("linalg_vecdot", out, result)


def multi_dot(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """Multiply matrices in the order that needs the fewest multiplications. The first and the last
    may be vectors.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.multi_dot([candelabra.ones(2), candelabra.eye(2), candelabra.ones(2)])
    tensor(2.)
    """
    from candelabra.composite.linalg.linalg import chain_matmul

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
    return give("linalg_multi_dot", out, result)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return a diagonal of each matrix, as a view.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.diagonal(candelabra.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    return OPERATORS["diagonal"](A, offset, dim1, dim2)


def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Return the Vandermonde matrices of vectors: column j holds the powers ``x ** j``.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n).
    N : int, optional
        The number of columns; n by default.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.vander(candelabra.tensor([2, 3]), N=3)
    tensor([[1, 2, 4],
            [1, 3, 9]])
    """
    if x.ndim == 0:
        x = OPERATORS["unsqueeze"](x, 0)
    if x.dtype in (_C.bool, _C.float16, _C.bfloat16):
        raise RuntimeError(
            f"linalg.vander supports floating point, complex, and integer tensors of full precision, but got {x.dtype}"
        )
    count = x.shape[-1] if N is None else N
    if count <= 1:
        raise RuntimeError(f"linalg.vander: N must be greater than 1, but got {count}")
    column = OPERATORS["unsqueeze"](x, -1)
    powers = OPERATORS["cumprod"](column.expand((*x.shape, count - 1)), -1)
    return OPERATORS["cat"]([FUNCTIONS["ones_like"](column, dtype=powers.dtype), powers], -1)


__all__ = ["cross", "diagonal", "matmul", "matrix_exp", "matrix_power", "multi_dot", "vander", "vecdot"]
