"""Gradients of random operators.

Fills do not depend on the overwritten values. Dropout passes gradients of the elements it kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..table import derivative
from .parts import zeros_like

if TYPE_CHECKING:
    from candelabra import Tensor

for _name in ("uniform_", "normal_", "bernoulli_", "exponential_", "random_range_"):
    derivative(_name, self=lambda grad: zeros_like(grad))


def _dropout(grad: Tensor, result1: Tensor, p: float) -> Tensor:
    return zeros_like(grad) if p == 1 else grad * result1 * (1 / (1 - p))


derivative("bernoulli", self=lambda grad: zeros_like(grad))
derivative("native_dropout", input=_dropout)
