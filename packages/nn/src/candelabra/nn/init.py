"""Initialize tensors in place, without autograd, and return them.

For a weight ``(out, in, *kernel)``, ``fan_in = in * product(kernel)`` and ``fan_out = out *
product(kernel)``.
"""

from __future__ import annotations

import contextlib
import functools
import math
import threading
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec

import candelabra
from candelabra import _C, Tensor, no_grad

P = ParamSpec("P")
_state = threading.local()


@contextlib.contextmanager
def skipped() -> Iterator[None]:
    """Make the functions of this module no-ops in this thread while the context is active.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> with nn.init.skipped():
    ...     nn.init.ones_(candelabra.zeros(2))
    tensor([0., 0.])
    """
    before = getattr(_state, "skipped", False)
    _state.skipped = True
    try:
        yield
    finally:
        _state.skipped = before


def _fills(function: Callable[P, Tensor]) -> Callable[P, Tensor]:
    """Wrap a function that fills its first argument, so that `skipped` disables it."""

    @functools.wraps(function)
    def fill(*args: P.args, **kwargs: P.kwargs) -> Tensor:
        if getattr(_state, "skipped", False):
            tensor: Any = args[0] if args else kwargs["tensor"]
            return tensor
        return function(*args, **kwargs)

    return fill


def _overridable(function: Callable[P, Tensor]) -> Callable[P, Tensor]:
    """Let ``__torch_function__`` of the tensor's class take over a function."""
    made: Any = _C.OverridableFunction(function)
    return made  # type: ignore[no-any-return]


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the recommended gain for an activation.

    The gain scales the weights so that the activation preserves the variance.

    Parameters
    ----------
    nonlinearity
        ``"linear"``, ``"conv1d"`` and the like, ``"sigmoid"``: 1; ``"tanh"``: 5/3; ``"relu"``:
        sqrt(2); ``"leaky_relu"``: sqrt(2 / (1 + slope^2)); ``"selu"``: 3/4.
    param
        Slope of leaky_relu. Default: 0.01.

    Raises
    ------
    ValueError
        If the name is unknown or the slope is NaN.

    Examples
    --------
    >>> from candelabra import nn
    >>> nn.init.calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity in (
        "linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid",
    ):  # fmt: skip
        return 1.0
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif isinstance(param, int | float) and not isinstance(param, bool):
            slope = float(param)
        else:
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


@_overridable
@_fills
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with samples from the uniform distribution on [a, b).

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> bool((nn.init.uniform_(candelabra.empty(100), 2, 3) >= 2).all())
    True
    """
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


@_overridable
@_fills
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with samples from the normal distribution."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


@_fills
def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Fill with samples from the normal distribution truncated to [a, b].

    Uniform samples are transformed with the inverse distribution function.
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        _C.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect.",
        )

    def below(x: float) -> float:
        return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0

    low, high = below((a - mean) / std), below((b - mean) / std)
    with no_grad():
        # What is refused must be refused before anything is written.
        made = candelabra.empty_like(tensor).uniform_(2 * low - 1, 2 * high - 1, generator=generator)
        made.erfinv_().mul_(std * math.sqrt(2.0)).add_(mean).clamp_(a, b)
        return tensor.copy_(made)


@_overridable
@_fills
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one value."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    return constant_(tensor, 0.0)


@_fills
def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.init.eye_(candelabra.empty(2, 3))
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        tensor.zero_()
        tensor.diagonal().fill_(1)
    return tensor


@_fills
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill a convolution weight so that the convolution copies its input channels.

    If the channel counts differ, only the first channels are copied.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.init.dirac_(candelabra.empty(1, 1, 3))
    tensor([[[0., 1., 0.]]])
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    out_channels = tensor.shape[0]
    if out_channels % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = out_channels // groups
    middle = tuple(length // 2 for length in tensor.shape[2:])
    with no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, tensor.shape[1])):
                tensor[(group * per_group + channel, channel, *middle)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """Return the fans: the inputs per output, and the outputs per input."""
    if tensor.ndim < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


@_fills
def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill uniformly in +-gain * sqrt(6 / (fan_in + fan_out)). Source: Glorot and Bengio, 2010."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    bound = gain * math.sqrt(6.0 / (fan_in + fan_out))
    return uniform_(tensor, -bound, bound, generator)


@_fills
def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with normal samples of standard deviation gain * sqrt(2 / (fan_in + fan_out)).

    Source: Glorot and Bengio, 2010.
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / (fan_in + fan_out)), generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


@_overridable
@_fills
def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Fill uniformly in +-gain * sqrt(3 / fan). Source: He et al., 2015.

    The fan depends on `mode` and the gain on `nonlinearity`.

    Parameters
    ----------
    tensor
        Weight with two or more dimensions.
    a
        Slope of leaky_relu.
    mode
        ``"fan_in"`` preserves the variance in the forward pass, ``"fan_out"`` in the backward pass.
    nonlinearity
        See `calculate_gain`.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> bool((nn.init.kaiming_uniform_(candelabra.empty(8, 6)).abs() <= 1).all())
    True
    """
    if 0 in tensor.shape:
        _C.warn("Initializing zero-element tensors is a no-op")
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


