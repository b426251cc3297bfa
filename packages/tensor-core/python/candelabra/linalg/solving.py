"""Systems of linear equations, inverses and determinants."""

from __future__ import annotations

from candelabra import _C, return_types
from candelabra.catalogue import OPERATORS
from candelabra.composite.keyword_names import also_named
from candelabra.composite.movement.views import wrap_dim
from candelabra.composite.registration import out_rule
from candelabra.composite.transformed import any_holds, is_differentiated

from .errors import check_info, give

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor

_solve_ex = OPERATORS["linalg_solve_ex"]
_inv_ex = OPERATORS["linalg_inv_ex"]
_triangular = OPERATORS["linalg_solve_triangular"]
_lu_solve = OPERATORS["linalg_lu_solve"]


def _is_vector(A: Tensor, B: Tensor) -> bool:
    """Return whether B is one vector per matrix of A, by the rule of numpy.linalg.solve before
    version 2.
    """
    return B.ndim == 1 or (A.ndim - 1 == B.ndim and tuple(B.shape) == tuple(A.shape[:-1]))


def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False, out: Any = None) -> Any:
    """Solve as :func:`candelabra.linalg.solve`, and report singular matrices in `info` instead of
    raising.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.solve_ex(candelabra.zeros(1, 1), candelabra.ones(1)).info
    tensor(1, dtype=candelabra.int32)
    """
    result, info = _solved("linalg.solve", A, B, left)
    if check_errors:
        check_info("torch.linalg.solve_ex", info, "solve")
    return give("linalg_solve_ex", out, _solve_ex.result_type((result, info)))


def _solved(name: str, A: Tensor, B: Tensor, left: bool) -> tuple[Tensor, Tensor]:
    if A.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    vector = _is_vector(A, B)
    if vector and not left:
        raise RuntimeError(
            f"{name}: Vector broadcasting of the left hand side is not supported for left=False. In this case {name} is equivalent to B / A.squeeze(-1)"
        )
    right = B.unsqueeze(-1) if vector else B
    if not left:
        result, info = _solve_ex(A.mT, right.mT)
        result = result.mT
    else:
        result, info = _solve_ex(A, right)
    return result.squeeze(-1) if vector else result, info


@out_rule("linalg_solve", "exact")
def solve(A: Tensor, B: Tensor, *, left: bool = True, out: Tensor | None = None) -> Tensor:
    """Solve ``A @ X = B`` for X.

    Parameters
    ----------
    A : Tensor
        Of shape (..., n, n).
    B : Tensor
        Of shape (..., n, k), (n,) or (..., n); batches are broadcast.
    left : bool
        Whether A is on the left; else ``X @ A = B``.
    out : Tensor, optional
        The output tensor.

    Raises
    ------
    LinAlgError
        If a matrix is singular.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.solve(candelabra.tensor([[2.0, 0.0], [0.0, 4.0]]), candelabra.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    result, info = _solved("linalg.solve", A, B, left)
    check_info("torch.linalg.solve", info)
    return give("linalg_solve", out, result)


def inv_ex(A: Tensor, *, check_errors: bool = False, out: Any = None) -> Any:
    """Compute the inverses of matrices, and report singular ones in `info` instead of raising.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.inv_ex(candelabra.zeros(1, 1)).info
    tensor(1, dtype=candelabra.int32)
    """
    result = _inv_ex(A)
    if check_errors:
        check_info("linalg.inv_ex", result.info, "inv")
    return give("linalg_inv_ex", out, result)


@out_rule("linalg_inv", "exact")
def inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the inverses of square matrices. To solve equations, :func:`candelabra.linalg.solve`
    is faster and more accurate.

    Parameters
    ----------
    A : Tensor
        Of shape (..., n, n).
    out : Tensor, optional
        The output tensor.

    Raises
    ------
    LinAlgError
        If a matrix is singular.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.inv(candelabra.tensor([[2.0, 1.0], [1.0, 1.0]])).round(decimals=3)
    tensor([[ 1., -1.],
            [-1.,  2.]])
    """
    inverse, info = _inv_ex(A)
    check_info("linalg.inv", info)
    return give("linalg_inv", out, inverse)


