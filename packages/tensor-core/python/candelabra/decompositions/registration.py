"""Registration of decompositions, and what most of them need."""

from __future__ import annotations

import candelabra
from candelabra.catalogue import OPERATORS
from candelabra.composite.elementwise.elementwise import narrow_to, wide

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from candelabra import Tensor
    from candelabra.types import Number

    Function = TypeVar("Function", bound=Callable[..., Any])

__all__ = ["decomposes", "from_parts", "narrow_to", "parts", "tensors", "wide", "write"]

#: Writes a tensor without bumping its version: the core does, once for the operator.
write = OPERATORS["copy_"].uncounted


def decomposes(*names: str, real: bool = False) -> Callable[[Function], Function]:
    """Register the decorated function as the decomposition of these primitives.

    The function gets the arguments of a kernel in the order of the schema: tensors of the dtypes
    and sizes of the kernel contract, Python numbers, tuples. It returns a tensor, or a tuple of
    tensors for several results, which the core converts to the dtype of the output. It returns
    NotImplemented for a call that it does not compute; `real` does so for complex tensors. An
    operator that changes its lists in place returns nothing.
    """

    def register(decomposition: Function) -> Function:
        for name in names:
            OPERATORS[name].decomposition = _of_real_numbers(decomposition) if real else decomposition
        return decomposition

    return register


def _of_real_numbers(decomposition: Callable[..., Any]) -> Callable[..., Any]:
    def decompose(*arguments: Any) -> Any:
        if any(isinstance(value, candelabra.Tensor) and value.dtype.is_complex for value in arguments):
            return NotImplemented
        return decomposition(*arguments)

    return decompose


def tensors(*values: Tensor | Number | None) -> list[Any]:
    """Return the numbers among the operands as tensors without dimensions, like the first
    tensor.
    """
    like = next(value for value in values if isinstance(value, candelabra.Tensor))
    return [
        value if value is None or isinstance(value, candelabra.Tensor) else like.new_full((), value) for value in values
    ]


def parts(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the real and the imaginary parts of a complex tensor, as views."""
    pairs = candelabra.view_as_real(x)
    return pairs.select(-1, 0), pairs.select(-1, 1)


def from_parts(real: Tensor, imaginary: Tensor) -> Tensor:
    """Return the complex tensor with these parts."""
    return candelabra.view_as_complex(candelabra.stack((real, imaginary), -1))
