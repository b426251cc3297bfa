"""Covariance and correlation of variables."""

from __future__ import annotations

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..movement.views import reshape
from ..registration import function
from ..transformed import any_holds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor

_sum = OPERATORS["sum"]


@function()
def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """Estimate the covariance matrix of variables (rows) from observations (columns).

    Parameters
    ----------
    input : Tensor
        Of shape (variables, observations), or (observations,).
    correction : int
        Subtracted from the number of observations.
    fweights : Tensor, optional
        The frequency of each observation: nonnegative integers.
    aweights : Tensor, optional
        The weight of each observation, nonnegative.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cov(candelabra.tensor([[0.0, 2.0], [1.0, 3.0]]))
    tensor([[2., 2.],
            [2., 2.]])
    """
    if input.ndim > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {input.ndim} dimensions"
        )
    if input.dtype is _C.bool:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = input if input.ndim == 2 else reshape(input, 1, input.numel())
    count = x.shape[1]
    weights: Any = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is None:
            continue
        if given.ndim > 1:
            raise RuntimeError(
                f"cov(): expected {name} to have one or fewer dimensions but got {name} with {given.ndim} dimensions"
            )
        whole = not (given.dtype.is_floating_point or given.dtype.is_complex or given.dtype is _C.bool)
        if name == "fweights" and not whole:
            raise RuntimeError(
                f"cov(): expected fweights to have integral dtype but got fweights with {given.dtype} dtype"
            )
        if name == "aweights" and not given.dtype.is_floating_point:
            raise RuntimeError(
                f"cov(): expected aweights to have floating point dtype but got aweights with {given.dtype} dtype"
            )
        if given.numel() != count:
            raise RuntimeError(
                f"cov(): expected {name} to have the same numel as there are observations in the input but got {given.numel()} != {count}"
            )
        if count and any_holds(given < 0):
            raise RuntimeError(f"cov(): {name} cannot be negative")
        weights = given if weights is None else weights * given
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        x = OPERATORS["_to_copy"](x, dtype=_C.get_default_dtype())
    if weights is not None:
        total = _sum(weights)
        if count and any_holds(total == 0):
            raise RuntimeError("cov(): weights sum to zero, can't be normalized")
        mean = _sum(x * weights, 1, True) / total
        if aweights is None or correction == 0:
            freedom: Any = total - correction
        else:
            freedom = total - correction * _sum(weights * aweights) / total
        freedom = OPERATORS["clamp"](freedom, min=0)
    else:
        mean = OPERATORS["mean"](x, 1, True)
        freedom = max(count - correction, 0)
        if freedom == 0:
            _C.warn(
                "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.",
            )
    centered = x - mean
    weighted = centered if weights is None else centered * weights
    products = OPERATORS["mm"](weighted, OPERATORS["conj_physical"](OPERATORS["transpose"](centered, 0, 1))) / freedom
    return OPERATORS["squeeze"](products)


@function()
def corrcoef(input: Tensor) -> Tensor:
    """Estimate the matrix of correlation coefficients of variables (rows) from observations
    (columns).

    Examples
    --------
    >>> import candelabra
    >>> candelabra.corrcoef(candelabra.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if input.ndim > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {input.ndim} dimensions"
        )
    covariance = cov(input)
    if covariance.ndim == 0:
        return covariance / covariance
    variance = OPERATORS["diagonal"](covariance)
    deviation = OPERATORS["sqrt"](variance.real if variance.dtype.is_complex else variance)
    result = covariance / OPERATORS["unsqueeze"](deviation, 1) / deviation
    # Rounding must not push a coefficient beyond 1.
    if result.dtype.is_complex:
        parts = [OPERATORS["clamp"](part, -1, 1) for part in (result.real, result.imag)]
        return OPERATORS["complex"](parts[0], parts[1])
    return OPERATORS["clamp"](result, -1, 1)
