"""``torch.distributions.utils``: private names that libraries of distributions import."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra.distributions import utils

__all__ = ["_lazy_property_and_property", "_standard_normal", "_sum_rightmost", "is_tensor_like"]

_lazy_property_and_property = utils._LazyOfClass
_standard_normal = utils.standard_normal


def _sum_rightmost(value: Any, dim: int) -> Any:
    """Return the sums over the last `dim` dimensions.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.torch.stand_ins.distribution_utils import _sum_rightmost
    >>> _sum_rightmost(candelabra.ones(2, 3, 4), 2)
    tensor([12., 12.])
    """
    return utils.sum_rightmost(value, dim)


def is_tensor_like(inp: Any) -> bool:
    """Return whether a value is a tensor, or stands for one by ``__torch_function__``."""
    return isinstance(inp, candelabra.Tensor) or hasattr(type(inp), "__torch_function__")