@also_named(input="A")
def solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False, out: Tensor | None = None
) -> Tensor:
    """Solve ``A @ X = B`` with triangular A by substitution; the other triangle is not read.

    Parameters
    ----------
    A : Tensor
        Of shape (..., n, n).
    B : Tensor
        Of shape (..., n, k); batches are broadcast.
    upper : bool
        Whether A is upper triangular.
    left : bool
        Whether A is on the left; else ``X @ A = B``.
    unitriangular : bool
        Whether the diagonal of A counts as ones.
    out : Tensor, optional
        The output tensor.

    Examples
    --------
    >>> import candelabra
    >>> A, B = candelabra.tensor([[2.0, 0.0], [1.0, 4.0]]), candelabra.tensor([[2.0], [5.0]])
    >>> candelabra.linalg.solve_triangular(A, B, upper=False)
    tensor([[1.],
            [1.]])
    """
    result = _triangular(A, B, upper=upper, left=left, unitriangular=unitriangular)
    return give("linalg_solve_triangular", out, result)


def lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False, out: Tensor | None = None
) -> Tensor:
    """Solve ``A @ X = B`` with the factors of A that :func:`candelabra.linalg.lu_factor` returns.

    Parameters
    ----------
    LU, pivots : Tensor
        The factors, of shape (..., n, n), and the pivots, of shape (..., n).
    B : Tensor
        Of shape (..., n, k); batches are broadcast.
    left : bool
        Whether A is on the left; else ``X @ A = B``.
    adjoint : bool
        Whether to use the conjugate transpose of A.
    out : Tensor, optional
        The output tensor.

    Examples
    --------
    >>> import candelabra
    >>> LU, pivots = candelabra.linalg.lu_factor(candelabra.tensor([[2.0, 0.0], [0.0, 4.0]]))
    >>> candelabra.linalg.lu_solve(LU, pivots, candelabra.ones(2, 1))
    tensor([[0.5000],
            [0.2500]])
    """
    if left:
        return give("linalg_lu_solve", out, _lu_solve(LU, pivots, B, adjoint))
    # X @ op(A) = B is op(A).mH @ X.mH = B.mH.
    return give("linalg_lu_solve", out, _lu_solve(LU, pivots, B.mH, not adjoint).mH)


def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False, out: Tensor | None = None) -> Tensor:
    """Solve ``A @ X = B`` with the factors of A that :func:`candelabra.linalg.ldl_factor` returns.

    Examples
    --------
    >>> import candelabra
    >>> LD, pivots = candelabra.linalg.ldl_factor(candelabra.tensor([[2.0, 0.0], [0.0, 4.0]]))
    >>> candelabra.linalg.ldl_solve(LD, pivots, candelabra.ones(2, 1))
    tensor([[0.5000],
            [0.2500]])
    """
    return give("linalg_ldl_solve", out, OPERATORS["linalg_ldl_solve"](LD, pivots, B, hermitian))


