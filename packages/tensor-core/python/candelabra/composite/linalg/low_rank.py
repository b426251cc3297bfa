"""A few of the largest singular values or eigenvalues of large matrices, by random subspaces and
iteration.
"""

from __future__ import annotations

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..registration import FUNCTIONS, function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor

_qr = OPERATORS["linalg_qr"]


def _basis(A: Tensor, q: int, niter: int) -> Tensor:
    """Return orthonormal columns that approximately span the dominant subspace of q dimensions
    (Halko, Martinsson and Tropp, algorithm 4.4).
    """
    random = FUNCTIONS["randn"](A.shape[-1], q, dtype=A.dtype, device=A.device)
    Q = _qr(A @ random)[0]
    for _ in range(niter):
        Q = _qr(A.mH @ Q)[0]
        Q = _qr(A @ Q)[0]
    return Q


@function(method=False)
def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> Any:
    """Approximate the q largest singular values and their vectors: ``A = U @ diag(S) @ V.mH``.

    Parameters
    ----------
    A : Tensor
        Of shape (..., m, n).
    q : int
        The number of singular values. A few more than needed improve the accuracy.
    niter : int
        How many times the subspace is improved.
    M : Tensor, optional
        Subtracted from A first.

    Returns
    -------
    (U, S, V)

    Notes
    -----
    Halko, Martinsson and Tropp, "Finding structure with randomness", 2009, algorithms 4.4 and 5.1.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.svd_lowrank(candelabra.eye(3), q=3)[1].round(decimals=3)
    tensor([1., 1., 1.])
    """
    from candelabra import linalg

    count = 6 if q is None else q
    x = A if M is None else A - M
    wide = x.shape[-2] < x.shape[-1]
    if wide:
        x = x.mH
    Q = _basis(x, count, 2 if niter is None else niter)
    U, S, Vh = linalg.svd(Q.mH @ x, full_matrices=False)
    U, V = Q @ U, Vh.mH
    return (V, S, U) if wide else (U, S, V)


@function(method=False)
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> Any:
    """Approximate the q first principal components of the rows of A; see
    :func:`candelabra.svd_lowrank`.

    Parameters
    ----------
    A : Tensor
        Of shape (..., m, n).
    q : int, optional
        The number of components; by default ``min(6, m, n)``.
    center : bool
        Whether to subtract the mean of each column first.
    niter : int
        How many times the subspace is improved.

    Returns
    -------
    (U, S, V)

    Examples
    --------
    >>> import candelabra
    >>> candelabra.pca_lowrank(candelabra.eye(3), q=2)[1].round(decimals=3)
    tensor([1., 1.])
    """
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if not (A.dtype.is_floating_point or A.dtype.is_complex):
        A = OPERATORS["_to_copy"](A, dtype=_C.get_default_dtype())
    return svd_lowrank(A - OPERATORS["mean"](A, -2, True) if center else A, q, niter)


def _orthonormal(basis: Tensor, B: Tensor | None) -> Tensor:
    """Return a basis of the same space, orthonormal in B, without directions that are lost in
    rounding.
    """
    from candelabra import finfo, linalg

    gram = basis.mH @ (basis if B is None else B @ basis)
    values, vectors = linalg.eigh(gram)
    kept = OPERATORS["amax"](values.reshape(-1, values.shape[-1]), (0,)) > float(finfo(basis.dtype).eps) * 10 * float(
        values.max()
    )
    places = kept.nonzero().reshape(-1)
    vectors, values = vectors.index_select(-1, places), values.index_select(-1, places)
    return basis @ (vectors / values.clamp(min=float(finfo(basis.dtype).tiny)).sqrt().unsqueeze(-2))


@function(method=False)
def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Any = None,
    ortho_iparams: Any = None,
    ortho_fparams: Any = None,
    ortho_bparams: Any = None,
) -> tuple[Tensor, Tensor]:
    """Compute the k largest or smallest eigenvalues of symmetric positive-definite matrices, and
    their eigenvectors.

    Parameters
    ----------
    A : Tensor
        Of shape (..., m, m).
    k : int, optional
        The number of eigenvalues; by default 1, or the number of columns of `X`.
    B : Tensor, optional
        Of shape (..., m, m), for the generalized problem ``A x = w B x``.
    X : Tensor, optional
        The initial vectors, of shape (..., m, n).
    n : int, optional
        The number of vectors to iterate; k by default.
    iK : Tensor, optional
        The preconditioner, an approximate inverse of A.
    niter : int, optional
        The maximum number of iterations; 1000 by default.
    tol : float, optional
        The tolerance of residuals, relative to A and the vectors; by default the square root of the
        dtype's epsilon.
    largest : bool
        Whether to compute the largest eigenvalues (the default) or the smallest.
    method, tracker, ortho_iparams, ortho_fparams, ortho_bparams
        PyTorch's variants. They must be None; `method` may also be ``"ortho"`` or ``"basic"``.

    Returns
    -------
    (eigenvalues, vectors)

    Notes
    -----
    Knyazev, "Toward the optimal preconditioned eigensolver: locally optimal block preconditioned
    conjugate gradient method", 2001; the basis is kept orthonormal as Duersch, Shao, Yang and Gu,
    2018, advise.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.lobpcg(candelabra.tensor([3.0, 2.0, 1.0, 0.5, 0.2, 0.1]).diag(), k=1)[0].round(decimals=3)
    tensor([3.])
    """
    from candelabra import finfo, linalg

    if method not in (None, "ortho", "basic"):
        raise ValueError(f"lobpcg: unknown method {method!r}: 'ortho' or 'basic'")
    if any(given is not None for given in (tracker, ortho_iparams, ortho_fparams, ortho_bparams)):
        raise NotImplementedError("lobpcg: tracker and the parameters of orthogonalization are not part of Candelabra")
    m = A.shape[-1]
    if A.ndim < 2 or A.shape[-2] != m:
        raise ValueError(f"lobpcg: A has to be square matrices, but its shape is {list(A.shape)}")
    k = (1 if X is None else X.shape[-1]) if k is None else k
    count = (k if X is None else X.shape[-1]) if n is None else n
    if m < 3 * count:
        raise ValueError(
            f"LPBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x the number of requested eigenpairs (={count})"
        )
    tolerance = float(finfo(A.dtype).eps) ** 0.5 if tol is None else tol
    if X is None:
        X = FUNCTIONS["randn"](*A.shape[:-2], m, count, dtype=A.dtype, device=A.device)
    descending = largest is None or largest

    def chosen(basis: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        values, vectors = linalg.eigh(basis.mH @ (A @ basis))
        if descending:
            values, vectors = values.flip(-1), vectors.flip(-1)
        first = vectors[..., :count]
        return values[..., :count], basis @ first, first

    values, X, _ = chosen(_orthonormal(X, B))
    scale = linalg.matrix_norm(A).max()
    direction: Any = None
    for _ in range(1000 if niter is None or niter < 0 else niter):
        residual = A @ X - (X if B is None else B @ X) * values.unsqueeze(-2)
        if bool((linalg.vector_norm(residual, dim=-2) <= tolerance * scale * linalg.vector_norm(X, dim=-2)).all()):
            break
        search = residual if iK is None else iK @ residual
        parts = [X, search] if direction is None else [X, search, direction]
        basis = _orthonormal(OPERATORS["cat"](parts, -1), B)
        before = X
        values, X, _ = chosen(basis)
        # The change of the vectors in this step.
        inner = before.mH @ (X if B is None else B @ X)
        direction = X - before @ inner
    return values[..., :k], X[..., :k]
