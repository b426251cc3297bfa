"""Ranges of numbers."""

from __future__ import annotations

import math

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..creation.creation import check_layout, finish, memory_for
from ..registration import function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor, dtype
    from candelabra.types import Device, Number

_arange = OPERATORS["arange"]


def _to_out(name: str, out: Tensor, result: Tensor) -> Tensor:
    """Write the numbers to `out`, which keeps its shape if it has as many elements."""
    same = out.numel() == result.numel()
    given: Tensor = _C.give_to_out(name, out, OPERATORS["view"](result, out.shape) if same else result)
    return given


def _plain(number: Any) -> Any:
    if not isinstance(number, _C.Tensor):
        return number
    return 0.0 if number.is_meta else number.item()  # without a value, only the shape counts


@function(method=False, operator=True)
def arange(
    *bounds: Any,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    **names: Any,
) -> Tensor:
    """Return the numbers from `start` to `end`, exclusive, in steps of `step`.

    Called as ``arange(end)``, ``arange(start, end)`` or ``arange(start, end, step)``.

    Parameters
    ----------
    start, end, step : number
        The range. `start` is 0 and `step` is 1 by default.
    out : Tensor, optional
        The output tensor.
    dtype : dtype, optional
        By default int64 if all arguments are integers, else the default dtype.
    device, requires_grad
        As in :func:`candelabra.zeros`.

    Returns
    -------
    Tensor
        One-dimensional, of ``ceil((end - start) / step)`` elements.

    Raises
    ------
    RuntimeError
        If the step is zero or of the wrong sign.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.arange(1, 4)
    tensor([1, 2, 3])
    """
    if layout is not None:
        check_layout(layout, "arange")
    start, end, step = _range_bounds(bounds, names)
    # Arguments that the operator rejected for such a reason would be rejected again.
    for position, (name, number) in enumerate({"start": start, "end": end, "step": step}.items(), start=1):
        if (
            not isinstance(number, (int, float, complex))
            and not hasattr(number, "__index__")
            and not hasattr(number, "dtype")
        ):
            raise TypeError(
                f"arange(): argument '{name}' (position {position}) must be Number, not {type(number).__name__}"
            )
    if dtype is not None and type(dtype) is not _C.dtype:
        dtype = memory_for((0,), "arange", None, dtype, None, device).dtype
    if dtype is None and out is None:
        whole = all(isinstance(x, int) or hasattr(x, "__index__") for x in (start, end, step))
        dtype = _C.int64 if whole else _C.get_default_dtype()
    given = step
    kind = dtype if out is None else out.dtype
    count = _counted(kind, start, end, step)
    start, end, step = _whole(kind, start, end, step)
    if count is not None:
        made = _arange(0, count, 1, dtype=kind, device=device if out is None else out.device).mul_(step).add_(start)
        return finish(made, requires_grad, pin_memory) if out is None else _to_out("arange", out, made)
    if step == 0 and given != 0:
        raise ValueError(f"arange(): step must be nonzero, but {given} is 0 as a whole number")
    if out is not None:
        if out.ndim == 1 and out.is_contiguous():
            return _arange(start, end, step, dtype=out.dtype, device=out.device, out=out)
        return _to_out("arange", out, _arange(start, end, step, dtype=out.dtype, device=out.device))
    return finish(_arange(start, end, step, dtype=dtype, device=device), requires_grad, pin_memory)


def _counted(dtype: Any, start: Any, end: Any, step: Any) -> int | None:
    """Return the number of elements, which PyTorch counts before truncating the arguments (in
    integer dtypes except int64).
    """
    if dtype is _C.int64 or dtype.is_floating_point or dtype.is_complex:
        return None
    if not any(isinstance(number, float) for number in (start, end, step)) or not all(
        map(math.isfinite, (start, end, step))
    ):
        return None
    if step == 0 or (end - start) / step < 0:
        return None
    return _length((end - start) / step)


def _length(steps: float) -> int:
    """Return the number of elements for this many steps, rounded up."""
    if not steps < 2**63:
        raise RuntimeError("invalid size, possible overflow?")
    return math.ceil(steps)


def _whole(dtype: Any, *numbers: Any) -> tuple[Any, ...]:
    """Truncate the arguments if the result has an integer dtype, as PyTorch does before it
    computes.
    """
    if dtype.is_floating_point or dtype.is_complex:
        return numbers
    return tuple(
        _cut(number, dtype) if isinstance(number, float) and math.isfinite(number) else number for number in numbers
    )


def _cut(number: float, dtype: Any) -> int:
    if not -(2**63) <= number < (2**64 if dtype is _C.uint64 else 2**63):  # not for NaN and infinity
        raise RuntimeError("value cannot be converted to type int64_t without overflow")
    return int(number)


def _whole_ends(dtype: Any, *numbers: Any) -> tuple[Any, ...]:
    """As _whole, for arguments that become elements: NaN and infinity are errors."""
    if not (dtype.is_floating_point or dtype.is_complex):
        numbers = tuple(_cut(number, dtype) if isinstance(number, float) else number for number in numbers)
    return _whole(dtype, *numbers)


