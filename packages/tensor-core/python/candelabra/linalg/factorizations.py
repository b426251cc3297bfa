"""Factorizations of matrices: Cholesky, LU, LDL, QR."""

from __future__ import annotations

from candelabra import return_types
from candelabra.catalogue import OPERATORS
from candelabra.composite import FUNCTIONS
from candelabra.composite.keyword_names import also_named
from candelabra.composite.registration import out_rule

from .errors import check_info, give

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor

_cholesky_ex = OPERATORS["linalg_cholesky_ex"]
_lu_factor_ex = OPERATORS["linalg_lu_factor_ex"]
_ldl_factor_ex = OPERATORS["linalg_ldl_factor_ex"]


@out_rule("linalg_cholesky", "exact")
@also_named(input="A")
def cholesky(A: Tensor, *, upper: bool = False, out: Tensor | None = None) -> Tensor:
    """Compute the Cholesky factorization of Hermitian positive-definite matrices: ``A = L @ L.mH``
    with L lower triangular.

    Parameters
    ----------
    A : Tensor
        Of shape (..., n, n). Only the triangle that `upper` selects is read.
    upper : bool
        Whether to return the upper factor U, with ``A = U.mH @ U``.
    out : Tensor, optional
        The output tensor.

    Raises
    ------
    LinAlgError
        If a matrix is not positive-definite.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.cholesky(candelabra.tensor([[4.0, 2.0], [2.0, 5.0]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    L, info = _cholesky_ex(A, upper)
    check_info("linalg.cholesky", info)
    return give("linalg_cholesky", out, L)


@also_named(input="A")
def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False, out: Any = None) -> Any:
    """Compute the factorization of :func:`candelabra.linalg.cholesky`, and report failures in
    `info` instead of raising.

    Parameters
    ----------
    A : Tensor
        Of shape (..., n, n).
    upper : bool
        Whether to return the upper factor.
    check_errors : bool
        Whether to raise LinAlgError nevertheless.
    out : pair of Tensor, optional
        The output tensors.

    Returns
    -------
    (L, info)
        `info` (int32) is 0, or the order of the leading minor that is not positive-definite.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.cholesky_ex(-candelabra.eye(2)).info
    tensor(1, dtype=candelabra.int32)
    """
    result = _cholesky_ex(A, upper)
    if check_errors:
        check_info("linalg.cholesky_ex", result.info, "cholesky")
    return give("linalg_cholesky_ex", out, result)


@out_rule("linalg_lu_factor", "exact")
def lu_factor(A: Tensor, *, pivot: bool = True, out: Any = None) -> Any:
    """Compute the LU factorization with row pivoting, ``A = P @ L @ U``, for
    :func:`candelabra.linalg.lu_solve`. L and U share one matrix.

    Parameters
    ----------
    A : Tensor
        Of shape (..., m, n).
    pivot : bool
        Whether to pivot rows. Without pivoting the result may be inaccurate or not exist.
    out : pair of Tensor, optional
        The output tensors.

    Returns
    -------
    (LU, pivots)
        `pivots` (int32) holds the row with which each row was swapped, counted from 1.

    Raises
    ------
    RuntimeError
        If a diagonal element of U is zero.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.lu_factor(candelabra.tensor([[1.0, 2.0], [4.0, 4.0]])).LU
    tensor([[4.0000, 4.0000],
            [0.2500, 1.0000]])
    """
    LU, pivots, info = _lu_factor_ex(A, pivot)
    check_info("linalg.lu_factor", info)
    return give("linalg_lu_factor", out, return_types.linalg_lu_factor(LU, pivots))


def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False, out: Any = None) -> Any:
    """Compute the factorization of :func:`candelabra.linalg.lu_factor`, and report zeros on the
    diagonal of U in `info` instead of raising.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.lu_factor_ex(candelabra.zeros(2, 2)).info
    tensor(1, dtype=candelabra.int32)
    """
    result = _lu_factor_ex(A, pivot)
    if check_errors:
        check_info("linalg.lu_factor_ex", result.info, "lu_factor")
    return give("linalg_lu_factor_ex", out, result)


@out_rule("linalg_lu", "exact")
def lu(A: Tensor, *, pivot: bool = True, out: Any = None) -> Any:
    """Compute the LU factorization with row pivoting: ``A = P @ L @ U``. P is a permutation, L
    lower triangular with a unit diagonal, U upper triangular.

    Parameters
    ----------
    A : Tensor
        Of shape (..., m, n).
    pivot : bool
        Whether to pivot rows. Without pivoting P is empty.
    out : three of Tensor, optional
        The output tensors.

    Returns
    -------
    (P, L, U)
        Of shapes (..., m, m), (..., m, k) and (..., k, n), where k is the smaller of m and n.

    Examples
    --------
    >>> import candelabra
    >>> P, L, U = candelabra.linalg.lu(candelabra.tensor([[1.0, 2.0], [4.0, 4.0]]))
    >>> P @ L @ U
    tensor([[1., 2.],
            [4., 4.]])
    """
    LU, pivots, _ = _lu_factor_ex(A, pivot)
    P, L, U = unpack(LU, pivots)
    if not pivot:
        P = A.new_empty(0)
    return give("linalg_lu", out, return_types.linalg_lu(P, L, U))


def permutation_of(pivots: Tensor, rows: int, backwards: bool = False) -> Tensor:
    """Return the row permutation (int64) that the swaps in `pivots` produce, or with `backwards`
    its inverse.
    """
    count = pivots.shape[-1]
    if count < rows:  # the others stay where they are
        others = OPERATORS["arange"](count + 1, rows + 1, 1, dtype=pivots.dtype, device=pivots.device)
        pivots = OPERATORS["cat"]([pivots, others.expand((*pivots.shape[:-1], rows - count))], -1)
    return OPERATORS["_lu_pivots_to_permutation"](pivots, -1, backwards)


def unpack(LU: Tensor, pivots: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return P, L and U of the result of :func:`lu_factor`."""
    m, n = LU.shape[-2:]
    k = min(m, n)
    L = LU.narrow(-1, 0, k).tril(-1) + FUNCTIONS["eye"](m, k, dtype=LU.dtype, device=LU.device)
    U = LU.narrow(-2, 0, k).triu()
    # Row i of A is row order[i] of L @ U, where `order` is the inverse permutation.
    P = OPERATORS["embedding"](FUNCTIONS["eye"](m, dtype=LU.dtype, device=LU.device), permutation_of(pivots, m, True))
    return P, L, U


