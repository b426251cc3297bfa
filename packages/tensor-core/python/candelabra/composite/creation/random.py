"""Random tensors, on the generators of the devices."""

from __future__ import annotations

import math

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..creation.creation import check_layout, finish, memory_for, size_argument, sizes_of
from ..creation.like import memory_like
from ..creation.number_ranges import EXACT, LARGEST, check_bounds, warn_of_precision
from ..movement.broadcasting import broadcast_shape
from ..registration import FUNCTIONS, decomposes, fallback, function
from ..transformed import any_holds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from candelabra._C import Generator, Tensor, dtype, memory_format
    from candelabra.types import Device

_real_uniform_ = OPERATORS["uniform_"]
_real_normal_ = OPERATORS["normal_"]


def _uniform_(self: Tensor, *arguments: Any, **names: Any) -> Tensor:
    """Fill in place; real and imaginary parts of complex tensors are drawn independently."""
    if isinstance(self, _C.Tensor) and self.dtype.is_complex:
        _real_uniform_(OPERATORS["view_as_real"](self), *arguments, **names)
        return self
    return _real_uniform_(self, *arguments, **names)


def _normal_(self: Tensor, mean: Any = 0, std: Any = 1, **names: Any) -> Tensor:
    """Fill in place; the variances of the parts of complex tensors add up to ``std**2``."""
    if isinstance(self, _C.Tensor) and self.dtype.is_complex:
        _real_normal_(OPERATORS["view_as_real"](self), mean, std * 0.5**0.5, **names)
        return self
    return _real_normal_(self, mean, std, **names)


def _new_uniform(made: Tensor, generator: Generator | None) -> Tensor:
    """Fill a new tensor without incrementing its version."""
    _real_uniform_.uncounted(OPERATORS["view_as_real"](made) if made.dtype.is_complex else made, generator=generator)
    return made


def _new_normal(made: Tensor, generator: Generator | None, mean: Any = 0, std: Any = 1) -> Tensor:
    """As :func:`_new_uniform`."""
    if made.dtype.is_complex:
        _real_normal_.uncounted(OPERATORS["view_as_real"](made), mean, std * 0.5**0.5, generator=generator)
        return made
    return _real_normal_.uncounted(made, mean, std, generator=generator)


@function(name="uniform_", package=False)
def uniform_(self: Tensor, from_: float = 0, to: float = 1, **names: Any) -> Tensor:
    """Fill with numbers drawn uniformly from ``from`` to ``to``; both parts of complex tensors.

    Parameters
    ----------
    from, to : float
        The ends.
    generator : Generator, optional
        The device's by default.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.empty(2).uniform_(1, 1)
    tensor([1., 1.])
    """
    from_ = names.pop("from", from_)
    most = LARGEST.get(self.dtype)
    if most is not None and to - from_ > most:
        raise RuntimeError(
            f"uniform_ expects to-from to be at most {most} for {self.dtype}, but found to={to} and from={from_}, whose difference exceeds it"
        )
    return _uniform_(self, from_, to, **names)


@function(name="normal_", package=False)
def normal_(self: Tensor, mean: float = 0, std: float = 1, *, generator: Any = None) -> Tensor:
    """Fill with normally distributed numbers.

    Parameters
    ----------
    mean, std : float
        Mean and standard deviation. Each part of complex numbers has this mean; their variances add
        up to ``std**2``.
    generator : Generator, optional
        The device's by default.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.empty(2).normal_(1.0, 0.0)
    tensor([1., 1.])
    """
    return _normal_(self, mean, std, generator=generator)


_bernoulli_ = OPERATORS["bernoulli_"]
_random_range_ = OPERATORS["random_range_"]
_empty = OPERATORS["empty"]
_empty_like = OPERATORS["empty_like"]


@decomposes("native_dropout")
def native_dropout(input: Tensor, p: float, *, generator: Generator | None = None) -> Any:
    draws = _empty_like(input, dtype=_C.float32)
    mask = _uniform_(draws, generator=generator) >= p
    scale = 1 / (1 - p) if p < 1 else 0.0
    return OPERATORS["where"](mask, input, 0) * scale, mask


