"""Layers that work on each element, and softmax: one row of a table each."""

from __future__ import annotations

import candelabra
from candelabra import Tensor, autograd
from candelabra.nn import functional

from .base import parse_type
from .function import layer
from .module import Module


def square_root(input: Tensor) -> Tensor:
    """Return the square root, whose gradient at zero is zero as in Torch 7."""
    positive = input != 0
    return candelabra.where(positive, candelabra.where(positive, input, 1).sqrt(), 0)


def _class_dim(input: Tensor) -> int:
    """Return the dimension of the classes: images and vectors without a batch have it first."""
    if input.dim() not in (1, 2, 3, 4):
        raise RuntimeError(f"expected a tensor of 1 to 4 dimensions, got {input.dim()}")
    return 0 if input.dim() % 2 else 1


# ---- without settings

Abs = layer("Abs", lambda input: input.abs(), "Compute absolute values.")
Exp = layer("Exp", lambda input: input.exp(), "Compute the exponential function.")
Log = layer("Log", lambda input: input.log(), "Compute natural logarithms.")
Sqrt = layer("Sqrt", square_root, "Compute square roots; the gradient at zero is zero.")
Square = layer("Square", lambda input: input * input, "Compute squares.")
Sigmoid = layer("Sigmoid", lambda input: input.sigmoid(), "Compute the logistic function.")
LogSigmoid = layer("LogSigmoid", functional.logsigmoid, "Compute the logarithm of the logistic function.")
Tanh = layer("Tanh", lambda input: input.tanh(), "Compute hyperbolic tangents.")
TanhShrink = layer("TanhShrink", lambda input: input - input.tanh(), "Compute `x - tanh(x)`.")
SoftSign = layer("SoftSign", functional.softsign, "Compute `x / (1 + |x|)`.")
Identity = layer("Identity", lambda input: input, "Return the input.")
Contiguous = layer("Contiguous", lambda input: input.contiguous(), "Return the input in contiguous memory.")

SoftMax = layer(
    "SoftMax",
    lambda input: input.softmax(_class_dim(input)),
    "Compute softmax over the classes: over dim 1 of batches and 0 of single vectors and images.",
)
SpatialSoftMax = layer(
    "SpatialSoftMax", lambda input: input.softmax(_class_dim(input)), "Compute softmax over the channels of images."
)
LogSoftMax = layer(
    "LogSoftMax",
    lambda input: input.log_softmax(_class_dim(input)),
    "Compute the logarithm of softmax over the classes.",
)
SpatialLogSoftMax = layer(
    "SpatialLogSoftMax",
    lambda input: input.log_softmax(_class_dim(input)),
    "Compute the logarithm of softmax over the channels of images.",
)
SoftMin = layer("SoftMin", lambda input: (-input).softmax(_class_dim(input)), "Compute softmax of the negated input.")

# ---- with settings

ReLU = layer("ReLU", lambda input, inplace=False: input.relu(), "Compute `max(x, 0)`.")
ReLU6 = layer("ReLU6", lambda input, inplace=False: functional.relu6(input), "Compute `min(max(x, 0), 6)`.")
LeakyReLU = layer(
    "LeakyReLU",
    lambda input, negval=1 / 100, inplace=False: functional.leaky_relu(input, negval),
    "Compute `x` where positive, and `negval * x` elsewhere.",
)
ELU = layer(
    "ELU",
    lambda input, alpha=1.0, inplace=False: functional.elu(input, alpha),
    "Compute `x` where positive, and `alpha * (exp(x) - 1)` elsewhere.",
)
Threshold = layer(
    "Threshold",
    lambda input, threshold=0, value=0, inplace=False: functional.threshold(input, threshold, value),
    "Return the input where it exceeds a threshold, and a value elsewhere.",
    torch7_names={"val": "value"},
)
HardTanh = layer(
    "HardTanh",
    lambda input, min_value=-1, max_value=1, inplace=False: functional.hardtanh(input, min_value, max_value),
    "Clamp the input to an interval.",
    torch7_names={"min_val": "min_value", "max_val": "max_value"},
)
Clamp = layer(
    "Clamp",
    lambda input, min_value, max_value, inplace=False: functional.hardtanh(input, min_value, max_value),
    "Clamp the input to an interval.",
    torch7_names={"min_val": "min_value", "max_val": "max_value"},
)
SoftPlus = layer(
    "SoftPlus",
    lambda input, beta=1, threshold=20: functional.softplus(input, beta, threshold),
    "Compute `log(1 + exp(beta * x)) / beta`.",
)
SoftShrink = layer(
    "SoftShrink",
    lambda input, lambd=0.5: functional.softshrink(input, lambd),
    "Move the input towards zero by `lambd`.",
    torch7_names={"lambda": "lambd"},
)
HardShrink = layer(
    "HardShrink",
    lambda input, lambd=0.5: functional.hardshrink(input, lambd),
    "Set elements within `lambd` of zero to zero.",
    torch7_names={"lambda": "lambd"},
)
Power = layer("Power", lambda input, pow: input.pow(pow), "Raise the input to a power.")
AddConstant = layer(
    "AddConstant", lambda input, constant_scalar, inplace=False: input + constant_scalar, "Add a constant."
)
MulConstant = layer(
    "MulConstant", lambda input, constant_scalar, inplace=False: input * constant_scalar, "Multiply by a constant."
)
GatedLinearUnit = layer(
    "GatedLinearUnit",
    lambda input, dim=-1: functional.glu(input, dim),
    "Multiply the first half of the input by the logistic function of the second.",
    one_based=("dim",),
)


