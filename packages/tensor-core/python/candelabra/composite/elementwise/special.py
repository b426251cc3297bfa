"""Special functions composed of others."""

from __future__ import annotations

import math

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..elementwise.elementwise import as_it_was
from ..registration import function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from candelabra._C import Tensor


@function(method=False)
def polygamma(n: int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the n-th derivative of the digamma function.

    Parameters
    ----------
    n : int
        The order, at least 0; 0 is :func:`candelabra.digamma`.
    input : Tensor
        Of any shape; integers become the default dtype.
    out : Tensor, optional
        The output tensor.

    Notes
    -----
    ``(-1)**(n + 1) * n! * zeta(n + 1, input)``: Abramowitz and Stegun, 6.4.10.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.polygamma(1, candelabra.tensor([1.0]))
    tensor([1.6449])
    """
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    if n == 0:
        result = OPERATORS["digamma"](input)
    else:
        x = input
        if not x.dtype.is_floating_point:
            x = OPERATORS["_to_copy"](x, dtype=_C.get_default_dtype())
        sign = 1.0 if n % 2 else -1.0
        if n <= 20:
            result = OPERATORS["special_zeta"](float(n + 1), x) * (sign * math.factorial(n))
        else:
            # The factorial overflows half precision, and then single precision, long before the
            # product does.
            wide = OPERATORS["_to_copy"](x, dtype=_C.float64)
            factor = math.factorial(n) * 1.0 if n <= 170 else math.inf
            result = OPERATORS["_to_copy"](
                OPERATORS["special_zeta"](float(n + 1), wide) * (sign * factor), dtype=x.dtype
            )
    return result if out is None else _C.give_to_out("polygamma", out, result)


@function(name="polygamma", package=False)
def _polygamma_method(self: Tensor, n: int) -> Tensor:
    """Compute :func:`candelabra.polygamma` of this tensor."""
    return polygamma(n, self)


@function(package=False)
def polygamma_(self: Tensor, n: int) -> Tensor:
    """Compute :func:`candelabra.polygamma` in place."""
    return self.copy_(polygamma(n, as_it_was(self)))


@function()
def mvlgamma(input: Tensor, p: int, *, out: Tensor | None = None) -> Tensor:
    """Compute the logarithm of the multivariate gamma function of dimension p.

    Parameters
    ----------
    input : Tensor
        Elements larger than (p - 1) / 2; integers become the default dtype.
    p : int
        At least 1.
    out : Tensor, optional
        The output tensor.

    Notes
    -----
    ``p (p - 1) / 4 log(pi) + sum_j lgamma(input - j / 2)`` for j from 0 to p - 1.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.mvlgamma(candelabra.tensor([2.0]), 2)
    tensor([0.4516])
    """
    if p < 1:
        raise RuntimeError(f"mvlgamma: p has to be greater than or equal to 1, but got {p}")
    x = input
    if not x.dtype.is_floating_point:
        if x.dtype is _C.bool or x.dtype.is_complex:
            raise RuntimeError(f"mvlgamma: result type of {x.dtype} is not a floating-point dtype")
        x = OPERATORS["_to_copy"](x, dtype=_C.get_default_dtype())
    steps = OPERATORS["arange"](0, p, 1, dtype=x.dtype, device=x.device) * -0.5
    terms = OPERATORS["lgamma"](OPERATORS["unsqueeze"](x, -1) + steps)
    result = OPERATORS["sum"](terms, -1) + p * (p - 1) / 4 * math.log(math.pi)
    return result if out is None else _C.give_to_out("mvlgamma", out, result)


@function(package=False)
def mvlgamma_(self: Tensor, p: int) -> Tensor:
    """Compute :func:`candelabra.mvlgamma` in place."""
    return self.copy_(mvlgamma(as_it_was(self), p))
