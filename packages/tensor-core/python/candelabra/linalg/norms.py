"""Norms of vectors and matrices, condition numbers and ranks."""

from __future__ import annotations

from candelabra import _C
from candelabra._C import Tensor as Tensor_
from candelabra._C import int64
from candelabra.catalogue import OPERATORS
from candelabra.composite.keyword_names import also_named
from candelabra.composite.movement.views import wrap_dim
from candelabra.composite.registration import function, out_rule

from .errors import give
from .solving import epsilon, inv_ex
from .spectral import eigvalsh, svdvals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor, dtype


@also_named(input="x", axis="dim", keepdims="keepdim")
def vector_norm(
    x: Tensor,
    ord: Any = 2,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: dtype | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Compute a vector norm of all elements, or along dimensions.

    Parameters
    ----------
    x : Tensor
        Floating point or complex.
    ord : number
        The order.
    dim : int or sequence of int, optional
        The dimensions to reduce; all by default.
    keepdim : bool
        Whether to keep them, with size 1.
    dtype : dtype, optional
        The dtype of the computation.
    out : Tensor, optional
        The output tensor.

    Returns
    -------
    Tensor
        ``(sum |x|^ord)^(1/ord)``; inf and -inf give the largest and the smallest magnitude, 0 the
        number of elements not zero.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.vector_norm(candelabra.tensor([3.0, 4.0]))
    tensor(5.)
    """
    compute = OPERATORS["linalg_vector_norm"]
    return (
        compute(x, ord, dim, keepdim, dtype=dtype)
        if out is None
        else compute(x, ord, dim, keepdim, dtype=dtype, out=out)
    )


@out_rule("linalg_matrix_norm", "exact")
@also_named(input="A", axis="dim", keepdims="keepdim")
def matrix_norm(
    A: Tensor,
    ord: Any = "fro",
    dim: Any = (-2, -1),
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
        ``"fro"``; ``"nuc"``, the sum of singular values; 2 and -2, the largest and the smallest of
        them; 1 and -1, the largest and the smallest sum of magnitudes of a column; inf and -inf, of
        a row.
    dim : pair of int
        The dimensions of the matrices.
    keepdim : bool
        Whether to keep them, with size 1.
    dtype : dtype, optional
        The dtype of the computation.
    out : Tensor, optional
        The output tensor.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.matrix_norm(candelabra.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor(5.)
    """
    if not (A.dtype.is_floating_point or A.dtype.is_complex):
        raise RuntimeError(
            f"linalg.matrix_norm: Expected a floating point or complex tensor as input. Got {_type_name(A)}"
        )
    if A.ndim < 2:
        raise RuntimeError(
            f"linalg.matrix_norm: The input tensor A must have at least 2 dimensions, but its shape is {list(A.shape)}"
        )
    if isinstance(dim, int) or len(dim) != 2:
        raise RuntimeError(
            f"linalg.matrix_norm: dim must be a 2-tuple. Got {dim if isinstance(dim, int) else list(dim)}"
        )
    rows, columns = (wrap_dim(d, A.ndim) for d in dim)
    if rows == columns:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    if dtype is not None:
        A = OPERATORS["_to_copy"](A, dtype=_norm_dtype(A, dtype))
    if isinstance(ord, str):
        if ord not in ("fro", "nuc"):
            raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    elif abs(ord) not in (1, 2, float("inf")):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if ord == "fro":
        return vector_norm(A, 2, (rows, columns), keepdim, out=out)
    if ord in ("nuc", 2, -2):
        values = svdvals(OPERATORS["movedim"](A, (rows, columns), (-2, -1)))
        result = (
            OPERATORS["sum"](values, -1) if ord == "nuc" else OPERATORS["amax" if ord == 2 else "amin"](values, (-1,))
        )
        if keepdim:
            for d in sorted((rows, columns)):
                result = OPERATORS["unsqueeze"](result, d)
        return give("linalg_matrix_norm", out, result)
    summed, kept = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = vector_norm(A, 1, (summed,), True)
    result = OPERATORS["amax" if ord > 0 else "amin"](sums, (kept,), True)
    if not keepdim:
        result = OPERATORS["squeeze"](OPERATORS["squeeze"](result, max(rows, columns)), min(rows, columns))
    return give("linalg_matrix_norm", out, result)


def _type_name(A: Tensor) -> str:
    return {"int64": "Long", "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool"}.get(
        A.dtype.name, A.dtype.name
    )


def _norm_dtype(A: Tensor, dtype: dtype) -> dtype:
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"linalg.matrix_norm: dtype should be floating point or complex. Got {dtype}")
    if A.dtype.is_complex and not dtype.is_complex:
        raise RuntimeError(f"linalg.matrix_norm: dtype should be complex for complex inputs. Got {dtype}")
    return dtype


