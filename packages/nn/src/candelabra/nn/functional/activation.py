"""Implement activation functions."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Tensor, is_grad_enabled, ops
from candelabra.composite.elementwise.elementwise import as_it_was
from candelabra.composite.registration import fast_path

from .dtypes import floating_only, number_of

_relu = ops.relu
_gelu = ops.gelu
_silu = ops.silu
_mish = ops.mish
_elu = ops.elu
_leaky_relu = ops.leaky_relu
_log_sigmoid = ops.log_sigmoid
_softplus = ops.softplus
_hardtanh = ops.hardtanh


def _into(input: Tensor, result: Tensor, inplace: bool) -> Tensor:
    return input.copy_(result) if inplace else result


def _read(input: Tensor, inplace: bool) -> Tensor:
    """Return the input, or a copy if autograd may need its values after an in-place write."""
    return as_it_was(input) if inplace else input


def _given(name: str, out: Tensor | None, result: Tensor) -> Tensor:
    return result if out is None else candelabra._C.give_to_out(name, out, result)


@fast_path(_relu)
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Apply ReLU: ``max(x, 0)``.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.relu(candelabra.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return input.relu_() if inplace else _relu(input)


def relu_(input: Tensor) -> Tensor:
    """Apply `relu` in place."""
    return input.relu_()


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Return ``x`` where it is greater than `threshold`, else `value`."""
    dtype = input.dtype
    if not dtype.is_floating_point:
        if dtype.is_complex or dtype is candelabra.bool:
            floating_only("threshold_cpu", input)
        threshold, value = number_of(dtype, threshold), number_of(dtype, value)
        source = _read(input, inplace)
        return _into(input, candelabra.where(source <= threshold, value, source), inplace)
    return _into(input, ops.threshold(_read(input, inplace), threshold, value), inplace)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Clamp ``x`` to [`min_val`, `max_val`]. The gradient at both bounds is 0.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.hardtanh(candelabra.tensor([-3.0, 0.5, 2.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    if not input.is_floating_point():
        if input.dtype is candelabra.bool:
            raise RuntimeError("Bool inputs not supported for hardtanh; convert with .to(candelabra.float32)")
        if input.dtype is candelabra.uint8 and (min_val < 0 or max_val < 0):
            raise RuntimeError(f"cannot do hardtanh on an unsigned type with negative limits: {min_val} and {max_val}")
        min_val, max_val = int(min_val), int(max_val)
    if inplace and not (input.requires_grad and is_grad_enabled()):
        return input.clamp_(min_val, max_val)
    if not input.is_floating_point():
        return input.clamp(min_val, max_val)
    # clamp passes the gradient through at its bounds; hardtanh does not.
    return _into(input, _hardtanh(_read(input, inplace), min_val, max_val), inplace)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Apply ReLU6: ``min(max(x, 0), 6)``."""
    return hardtanh(input, 0.0, 6.0, inplace)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Apply hard swish: ``x * relu6(x + 3) / 6``. Source: Howard et al., 2019."""
    floating_only("hardswish_cpu", input)
    return _into(input, ops.hardswish(_read(input, inplace)), inplace)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Apply hard sigmoid: ``relu6(x + 3) / 6``. Source: Howard et al., 2019."""
    floating_only("hardsigmoid_cpu", input)
    return _into(input, ops.hardsigmoid(_read(input, inplace)), inplace)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return ``x`` where it is positive, else ``alpha * (exp(x) - 1)``.

    Source: Clevert, Unterthiner and Hochreiter, 2015.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.elu(candelabra.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return _into(input, _elu(_read(input, inplace), alpha), inplace)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Apply SELU: ``scale * elu(x, alpha)``.

    The constants preserve mean 0 and variance 1. Source: Klambauer et al., 2017.
    """
    return _into(
        input,
        _elu(_read(input, inplace), 1.6732632423543772848170429916717, 1.0507009873554804934193349852946),
        inplace,
    )


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Apply CELU: ``max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)``. Source: Barron, 2017."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return _into(input, _elu(_read(input, inplace), alpha, 1.0, 1.0 / alpha), inplace)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Return ``x`` where it is positive, else ``negative_slope * x``."""
    return _into(input, _leaky_relu(_read(input, inplace), negative_slope), inplace)


def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """Apply `leaky_relu` with a random slope per element.

    In training the slopes are drawn from [lower, upper]. Otherwise the slope is the mean of the
    two. Source: Xu et al., 2015.
    """
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    slope = candelabra.empty_like(input).uniform_(lower, upper)
    source = _read(input, inplace)
    return _into(input, source * candelabra.where(source.detach() <= 0, slope, 1.0), inplace)


def gelu(input: Tensor, *, approximate: str = "none", out: Tensor | None = None) -> Tensor:
    """Apply GELU: ``x`` times the standard normal CDF of x.

    ``approximate="tanh"`` approximates the CDF with a hyperbolic tangent.

    Source: Hendrycks and Gimpel, 2016.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.gelu(candelabra.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """
    return _given("gelu", out, _gelu(input, approximate=approximate))


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Apply SiLU, also called swish: ``x * sigmoid(x)``.

    Source: Elfwing, Uchibe and Doya, 2017.
    """
    source = _read(input, inplace)
    return _into(input, source * source.sigmoid() if source.is_complex() else _silu(source), inplace)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Apply Mish: ``x * tanh(softplus(x))``. Source: Misra, 2019."""
    return _into(input, _mish(_read(input, inplace)), inplace)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0, *, out: Tensor | None = None) -> Tensor:
    """Return ``log(1 + exp(beta * x)) / beta``, and x itself where ``beta * x > threshold``."""
    return _given("softplus", out, _softplus(input, beta, threshold))


def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return ``log(sigmoid(x))``, computed without overflow."""
    return _given("logsigmoid", out, _log_sigmoid(input))


@fast_path(ops.sigmoid)
def sigmoid(input: Tensor) -> Tensor:
    """Return the sigmoid, ``1 / (1 + exp(-x))``."""
    return input.sigmoid()


@fast_path(ops.tanh)
def tanh(input: Tensor) -> Tensor:
    """Return the hyperbolic tangent."""
    return input.tanh()


def hardshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """Return ``x`` where its absolute value is greater than `lambd`, else 0."""
    floating_only("hardshrink_cpu", input)
    return _given("hardshrink", out, ops.hardshrink(input, lambd))


def softshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """Shrink ``x`` toward 0 by `lambd`; elements that would change sign become 0.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.softshrink(candelabra.tensor([-2.0, 0.25, 1.0]))
    tensor([-1.5000,  0.0000,  0.5000])
    """
    floating_only("softshrink_cpu", input)
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd}.")
    return _given("softshrink", out, ops.softshrink(input, lambd))


def tanhshrink(input: Tensor) -> Tensor:
    """Return ``x - tanh(x)``."""
    return input - input.tanh()


def softsign(input: Tensor) -> Tensor:
    """Return ``x / (1 + |x|)``."""
    return input / (input.abs() + 1)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Multiply the first half along `dim` by the sigmoid of the second half.

    Source: Dauphin et al., 2016.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.glu(candelabra.tensor([3.0, 0.0]))
    tensor([1.5000])
    """
    floating_only("glu_cpu", input)
    if input.ndim == 0:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    if not -input.ndim <= dim < input.ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-input.ndim}, {input.ndim - 1}], but got {dim})"
        )
    size = input.shape[dim]
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim % input.ndim} is size {size}")
    half = size // 2
    return input.narrow(dim, 0, half) * input.narrow(dim, half, half).sigmoid()


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Return ``x`` where it is positive, else ``weight * x``.

    `weight` holds one value, or one value per channel (dimension 1).

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.prelu(candelabra.tensor([[-4.0, -4.0]]), candelabra.tensor([0.25, 0.5]))
    tensor([[-1., -2.]])
    """
    if input.dtype is not weight.dtype:
        raise RuntimeError(
            f"prelu: Type promoting not supported. Got {input.dtype} and {weight.dtype}; convert one with .to(dtype)"
        )
    floating_only("prelu_cpu", input)
    if weight.ndim > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}")
    if weight.numel() != 1:
        if input.ndim == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = input.shape[1] if input.ndim >= 2 else 1
        if weight.numel() != channels:
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{weight.numel()} and channel size = {channels}."
            )
        weight = weight.reshape(-1, *(1,) * (input.ndim - 2))
    elif weight.ndim == 1 and input.ndim == 0:
        weight = weight.reshape(())
    return ops.prelu(input, weight)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """Sample the Gumbel-softmax distribution: softmax of (logits + Gumbel noise) / tau.

    With `hard` the sample is one-hot and its gradient is that of the soft sample. Source: Jang, Gu
    and Poole, 2017.
    """
    noise = -candelabra.empty_like(logits.detach()).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.detach().argmax(dim, keepdim=True)
    sample = candelabra.zeros_like(soft.detach()).scatter_(dim, index, 1.0)
    return sample - soft.detach() + soft


def _in_place(function: Any) -> Any:
    def changed(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return function(input, *args, **kwargs, inplace=True)

    changed.__name__ = changed.__qualname__ = function.__name__ + "_"
    changed.__doc__ = f"Apply `{function.__name__}` in place."
    return changed


threshold_ = _in_place(threshold)
hardtanh_ = _in_place(hardtanh)
elu_ = _in_place(elu)
selu_ = _in_place(selu)
celu_ = _in_place(celu)
leaky_relu_ = _in_place(leaky_relu)
rrelu_ = _in_place(rrelu)

__all__ = [
    "celu", "celu_", "elu", "elu_", "gelu", "glu", "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "hardtanh_",
    "leaky_relu", "leaky_relu_", "logsigmoid", "mish", "prelu", "relu", "relu6", "relu_", "rrelu", "rrelu_", "selu", "selu_", "sigmoid",
    "silu", "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold", "threshold_",
]  # fmt: skip
