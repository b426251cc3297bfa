"""Comparison of tensors in tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

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
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Assert that two tensors, numbers, or sequences or mappings of them are close: ``|actual -
    expected| <= atol + rtol * |expected|``.

    Parameters
    ----------
    actual, expected
        The values to compare. Shapes must be equal, and devices and dtypes unless `check_device` or
        `check_dtype` is False.
    allow_subclasses
        Whether the types of the two may differ where both are tensors.
    rtol, atol
        Relative and absolute tolerance; give both or neither. The defaults depend on the dtype:
        1.3e-6 and 1e-5 for float32.
    equal_nan
        Whether NaN equals NaN.
    check_device, check_dtype
        Whether devices and dtypes must be equal.
    check_layout
        Whether layouts must be equal: all tensors are strided.
    check_stride
        Whether strides must be equal.
    msg
        The message of the error, or a function that makes it from the default message.

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
    checks = _Checks(allow_subclasses, rtol, atol, equal_nan, check_device, check_dtype, check_stride)
    try:
        _compare_all(actual, expected, checks)
    except AssertionError as error:
        if msg is None:
            raise
        raise AssertionError(msg(str(error)) if callable(msg) else msg) from None


class _Checks(NamedTuple):
    allow_subclasses: bool
    rtol: float | None
    atol: float | None
    equal_nan: bool
    device: bool
    dtype: bool
    stride: bool


def _compare_all(actual: Any, expected: Any, checks: _Checks) -> None:
    if isinstance(expected, Mapping):
        if not isinstance(actual, Mapping) or set(actual) != set(expected):
            raise AssertionError(f"the keys differ: {sorted(actual, key=str)} and {sorted(expected, key=str)}")
        for key in expected:
            _compare_all(actual[key], expected[key], checks)
        return
    if isinstance(expected, Sequence) and not isinstance(expected, str):
        if len(actual) != len(expected):
            raise AssertionError(f"the lengths differ: {len(actual)} and {len(expected)}")
        for a, b in zip(actual, expected, strict=True):
            _compare_all(a, b, checks)
        return
    if not checks.allow_subclasses and type(actual) is not type(expected):
        raise AssertionError(f"the types differ: {type(actual)} and {type(expected)}")
    a = actual if isinstance(actual, candelabra.Tensor) else candelabra.tensor(actual)
    b = expected if isinstance(expected, candelabra.Tensor) else candelabra.tensor(expected)
    if a.shape != b.shape:
        raise AssertionError(f"the shapes differ: {list(a.shape)} and {list(b.shape)}")
    if checks.dtype and a.dtype != b.dtype:
        raise AssertionError(f"the dtypes differ: {a.dtype} and {b.dtype}")
    if checks.device and a.device != b.device:
        raise AssertionError(f"the devices differ: {a.device} and {b.device}")
    if checks.stride and a.stride() != b.stride():
        raise AssertionError(f"the strides differ: {a.stride()} and {b.stride()}")
    dtype = candelabra.promote_types(a.dtype, b.dtype)
    rtol, atol = _TOLERANCES.get(str(dtype).rpartition(".")[2], (0.0, 0.0))
    if checks.rtol is not None and checks.atol is not None:
        rtol, atol = checks.rtol, checks.atol
    _compare(a, b, rtol, atol, checks.equal_nan)


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
