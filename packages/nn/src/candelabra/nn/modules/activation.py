"""Provide activation layers."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Tensor

from .. import functional as F
from ..init import constant_ as _constant_
from ..parameter import Parameter
from .module import Module


def _inplace(module: Any, text: str = "") -> str:
    """Append the repr of ``inplace`` to `text` if the module works in place."""
    return ", ".join(part for part in (text, "inplace=True" if module.inplace else "") if part)


class Threshold(Module):
    """Return ``x`` where it is greater than `threshold`, else `value`."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return _inplace(self, f"threshold={self.threshold}, value={self.value}")


class ReLU(Module):
    """Apply ReLU: ``max(x, 0)``.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.ReLU()(candelabra.tensor([-1.0, 0.0, 2.0]))
    tensor([0., 0., 2.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, self.inplace)

    def extra_repr(self) -> str:
        return _inplace(self)


class RReLU(Module):
    """Apply `LeakyReLU` with a random slope per element.

    In training the slopes are drawn from [lower, upper]. In evaluation the slope is the mean of the
    two.

    Source: Xu et al., 2015.
    """

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return _inplace(self, f"lower={self.lower}, upper={self.upper}")


class Hardtanh(Module):
    """Clamp ``x`` to [`min_val`, `max_val`].

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.Hardtanh()(candelabra.tensor([-1.0, 0.0, 2.0]))
    tensor([-1.,  0.,  1.])
    """

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        if max_val <= min_val:
            raise AssertionError(f"max_val must be larger than min_val, but got min_val={min_val}, max_val={max_val}")
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return _inplace(self, f"min_val={self.min_val}, max_val={self.max_val}")


class ReLU6(Hardtanh):
    """Apply ReLU6: ``min(max(x, 0), 6)``."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return _inplace(self)


class Sigmoid(Module):
    """Apply the sigmoid: ``1 / (1 + exp(-x))``.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.Sigmoid()(candelabra.zeros(2))
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return input.sigmoid()


class Hardsigmoid(Module):
    """Apply hard sigmoid: ``relu6(x + 3) / 6``. Source: Howard et al., 2019."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)


class Tanh(Module):
    """Apply the hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        return input.tanh()


class SiLU(Module):
    """Apply SiLU, also called swish: ``x * sigmoid(x)``.

    Source: Elfwing, Uchibe and Doya, 2017.
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)

    def extra_repr(self) -> str:
        return _inplace(self)


class Mish(Module):
    """Apply Mish: ``x * tanh(softplus(x))``. Source: Misra, 2019."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)

    def extra_repr(self) -> str:
        return _inplace(self)


class Hardswish(Module):
    """Apply hard swish: ``x * relu6(x + 3) / 6``. Source: Howard et al., 2019."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)


class ELU(Module):
    """Return ``x`` where it is positive, else ``alpha * (exp(x) - 1)``.

    Source: Clevert, Unterthiner and Hochreiter, 2015.
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return _inplace(self, f"alpha={self.alpha}")


class CELU(Module):
    """Apply CELU: ``max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)``. Source: Barron, 2017."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return _inplace(self, f"alpha={self.alpha}")


class SELU(Module):
    """Apply a scaled `ELU` that preserves mean 0 and variance 1 from layer to layer.

    Source: Klambauer et al., 2017.
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)

    def extra_repr(self) -> str:
        return _inplace(self)


class GLU(Module):
    """Multiply the first half along `dim` by the sigmoid of the second half.

    Source: Dauphin et al., 2016.
    """

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class GELU(Module):
    """Apply GELU: ``x`` times the standard normal CDF of x.

    ``approximate="tanh"`` approximates the CDF with a hyperbolic tangent.

    Source: Hendrycks and Gimpel, 2016.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.GELU()(candelabra.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.1587,  0.0000,  1.9545])
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Hardshrink(Module):
    """Return ``x`` where its absolute value is greater than `lambd`, else 0."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class LeakyReLU(Module):
    """Return ``x`` where it is positive, else ``negative_slope * x``."""

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return _inplace(self, f"negative_slope={self.negative_slope}")


class LogSigmoid(Module):
    """Return ``log(sigmoid(x))``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Softplus(Module):
    """Return ``log(1 + exp(beta * x)) / beta``, and x itself where ``beta * x > threshold``."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Softshrink(Module):
    """Shrink ``x`` toward 0 by `lambd`; elements that would change sign become 0."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class PReLU(Module):
    """Apply `LeakyReLU` with a trained slope.

    There is one slope for all channels, or one per channel if `num_parameters` is the number of
    channels.

    Source: He et al., 2015.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.PReLU()(candelabra.tensor([-4.0, 2.0])).detach()
    tensor([-1.,  2.])
    """

    weight: Parameter

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(candelabra.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the slope to `init`."""
        _constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Softsign(Module):
    """Return ``x / (1 + |x|)``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    """Return ``x - tanh(x)``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class Softmin(Module):
    """Apply the softmax to -x along `dim`."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(Module):
    """Return ``exp(x) / sum(exp(x))`` along `dim`: positive numbers that sum to 1.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.Softmax(dim=0)(candelabra.zeros(2))
    tensor([0.5000, 0.5000])
    """

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class LogSoftmax(Module):
    """Return the logarithm of the softmax along `dim`."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax2d(Module):
    """Apply the softmax over the channels at each pixel. Shapes: (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return F.softmax(input, -3)


__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SELU",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]
