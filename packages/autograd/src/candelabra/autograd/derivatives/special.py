"""Gradients of special functions.

They follow from differential equations and recurrences (Abramowitz and Stegun, 6.4, 6.5.25,
9.6.27).
"""

from __future__ import annotations

import math
from typing import Any

import candelabra
from candelabra import Tensor, ops
from candelabra.catalogue import OPERATORS

from ..table import derivative


def _over(value: Tensor, x: Tensor, at_zero: float) -> Tensor:
    """Return value / x, or `at_zero` where x is 0."""
    zero = x == 0
    return candelabra.where(zero, at_zero, value / candelabra.where(zero, 1, x))


derivative("i0", self=lambda grad, self: grad * ops.special_i1(self))
derivative("special_i0e", self=lambda grad, self, result: grad * (ops.special_i1e(self) - self.sgn() * result))
derivative("special_i1", self=lambda grad, self, result: grad * (self.i0() - _over(result, self, 0.5)))
derivative(
    "special_i1e",
    self=lambda grad, self, result: grad * (ops.special_i0e(self) - self.sgn() * result - _over(result, self, 0.5)),
)
derivative("special_entr", self=lambda grad, self: grad * -(1 + self.log()))
derivative("special_erfcx", self=lambda grad, self, result: grad * (2 * self * result - 2 / math.sqrt(math.pi)))
derivative("special_ndtr", self=lambda grad, self: grad * ((self * self * -0.5).exp() * (1 / math.sqrt(2 * math.pi))))
derivative(
    "special_log_ndtr",
    self=lambda grad, self: grad * (math.sqrt(2 / math.pi) / ops.special_erfcx(self * -math.sqrt(0.5))),
)
derivative("special_ndtri", self=lambda grad, result: grad * (math.sqrt(2 * math.pi) * (result * result / 2).exp()))
derivative(
    "special_xlog1py",
    broadcast=True,
    self=lambda grad, self, other: grad * _log1p(self, other),
    other=lambda grad, self, other: grad * self / (other + 1),
)


def _log1p(x: Any, y: Any) -> Tensor:
    """Return log1p(y), or 0 where x is 0 and y <= -1, because the product is 0 there."""
    y = y if isinstance(y, Tensor) else candelabra.full_like(x, y)
    return candelabra.where((x == 0) & (y <= -1), 0.0, y.log1p())


def _refuse(name: str, argument: str) -> Any:
    def refuse(grad: Tensor) -> Tensor:
        raise NotImplementedError(f"the derivative for '{argument}' of {name} is not implemented, in PyTorch neither.")

    return refuse


derivative(
    "special_zeta",
    broadcast=True,
    self=_refuse("zeta", "self"),
    other=lambda grad, self, other: grad * -self * ops.special_zeta(self + 1.0, other),
)


def _gamma_density(self: Tensor, other: Tensor) -> Tensor:
    return ((self - 1) * other.log() - other - self.lgamma()).exp()


derivative(
    "igamma",
    broadcast=True,
    self=_refuse("igamma", "input"),
    other=lambda grad, self, other: grad * _gamma_density(self, other),
)
derivative(
    "igammac",
    broadcast=True,
    self=_refuse("igammac", "input"),
    other=lambda grad, self, other: -grad * _gamma_density(self, other),
)
derivative("frexp", self=lambda grad, result1: grad / (2.0**result1).to(grad.dtype))

#: Special functions that PyTorch does not differentiate either.
WITHOUT_GRADIENT = tuple(
    name
    for name in OPERATORS
    if name.startswith("special_") and any(part in name for part in ("bessel", "airy", "polynomial"))
)
for _name in WITHOUT_GRADIENT:
    _title = _name.removeprefix("special_")
    _formulas = {name: _refuse(_title, name) for name in OPERATORS[_name].parameters}
    derivative(_name, broadcast=len(_formulas) > 1, **_formulas)
