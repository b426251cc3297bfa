"""Orthogonal polynomials by their three-term recurrences."""

from __future__ import annotations

import candelabra

from .registration import decomposes, tensors, wide

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from candelabra import Tensor
    from candelabra.types import Number

    # next(x, k, p_k, p_(k-1)) = p_(k+1)
    Step = Callable[[Tensor, int, Tensor, Tensor], Tensor]
    First = Callable[[Tensor], Tensor]

where = candelabra.where


def _chebyshev(x: Tensor, k: int, value: Tensor, before: Tensor) -> Tensor:
    return 2 * x * value - before


#: The polynomial of degree 1, and the step to the next degree.
_FAMILIES: dict[str, tuple[First, Step]] = {
    "chebyshev_polynomial_t": (lambda x: x, _chebyshev),
    "chebyshev_polynomial_u": (lambda x: 2 * x, _chebyshev),
    "chebyshev_polynomial_v": (lambda x: 2 * x - 1, _chebyshev),
    "chebyshev_polynomial_w": (lambda x: 2 * x + 1, _chebyshev),
    "hermite_polynomial_h": (lambda x: 2 * x, lambda x, k, value, before: 2 * (x * value - k * before)),
    "hermite_polynomial_he": (lambda x: x, lambda x, k, value, before: x * value - k * before),
    "laguerre_polynomial_l": (
        lambda x: 1 - x,
        lambda x, k, value, before: ((2 * k + 1 - x) * value - k * before) / (k + 1),
    ),
    "legendre_polynomial_p": (
        lambda x: x,
        lambda x, k, value, before: ((2 * k + 1) * x * value - k * before) / (k + 1),
    ),
}


def _values(x: Tensor, degree: Tensor, first: First, step: Step) -> Tensor:
    x, degree = candelabra.broadcast_tensors(x, degree)
    value, before = first(x), candelabra.ones_like(x)
    result = where(degree == 0, before, where(degree == 1, value, candelabra.zeros_like(x)))
    last = int(degree.amax()) if degree.numel() else 0
    for k in range(1, last):
        following = step(x, k, value, before)
        # An overflow stays infinite, where the recurrence has a difference of infinities.
        value, before = where(following == following, following, value), value
        result = where(degree == k + 1, value, result)
    return where(x == x, result, x)


def _register(name: str, first: First, step: Step, shifted: bool) -> None:
    @decomposes(name, real=True)
    def polynomial(x: Tensor | Number, n: Tensor | Number) -> Any:
        point, degree = (wide(value) for value in tensors(x, n))
        return _values(2 * point - 1 if shifted else point, candelabra.trunc(degree), first, step)


for _name, (_first, _step) in _FAMILIES.items():
    _register(f"special_{_name}", _first, _step, shifted=False)
    if _name.startswith("chebyshev"):
        _register(f"special_shifted_{_name}", _first, _step, shifted=True)