@function()
def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Zero random elements with probability `p`, and scale the others by ``1 / (1 - p)``.

    Parameters
    ----------
    input : Tensor
    p : float
        The probability of an element to be zeroed.
    train : bool
        If False, return the input unchanged.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.dropout(candelabra.ones(2), 0.5, False)
    tensor([1., 1.])
    """
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")
    return OPERATORS["native_dropout"](input, p)[0] if train and p > 0 else input


# ---- new tensors


def _check_drawn(name: str, out: Tensor) -> None:
    """Raise for dtypes that cannot be drawn, before `out` is resized."""
    if not (out.dtype.is_floating_point or out.dtype.is_complex):
        raise NotImplementedError(f'"{name}" not implemented for {out.dtype}; give a floating-point tensor as out=')


@function(method=False)
def rand(
    *size: Any,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    **names: Any,
) -> Tensor:
    """Draw from the uniform distribution on [0, 1).

    Parameters
    ----------
    *size : int or sequence of int
        The sizes.
    generator : Generator, optional
        The random generator; by default the device's.
    out, dtype, device, requires_grad
        As in :func:`candelabra.zeros`; the dtype is floating point.

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.rand(3)
    >>> bool(((x >= 0) & (x < 1)).all())
    True
    """
    size = size_argument(size, names, "rand") if names else sizes_of(size)
    if out is None and layout is None and not pin_memory and not requires_grad:
        return _new_uniform(_empty(size, dtype=dtype, device=device), generator)
    if out is not None:
        _check_drawn("uniform_", out)
        return finish(
            _uniform_(
                memory_for(size, "rand", out, dtype, layout, device, requires_grad=requires_grad), generator=generator
            ),
            requires_grad,
            pin_memory and out is None,
        )
    return finish(
        _new_uniform(memory_for(size, "rand", None, dtype, layout, device), generator), requires_grad, pin_memory
    )


@function(method=False)
def randn(
    *size: Any,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    **names: Any,
) -> Tensor:
    """Draw from the normal distribution of mean 0 and variance 1; the arguments are those of
    :func:`candelabra.rand`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.randn(2, 3).shape
    candelabra.Size([2, 3])
    """
    size = size_argument(size, names, "randn") if names else sizes_of(size)
    if out is None and layout is None and not pin_memory and not requires_grad:
        return _new_normal(_empty(size, dtype=dtype, device=device), generator)
    if out is not None:
        _check_drawn("normal_", out)
        return finish(
            _normal_(
                memory_for(size, "randn", out, dtype, layout, device, requires_grad=requires_grad), generator=generator
            ),
            requires_grad,
            pin_memory and out is None,
        )
    return finish(
        _new_normal(memory_for(size, "randn", None, dtype, layout, device), generator), requires_grad, pin_memory
    )


@function(method=False)
def randint(
    *bounds_and_size: Any,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    **names: Any,
) -> Tensor:
    """Draw integers uniformly.

    Called as ``randint(high, size)`` or ``randint(low, high, size)``.

    Parameters
    ----------
    low, high : int
        The range: from `low` (0 by default) to `high`, exclusive.
    size : sequence of int
        The sizes.
    generator : Generator, optional
        The random generator; by default the device's.
    out, dtype, device, requires_grad
        As in :func:`candelabra.zeros`; the dtype is int64 by default.

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.randint(1, 7, (10,))
    >>> bool(((x >= 1) & (x <= 6)).all())
    True
    """
    low, high, size = _bounds_and_size(bounds_and_size, names)
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    if out is None and dtype is None:
        dtype = _C.int64
    made = memory_for(size, "randint", out, dtype, layout, device, requires_grad=requires_grad)
    check_bounds(made.dtype, low, high)
    draw = _random_range_.uncounted if out is None else _random_range_
    return finish(draw(made, low, high, generator=generator), requires_grad, pin_memory and out is None)


def _bounds_and_size(given: tuple[Any, ...], names: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Return bounds and size from the arguments of randint(), each of which may be given by
    name.
    """
    if not names:
        if len(given) == 2:
            return 0, *given
        if len(given) == 3:
            return given
    keys = ("low", "high", "size") if len(given) + len(names) == 3 else ("high", "size")
    all_given = dict(zip([k for k in keys if k not in names], given))
    if (
        len(all_given) != len(given)
        or not set(names) <= {"low", "high", "size"}
        or not {"high", "size"} <= {*all_given, *names}
    ):
        raise TypeError("randint() is called as randint(high, size) or randint(low, high, size)")
    all_given.update(names)
    return all_given.get("low", 0), all_given["high"], all_given["size"]


