"""Implement softmax and related functions."""

from __future__ import annotations

from typing import Any

from candelabra import _C, Tensor, ops
from candelabra.composite.registration import fast_path

_softmax = ops.softmax
_log_softmax = ops.log_softmax


def _implicit_dim(name: str, ndim: int) -> int:
    _C.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
    )
    return 0 if ndim in (0, 1, 3) else 1


@fast_path(_softmax)
def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Return ``exp(x) / sum(exp(x))`` along `dim`, computed without overflow.

    `dtype` is the dtype of the computation and the result. The warning about a missing `dim` is at
    the line of the program, whatever `_stacklevel` is.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.softmax(candelabra.tensor([1000.0, 1000.0]), dim=0)
    tensor([0.5000, 0.5000])
    """
    if dim is None:
        dim = _implicit_dim("softmax", input.ndim)
    return _softmax(input, dim, dtype)


@fast_path(_log_softmax)
def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Return the logarithm of the softmax along `dim`, computed without overflow.

    `dtype` is the dtype of the computation and the result. The warning about a missing `dim` is at
    the line of the program, whatever `_stacklevel` is.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.log_softmax(candelabra.zeros(2), dim=0)
    tensor([-0.6931, -0.6931])
    """
    if dim is None:
        dim = _implicit_dim("log_softmax", input.ndim)
    return _log_softmax(input, dim, dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Return the softmax of -x along `dim`."""
    if dim is None:
        dim = _implicit_dim("softmin", input.ndim)
    return _softmax(-input, dim, dtype)


__all__ = ["log_softmax", "softmax", "softmin"]