@function(method=False)
def nuclear_norm(input: Tensor, dim: Any = (0, 1), keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Compute the sum of the singular values; ``candelabra.linalg.matrix_norm(input, "nuc")`` takes
    its place.

    Parameters
    ----------
    input : Tensor
        A matrix, or of more dimensions with `dim`.
    dim : pair of int
        The dimensions of the matrices.
    keepdim : bool
        Whether they stay, of size 1.
    out : Tensor, optional
        Where the result is written.

    Raises
    ------
    RuntimeError
        Where `dim` names no two dimensions; where `input` is no matrix and `dim` is left out.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.nuclear_norm(candelabra.tensor([[3.0, 0.0], [0.0, -4.0]]))
    tensor(7.)
    """
    _C.warn("nuclear_norm is deprecated. Please use `linalg.matrix_norm(A, 'nuc', dim, keepdim)` instead")
    if isinstance(dim, bool):
        dim, keepdim = (0, 1), dim
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    return matrix_norm(input, "nuc", dims, keepdim, out=out)


@out_rule("linalg_norm", "exact")
@also_named(input="A", axis="dim", keepdims="keepdim")
def norm(
    A: Tensor,
    ord: Any = None,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: dtype | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Compute a vector norm, or a matrix norm where `ord` is given for a matrix or `dim` names two
    dimensions.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.norm(candelabra.tensor([3.0, 4.0]))
    tensor(5.)
    """
    if isinstance(ord, str) or (
        ord is not None and (A.ndim == 2 if dim is None else not isinstance(dim, int) and len(dim) == 2)
    ):
        if dim is None:
            if A.ndim != 2:
                raise RuntimeError(
                    f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.ndim}D."
                )
            dim = (0, 1)
        return matrix_norm(A, ord, dim, keepdim, dtype=dtype, out=out)
    if ord is not None and dim is None and A.ndim > 2:
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.ndim}D."
        )
    return vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype, out=out)


@also_named(input="A")
def cond(A: Tensor, p: Any = None, *, out: Tensor | None = None) -> Tensor:
    """Compute condition numbers: ``norm(A) * norm(inv(A))``.

    Parameters
    ----------
    A : Tensor
        Of shape (..., m, n), square unless `p` is None, 2 or -2.
    p : str or number, optional
        The norm, as in :func:`candelabra.linalg.matrix_norm`; None stands for 2.
    out : Tensor, optional
        The output tensor.

    Returns
    -------
    Tensor
        Of shape (...); inf for singular matrices.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.cond(candelabra.tensor([[2.0, 0.0], [0.0, 1.0]]))
    tensor(2.)
    """
    if A.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if p is None or p in (2, -2):
        if A.shape[-1] == 0 or A.shape[-2] == 0:
            return give("linalg_cond", out, vector_norm(A, 1, (-2, -1)))
        values = svdvals(A)
        first, last = (OPERATORS["select"](values, -1, position) for position in (0, -1))
        return give("linalg_cond", out, last / first if p == -2 else first / last)
    if A.shape[-1] != A.shape[-2]:
        raise RuntimeError(
            f"linalg.cond with norm order not None, 2 or -2: A must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} matrices"
        )
    if not isinstance(p, str) and abs(p) not in (1, float("inf")):
        raise RuntimeError(f"linalg.cond got an invalid norm order: {p}")
    if isinstance(p, str) and p not in ("fro", "nuc"):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if A.numel() == 0:
        return give("linalg_cond", out, vector_norm(A, 1, (-2, -1)))
    if p == "nuc":
        inverse, info = inv_ex(A)
        result = matrix_norm(A, p) * matrix_norm(
            OPERATORS["where"]((info != 0).unsqueeze(-1).unsqueeze(-1), 0, inverse), p
        )
    else:
        inverse, info = inv_ex(A)
        result = matrix_norm(A, p) * matrix_norm(inverse, p)
    return give("linalg_cond", out, OPERATORS["where"](info != 0, float("inf"), result))


@also_named(input="A")
def matrix_rank(
    A: Tensor,
    tol: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """Compute the ranks of matrices: the number of singular values larger than a tolerance.

    Parameters
    ----------
    A : Tensor
        Of shape (..., m, n).
    tol : float or Tensor, optional
        NumPy's name of `atol`.
    hermitian : bool
        Whether A is Hermitian. Then eigenvalues are used, which is faster.
    atol, rtol : float or Tensor, optional
        The tolerance is ``max(atol, rtol * largest)``; by default 0 and, where `atol` is not given
        either, epsilon times max(m, n).
    out : Tensor, optional
        The output tensor.

    Returns
    -------
    Tensor
        Of shape (...) and dtype int64.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linalg.matrix_rank(candelabra.ones(2, 2))
    tensor(1)
    """
    if A.ndim < 2:
        raise RuntimeError("torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions.")
    if tol is not None:
        atol, rtol = tol, 0.0
    for given, kind in ((atol, "atol"), (rtol, "rtol")):
        if isinstance(given, Tensor_) and given.dtype.is_complex:
            raise RuntimeError(
                f"torch.linalg.matrix_rank: {kind} tensor of complex type is not supported. Got {given.dtype}"
            )
    if A.numel() == 0:
        return give("linalg_matrix_rank", out, A.new_zeros(A.shape[:-2], dtype=int64))
    values = OPERATORS["abs"](eigvalsh(A.detach())) if hermitian else svdvals(A.detach())
    if rtol is None:
        # A positive atol alone determines the tolerance, matrix by matrix.
        rtol = epsilon(A) * max(A.shape[-2:])
        if isinstance(atol, Tensor_):
            rtol = OPERATORS["where"](atol > 0, 0.0, OPERATORS["_to_copy"](atol, dtype=values.dtype) * 0 + rtol)
        elif atol is not None and atol > 0:
            rtol = 0.0
    largest = OPERATORS["amax"](values, (-1,), True)

    def column(given: Any) -> Any:
        return OPERATORS["unsqueeze"](given, -1) if isinstance(given, Tensor_) else given

    tolerance = OPERATORS["maximum"](largest * column(rtol), largest * 0 + column(0.0 if atol is None else atol))
    return give("linalg_matrix_rank", out, OPERATORS["sum"](values > tolerance, -1))