@also_named(input="A", b="B")
def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None, out: Any = None) -> Any:
    """Solve least-squares problems: X minimizes the Frobenius norm of ``A @ X - B``.

    Parameters
    ----------
    A : Tensor
        Of shape (..., m, n).
    B : Tensor
        Of shape (..., m, k), or (..., m) for one right-hand side.
    rcond : float, optional
        Singular values below ``rcond`` times the largest one count as zero. By default the dtype's
        epsilon times max(m, n).
    driver : str, optional
        LAPACK's: ``"gels"`` (A has full rank), ``"gelsy"`` (QR with column pivoting, the default),
        ``"gelsd"`` or ``"gelss"`` (singular values).
    out : four of Tensor, optional
        The output tensors.

    Returns
    -------
    (solution, residuals, rank, singular_values)
        residuals, the squared norms of the columns of ``A @ X - B``, only where m > n and every
        matrix has full rank; rank not for gels; singular_values for gelsd and gelss. What is not
        there is empty.

    Examples
    --------
    >>> import candelabra
    >>> A = candelabra.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> candelabra.linalg.lstsq(A, candelabra.tensor([[0.0], [1.0], [2.0]])).solution.round(decimals=3).abs()
    tensor([[0.],
            [1.]])
    """
    if A.ndim < 2:
        raise RuntimeError("torch.linalg.lstsq: input must have at least 2 dimensions.")
    if B.ndim < 1:
        raise RuntimeError("torch.linalg.lstsq: other must have at least 1 dimension.")
    if A.ndim - B.ndim not in (0, 1) and B.ndim != A.ndim and not 0 <= A.ndim - B.ndim <= 1:
        raise RuntimeError(
            f"torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1, but got {A.ndim} and {B.ndim}"
        )
    if A.dtype is not B.dtype:
        raise RuntimeError(
            f"torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's dtype {A.dtype} and other's dtype {B.dtype}"
        )
    if not (A.dtype.is_floating_point or A.dtype.is_complex):
        raise RuntimeError(
            f"candelabra.linalg.lstsq: Expected a floating point or complex tensor as input. Got {A.dtype}"
        )
    name = "gelsy" if driver is None else driver.lower() if isinstance(driver, str) else driver
    if name not in ("gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(
            f"torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), but got {driver}"
        )
    vector = B.ndim == 1 or (A.ndim - 1 == B.ndim and tuple(A.shape[:-1]) == tuple(B.shape))
    if B.ndim == 1 and A.shape[-2] != B.shape[0]:
        raise RuntimeError(
            f"torch.linalg.lstsq: input.size(-2) should match other.size(-1), but the shapes are {list(A.shape)} and {list(B.shape)}"
        )
    right = B.unsqueeze(-1) if vector else B
    m, n = A.shape[-2:]
    tolerance = float(rcond) if rcond is not None else epsilon(A) * max(m, n)
    X, rank, singular = OPERATORS["linalg_lstsq_driver"](A, right, tolerance, name)
    solution = X.narrow(-2, 0, n)
    # Empty, but with the same requires_grad as the solution.
    residuals = X.reshape(-1).narrow(0, 0, 0)
    residuals = residuals.real if residuals.dtype.is_complex else residuals
    if m > n and name != "gelsy" and (rank.numel() == 0 or not any_holds(rank != n)):
        rest = A @ solution - right if is_differentiated(A) or is_differentiated(right) else X.narrow(-2, n, m - n)
        residuals = (rest * rest.conj()).real.sum(-2) if rest.dtype.is_complex else (rest * rest).sum(-2)
    if vector:
        solution = solution.squeeze(-1)
    if name == "gels":
        rank = rank.new_empty(0)
    return give("linalg_lstsq", out, return_types.linalg_lstsq(solution, residuals, rank, singular))


def epsilon(tensor: Tensor) -> float:
    from candelabra import finfo

    return float(finfo(tensor.dtype).eps)


