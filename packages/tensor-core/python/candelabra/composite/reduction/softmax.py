"""Decompositions of softmax and log_softmax and their gradients."""

from __future__ import annotations

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..elementwise.elementwise import narrow_to, wide
from ..registration import decomposes, function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor, dtype

_exp = OPERATORS["exp"]
_log = OPERATORS["log"]
_sum = OPERATORS["sum"]
_amax = OPERATORS["amax"]
_contiguous = OPERATORS["contiguous"]


def _prepared(self: Tensor, dtype: dtype | None, name: str) -> Any:
    """Return the input in the dtype of the computation and in row-major order, as the result is,
    and the dtype of the result.
    """
    result = self.dtype if dtype is None else dtype
    if not result.is_floating_point:
        kind = result.name.capitalize().replace("Int64", "Long").replace("Int32", "Int")
        raise NotImplementedError(f"\"{name}\" not implemented for '{kind}'")
    converted = wide(self) if self.dtype is result else narrow_to(self, _C.float32 if result.itemsize == 2 else result)
    return _contiguous(converted), result


@decomposes("softmax")
def softmax(self: Tensor, dim: int, dtype: dtype | None = None) -> Tensor:
    x, made = _prepared(self, dtype, "softmax")
    if x.numel() == 0:
        result = OPERATORS["clone"](x)
    else:
        powers = _exp(x - _amax(x, dim, True).detach())
        result = powers / _sum(powers, dim, True)
    return narrow_to(result, made)


@decomposes("log_softmax")
def log_softmax(self: Tensor, dim: int, dtype: dtype | None = None) -> Tensor:
    x, made = _prepared(self, dtype, "log_softmax")
    if x.numel() == 0:
        result = OPERATORS["clone"](x)
    else:
        shifted = x - _amax(x, dim, True).detach()
        result = shifted - _log(_sum(_exp(shifted), dim, True))
    return narrow_to(result, made)


@decomposes("softmax_backward")
def softmax_backward(grad: Tensor, output: Any, dim: int) -> Tensor:
    g, y = wide(grad), _contiguous(wide(output))
    return narrow_to(y * (g - _sum(g * y, dim, True)), output.dtype)


@decomposes("log_softmax_backward")
def log_softmax_backward(grad: Tensor, output: Any, dim: int) -> Tensor:
    g, y = _contiguous(wide(grad)), wide(output)
    return narrow_to(g - _exp(y) * _sum(g, dim, True), output.dtype)


@function(method=False)
def softmin(input: Tensor, dim: int, dtype: dtype | None = None) -> Tensor:
    """Compute the softmax of ``-input``.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.softmin(candelabra.zeros(2), 0)
    tensor([0.5000, 0.5000])
    """
    return OPERATORS["softmax"](-input, dim, dtype)