@function(method=False)
def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return a random permutation of the integers from 0 to ``n - 1``.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.randperm(4).sort()[0]
    tensor([0, 1, 2, 3])
    """
    check_layout(layout, "randperm")
    if n < 0:
        raise RuntimeError(f"n must be non-negative, got {n}")
    if out is not None:
        return OPERATORS["randperm"](n, dtype=out.dtype, device=out.device, generator=generator, out=out)
    return finish(
        OPERATORS["randperm"](n, dtype=_C.int64 if dtype is None else dtype, device=device, generator=generator),
        requires_grad,
        pin_memory,
    )


@function(method=False)
def rand_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: memory_format | None = None,
) -> Tensor:
    """Draw from the uniform distribution on [0, 1), with the shape, dtype and device of `input`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.rand_like(candelabra.ones(2)).shape
    candelabra.Size([2])
    """
    made = memory_like(input, dtype, layout, device, memory_format, "rand_like")
    return finish(_new_uniform(made, generator), requires_grad, pin_memory)


@function(method=False)
def randn_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: memory_format | None = None,
) -> Tensor:
    """Draw from the standard normal distribution, with the shape, dtype and device of `input`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.randn_like(candelabra.ones(2)).shape
    candelabra.Size([2])
    """
    made = memory_like(input, dtype, layout, device, memory_format, "randn_like")
    return finish(_new_normal(made, generator), requires_grad, pin_memory)


@function(method=False)
def randint_like(
    input: Tensor,
    low: int,
    high: int | None = None,
    *,
    generator: Generator | None = None,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: memory_format | None = None,
) -> Tensor:
    """Draw integers with the shape, dtype and device of `input`; called with (high) or (low, high).

    Examples
    --------
    >>> import candelabra
    >>> candelabra.randint_like(candelabra.ones(2), 1)
    tensor([0., 0.])
    """
    if high is None:
        low, high = 0, low
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    made = memory_like(input, dtype, layout, device, memory_format, "randint_like")
    check_bounds(made.dtype, low, high)
    return finish(_random_range_.uncounted(made, low, high, generator=generator), requires_grad, pin_memory)


@function(method=False)
def normal(
    mean: float | Tensor = 0.0,
    std: float | Tensor = 1.0,
    size: Any = None,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Draw from normal distributions of given means and standard deviations.

    Parameters
    ----------
    mean, std : float or Tensor
        Tensors are broadcast to one shape.
    size : sequence of int, optional
        The sizes; only if `std` is a number, and `mean` a number or a tensor without dimensions.
    generator : Generator, optional
        The random generator; by default the device's.
    out, dtype, device, requires_grad
        As in :func:`candelabra.zeros`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.normal(candelabra.zeros(3), 0.0)
    tensor([0., 0., 0.])
    """
    tensors = [x for x in (mean, std) if isinstance(x, _C.Tensor)]
    if not tensors:
        if size is None:
            raise TypeError("normal() missing the argument 'size', which two numbers need")
        made = memory_for(size, "normal", out, dtype, layout, device, requires_grad=requires_grad)
        made = (
            _new_normal(made, generator, mean, std) if out is None else _normal_(made, mean, std, generator=generator)
        )
        return finish(made, requires_grad)
    if size is not None:
        if isinstance(std, _C.Tensor) or not isinstance(mean, _C.Tensor) or mean.ndim:
            raise TypeError(
                "normal() takes 'size' only where std is a number, and mean one or a tensor without dimensions"
            )
        if std < 0:
            raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
        mean = mean.expand(size)
        tensors = [mean]
    if isinstance(std, _C.Tensor) and std.numel() and any_holds(std < 0):
        raise RuntimeError("normal expects all elements of std >= 0.0")
    shape = _shape_of_both(*(t.shape for t in tensors))
    draws = _normal_(_empty(shape, dtype=tensors[0].dtype, device=tensors[0].device), generator=generator)
    result = OPERATORS["add"](draws * std, mean).detach()
    for given in (mean, std):
        if isinstance(given, _C.Tensor) and given.requires_grad and _C.is_grad_enabled():
            # As in PyTorch, autograd records it with a gradient of zeros.
            result = result + FUNCTIONS["fill"](given, 0)
    return result if out is None else _C.give_to_out("normal", out, result)


