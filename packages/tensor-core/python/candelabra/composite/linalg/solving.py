"""Determinants and pseudoinverses from factors, and the older names of linear algebra as functions
of the package and methods.
"""

from __future__ import annotations

from candelabra import _C, return_types
from candelabra.catalogue import OPERATORS

from ..keyword_names import also_named
from ..movement.views import wrap_dim
from ..registration import FUNCTIONS, decomposes, function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor

_lu_factor_ex = OPERATORS["linalg_lu_factor_ex"]
_triangular = OPERATORS["linalg_solve_triangular"]


def _linalg() -> Any:
    from candelabra import linalg

    return linalg


def _exchanges_sign(pivots: Tensor) -> Tensor:
    """Return the sign of each matrix's row permutation: -1 if the number of swaps is odd."""
    rows = OPERATORS["arange"](1, pivots.shape[-1] + 1, 1, dtype=pivots.dtype, device=pivots.device)
    odd = OPERATORS["remainder"](OPERATORS["sum"](OPERATORS["ne"](pivots, rows), -1), 2)
    return 1 - 2 * odd


def _check_square(name: str, A: Tensor) -> None:
    if A.ndim < 2:
        raise RuntimeError(
            f"{name}: The input tensor A must have at least 2 dimensions, but its shape is {list(A.shape)}"
        )
    if A.shape[-2] != A.shape[-1]:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} matrices"
        )


@decomposes("_lu_pivots_to_permutation")
def _lu_pivots_to_permutation(self: Tensor, dim: int, backwards: bool = False) -> Tensor:
    axis, length = wrap_dim(dim, self.ndim), self.shape[dim]
    shape = [1] * self.ndim
    shape[axis] = length
    order = OPERATORS["arange"](0, length, 1, dtype=_C.int64, device=self.device).view(shape).expand(self.shape).clone()
    targets = self.to(_C.int64) - 1
    # One swap after the other, in all matrices at the same time.
    for i in reversed(range(length)) if backwards else range(length):
        target = targets.narrow(axis, i, 1)
        here, there = order.narrow(axis, i, 1).clone(), order.gather(axis, target)
        order = order.scatter(axis, target, here)
        order = OPERATORS["cat"]([order.narrow(axis, 0, i), there, order.narrow(axis, i + 1, length - i - 1)], axis)
    return order


@decomposes("linalg_det")
def linalg_det(A: Tensor) -> Tensor:
    _check_square("linalg.det", A)
    LU, pivots, _ = _lu_factor_ex(A)
    return OPERATORS["prod"](OPERATORS["diagonal"](LU, 0, -2, -1), -1) * _exchanges_sign(pivots)


@decomposes("linalg_slogdet")
def linalg_slogdet(A: Tensor) -> tuple[Tensor, Tensor]:
    _check_square("linalg.slogdet", A)
    LU, pivots, _ = _lu_factor_ex(A)
    diagonal = OPERATORS["diagonal"](LU, 0, -2, -1)
    sign = OPERATORS["prod"](OPERATORS["sgn"](diagonal), -1) * _exchanges_sign(pivots)
    return sign, OPERATORS["sum"](OPERATORS["log"](OPERATORS["abs"](diagonal)), -1)


@decomposes("linalg_pinv_atol_rtol")
def linalg_pinv(A: Tensor, atol: Tensor, rtol: Tensor, hermitian: bool = False) -> Tensor:
    linalg = _linalg()
    if A.numel() == 0:
        return A.new_zeros((*A.shape[:-2], A.shape[-1], A.shape[-2]))
    if hermitian:
        values, vectors = linalg.eigh(A)
        magnitudes = OPERATORS["abs"](values)
        largest = OPERATORS["amax"](magnitudes, (-1,), True)
        kept = magnitudes > OPERATORS["maximum"](atol.unsqueeze(-1), rtol.unsqueeze(-1) * largest)
        inverse = OPERATORS["where"](kept, OPERATORS["reciprocal"](values), 0)
        return (vectors * inverse.unsqueeze(-2).to(vectors.dtype)) @ vectors.mH
    U, S, Vh = linalg.svd(A, False)
    largest = S.narrow(-1, 0, 1)
    kept = OPERATORS["maximum"](atol.unsqueeze(-1), rtol.unsqueeze(-1) * largest) < S
    inverse = OPERATORS["where"](kept, OPERATORS["reciprocal"](S), 0)
    return (Vh.mH * inverse.unsqueeze(-2).to(U.dtype)) @ U.mH


