"""What the rules for batches look up: signatures of operators, dimensions counted from the
front.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..recording import signature

if TYPE_CHECKING:
    from candelabra import Tensor

    from ..recording import Signature


@functools.cache
def _signature_of(schema: str) -> Signature:
    return signature(schema)


def cached_signature(operator: Any) -> Signature:
    """Give the signature of an operator."""
    return _signature_of(operator.schema)


def wrapped_dim(dim: int, ndim: int) -> int:
    """Count a dimension from the front.

    Raises
    ------
    IndexError
        If there is no such dimension.
    """
    count = max(ndim, 1)
    if not -count <= dim < count:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got {dim})")
    return dim % count


def int_dims(dim: Any) -> list[int]:
    return [int(entry) for entry in (dim if isinstance(dim, (tuple, list)) else (dim,))]


def joined_dims(value: Tensor, dim: int) -> Tensor:
    """Make dimensions `dim` and `dim` + 1 one."""
    return value.reshape((*value.shape[:dim], value.shape[dim] * value.shape[dim + 1], *value.shape[dim + 2 :]))
