"""Pooling composed of other pooling."""

from __future__ import annotations

from candelabra.catalogue import OPERATORS

from ..registration import decomposes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from candelabra._C import Tensor


@decomposes("max_pool_values")
def max_pool_values(
    self: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> Any:
    return OPERATORS["max_pool"](self, kernel_size, stride, padding, dilation, ceil_mode)[0]