# ---- older names


@function()
def cholesky(input: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Compute the Cholesky factorization of Hermitian positive-definite matrices; see
    :func:`candelabra.linalg.cholesky`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cholesky(candelabra.tensor([[4.0, 2.0], [2.0, 5.0]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    linalg = _linalg()
    L, info = OPERATORS["linalg_cholesky_ex"](input, upper)
    linalg.errors.check_info("cholesky", info)
    return linalg.errors.give("cholesky", out, L)


@decomposes("cholesky_solve")
def cholesky_solve(self: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    lower = input2.mH if upper else input2
    half = _triangular(lower, self, upper=False)
    return _triangular(lower.mH, half, upper=True)


@function()
def cholesky_inverse(input: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Compute the inverse of A from its Cholesky factor.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cholesky_inverse(candelabra.tensor([[2.0, 0.0], [0.0, 1.0]]))
    tensor([[0.2500, 0.0000],
            [0.0000, 1.0000]])
    """
    if input.ndim < 2 or input.shape[-1] != input.shape[-2]:
        raise RuntimeError(
            f"cholesky_inverse: A must be batches of square matrices, but the shape is {list(input.shape)}"
        )
    identity = FUNCTIONS["eye"](input.shape[-1], dtype=input.dtype, device=input.device)
    result = OPERATORS["cholesky_solve"](identity.expand(input.shape), input, upper)
    return result if out is None else _C.give_to_out("cholesky_inverse", out, result)


@function()
def det(input: Tensor) -> Tensor:
    """Compute determinants; see :func:`candelabra.linalg.det`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.det(candelabra.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor(8.)
    """
    return OPERATORS["linalg_det"](input)


@function()
def slogdet(input: Tensor, *, out: Any = None) -> Any:
    """Compute the sign and the logarithm of the magnitude of determinants; see
    :func:`candelabra.linalg.slogdet`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.slogdet(candelabra.eye(2)).logabsdet
    tensor(0.)
    """
    return _linalg().errors.give("slogdet", out, return_types.slogdet(*OPERATORS["linalg_slogdet"](input)))


@function()
def logdet(input: Tensor) -> Tensor:
    """Compute the logarithm of determinants: NaN for negative ones, -inf for zero.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.logdet(candelabra.eye(2))
    tensor(0.)
    """
    _check_square("logdet", input)
    sign, logarithm = OPERATORS["linalg_slogdet"](input)
    if input.dtype.is_complex:
        return OPERATORS["log"](sign) + logarithm
    return OPERATORS["where"](sign == -1, float("nan"), logarithm)


@function()
def inverse(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the inverses of square matrices; see :func:`candelabra.linalg.inv`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.inverse(candelabra.tensor([[2.0]]))
    tensor([[0.5000]])
    """
    return _linalg().inv(input, out=out)


@function()
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """Compute the pseudoinverse; see :func:`candelabra.linalg.pinv`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.pinverse(candelabra.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    return _linalg().pinv(input, rcond)


@function(out="exact")
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Solve ``A @ X = B`` with the factors of A; see :func:`candelabra.linalg.lu_solve`.

    Examples
    --------
    >>> import candelabra
    >>> LU, pivots = candelabra.linalg.lu_factor(candelabra.tensor([[2.0]]))
    >>> candelabra.lu_solve(candelabra.ones(1, 1), LU, pivots)
    tensor([[0.5000]])
    """
    return _linalg().lu_solve(LU_data, LU_pivots, input, out=out)


@function()
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, *, out: Any = None) -> Any:
    """Compute the LU factorization; see :func:`candelabra.linalg.lu_factor_ex`.

    Parameters
    ----------
    A : Tensor
        Of shape (..., m, n).
    pivot : bool
        Whether rows are exchanged.
    get_infos : bool
        Whether to return a third tensor that reports zeros on the diagonal of U, instead of
        raising.
    out : tuple of Tensor, optional
        The output tensors.

    Returns
    -------
    (LU, pivots) or (LU, pivots, info)

    Examples
    --------
    >>> import candelabra
    >>> candelabra.lu(candelabra.tensor([[2.0]]))[0]
    tensor([[2.]])
    """
    result = _lu_factor_ex(A, pivot)
    LU, pivots, info = result
    if not get_infos:
        _linalg().errors.check_info("lu", info, "lu_factor")
    return _linalg().errors.give("lu", out, result if get_infos else (LU, pivots))


@function(method=False, out="exact")
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True, *, out: Any = None
) -> Any:
    """Return P, L and U from the factors of :func:`candelabra.linalg.lu_factor`.

    Parameters
    ----------
    LU_data : Tensor
        Of shape (..., m, n).
    LU_pivots : Tensor
        Of dtype int32.
    unpack_data, unpack_pivots : bool
        Whether to compute L and U, and P; otherwise they are empty.
    out : three of Tensor, optional
        The output tensors.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.lu_unpack(*candelabra.linalg.lu_factor(candelabra.tensor([[2.0]]))).U
    tensor([[2.]])
    """
    if unpack_pivots and LU_pivots.dtype is not _C.int32:
        raise RuntimeError(
            f"torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype, but it is of {LU_pivots.dtype}. "
            "Note: this function is intended to be used with the output produced by torch.linalg.lu_factor"
        )
    P, L, U = _linalg().factorizations.unpack(LU_data, LU_pivots)
    if not unpack_data:
        L, U = LU_data.new_empty(0), LU_data.new_empty(0)
    if not unpack_pivots:
        P = LU_data.new_empty(0)
    return _linalg().errors.give("lu_unpack", out, return_types.lu_unpack(P, L, U))


@function(out="exact")
def qr(input: Tensor, some: bool = True, *, out: Any = None) -> Any:
    """Compute the QR factorization; see :func:`candelabra.linalg.qr`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.qr(candelabra.tensor([[3.0], [4.0]])).R.abs()
    tensor([[5.]])
    """
    made = return_types.qr(*OPERATORS["linalg_qr"](input, "reduced" if some else "complete"))
    return _linalg().errors.give("qr", out, made)


@function(out="exact")
def svd(input: Tensor, some: bool = True, compute_uv: bool = True, *, out: Any = None) -> Any:
    """Compute the singular value decomposition ``input = U @ diag(S) @ V.mH``; see
    :func:`candelabra.linalg.svd`, which returns ``V.mH``.

    Parameters
    ----------
    input : Tensor
        Of shape (..., m, n).
    some : bool
        Whether U and V have ``min(m, n)`` columns; else they are square.
    compute_uv : bool
        Whether to compute U and V; else they are zeros.
    out : three of Tensor, optional
        The output tensors.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.svd(candelabra.tensor([[0.0, 2.0], [1.0, 0.0]])).S
    tensor([2., 1.])
    """
    linalg = _linalg()
    m, n = input.shape[-2:] if input.ndim >= 2 else (0, 0)
    if compute_uv:
        U, S, Vh = linalg.svd(input, not some)
        made = return_types.svd(U, S, Vh.mH)
    else:
        S = linalg.svdvals(input)
        batch = input.shape[:-2]
        made = return_types.svd(input.new_zeros((*batch, m, m)), S, input.new_zeros((*batch, n, n)))
    return linalg.errors.give("svd", out, made)


@function(out="exact")
@also_named(input="b")
def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False, *, out: Any = None
) -> Any:
    """Solve ``A @ X = b`` with triangular A; see :func:`candelabra.linalg.solve_triangular`.

    Returns
    -------
    (solution, cloned_coefficient)

    Examples
    --------
    >>> import candelabra
    >>> candelabra.triangular_solve(candelabra.ones(1, 1), candelabra.tensor([[2.0]])).solution
    tensor([[0.5000]])
    """
    if b.ndim < 2 or A.ndim < 2:
        raise RuntimeError(
            f"torch.triangular_solve: Expected b and A to have at least 2 dimensions, but they have {b.ndim} and {A.ndim} dimensions instead"
        )
    matrix = A.mT if transpose else A
    solution = _triangular(matrix, b, upper=upper != transpose, unitriangular=unitriangular)
    batch = solution.shape[:-2]
    cloned = OPERATORS["clone"](A.expand((*batch, *A.shape[-2:])), memory_format=_C.contiguous_format)
    return _linalg().errors.give("triangular_solve", out, return_types.triangular_solve(solution, cloned))


@function()
@also_named(tau="input2")
def orgqr(input: Tensor, input2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the product of Householder reflections; see
    :func:`candelabra.linalg.householder_product`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.orgqr(*candelabra.geqrf(candelabra.tensor([[3.0], [4.0]])))
    tensor([[-0.6000],
            [-0.8000]])
    """
    return _linalg().householder_product(input, input2, out=out)


@function(out="exact")
@also_named(input2="tau", input3="other")
def ormqr(
    input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Multiply a matrix by the product Q of Householder reflections.

    Parameters
    ----------
    input : Tensor
        Of shape (..., m, k): the vectors of the reflections, as :func:`candelabra.geqrf` returns
        them.
    tau : Tensor
        Their factors.
    other : Tensor
        The matrix to multiply.
    left : bool
        Whether Q, which is square, is on the left.
    transpose : bool
        Whether to use the conjugate transpose of Q.
    out : Tensor, optional
        The output tensor.

    Examples
    --------
    >>> import candelabra
    >>> a, tau = candelabra.geqrf(candelabra.tensor([[3.0], [4.0]]))
    >>> candelabra.ormqr(a, tau, candelabra.tensor([[3.0], [4.0]]), transpose=True)[0].round(decimals=4)
    tensor([-5.])
    """
    if input.ndim < 2 or other.ndim < 2:
        name = "input" if input.ndim < 2 else "other"
        raise RuntimeError(f"torch.ormqr: {name} must have at least 2 dimensions.")
    m, k = input.shape[-2:]
    side = other.shape[-2 if left else -1]
    if side < tau.shape[-1]:
        raise RuntimeError(
            f"torch.ormqr: other.shape[{-2 if left else -1}] must be greater than or equal to tau.shape[-1], but got {side} and {tau.shape[-1]}"
        )
    if side != m:
        raise RuntimeError(
            f"torch.ormqr: other.shape[{-2 if left else -1}] must be equal to input.shape[-2], but got {side} and {m}"
        )
    if tau.shape[-1] > k:
        raise RuntimeError(
            f"torch.ormqr: tau.shape[-1] must be less than or equal to input.shape[-1], but got {tau.shape[-1]} and {k}"
        )
    if tau.ndim != input.ndim - 1:
        raise RuntimeError(
            f"torch.ormqr: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau.ndim} and input.ndim is equal to {input.ndim}"
        )
    if other.ndim != input.ndim:
        raise RuntimeError(
            f"torch.ormqr: Expected other to have the same number of dimensions as input, but got other.ndim equal to {other.ndim} and input.ndim is equal to {input.ndim}"
        )
    if tuple(tau.shape[:-1]) != tuple(input.shape[:-2]):
        raise RuntimeError(
            f"torch.ormqr: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {list(tau.shape[:-1])}"
        )
    if tuple(other.shape[:-2]) != tuple(input.shape[:-2]):
        raise RuntimeError(
            f"torch.ormqr: Expected batch dimensions of other to be equal to input.shape[:-2], but got {list(other.shape[:-2])}"
        )
    for name, given in (("tau", tau), ("other", other)):
        if given.dtype is not input.dtype:
            raise RuntimeError(
                f"torch.ormqr: Expected input and {name} to have the same dtype, but input has dtype {input.dtype} and {name} has dtype {given.dtype}"
            )
    padded = input
    if k < m:
        padded = OPERATORS["cat"]([input, input.new_zeros((*input.shape[:-2], m, m - k))], -1)
    elif k > m:
        padded = input.narrow(-1, 0, m)
    Q = OPERATORS["linalg_householder_product"](padded, tau)
    Q = Q.mH if transpose else Q
    result = Q @ other if left else other @ Q
    return result if out is None else _C.give_to_out("ormqr", out, result)


def _removed(name: str, instead: str) -> None:
    def removed(*arguments: Any, **keywords: Any) -> Any:
        raise RuntimeError(
            f"This function was deprecated since version 1.9 and is now removed. `torch.{name}` is deprecated in favor of "
            f"`torch.linalg.{instead}`: call candelabra.linalg.{instead} instead."
        )

    removed.__name__ = removed.__qualname__ = name
    removed.__doc__ = f"""Raise an error that names :func:`candelabra.linalg.{instead}`, which took its place.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.{name}(candelabra.eye(2))
    Traceback (most recent call last):
    ...
    RuntimeError: This function was deprecated since version 1.9 and is now removed. `torch.{name}` is deprecated in favor of \
`torch.linalg.{instead}`: call candelabra.linalg.{instead} instead.
    """
    function()(removed)


for _name, _instead in (
    ("symeig", "eigh"),
    ("eig", "eig"),
    ("lstsq", "lstsq"),
    ("solve", "solve"),
    ("matrix_rank", "matrix_rank"),
):
    _removed(_name, _instead)
