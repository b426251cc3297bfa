"""Products of vectors and matrices, and functions of matrices."""

from __future__ import annotations

from candelabra import _C
from candelabra.catalogue import OPERATORS
from candelabra.composite import FUNCTIONS
from candelabra.composite.linalg.linalg import chain_matmul, matmul
from candelabra.composite.linalg.linalg import cross as _cross
from candelabra.composite.linalg.matrix_exp import matrix_exp
from candelabra.composite.registration import function, out_rule
from candelabra.dispatch_hooks import computed

from .errors import give
from .solving import inv

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor


@out_rule("linalg_cross", "exact apart")
def cross(input: Tensor, other: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """Compute the cross product of three-dimensional vectors along a dimension.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.cross(candelabra.tensor([1, 0, 0]), candelabra.tensor([0, 1, 0]))
    tensor([0, 0, 1])
    """
    return _cross(input, other, dim, out=out)


@out_rule("linalg_vecdot", "exact")
@computed("lower")
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


@out_rule("linalg_multi_dot", "exact")
def multi_dot(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """Multiply matrices in the order that needs the fewest multiplications. The first and the last
    may be vectors.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.multi_dot([candelabra.ones(2), candelabra.eye(2), candelabra.ones(2)])
    tensor(2.)
    """
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


@function()
def matrix_power(input: Tensor, n: int, *, out: Tensor | None = None) -> Tensor:
    """Multiply a square matrix with itself `n` times; of negative `n`, its inverse.

    Parameters
    ----------
    input : Tensor
        Of shape (..., m, m).
    n : int
        The exponent.
    out : Tensor, optional
        Where the result is written.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.matrix_power(candelabra.tensor([[1, 1], [0, 1]]), 3)
    tensor([[1, 3],
            [0, 1]])
    """
    if input.ndim < 2 or input.shape[-1] != input.shape[-2]:
        raise RuntimeError(
            f"linalg.matrix_power: A must be batches of square matrices, but got shape {list(input.shape)}"
        )
    result = _power(input, n)
    return result if out is None else _C.give_to_out("matrix_power", out, result)


def _power(input: Tensor, n: int) -> Tensor:
    if n < 0:
        return _power(inv(input), -n)
    if n == 0:
        # On the tape, with a gradient of zeros.
        everywhere = OPERATORS["fill_"](OPERATORS["empty"](input.shape, dtype=_C.bool, device=input.device), True)
        identity = OPERATORS["masked_fill"](input, everywhere, 0)
        OPERATORS["fill_"](OPERATORS["diagonal"](identity.detach(), 0, -2, -1), 1)
        return identity
    result: Any = None
    square = input
    while n:
        if n & 1:
            result = square if result is None else matmul(result, square)
        n >>= 1
        if n:
            square = matmul(square, square)
    return OPERATORS["clone"](result) if result is input else result


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
