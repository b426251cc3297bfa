"""Products of matrices and vectors."""

from __future__ import annotations

import candelabra

from .registration import decomposes, wide

TYPE_CHECKING = False
if TYPE_CHECKING:
    from candelabra import Tensor
    from candelabra.types import Number


@decomposes("dot")
def dot(self: Tensor, tensor: Tensor) -> Tensor:
    return candelabra.sum(wide(self) * wide(tensor), dtype=None if self.dtype.is_floating_point else self.dtype)


def _scaled(x: Tensor, factor: Number) -> Tensor:
    return x if factor == 1 else x * candelabra.tensor(factor, dtype=x.dtype, device=x.device)


def _added(self: Tensor, product: Tensor, beta: Number, alpha: Number) -> Tensor:
    product = _scaled(product, alpha)
    # With beta 0, NaN in self is not part of the result.
    return product if beta == 0 else _scaled(wide(self), beta) + product


@decomposes("addmm")
def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, beta: Number, alpha: Number) -> Tensor:
    return _added(self, candelabra.mm(wide(mat1), wide(mat2)), beta, alpha)


@decomposes("baddbmm")
def baddbmm(self: Tensor, batch1: Tensor, batch2: Tensor, beta: Number, alpha: Number) -> Tensor:
    return _added(self, candelabra.bmm(wide(batch1), wide(batch2)), beta, alpha)
