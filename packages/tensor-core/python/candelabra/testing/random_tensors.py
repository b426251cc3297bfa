"""Random tensors for tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import candelabra
from candelabra import _C


def make_tensor(
    *shape: int | Sequence[int],
    dtype: candelabra.dtype = candelabra.float32,
    device: Any = None,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> candelabra.Tensor:
    """Return a tensor of random values of any dtype, uniformly distributed in ``[low, high)``.

    Parameters
    ----------
    shape
        The sizes, one by one or as one sequence.
    dtype, device
        Those of the tensor.
    low, high
        The interval, limited to the dtype's finite values. The defaults are -9 and 9 for floating
        and complex dtypes, -9 and 10 for signed integers, 0 and 10 for unsigned ones, and 0 and 2
        for bool.
    requires_grad
        Whether gradients are computed for it; only floating and complex dtypes.
    noncontiguous
        Whether the tensor is not contiguous, where it has more than one element.
    exclude_zero
        Whether zeros become one, or the smallest normal number of a floating or complex dtype.
    memory_format
        The memory format of the tensor.

    Raises
    ------
    ValueError
        If the interval is empty, has NaN or is outside the dtype's values, if `requires_grad` is
        given for integers, or both `noncontiguous` and `memory_format`.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.testing import make_tensor
    >>> make_tensor((2, 3), dtype=candelabra.int8).shape
    candelabra.Size([2, 3])
    """
    sizes: list[Any] = [*shape[0]] if len(shape) == 1 and isinstance(shape[0], Sequence) else [*shape]
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, "
            f"but got noncontiguous={noncontiguous} and memory_format={memory_format}"
        )
    real = dtype.is_floating_point or dtype.is_complex
    if requires_grad and not real:
        raise ValueError(
            f"`requires_grad=True` is not supported for boolean and integral dtypes, but got dtype={dtype}"
        )
    first, last = _interval(dtype, low, high)
    spread = noncontiguous and math.prod(sizes) > 1
    if spread:
        # Every second element from the second on, so that strides and offsets are not trivial.
        sizes = [*sizes[:-1], 2 * sizes[-1]]
    if not real:
        made = candelabra.randint(math.ceil(first), math.ceil(last), sizes, device=device, dtype=dtype)
    elif dtype.itemsize == 1:
        made = _uniform(candelabra.empty(sizes, device=device), first, last).to(dtype)
    else:
        made = candelabra.empty(sizes, device=device, dtype=dtype)
        _uniform(candelabra.view_as_real(made) if dtype.is_complex else made, first, last)
    if spread:
        made = made[..., 1::2]
    elif memory_format is not None:
        made = made.clone(memory_format=memory_format)
    if exclude_zero:
        made[made == 0] = candelabra.finfo(dtype).tiny if real else 1
    return made.requires_grad_() if requires_grad else made


def _uniform(values: candelabra.Tensor, low: float, high: float) -> candelabra.Tensor:
    """Draw the elements of a tensor. The interval may be wider than the greatest value."""
    if high - low >= candelabra.finfo(values.dtype).max:
        return values.uniform_(low / 2, high / 2).mul_(2)
    return values.uniform_(low, high)


def _interval(dtype: candelabra.dtype, low: float | None, high: float | None) -> tuple[float, float]:
    """Return the interval, limited to the values of a dtype."""
    if dtype.is_floating_point or dtype.is_complex:
        lowest, highest, usual = candelabra.finfo(dtype).min, candelabra.finfo(dtype).max, 9
    elif dtype is candelabra.bool:
        lowest, highest, usual = 0, 2, 2
    else:
        # The greatest int64 cannot be drawn: randint excludes its upper bound, an int64.
        lowest, highest = candelabra.iinfo(dtype).min, candelabra.iinfo(dtype).max + (dtype is not candelabra.int64)
        usual = 10
    first = max(-9, lowest) if low is None else low
    last = usual if high is None else high
    if first != first or last != last:
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={first} and high={last}")
    if first == last and (dtype.is_floating_point or dtype.is_complex):
        _C.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated since 2.1 and will be "
            "removed in 2.3. Use `torch.full(...)` instead.",
            FutureWarning,
        )
    elif first >= last:
        raise ValueError(f"`low` must be less than `high`, but got {first} >= {last}")
    elif last < lowest or first >= highest:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{first}, {last}), but {dtype} only supports [{lowest}, {highest})"
        )
    return min(max(first, lowest), highest), min(max(last, lowest), highest)
