"""Elementwise functions composed of operators."""

from __future__ import annotations

import math

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..movement.copying import TYPE_NAMES
from ..registration import decomposes, function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from candelabra._C import Tensor, dtype
    from candelabra.types import Number

_HALF = (_C.float16, _C.bfloat16)

clamp = OPERATORS["clamp"]
_add = OPERATORS["add"]
_sub = OPERATORS["sub"]
_to_copy = OPERATORS["_to_copy"]


def wide(x: Tensor) -> Tensor:
    """Return `x` in float32 if it has half precision, else `x` itself."""
    return _to_copy(x, dtype=_C.float32) if x.dtype in _HALF else x


def narrow_to(x: Tensor, dtype: dtype) -> Tensor:
    """Return `x` in `dtype`; `x` itself if it has that dtype."""
    return x if x.dtype is dtype else _to_copy(x, dtype=dtype)


def conjugate(x: Tensor) -> Tensor:
    """Return the complex conjugate of `x`; `x` itself if it is real."""
    return OPERATORS["conj_physical"](x) if x.dtype.is_complex else x


@decomposes("rsub")
def rsub(self: Tensor, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    return (
        _sub(other, self, alpha=alpha) if isinstance(other, _C.Tensor) else _add(OPERATORS["mul"](self, -alpha), other)
    )


@function()
def true_divide(input: Tensor, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Divide elementwise; integers give a floating-point result.

    Parameters
    ----------
    input, other : Tensor or number
        Broadcast to one shape.
    out : Tensor, optional
        The output tensor.

    Returns
    -------
    Tensor
        ``input / other``, the same as :func:`candelabra.div` without a rounding mode.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.true_divide(candelabra.tensor([3, 4]), 2)
    tensor([1.5000, 2.0000])
    """
    return OPERATORS["div"](input, other) if out is None else OPERATORS["div"](input, other, out=out)


@function(package=False)
def true_divide_(self: Tensor, other: Tensor | Number) -> Tensor:
    """Divide in place; see :func:`candelabra.true_divide`."""
    return OPERATORS["div"].inplace(self, other)


@function()
def conj(input: Tensor) -> Tensor:
    """Return the complex conjugate; a real tensor is returned unchanged.

    Parameters
    ----------
    input : Tensor
        Of any shape and dtype.

    Returns
    -------
    Tensor
        Of the shape and dtype of `input`. Complex results are new tensors: there is no lazy
        conjugation.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.conj(candelabra.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    return conjugate(input)


@function()
def positive(input: Tensor) -> Tensor:
    """Return `input` itself; the same as ``+input``.

    Raises
    ------
    RuntimeError
        If it is of dtype bool.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.positive(candelabra.tensor([-1, 2]))
    tensor([-1,  2])
    """
    return +input


@function()
def conj_physical(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the complex conjugate of each element. A real tensor is returned unchanged.

    Parameters
    ----------
    input : Tensor
        Of any dtype.
    out : Tensor, optional
        The output tensor.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.conj_physical(candelabra.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    if out is None and isinstance(input, _C.Tensor) and not input.dtype.is_complex:
        return input
    return OPERATORS["conj_physical"](input, out=out)


@function()
def resolve_conj(input: Tensor) -> Tensor:
    """Return `input`: conjugation is never lazy.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.resolve_conj(candelabra.tensor([1.0]))
    tensor([1.])
    """
    return input


@function()
def resolve_neg(input: Tensor) -> Tensor:
    """Return `input`: negation is never lazy.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.resolve_neg(candelabra.tensor([1.0]))
    tensor([1.])
    """
    return input


@function()
def is_conj(input: Tensor) -> bool:
    """Return False: conjugation is never lazy.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.is_conj(candelabra.tensor([1j]).conj())
    False
    """
    return False


@function()
def is_neg(input: Tensor) -> bool:
    """Return False: negation is never lazy.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.is_neg(-candelabra.ones(1))
    False
    """
    return False


def _check_tensor(name: str, input: Any) -> None:
    if not isinstance(input, _C.Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")


@function()
def clamp_min(input: Tensor, min: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Clamp elements to at least `min`.

    Parameters
    ----------
    input : Tensor
    min : number or Tensor
        The lower bound.
    out : Tensor, optional
        The output tensor.

    Returns
    -------
    Tensor
        ``max(input, min)``; NaN propagates.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.clamp_min(candelabra.tensor([-1.0, 2.0]), 0)
    tensor([0., 2.])
    """
    _check_tensor("clamp_min", input)
    if isinstance(min, _C.Tensor) and input.dtype is _C.bool:
        made = OPERATORS["maximum"](input, min)
        return made if out is None else _C.give_to_out("clamp_min", out, made)
    return clamp(input, min) if out is None else clamp(input, min, out=out)


@function()
def clamp_max(input: Tensor, max: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Clamp elements to at most `max`.

    Parameters
    ----------
    input : Tensor
    max : number or Tensor
        The upper bound.
    out : Tensor, optional
        The output tensor.

    Returns
    -------
    Tensor
        ``min(input, max)``; NaN propagates.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.clamp_max(candelabra.tensor([-1.0, 2.0]), 0)
    tensor([-1.,  0.])
    """
    _check_tensor("clamp_max", input)
    if isinstance(max, _C.Tensor) and input.dtype is _C.bool:
        made = OPERATORS["minimum"](input, max)
        return made if out is None else _C.give_to_out("clamp_max", out, made)
    return clamp(input, None, max) if out is None else clamp(input, None, max, out=out)


def _bool_clamped(self: Tensor, made: Tensor) -> Tensor:
    """Copy a result into the bool tensor it was computed from, if it is bool too."""
    if not _C.can_cast(made.dtype, self.dtype):
        raise RuntimeError(f"result type {TYPE_NAMES[made.dtype]} can't be cast to the desired output type Bool")
    return self.copy_(made)


@function(package=False)
def clamp_min_(self: Tensor, min: Tensor | Number) -> Tensor:
    """Clamp elements to at least `min`, in place."""
    return _bool_clamped(self, clamp_min(self, min)) if self.dtype is _C.bool else clamp.inplace(self, min)


@function(package=False)
def clamp_max_(self: Tensor, max: Tensor | Number) -> Tensor:
    """Clamp elements to at most `max`, in place."""
    return _bool_clamped(self, clamp_max(self, max)) if self.dtype is _C.bool else clamp.inplace(self, None, max)


@function()
def sinc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the normalized sinc function, ``sin(pi x) / (pi x)``, with 1 at 0.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.sinc(candelabra.tensor([0.0, 0.5]))
    tensor([1.0000, 0.6366])
    """
    scaled = wide(input) * math.pi  # near zeros of the sine, half precision would lose most digits
    zero = scaled == 0
    safe = OPERATORS["masked_fill"](scaled, zero, 1.0)
    result = OPERATORS["masked_fill"](OPERATORS["sin"](safe) / safe, zero, 1.0)
    if input.dtype.is_floating_point:
        result = narrow_to(result, input.dtype)
    return result if out is None else _C.give_to_out("sinc", out, result)


@function()
def deg2rad(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Convert angles from degrees to radians.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.deg2rad(candelabra.tensor([180.0]))
    tensor([3.1416])
    """
    result = input * (math.pi / 180)
    return result if out is None else _C.give_to_out("deg2rad", out, result)


@function()
def rad2deg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Convert angles from radians to degrees.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.rad2deg(candelabra.tensor([1.0]))
    tensor([57.2958])
    """
    result = input * (180 / math.pi)
    return result if out is None else _C.give_to_out("rad2deg", out, result)


@function()
def float_power(input: Tensor, exponent: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Raise to a power in double precision.

    Parameters
    ----------
    input, exponent : Tensor or number
        At least one tensor; broadcast to one shape.

    Returns
    -------
    Tensor
        Of dtype float64, or complex128 where an argument is complex.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.float_power(candelabra.tensor([2, 3]), 2)
    tensor([4., 9.], dtype=candelabra.float64)
    """
    tensors = [x for x in (input, exponent) if isinstance(x, _C.Tensor)]
    numbers = [x for x in (input, exponent) if not isinstance(x, _C.Tensor)]
    is_complex = any(x.dtype.is_complex for x in tensors) or any(isinstance(x, complex) for x in numbers)
    dtype = _C.complex128 if is_complex else _C.float64
    if out is not None and out.dtype is not dtype:
        raise RuntimeError(
            f"the output given to float_power has dtype {TYPE_NAMES[out.dtype]} but the operation's result requires dtype "
            f"{TYPE_NAMES[dtype]}"
        )
    base, power = (narrow_to(x, dtype) if isinstance(x, _C.Tensor) else x for x in (input, exponent))
    result = OPERATORS["pow"](base, power)
    return result if out is None else _C.give_to_out("float_power", out, result)


def as_it_was(self: Tensor) -> Any:
    """Return the tensor about to be overwritten, or a copy of it if autograd may need its
    values.
    """
    return OPERATORS["clone"](self) if self.requires_grad and _C.is_grad_enabled() else self


def _in_place(compute: Callable[..., Tensor]) -> None:
    def in_place(self: Tensor, *arguments: Any, **keywords: Any) -> Tensor:
        return self.copy_(compute(as_it_was(self), *arguments, **keywords))

    in_place.__name__ = in_place.__qualname__ = f"{compute.__name__}_"
    in_place.__doc__ = f"Compute :func:`candelabra.{compute.__name__}` in place."
    function(package=False)(in_place)


for _function in (sinc, deg2rad, rad2deg):
    _in_place(_function)


@function(package=False)
def float_power_(self: Tensor, exponent: Tensor | Number) -> Tensor:
    """Compute :func:`candelabra.float_power` in place."""
    made = float_power(as_it_was(self), exponent)
    if made.dtype is not self.dtype:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {TYPE_NAMES[self.dtype]} but the operation's result requires dtype "
            f"{TYPE_NAMES[made.dtype]}"
        )
    return self.copy_(made)


@function()
def ldexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute ``input * 2**other``.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.ldexp(candelabra.tensor([1.0, 3.0]), candelabra.tensor([2, -1]))
    tensor([4.0000, 1.5000])
    """
    if not (isinstance(input, _C.Tensor) and isinstance(other, _C.Tensor)):
        wrong, name, position = (other, "other", 2) if isinstance(input, _C.Tensor) else (input, "input", 1)
        raise TypeError(f"ldexp(): argument '{name}' (position {position}) must be Tensor, not {type(wrong).__name__}")
    result = input * OPERATORS["pow"](2.0, other)
    if input.dtype in _HALF and not (other.dtype.is_floating_point or other.dtype.is_complex):
        result = _to_copy(result, dtype=input.dtype)  # powers of integers are float32, but the result is not
    return result if out is None else _C.give_to_out("ldexp", out, result)


_in_place(ldexp)


@function()
def logaddexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute ``log(exp(input) + exp(other))`` without overflow.

    Parameters
    ----------
    input, other : Tensor
        Floating point or complex, of shapes that broadcast.
    out : Tensor, optional
        The output tensor.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.logaddexp(candelabra.tensor([1000.0]), candelabra.tensor([1000.0]))
    tensor([1000.6932])
    """
    if not (
        isinstance(input, _C.Tensor)
        and isinstance(other, _C.Tensor)
        and (input.dtype.is_complex or other.dtype.is_complex)
    ):
        return OPERATORS["logaddexp"](input, other, out=out)
    first_is_larger = input.real >= other.real
    large, small = OPERATORS["where"](first_is_larger, input, other), OPERATORS["where"](first_is_larger, other, input)
    # The difference of equal infinities counts as zero.
    same = OPERATORS["eq"](large, small) & OPERATORS["isinf"](large.real)
    ratio = OPERATORS["exp"](small - OPERATORS["where"](same, 0, large))
    result = OPERATORS["where"](same, large, large + OPERATORS["log1p"](ratio))
    return result if out is None else _C.give_to_out("logaddexp", out, result)


@function(name="__rdiv__", package=False)
def _reversed_division(self: Tensor, other: Tensor | Number) -> Tensor:
    """Compute ``other / self``."""
    return self.reciprocal() * other


@function(method=False)
def fill(input: Tensor, value: Tensor | Number) -> Tensor:
    """Return a tensor with the sizes of `input`, filled with `value`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.fill(candelabra.zeros(2), 3)
    tensor([3., 3.])
    """
    if isinstance(value, _C.Tensor) and value.ndim:
        raise RuntimeError(f"fill only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions.")
    everywhere = OPERATORS["eq"](input.detach(), input.detach()) if input.dtype is not _C.bool else input.detach()
    everywhere = OPERATORS["logical_or"](everywhere, OPERATORS["logical_not"](everywhere))
    return OPERATORS["masked_fill"](input, everywhere, value)
