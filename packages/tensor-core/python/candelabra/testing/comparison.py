"""Comparison of tensors in tests, and random test tensors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import candelabra

#: Relative and absolute tolerance by dtype, those of torch.testing.assert_close.
_TOLERANCES = {
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip


def assert_close(
    actual: Any,
    expected: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
) -> None:
    """Assert that two tensors, numbers, or sequences or mappings of them are close: ``|actual -
    expected| <= atol + rtol * |expected|``.

    Parameters
    ----------
    actual, expected
        The values to compare. Shapes must be equal, and devices and dtypes unless `check_device` or
        `check_dtype` is False.
    rtol, atol
        Relative and absolute tolerance; give both or neither. The defaults depend on the dtype:
        1.3e-6 and 1e-5 for float32.
    equal_nan
        Whether NaN equals NaN.
    check_device, check_dtype
        Whether devices and dtypes must be equal.

    Raises
    ------
    AssertionError
        If they differ. The message says where and by how much.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.testing import assert_close
    >>> assert_close(candelabra.tensor([1.0, 2.0]), candelabra.tensor([1.0, 2.0 + 1e-7]))
    """
    if (rtol is None) != (atol is None):
        raise ValueError("assert_close(): give both rtol and atol, or neither")
    if isinstance(expected, Mapping):
        if not isinstance(actual, Mapping) or set(actual) != set(expected):
            raise AssertionError(f"the keys differ: {sorted(actual, key=str)} and {sorted(expected, key=str)}")
        for key in expected:
            assert_close(
                actual[key],
                expected[key],
                rtol=rtol,
                atol=atol,
                equal_nan=equal_nan,
                check_device=check_device,
                check_dtype=check_dtype,
            )
        return
    if isinstance(expected, Sequence) and not isinstance(expected, str):
        if len(actual) != len(expected):
            raise AssertionError(f"the lengths differ: {len(actual)} and {len(expected)}")
        for a, b in zip(actual, expected, strict=True):
            assert_close(
                a, b, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=check_device, check_dtype=check_dtype
            )
        return
    a = actual if isinstance(actual, candelabra.Tensor) else candelabra.tensor(actual)
    b = expected if isinstance(expected, candelabra.Tensor) else candelabra.tensor(expected)
    if a.shape != b.shape:
        raise AssertionError(f"the shapes differ: {list(a.shape)} and {list(b.shape)}")
    if check_dtype and a.dtype != b.dtype:
        raise AssertionError(f"the dtypes differ: {a.dtype} and {b.dtype}")
    if check_device and a.device != b.device:
        raise AssertionError(f"the devices differ: {a.device} and {b.device}")
    dtype = candelabra.promote_types(a.dtype, b.dtype)
    default_rtol, default_atol = _TOLERANCES.get(str(dtype).rpartition(".")[2], (0.0, 0.0))
    _compare(a, b, default_rtol if rtol is None else rtol, default_atol if atol is None else atol, equal_nan)


def _compare(a: candelabra.Tensor, b: candelabra.Tensor, rtol: float, atol: float, equal_nan: bool) -> None:
    def close(x: Any, y: Any) -> bool:
        if x == y:
            return True
        if x != x or y != y:
            return equal_nan and x != x and y != y
        if isinstance(x, complex) or isinstance(y, complex):
            return abs(x - y) <= atol + rtol * abs(y)
        return math.isfinite(x) and math.isfinite(y) and abs(x - y) <= atol + rtol * abs(y)

    left, right = a.detach().reshape(-1).tolist(), b.detach().reshape(-1).tolist()
    wrong = [i for i, (x, y) in enumerate(zip(left, right, strict=True)) if not close(x, y)]
    if not wrong:
        return
    worst = max(wrong, key=lambda i: abs(left[i] - right[i]) if left[i] - right[i] == left[i] - right[i] else math.inf)
    place, rest = [], worst
    for size in reversed(a.shape):
        place.append(rest % size)
        rest //= size
    raise AssertionError(
        f"{len(wrong)} of {len(left)} elements differ (rtol={rtol}, atol={atol}); the worst at {place[::-1]}: {left[worst]} and {right[worst]}"
    )


def make_tensor(
    *shape: int,
    dtype: candelabra.dtype = candelabra.float32,
    device: Any = None,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
) -> candelabra.Tensor:
    """Return a tensor of random values of any dtype, uniformly distributed from `low` to `high`.
    The defaults are -9 and 9, limited to the dtype's range.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.testing import make_tensor
    >>> make_tensor(2, 3, dtype=candelabra.int8).shape
    candelabra.Size([2, 3])
    """
    if dtype is candelabra.bool:
        return candelabra.randint(0, 2, shape, device=device).to(dtype)
    low = (0.0 if dtype is candelabra.uint8 else -9.0) if low is None else low
    high = 9.0 if high is None else high
    if dtype.is_complex:
        parts = [candelabra.rand(shape, dtype=dtype.to_real(), device=device) * (high - low) + low for _ in range(2)]
        made = candelabra.complex(*parts)
    elif dtype.is_floating_point:
        made = (candelabra.rand(shape, dtype=dtype, device=device) * (high - low) + low).to(dtype)
    else:
        made = candelabra.randint(int(low), int(high) + 1, shape, device=device).to(dtype)
    return made.requires_grad_(requires_grad)