def det(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute determinants of square matrices.

    Parameters
    ----------
    A : Tensor
        Of shape (..., n, n).
    out : Tensor, optional
        The output tensor.

    Returns
    -------
    Tensor
        Of shape (...). Computed from the LU factorization: the product of U's diagonal and the sign
        of the permutation.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.det(candelabra.tensor([[1.0, 2.0], [3.0, 4.0]])).round(decimals=4)
    tensor(-2.)
    """
    return give("linalg_det", out, OPERATORS["linalg_det"](A))


def slogdet(A: Tensor, *, out: Any = None) -> Any:
    """Compute the sign and the logarithm of the magnitude of determinants.

    Parameters
    ----------
    A : Tensor
        Of shape (..., n, n).
    out : pair of Tensor, optional
        The output tensors.

    Returns
    -------
    (sign, logabsdet)
        sign is -1, 0 or 1, of complex matrices a complex number of magnitude 1 or 0; ``det = sign *
        exp(logabsdet)``.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.slogdet(candelabra.tensor([[0.0, 2.0], [1.0, 0.0]]))
    candelabra.return_types.linalg_slogdet(
    sign=tensor(-1.),
    logabsdet=tensor(0.6931))
    """
    return give("linalg_slogdet", out, OPERATORS["linalg_slogdet"].result_type(tuple(OPERATORS["linalg_slogdet"](A))))


@also_named(input="A")
def pinv(
    A: Tensor,
    rtol: Any = None,
    atol: Any = None,
    hermitian: bool = False,
    *,
    rcond: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Compute the Moore-Penrose pseudoinverse by singular values.

    Parameters
    ----------
    A : Tensor
        Of shape (..., m, n).
    rtol, atol : float or Tensor, optional
        Singular values not larger than ``max(atol, rtol * largest)`` count as zero; by default 0
        and, where `atol` is not given either, the dtype's epsilon times max(m, n).
    hermitian : bool
        Whether A is Hermitian. Then eigenvalues are used, which is faster.
    rcond : float or Tensor, optional
        The old name of `rtol`.
    out : Tensor, optional
        The output tensor.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.pinv(candelabra.tensor([[2.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    if A.ndim < 2:
        raise RuntimeError(f"linalg.pinv: The input tensor A must have at least 2 dimensions. Got {A.ndim}.")
    if rcond is not None:
        rtol = rcond
    if atol is None and rtol is None:
        rtol = epsilon(A) * max(A.shape[-2:], default=1) if A.dtype.is_floating_point or A.dtype.is_complex else 0.0
    rtol, atol = 0.0 if rtol is None else rtol, 0.0 if atol is None else atol
    for given, kind in ((atol, "atol"), (rtol, "rtol")):
        if isinstance(given, _C.Tensor) and given.dtype.is_complex:
            raise RuntimeError(f"linalg.pinv: {kind} tensor of complex type is not supported. Got {given.dtype}")
    wide = [
        given if isinstance(given, _C.Tensor) else A.new_full((), given, dtype=A.real.dtype) for given in (atol, rtol)
    ]
    return give("linalg_pinv", out, OPERATORS["linalg_pinv_atol_rtol"](A, wide[0], wide[1], hermitian))


@also_named(input="A")
def tensorinv(A: Tensor, ind: int = 2, *, out: Tensor | None = None) -> Tensor:
    """Compute the inverse for :func:`candelabra.tensordot`. The first `ind` dimensions of A are the
    rows.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.tensorinv(candelabra.eye(4).view(2, 2, 4), ind=2).shape
    candelabra.Size([4, 2, 2])
    """
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    rest, first = A.shape[ind:], A.shape[:ind]
    rows, columns = _product(first), _product(rest)
    if rows != columns:
        raise RuntimeError(
            f"Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got {columns} != {rows}"
        )
    inverse, info = _inv_ex(A.reshape(columns, rows))
    if any_holds(info):
        from .errors import LinAlgError

        raise LinAlgError("Failed to invert the input tensor, because it is singular.")
    return give("linalg_tensorinv", out, inverse.reshape((*rest, *first)))


def _product(sizes: Any) -> int:
    product = 1
    for size in sizes:
        product *= size
    return product


@also_named(input="A", other="B")
def tensorsolve(A: Tensor, B: Tensor, dims: Any = None, *, out: Tensor | None = None) -> Tensor:
    """Solve ``tensordot(A, X, X.ndim) = B`` for X.

    Parameters
    ----------
    A : Tensor
        The product of its sizes after the first ``B.ndim`` ones must be the number of elements of
        B.
    B : Tensor
    dims : sequence of int, optional
        Dimensions of A that are moved to the end before solving.
    out : Tensor, optional
        The output tensor.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.tensorsolve(2 * candelabra.eye(4).view(2, 2, 4), candelabra.ones(2, 2))
    tensor([0.5000, 0.5000, 0.5000, 0.5000])
    """
    moved = A
    if dims is not None:
        axes = [wrap_dim(d, A.ndim) for d in dims]
        moved = A.movedim(axes, list(range(A.ndim - len(axes), A.ndim)))
    shape = tuple(moved.shape[B.ndim :])
    columns, rows = _product(shape), _product(moved.shape[: B.ndim])
    if columns != rows:
        raise RuntimeError(
            f"Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got {columns} != {rows}"
        )
    result, info = _solve_ex(moved.reshape(columns, columns), B.reshape(-1, 1))
    check_info("torch.linalg.solve", info)
    return give("linalg_tensorsolve", out, result.reshape(shape))
