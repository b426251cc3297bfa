"""Transforms onto the simplex."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Size, Tensor

from .. import constraints
from ..utils import log_sigmoid
from .base import Transform


class SoftmaxTransform(Transform):
    """``y = softmax(x)``, which maps onto the simplex but is not one-to-one.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions import SoftmaxTransform
    >>> SoftmaxTransform()(candelabra.zeros(2))
    tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SoftmaxTransform)

    __hash__ = object.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return candelabra.softmax(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        return self.forward_shape(shape)


class StickBreakingTransform(Transform):
    """Map K numbers to the simplex of K + 1 numbers by stick breaking.

    ``z_k = sigmoid(x_k - log(K + 1 - k))`` for k from 1, and ``y_k = z_k * (1 - z_1) ... (1 -
    z_{k-1})``. Zeros are mapped to equal parts. Source: Stan Development Team, Stan Reference
    Manual, "Unit simplex".

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions import StickBreakingTransform
    >>> StickBreakingTransform()(candelabra.zeros(3))
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StickBreakingTransform)

    __hash__ = object.__hash__

    @staticmethod
    def _offsets(x: Tensor) -> Tensor:
        count = x.shape[-1]
        return candelabra.arange(count, 0, -1, dtype=x.dtype, device=x.device).log()

    def _call(self, x: Tensor) -> Tensor:
        z = candelabra.sigmoid(x - self._offsets(x))
        left = (1 - z).cumprod(-1)
        ones = z.new_ones((*z.shape[:-1], 1))
        return candelabra.cat([z, ones], -1) * candelabra.cat([ones, left], -1)

    def _inverse(self, y: Tensor) -> Tensor:
        kept = y[..., :-1]
        left = (1 - kept.cumsum(-1)).clamp(min=candelabra.finfo(y.dtype).tiny)
        return kept.log() - left.log() + self._offsets(kept)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - self._offsets(x)
        # The Jacobian is triangular, with y_k (1 - z_k) on the diagonal.
        return (-x + log_sigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return Size(shape[:-1]) + Size((shape[-1] + 1,))

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return Size(shape[:-1]) + Size((shape[-1] - 1,))
