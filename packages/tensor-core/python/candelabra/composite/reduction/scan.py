"""Cumulative maxima, minima and log-sums of exponentials, and differences along a dimension."""

from __future__ import annotations

import math

from candelabra import _C, return_types
from candelabra.catalogue import OPERATORS

from ..movement.views import wrap_dim
from ..registration import decomposes, function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from candelabra._C import Tensor


@decomposes("_cummax_cummin")
def _cummax_cummin(self: Tensor, dim: int, larger: bool) -> Any:
    # Doubling: after the step of size s, each element has the extremum of the 2 s elements up to
    # it.
    compare = OPERATORS["ge" if larger else "le"]
    if self.ndim == 0:
        return self.new_zeros((), dtype=_C.int64)
    axis = wrap_dim(dim, self.ndim)
    length = self.shape[axis]
    shape = [1] * self.ndim
    shape[axis] = length
    positions = OPERATORS["arange"](0, length, 1, dtype=_C.int64, device=self.device)
    indices = OPERATORS["expand"](positions.view(shape), self.shape)
    values = self.detach()
    is_nan = OPERATORS["isnan"]
    step = 1
    while step < length:
        now, before = (OPERATORS["narrow"](values, axis, start, length - step) for start in (step, 0))
        now_at, before_at = (OPERATORS["narrow"](indices, axis, start, length - step) for start in (step, 0))
        keep = (compare(now, before) & OPERATORS["logical_not"](is_nan(before))) | is_nan(now)
        head, head_at = OPERATORS["narrow"](values, axis, 0, step), OPERATORS["narrow"](indices, axis, 0, step)
        values = OPERATORS["cat"]([head, OPERATORS["where"](keep, now, before)], axis)
        indices = OPERATORS["cat"]([head_at, OPERATORS["where"](keep, now_at, before_at)], axis)
        step *= 2
    return OPERATORS["clone"](indices)


def _running(name: str, larger: bool, result_type: Any) -> Any:
    def running(input: Tensor, dim: int, *, out: Sequence[Tensor] | None = None) -> Any:
        axis = wrap_dim(dim, input.ndim)
        indices = OPERATORS["_cummax_cummin"](input, axis, larger)
        values = OPERATORS["gather"](input, axis, indices) if input.ndim else OPERATORS["clone"](input)
        if out is not None:
            values, indices = _C.give_to_outs(name, out, (values, indices))
        return result_type(values, indices)

    running.__name__ = running.__qualname__ = name
    word = "largest" if larger else "smallest"
    values, indices = ("1, 3, 3", "0, 1, 1") if larger else ("1, 1, 1", "0, 0, 0")
    shown = [1, 3, 2]
    running.__doc__ = f"""Return the {word} element so far along a dimension, and its position; the last among equals.

    Parameters
    ----------
    input : Tensor
    dim : int
        Along which is gone.
    out : pair of Tensor, optional
        Where values and indices are written.

    Returns
    -------
    (values, indices)

    Examples
    --------
    >>> import candelabra
    >>> values, indices = candelabra.{name}(candelabra.tensor({shown}), 0)
    >>> values, indices
    (tensor([{values}]), tensor([{indices}]))
    """
    return function(out="exact")(running)


cummax = _running("cummax", True, return_types.cummax)
cummin = _running("cummin", False, return_types.cummin)