@out_rule("linalg_ldl_factor", "exact")
@also_named(input="A")
def ldl_factor(A: Tensor, *, hermitian: bool = False, out: Any = None) -> Any:
    """Compute the LDL factorization of symmetric or Hermitian matrices, which may be indefinite,
    for :func:`candelabra.linalg.ldl_solve`.

    Parameters
    ----------
    A : Tensor
        Of shape (..., n, n); the lower triangle is read.
    hermitian : bool
        Whether complex matrices are Hermitian instead of symmetric.
    out : pair of Tensor, optional
        The output tensors.

    Returns
    -------
    (LD, pivots)
        In the format of LAPACK's sytrf (Bunch and Kaufman, 1977).

    Raises
    ------
    LinAlgError
        If a block of D is zero.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.ldl_factor(candelabra.tensor([[4.0, 2.0], [2.0, 5.0]])).LD
    tensor([[4.0000, 0.0000],
            [0.5000, 4.0000]])
    """
    LD, pivots, info = _ldl_factor_ex(A, hermitian)
    check_info("torch.linalg.ldl_factor", info)
    return give("linalg_ldl_factor", out, return_types.linalg_ldl_factor(LD, pivots))


@also_named(input="A")
def ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False, out: Any = None) -> Any:
    """Compute the factorization of :func:`candelabra.linalg.ldl_factor`, and report failures in
    `info` instead of raising.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.ldl_factor_ex(candelabra.zeros(1, 1)).info
    tensor(1, dtype=candelabra.int32)
    """
    result = _ldl_factor_ex(A, hermitian)
    if check_errors:
        check_info("torch.linalg.ldl_factor_ex", result.info, "ldl_factor")
    return give("linalg_ldl_factor_ex", out, result)


def qr(A: Tensor, mode: str = "reduced", *, out: Any = None) -> Any:
    """Compute the QR factorization: ``A = Q @ R`` with orthonormal columns of Q and an upper
    triangular R.

    Parameters
    ----------
    A : Tensor
        Of shape (..., m, n).
    mode : str
        ``"reduced"``: Q is (..., m, k), R (..., k, n) with k the smaller of m and n;
        ``"complete"``: Q is square; ``"r"``: Q is empty.
    out : pair of Tensor, optional
        The output tensors.

    Returns
    -------
    (Q, R)

    Examples
    --------
    >>> import candelabra
    >>> Q, R = candelabra.linalg.qr(candelabra.tensor([[3.0], [4.0]]))
    >>> R.abs()
    tensor([[5.]])
    """
    return give("linalg_qr", out, OPERATORS["linalg_qr"](A, mode))


def householder_product(A: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the first n columns of a product of Householder reflections, as
    :func:`candelabra.geqrf` returns them.

    Parameters
    ----------
    A : Tensor
        Of shape (..., m, n): the vectors of the reflections, below the diagonal.
    tau : Tensor
        Of shape (..., k): the scalar factors of the reflections.
    out : Tensor, optional
        The output tensor.

    Examples
    --------
    >>> import candelabra
    >>> a, tau = candelabra.geqrf(candelabra.tensor([[3.0], [4.0]]))
    >>> candelabra.linalg.householder_product(a, tau)
    tensor([[-0.6000],
            [-0.8000]])
    """
    return give("linalg_householder_product", out, OPERATORS["linalg_householder_product"](A, tau))
