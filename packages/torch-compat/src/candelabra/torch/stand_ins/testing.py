"""``torch.testing``: a deprecated function."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import _C
from candelabra.testing import assert_close

__all__ = ["assert_allclose"]

#: Relative and absolute tolerances by dtype.
_TOLERANCES = {
    candelabra.float16: (1e-3, 1e-3),
    candelabra.float32: (1e-4, 1e-5),
    candelabra.float64: (1e-5, 1e-8),
}


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """Compare tensors as `assert_close` does, with wider tolerances and any dtypes; deprecated.

    Raises
    ------
    AssertionError
        If they differ.
    """
    _C.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. Please use "
        "`torch.testing.assert_close()` instead.",
        FutureWarning,
    )
    tensors = [
        value if isinstance(value, candelabra.Tensor) else candelabra.tensor(value) for value in (actual, expected)
    ]
    if rtol is None and atol is None:
        known = [_TOLERANCES.get(tensor.dtype, (0.0, 0.0)) for tensor in tensors]
        rtol, atol = (max(values) for values in zip(*known, strict=True))
    assert_close(
        *tensors, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=True, check_dtype=False, check_stride=False, msg=msg or None
    )  # fmt: skip
