"""Comparison and logic."""

from __future__ import annotations

import candelabra

from .registration import decomposes, tensors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from candelabra import Tensor
    from candelabra.types import Number

    Operand = Tensor | Number


@decomposes("gt")
def gt(self: Operand, other: Operand) -> Tensor:
    a, b = tensors(self, other)
    return candelabra.lt(b, a)


@decomposes("ge")
def ge(self: Operand, other: Operand) -> Tensor:
    a, b = tensors(self, other)
    return candelabra.le(b, a)


@decomposes("logical_not")
def logical_not(self: Tensor) -> Tensor:
    return self == 0


def _truths(self: Operand, other: Operand) -> list[Tensor]:
    return [x != 0 for x in tensors(self, other)]


@decomposes("logical_and")
def logical_and(self: Operand, other: Operand) -> Tensor:
    return candelabra.bitwise_and(*_truths(self, other))


@decomposes("logical_or")
def logical_or(self: Operand, other: Operand) -> Tensor:
    return candelabra.bitwise_or(*_truths(self, other))


@decomposes("logical_xor")
def logical_xor(self: Operand, other: Operand) -> Tensor:
    return candelabra.bitwise_xor(*_truths(self, other))
