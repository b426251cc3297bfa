"""Provide layers that pad the last one, two or three dimensions."""

from __future__ import annotations

from typing import Any

from candelabra import Tensor

from .. import functional as F
from .module import Module


class _Pad(Module):
    _dims = 1
    _mode = "constant"

    def __init__(self, padding: Any) -> None:
        super().__init__()
        count = 2 * self._dims
        self.padding = (padding,) * count if isinstance(padding, int) else tuple(padding)
        if len(self.padding) != count:
            raise ValueError(f"padding of {type(self).__name__} must be one number or {count}, but got {self.padding}")

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """Pad the last dimension with a constant.

    `padding` is (before, after), or one number for both.
    """


class ConstantPad2d(_ConstantPad):
    """Pad the last two dimensions with a constant.

    `padding` is (left, right, top, bottom), or one number for all.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.ConstantPad2d((1, 0, 0, 1), 7.0)(candelabra.ones(1, 1, 1))
    tensor([[[7., 1.],
             [7., 7.]]])
    """

    _dims = 2


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_ZeroPad):
    """Pad the last dimension with zeros."""


class ZeroPad2d(_ZeroPad):
    """Pad the last two dimensions with zeros."""

    _dims = 2


class ReflectionPad1d(_Pad):
    """Pad the last dimension by reflection; the edge is not repeated.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.ReflectionPad1d(2)(candelabra.arange(4.0).reshape(1, 4))
    tensor([[2., 1., 0., 1., 2., 3., 2., 1.]])
    """

    _mode = "reflect"


class ReflectionPad2d(_Pad):
    """Pad the last two dimensions by reflection; the edges are not repeated."""

    _dims = 2
    _mode = "reflect"


class ReplicationPad1d(_Pad):
    """Pad the last dimension by repeating its edge."""

    _mode = "replicate"


class ReplicationPad2d(_Pad):
    """Pad the last two dimensions by repeating their edges."""

    _dims = 2
    _mode = "replicate"


class _CircularPad(_Pad):
    _mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (self._dims + 1, self._dims + 2):
            raise ValueError(f"expected {self._dims + 1}D or {self._dims + 2}D input (got {input.ndim}D input)")
        return super().forward(input)


class CircularPad1d(_CircularPad):
    """Pad the last dimension by wrapping around."""


class CircularPad2d(_CircularPad):
    """Pad the last two dimensions by wrapping around."""

    _dims = 2


class ConstantPad3d(_ConstantPad):
    """Pad the last three dimensions with a constant.

    `padding` has six numbers, last dimension first, or is one number for all.
    """

    _dims = 3


class ZeroPad3d(_ZeroPad):
    """Pad the last three dimensions with zeros."""

    _dims = 3


class ReflectionPad3d(_Pad):
    """Pad the last three dimensions by reflection; the edges are not repeated."""

    _dims = 3
    _mode = "reflect"


class ReplicationPad3d(_Pad):
    """Pad the last three dimensions by repeating their edges."""

    _dims = 3
    _mode = "replicate"


class CircularPad3d(_CircularPad):
    """Pad the last three dimensions by wrapping around."""

    _dims = 3


__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]