@_fills
def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Fill with normal samples of standard deviation gain / sqrt(fan); see `kaiming_uniform_`."""
    if 0 in tensor.shape:
        _C.warn("Initializing zero-element tensors is a no-op")
        return tensor
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def _orthonormal_columns(matrix: Tensor) -> Tensor:
    """Return the factor Q of the QR decomposition of a tall matrix.

    Uses Householder reflections. The diagonal of R is positive.

    Source: Golub and Van Loan, Matrix Computations, algorithms 5.1.1 and 5.2.1.
    """
    rows, columns = matrix.shape
    work = matrix.clone()
    reflections: list[tuple[int, Tensor]] = []
    signs: list[float] = []
    for j in range(columns):
        x = work[j:, j].clone()
        norm = float(x.square().sum().sqrt())
        first = float(x[0])
        alpha = -norm if first >= 0 else norm  # the diagonal entry of R
        signs.append(1.0 if alpha >= 0 else -1.0)
        x[0] = first - alpha
        length = float(x.square().sum())
        if length > 0:
            v = (x * math.sqrt(2.0 / length)).reshape(-1, 1)
            block = work[j:, j:]
            block.sub_(v @ (v.transpose(0, 1) @ block))
            reflections.append((j, v))
    q = candelabra.zeros(rows, columns, dtype=matrix.dtype, device=matrix.device)
    q.diagonal().fill_(1)
    for j, v in reversed(reflections):
        block = q[j:]
        block.sub_(v @ (v.transpose(0, 1) @ block))
    return q * candelabra.tensor(signs, dtype=matrix.dtype, device=matrix.device)


@_fills
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Fill with a random orthogonal matrix times `gain`. Source: Saxe et al., 2013.

    The rows or the columns are orthonormal, whichever are fewer.

    A tensor with more than two dimensions is flattened to two, from dimension 1 on.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> q = nn.init.orthogonal_(candelabra.empty(3, 5))
    >>> bool(candelabra.allclose(q @ q.t(), candelabra.eye(3), atol=1e-5))
    True
    """
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    half = tensor.dtype in (candelabra.float16, candelabra.bfloat16)
    with no_grad():
        flat = candelabra.empty(
            (rows, columns), dtype=candelabra.float32 if half else tensor.dtype, device=tensor.device
        ).normal_(0, 1, generator=generator)  # fmt: skip
        q = _orthonormal_columns(flat) if rows >= columns else _orthonormal_columns(flat.t().contiguous()).t()
        tensor.copy_(q.reshape(tensor.shape) * gain)
    return tensor


@_fills
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Fill a matrix with normal samples and zero the fraction `sparsity` of each column.

    Source: Martens, 2010.
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            chosen = candelabra.randperm(rows, device=tensor.device)[:zeros]
            tensor.select(1, column).index_fill_(0, chosen, 0)
    return tensor


def _renamed(function: Any) -> Any:
    name = function.__name__.removesuffix("_")

    def older(*args: Any, **kwargs: Any) -> Tensor:
        _C.warn(
            f"`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`.", FutureWarning
        )  # fmt: skip
        return function(*args, **kwargs)

    older.__name__ = older.__qualname__ = name
    older.__doc__ = f"Call `{function.__name__}`, which replaces this function."
    return older


uniform = _renamed(uniform_)
normal = _renamed(normal_)
constant = _renamed(constant_)
eye = _renamed(eye_)
dirac = _renamed(dirac_)
xavier_uniform = _renamed(xavier_uniform_)
xavier_normal = _renamed(xavier_normal_)
kaiming_uniform = _renamed(kaiming_uniform_)
kaiming_normal = _renamed(kaiming_normal_)
orthogonal = _renamed(orthogonal_)
sparse = _renamed(sparse_)

__all__ = [
    "calculate_gain", "constant_", "dirac_", "eye_", "kaiming_normal_", "kaiming_uniform_", "normal_", "ones_", "orthogonal_",
    "sparse_", "trunc_normal_", "uniform_", "xavier_normal_", "xavier_uniform_", "zeros_",
]  # fmt: skip
