"""Provide linear and bilinear layers."""

from __future__ import annotations

import math
from typing import Any

import candelabra
from candelabra import Tensor

from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module


class Identity(Module):
    """Return the input. The constructor accepts and ignores any arguments.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.Identity(54, unused=True)(candelabra.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    r"""Compute ``input @ weight.T + bias`` over the last dimension.

    The weight has shape (out_features, in_features). Weight and bias are initialized uniformly in
    :math:`\pm 1 / \sqrt{in\_features}`.

    Shapes: input (..., in_features), output (..., out_features).

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.Linear(20, 30)(candelabra.randn(128, 20)).shape
    candelabra.Size([128, 30])
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(candelabra.empty((out_features, in_features), device=device, dtype=dtype))
        self.register_parameter(
            "bias", Parameter(candelabra.empty(out_features, device=device, dtype=dtype)) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize the weight and the bias."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return _linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


_linear = F.linear


class Bilinear(Module):
    r"""Compute ``input1^T weight[k] input2 + bias[k]`` for each output feature k.

    The weight has shape (out_features, in1_features, in2_features). Weight and bias are initialized
    uniformly in :math:`\pm 1 / \sqrt{in1\_features}`.

    Shapes: inputs (..., in1_features) and (..., in2_features), output (..., out_features).

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.Bilinear(2, 3, 4)(candelabra.randn(5, 2), candelabra.randn(5, 3)).shape
    candelabra.Size([5, 4])
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(
            candelabra.empty((out_features, in1_features, in2_features), device=device, dtype=dtype)
        )
        self.register_parameter(
            "bias", Parameter(candelabra.empty(out_features, device=device, dtype=dtype)) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize the weight and the bias."""
        bound = 1 / math.sqrt(self.weight.shape[1])
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


__all__ = ["Bilinear", "Identity", "Linear"]