def _range_bounds(bounds: Any, names: dict[str, Any]) -> Any:
    if len(bounds) > 3:
        raise TypeError(f"arange() takes from 1 to 3 positional arguments but {len(bounds)} were given")
    given = dict(zip(("end",) if len(bounds) == 1 and "end" not in names else ("start", "end", "step"), bounds))
    for name, value in names.items():
        if name not in ("start", "end", "step"):
            raise TypeError(f"arange() got an unexpected keyword argument '{name}'")
        if name in given:
            raise TypeError(f"arange() got multiple values for argument '{name}'")
        given[name] = value
    if "end" not in given:
        raise TypeError("arange() missing 1 required argument: 'end'")
    return _plain(given.get("start", 0)), _plain(given["end"]), _plain(given.get("step", 1))


@function(method=False, name="range")
def range_(
    start: float = 0,
    end: float | None = None,
    step: float = 1,
    *,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the numbers from `start` to `end`, inclusive. Deprecated: use
    :func:`candelabra.arange`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.range(1, 3)
    tensor([1., 2., 3.])
    """
    if end is None:
        start, end = 0, start
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if not math.isfinite(step):
        raise RuntimeError(f"unsupported step: {step}")
    steps = (end - start) / step
    count = (_length(math.trunc(steps)) if math.isfinite(steps) else _length(steps)) + 1
    if count < 1:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    dtype = _C.get_default_dtype() if dtype is None else dtype
    return arange(
        start,
        start + (count - 0.5) * step,
        step,
        out=out,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def _check_inferred(name: str, start: Number, end: Number, dtype: dtype | None) -> None:
    """Raise where complex ends are given and a dtype that is not complex."""
    if dtype is not None and not dtype.is_complex and (isinstance(start, complex) or isinstance(end, complex)):
        raise RuntimeError(
            f"torch.{name}(): inferred dtype {_C.get_default_dtype().to_complex()} can't be safely cast to passed dtype {dtype}"
        )


@function(method=False)
def linspace(
    start: Number,
    end: Number,
    steps: int,
    *,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return evenly spaced numbers from `start` to `end`, inclusive.

    Parameters
    ----------
    start, end : number
        The ends.
    steps : int
        How many numbers.
    out, dtype, device, requires_grad
        As in :func:`candelabra.zeros`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    check_layout(layout, "linspace")
    start, end = _plain(start), _plain(end)
    _check_inferred("linspace", start, end, dtype)
    if dtype is None and out is None:
        dtype = _C.get_default_dtype()
        if isinstance(start, complex) or isinstance(end, complex):
            dtype = dtype.to_complex()
    start, end = _whole_ends(dtype if out is None else out.dtype, start, end)
    if out is not None:
        if out.ndim == 1 and out.is_contiguous():
            return OPERATORS["linspace"](start, end, steps, dtype=out.dtype, device=out.device, out=out)
        return _to_out("linspace", out, OPERATORS["linspace"](start, end, steps, dtype=out.dtype, device=out.device))
    return finish(OPERATORS["linspace"](start, end, steps, dtype=dtype, device=device), requires_grad, pin_memory)


@function(method=False)
def logspace(
    start: Number,
    end: Number,
    steps: int,
    base: float = 10.0,
    *,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return numbers whose logarithms are evenly spaced: ``base ** linspace(start, end, steps)``.

    Parameters
    ----------
    start, end : number
        The first and the last exponent.
    steps : int
        How many numbers.
    base : number
        The base of the powers.
    out, dtype, device, requires_grad
        As in :func:`candelabra.zeros`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    check_layout(layout, "logspace")
    if requires_grad and out is not None and not (out.dtype.is_floating_point or out.dtype.is_complex):
        raise RuntimeError(f"Only Tensors of floating point and complex dtype can require gradients, not {out.dtype}")
    start, end = _plain(start), _plain(end)
    _check_inferred("logspace", start, end, dtype)
    is_complex = isinstance(start, complex) or isinstance(end, complex)
    inferred = _C.get_default_dtype().to_complex() if is_complex else _C.get_default_dtype()
    wanted = (out.dtype if out is not None else inferred) if dtype is None else dtype
    # In double precision, so that powers that are integers are exact.
    start, end = _whole_ends(wanted, start, end)
    exponents = OPERATORS["linspace"](
        start, end, steps, dtype=_C.complex128 if is_complex else _C.float64, device=device
    )
    result = OPERATORS["_to_copy"](OPERATORS["pow"](base, exponents), dtype=wanted)
    return finish(
        result if out is None else _to_out("logspace", out, result), requires_grad, pin_memory and out is None
    )


@function(method=False)
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Return the Vandermonde matrix of a vector, whose columns are its powers, the highest first
    unless `increasing`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.vander(candelabra.tensor([1, 2, 3]), increasing=True)
    tensor([[1, 1, 1],
            [1, 2, 4],
            [1, 3, 9]])
    """
    if x.ndim != 1:
        raise RuntimeError(f"x must be a one-dimensional tensor, but got {x.ndim} dimensions")
    count = x.numel() if N is None else N
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    powers = _arange(0, count, 1, dtype=_C.int64, device=x.device)
    if not increasing:
        powers = OPERATORS["flip"](powers, (0,))
    return OPERATORS["pow"](OPERATORS["unsqueeze"](x, 1), powers)
