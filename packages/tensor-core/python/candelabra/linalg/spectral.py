"""Eigenvalues and singular values."""

from __future__ import annotations

from candelabra import return_types
from candelabra.catalogue import OPERATORS
from candelabra.composite.keyword_names import also_named
from candelabra.composite.registration import out_rule
from candelabra.composite.transformed import is_differentiated

from .errors import check_info, give

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor

_eigh_ex = OPERATORS["linalg_eigh_ex"]
_eig_ex = OPERATORS["linalg_eig_ex"]
_svd_ex = OPERATORS["linalg_svd_ex"]


def _triangle(name: str, uplo: str) -> str:
    if not isinstance(uplo, str):
        raise TypeError(f"{name}(): argument 'UPLO' must be str, not {type(uplo).__name__}")
    return uplo.upper()


@out_rule("linalg_eigh", "exact")
@also_named(input="A")
def eigh(A: Tensor, UPLO: str = "L", *, out: Any = None) -> Any:
    """Compute the eigenvalues, in ascending order, and eigenvectors of Hermitian matrices: ``A = V
    @ diag(w) @ V.mH``.

    Parameters
    ----------
    A : Tensor
        Of shape (..., n, n).
    UPLO : str
        The triangle to read: ``"L"`` or ``"U"``.
    out : pair of Tensor, optional
        The output tensors.

    Returns
    -------
    (eigenvalues, eigenvectors)
        The values are real; the vectors, of norm 1, are columns.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.eigh(candelabra.tensor([[2.0, 1.0], [1.0, 2.0]])).eigenvalues
    tensor([1., 3.])
    """
    values, vectors, info = _eigh_ex(A, _triangle("linalg_eigh", UPLO))
    check_info("linalg.eigh", info)
    return give("linalg_eigh", out, return_types.linalg_eigh(values, vectors))


@out_rule("linalg_eigvalsh", "exact")
@also_named(input="A")
def eigvalsh(A: Tensor, UPLO: str = "L", *, out: Tensor | None = None) -> Tensor:
    """Compute the eigenvalues of Hermitian matrices, in ascending order; see
    :func:`candelabra.linalg.eigh`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.eigvalsh(candelabra.tensor([[2.0, 1.0], [1.0, 2.0]]))
    tensor([1., 3.])
    """
    values, _, info = _eigh_ex(A, _triangle("linalg_eigvalsh", UPLO), is_differentiated(A))
    check_info("linalg.eigh", info)
    return give("linalg_eigvalsh", out, values)


@also_named(input="A")
def eig(A: Tensor, *, out: Any = None) -> Any:
    """Compute the eigenvalues and eigenvectors of square matrices: ``A @ V = V @ diag(w)``.

    Parameters
    ----------
    A : Tensor
        Of shape (..., n, n).
    out : pair of Tensor, optional
        The output tensors.

    Returns
    -------
    (eigenvalues, eigenvectors)
        Complex, in no particular order; the vectors, of norm 1, are columns.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.eig(candelabra.tensor([[0.0, -1.0], [1.0, 0.0]])).eigenvalues
    tensor([0.+1.j, 0.-1.j])
    """
    values, vectors, info = _eig_ex(A)
    check_info("linalg.eig", info)
    return give("linalg_eig", out, return_types.linalg_eig(values, vectors))


@also_named(input="A")
def eigvals(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the eigenvalues of square matrices; see :func:`candelabra.linalg.eig`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.eigvals(candelabra.tensor([[2.0, 0.0], [0.0, 1.0]]))
    tensor([2.+0.j, 1.+0.j])
    """
    values, _, info = _eig_ex(A, is_differentiated(A))
    check_info("linalg.eig", info)
    return give("linalg_eigvals", out, values)


def _check_driver(name: str, driver: str | None) -> None:
    if driver is not None:
        raise RuntimeError(
            f"{name}: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )


@out_rule("linalg_svd", "exact")
def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None, out: Any = None) -> Any:
    """Compute the singular value decomposition: ``A = U @ diag(S) @ Vh``.

    Parameters
    ----------
    A : Tensor
        Of shape (..., m, n).
    full_matrices : bool
        Whether U (..., m, m) and Vh (..., n, n) are square; else they have k columns and rows, k
        the smaller of m and n.
    driver : str, optional
        For CUDA only.
    out : three of Tensor, optional
        The output tensors.

    Returns
    -------
    (U, S, Vh)
        S is real and descending.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.svd(candelabra.tensor([[0.0, 2.0], [1.0, 0.0]])).S
    tensor([2., 1.])
    """
    _check_driver("linalg.svd", driver)
    U, S, Vh, info = _svd_ex(A, full_matrices)
    check_info("linalg.svd", info)
    return give("linalg_svd", out, return_types.linalg_svd(U, S, Vh))


@out_rule("linalg_svdvals", "exact")
def svdvals(A: Tensor, *, driver: str | None = None, out: Tensor | None = None) -> Tensor:
    """Compute the singular values, in descending order; see :func:`candelabra.linalg.svd`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.svdvals(candelabra.tensor([[0.0, 2.0], [1.0, 0.0]]))
    tensor([2., 1.])
    """
    _check_driver("linalg.svdvals", driver)
    _, S, _, info = _svd_ex(A, False, is_differentiated(A))
    check_info("linalg.svd", info)
    return give("linalg_svdvals", out, S)
