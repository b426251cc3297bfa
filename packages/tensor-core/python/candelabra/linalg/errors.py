"""Errors of linear algebra, and helpers that return results."""

from __future__ import annotations

from candelabra import _C
from candelabra.composite.transformed import all_values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor


class LinAlgError(RuntimeError):
    """A matrix cannot be factored or inverted, or an algorithm did not converge.

    Examples
    --------
    >>> import candelabra
    >>> try:
    ...     candelabra.linalg.inv(candelabra.zeros(1, 1))
    ... except candelabra.linalg.LinAlgError as error:
    ...     print(str(error)[:43])
    linalg.inv: The diagonal element 1 is zero,
    """


#: The meaning of numbers in `info`, by the function that reports them; ``{}`` is the number.
_MEANINGS = {
    "inv": "The diagonal element {} is zero, the inversion could not be completed because the input matrix is singular.",
    "cholesky": "The factorization could not be completed because the input is not positive-definite "
    "(the leading minor of order {} is not positive-definite).",
    "solve": "The solver failed because the input matrix is singular.",
    "lu_factor": "U[{0},{0}] is zero and using it on lu_solve would result in a division by zero. "
    "If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)",
    "ldl_factor": "The factorization could not be completed because the block D({}) is exactly zero.",
    "eigh": "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated eigenvalues "
    "(error code: {}).",
    "eig": "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated eigenvalues "
    "(error code: {}).",
    "svd": "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated singular values "
    "(error code: {}).",
}
_NOT_FINITE = "The algorithm failed to converge because the input matrix contained non-finite values."


def check_info(name: str, info: Tensor, kind: str | None = None) -> None:
    """Raise LinAlgError for the first matrix of a batch whose `info` is not 0.

    Parameters
    ----------
    name : str
        The name of the function in the message: ``linalg.inv``.
    info : Tensor
        Of dtype int32, one number per matrix.
    kind : str, optional
        The function that defines the meaning of the numbers; by default the last part of `name`.
    """
    if info.is_meta:
        return
    flat = all_values(info).reshape(-1)
    failed = flat.nonzero()
    if failed.shape[0] == 0:
        return
    first = int(failed[0, 0])
    number = int(flat[first])
    batch = f"(Batch element {first}): " if info.ndim else ""
    meaning = _NOT_FINITE if number < 0 else _MEANINGS[kind or name.rpartition(".")[2]].format(number)
    raise LinAlgError(f"{name}: {batch}{meaning}")


def give(name: str, out: Any, result: Any) -> Any:
    """Return the result, or copy it to `out` if that is given: a tensor, or one for each result."""
    if out is None:
        return result
    if isinstance(out, _C.Tensor):
        return _C.give_to_out(name, out, result)
    return rebuilt(result, _C.give_to_outs(name, out, result))


def rebuilt(result: Any, values: Any) -> Any:
    """Return other values in a tuple of the same type as `result`. Operators return struct
    sequences, functions named tuples.
    """
    if hasattr(result, "n_fields"):
        return type(result)(values)
    return type(result)(*values) if hasattr(result, "_fields") else tuple(values)