def _shape_of_both(shape: Sequence[int], *others: Sequence[int]) -> Sequence[int]:
    """Return the shape to which two are broadcast; the error names the first sizes that differ."""
    for other in others:
        for back in range(1, min(len(shape), len(other)) + 1):
            if shape[-back] != other[-back] and 1 not in (shape[-back], other[-back]):
                raise RuntimeError(
                    f"The size of tensor a ({shape[-back]}) must match the size of tensor b ({other[-back]}) at non-singleton dimension "
                    f"{max(len(shape), len(other)) - back}"
                )
    return broadcast_shape(shape, *others)


@fallback("bernoulli")
def _bernoulli_spellings(self: Tensor, *arguments: Any, **names: Any) -> Any:
    # bernoulli(input, p): one probability for all elements.
    if arguments:
        names["p"], *rest = arguments
        if rest:
            return NotImplemented
    if not names.keys() <= {"p", "generator"} or "p" not in names:
        return NotImplemented
    made = bernoulli_(
        OPERATORS["empty_strided"](self.shape, self.stride(), dtype=self.dtype, device=self.device), **names
    )
    # As in PyTorch, autograd records it with a gradient of zeros.
    return made + FUNCTIONS["fill"](self, 0) if self.requires_grad and _C.is_grad_enabled() else made


@function(package=False)
def bernoulli_(self: Tensor, p: float = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with zeros and ones.

    Parameters
    ----------
    p : float or Tensor
        The probability of one, for all elements or for each.
    generator : Generator, optional
        The random generator; by default the device's.
    """
    if not isinstance(p, _C.Tensor):
        return _bernoulli_(self, p, generator=generator)
    return self.copy_(OPERATORS["bernoulli"](OPERATORS["expand"](p, self.shape), generator=generator))


# ---- in place


@function(package=False)
def random_(self: Tensor, *bounds: Any, generator: Generator | None = None, **names: Any) -> Tensor:
    """Fill with integers; called with no bounds, (to) or (from, to). Without bounds they are
    uniform over the nonnegative integers that the dtype represents exactly.

    Without bounds the numbers are all those that the dtype holds exactly from 0 on.
    """
    if len(bounds) == 2:
        names["from"], names["to"] = bounds
    elif len(bounds) == 1:
        names["to"] = bounds[0]
    low, high = names.pop("from", 0), names.pop("to", None)
    if names or len(bounds) > 2:
        raise TypeError("random_() is called as random_(), random_(to) or random_(from, to)")
    if high is None:
        check_bounds(self.dtype, low, low + 1)
        high = EXACT[self.dtype] + 1 if self.dtype in EXACT else 2 ** (8 * self.dtype.itemsize - self.dtype.is_signed)
        high = min(high, 2**63 - 1)
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    check_bounds(self.dtype, low, high)
    warn_of_precision(self.dtype, low, high)
    return _random_range_(self, low, high, generator=generator)


@function(package=False)
def log_normal_(self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers of a log-normal distribution, ``exp(mean + std * normal)``."""
    if std <= 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std}")
    return OPERATORS["exp"].inplace(_normal_(self, mean, std, generator=generator))


def _float_argument(name: str, value: Any) -> float:
    if isinstance(value, str | bytes) or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        raise TypeError(f"cauchy_(): argument '{name}' must be float, not {type(value).__name__}")
    return float(value)


@function(package=False)
def cauchy_(self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers of the Cauchy distribution: ``median + sigma * tan(pi * (u - 1/2))``."""
    # Before anything is written.
    median, sigma = _float_argument("median", median), _float_argument("sigma", sigma)
    if sigma <= 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    u = _uniform_(self, generator=generator)
    return OPERATORS["add"].inplace(
        OPERATORS["mul"].inplace(OPERATORS["tan"].inplace(u.sub_(0.5).mul_(math.pi)), sigma), median
    )


@function(package=False)
def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers of the geometric distribution: the trials up to the first success of
    probability `p`.
    """
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    draws = _uniform_(_empty(self.shape, dtype=_C.float64, device=self.device), generator=generator)
    return self.copy_(OPERATORS["ceil"](OPERATORS["log1p"](-draws) / math.log1p(-p)).clamp(min=1))
