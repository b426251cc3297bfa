"""Cumulative maxima and minima, and differences along a dimension."""

from __future__ import annotations

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
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    axis = wrap_dim(dim, input.ndim)
    if n == 0:
        result = OPERATORS["clone"](input)
        return result if out is None else _C.give_to_out("diff", out, result)
    parts = [part for part in (prepend, input, append) if part is not None]
    result = OPERATORS["cat"](parts, axis) if len(parts) > 1 else input
    for _ in range(n):
        length = result.shape[axis]
        if length <= 1:
            result = OPERATORS["narrow"](result, axis, 0, 0)
            continue
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