# ---- layers whose gradient is not that of their output


class _ScaleGradient(autograd.Function):
    """The identity, whose gradient is multiplied by a factor."""

    @staticmethod
    def forward(ctx, input, factor):  # type: ignore[no-untyped-def]
        ctx.factor = factor
        return input.view_as(input)

    @staticmethod
    def backward(ctx, grad_output):  # type: ignore[no-untyped-def]
        return grad_output * ctx.factor, None


GradientReversal = layer(
    "GradientReversal",
    lambda input, lambd=1: _ScaleGradient.apply(input, -lambd),
    "Return the input; the gradient is negated and multiplied by `lambd`.",
    torch7_names={"lambda": "lambd"},
)


class L1Penalty(Module):
    """Return the input, and add the gradient of its L1 norm to the gradient that comes back.

    Parameters
    ----------
    l1weight
        The factor of the norm.
    sizeAverage
        Whether the norm is divided by the number of elements.
    provideOutput
        Whether the gradient that comes back counts.
    """

    _parameter_names = ()
    sizeAverage = False
    provideOutput = True

    def __init__(self, l1weight: float, sizeAverage: bool = False, provideOutput: bool = True) -> None:
        super().__init__()
        self.l1weight = l1weight
        self.sizeAverage = sizeAverage
        self.provideOutput = provideOutput
        self.loss = 0.0

    def _penalty(self, input: Tensor) -> Tensor:
        scale = self.l1weight / input.numel() if self.sizeAverage else self.l1weight
        return input.abs().sum() * scale

    def _prepare(self, input: Tensor) -> None:
        self.loss = float(self._penalty(input))

    def _compute(self, input: Tensor, *parameters: Tensor) -> list[Tensor]:
        return [input, self._penalty(input)]

    def updateOutput(self, input: Tensor) -> Tensor:
        """Return the input, and keep the penalty in ``loss``."""
        self.output = super().updateOutput(input)[0]
        return self.output

    def updateGradInput(self, input: Tensor, gradOutput: Tensor) -> Tensor:
        """Compute the gradient of the penalty, plus what comes back."""
        above = gradOutput if self.provideOutput else candelabra.zeros_like(gradOutput)
        return super().updateGradInput(input, [above, candelabra.ones((), dtype=input.dtype, device=input.device)])


class Copy(Module):
    """Convert the input to another type, and the gradient back.

    Parameters
    ----------
    intype
        The type of the input. It is not needed, since tensors know theirs.
    outtype
        The type of the output: a dtype, or a name such as ``'torch.FloatTensor'``.
    """

    _parameter_names = ()
    outtype: object = "torch.FloatTensor"

    def __init__(self, intype: object = None, outtype: object = "torch.FloatTensor", dontCast: bool = False) -> None:
        super().__init__()
        self.intype = intype
        self.outtype = outtype
        self.dontCast = dontCast

    def _compute(self, input: Tensor, *parameters: Tensor) -> Tensor:
        dtype, device = parse_type(self.outtype)
        return input.to(device=device, dtype=dtype)