@function()
def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Compute differences of adjacent elements along a dimension.

    Parameters
    ----------
    input : Tensor
    n : int
        The number of times to take differences.
    dim : int
        Along which dimension.
    prepend, append : Tensor, optional
        Concatenated with `input` first.
    out : Tensor, optional
        The output tensor.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.diff(candelabra.tensor([1, 4, 9]))
    tensor([3, 5])
    """
    if input.ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if any(part is not None and part.ndim != input.ndim for part in (prepend, append)):
        raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    axis = wrap_dim(dim, input.ndim)
    for part in (prepend, append):
        if part is not None and any(
            given != size for d, (given, size) in enumerate(zip(part.shape, input.shape)) if d != axis
        ):
            raise RuntimeError(
                "diff expects the shape of tensor to prepend or append to match that of input except along the differencing dimension; "
                f"input.size: {list(input.shape)}, but got {list(part.shape)}"
            )
    if n == 0:
        result = OPERATORS["clone"](input)
        return result if out is None else _C.give_to_out("diff", out, result)
    parts = [part for part in (prepend, input, append) if part is not None]
    result = OPERATORS["cat"](parts, axis) if len(parts) > 1 else input
    # From one difference more than there are elements on, the result stays empty.
    for _ in range(min(n, max(result.shape[axis], 1))):
        length = result.shape[axis]
        if length <= 1:
            result = OPERATORS["narrow"](result, axis, 0, 0)
            break
        after, before = (OPERATORS["narrow"](result, axis, start, length - 1) for start in (1, 0))
        result = OPERATORS["ne"](after, before) if result.dtype.name == "bool" else after - before
    return result if out is None else _C.give_to_out("diff", out, result)


@function(aliases=("trapz",))
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """Integrate along a dimension by the trapezoidal rule.

    Parameters
    ----------
    y : Tensor
        The values.
    x : Tensor, optional
        The sample points; by default `dx` apart.
    dx : float
        The distance of samples.
    dim : int
        Along which dimension.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.trapezoid(candelabra.tensor([1.0, 2.0, 3.0]))
    tensor(4.)
    """
    axis = wrap_dim(dim, y.ndim)
    length = y.shape[axis]
    after, before = (OPERATORS["narrow"](y, axis, start, length - 1) for start in (1, 0))
    heights = after + before
    if x is None:
        return OPERATORS["sum"](heights, axis) * (dx * 0.5)
    widths = diff(x, dim=axis if x.ndim == y.ndim else -1)
    if x.ndim == 1 and y.ndim > 1:
        widths = widths.view([-1] + [1] * (y.ndim - 1 - axis))
    # Halved last, so that sums of integers stay exact, as in PyTorch.
    return OPERATORS["sum"](heights * widths, axis) * 0.5


@function(method=False)
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """Integrate cumulatively along a dimension by the trapezoidal rule; arguments as in
    :func:`candelabra.trapezoid`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cumulative_trapezoid(candelabra.tensor([1.0, 2.0, 3.0]))
    tensor([1.5000, 4.0000])
    """
    axis = wrap_dim(dim, y.ndim)
    after, before = (OPERATORS["narrow"](y, axis, start, y.shape[axis] - 1) for start in (1, 0))
    heights = after + before
    if x is None:
        return OPERATORS["cumsum"](heights * (dx * 0.5), axis)
    widths = diff(x, dim=axis if x.ndim == y.ndim else -1)
    if x.ndim == 1 and y.ndim > 1:
        widths = widths.view([-1] + [1] * (y.ndim - 1 - axis))
    return OPERATORS["cumsum"](heights * widths, axis) * 0.5


@decomposes("logcumsumexp")
def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """Compute a scan by doubling, as Hillis and Steele (1986): each step adds the partial sum that
    ends before an element's own.
    """
    axis = wrap_dim(dim, input.ndim)
    if input.numel() == 0 or input.ndim == 0:
        return OPERATORS["clone"](input)
    add = _log_of_complex_sum if input.dtype.is_complex else OPERATORS["logaddexp"]
    result, length, reach = input, input.shape[axis], 1
    while reach < length:
        first = OPERATORS["narrow"](result, axis, 0, reach)
        later, before = (OPERATORS["narrow"](result, axis, start, length - reach) for start in (reach, 0))
        result = OPERATORS["cat"]([first, add(later, before)], axis)
        reach *= 2
    if input.dtype.is_complex:
        return result + _whole_turns(input.detach(), result.detach(), axis)
    return OPERATORS["clone"](result) if result is input else result


def _log_of_complex_sum(x: Tensor, y: Tensor) -> Tensor:
    """Return ``log(exp(x) + exp(y))``, computed from the number with the larger real part without
    overflow.
    """
    larger = OPERATORS["ge"](x.real, y.real)
    big, small = OPERATORS["where"](larger, x, y), OPERATORS["where"](larger, y, x)
    return big + OPERATORS["log1p"](OPERATORS["exp"](small - big))


def _whole_turns(input: Tensor, sums: Tensor, axis: int) -> Tensor:
    """Return the multiples of 2 pi i by which running sums, added up one after the other, differ
    from their principal values.

    Each step adds the smaller number to the larger: the angle of the sum is that of the larger one
    and at most a quarter turn more or less. It goes on from the sum so far, or begins anew with an
    element that outweighs that.
    """
    length = input.shape[axis]

    def at(values: Tensor, start: int) -> Tensor:
        return OPERATORS["narrow"](values, axis, start, length - 1)

    def turned(angle: Tensor) -> Tensor:
        return OPERATORS["round"](angle / (2 * math.pi))

    angles, elements = sums.imag, input.imag
    outweighs = OPERATORS["ge"](at(input.real, 1), at(sums.real, 0))
    first = OPERATORS["isfinite"](OPERATORS["narrow"](angles, axis, 0, 1) * 0)
    anew = OPERATORS["cat"]([first, outweighs], axis)
    shape = [length if d == axis else 1 for d in range(input.ndim)]
    places = OPERATORS["arange"](0, length, 1, dtype=_C.int64, device=input.device).view(shape)
    start = cummax(OPERATORS["where"](anew, places, 0), axis)[0]
    # Full turns that the sum lost, and those of the element where the sum began.
    lost = OPERATORS["cat"]([OPERATORS["narrow"](angles, axis, 0, 1) * 0, turned(at(angles, 0) - at(angles, 1))], axis)
    passed = OPERATORS["cumsum"](lost, axis)
    begun = turned(elements - angles) - passed
    turns = OPERATORS["gather"](begun, axis, start) + passed
    turns = OPERATORS["masked_fill"](turns, OPERATORS["logical_not"](OPERATORS["isfinite"](turns)), 0)
    return OPERATORS["complex"](turns * 0, turns * (2 * math.pi))
