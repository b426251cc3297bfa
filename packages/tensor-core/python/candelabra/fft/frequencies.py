"""The sample frequencies of transforms, and their order."""

from __future__ import annotations

import math

from candelabra.catalogue import OPERATORS
from candelabra.composite import FUNCTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor, dtype
    from candelabra.types import Device


def _default() -> Any:
    from candelabra import get_default_dtype

    return get_default_dtype()


def _finish(made: Tensor, out: Tensor | None, requires_grad: bool) -> Tensor:
    if out is not None:
        from candelabra import _C

        return _C.give_to_out("fftfreq", out, made)
    return made.requires_grad_() if requires_grad else made


def _inverse(length: float) -> float:
    """Return 1 / length; infinity for zero, as in a tensor division."""
    return 1.0 / length if length else math.copysign(math.inf, length)


def _check_count(name: str, n: int) -> None:
    if n < 0:
        raise RuntimeError(f"{name}(): Trying to create tensor with negative dimension {n}")


def fftfreq(
    n: int,
    d: float = 1.0,
    *,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the sample frequencies of a transform of n points: ``[0, 1, ..., -2, -1] / (d * n)``.

    Parameters
    ----------
    n : int
        The number of points.
    d : float
        The distance between samples.
    out, dtype, device, requires_grad
        As in :func:`candelabra.zeros`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    _check_count("fftfreq", n)
    wanted = _dtype_of(out, dtype, "fftfreq")
    half = (n + 1) // 2
    numbers = OPERATORS["cat"]([
        FUNCTIONS["arange"](0, half, dtype=wanted, device=device, layout=layout),
        FUNCTIONS["arange"](-(n // 2), 0, dtype=wanted, device=device, layout=layout),
    ])  # fmt: skip
    return _finish(numbers * _inverse(n * d), out, requires_grad)


def rfftfreq(
    n: int,
    d: float = 1.0,
    *,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the sample frequencies of :func:`candelabra.fft.rfft`: ``[0, 1, ..., n // 2] / (d *
    n)``.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    _check_count("rfftfreq", n)
    numbers = FUNCTIONS["arange"](0, n // 2 + 1, dtype=_dtype_of(out, dtype, "rfftfreq"), device=device, layout=layout)
    return _finish(numbers * _inverse(n * d), out, requires_grad)


def _dtype_of(out: Tensor | None, dtype: Any, name: str) -> Any:
    chosen = dtype or (out.dtype if out is not None else _default())
    if not (chosen.is_floating_point or chosen.is_complex):
        raise RuntimeError(f"{name} requires a floating point or complex dtype, but got {chosen}")
    return chosen


def _shifts(input: Tensor, dim: Any, sign: int) -> tuple[list[int], list[int]]:
    dims = list(range(input.ndim)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    half = [input.shape[d] // 2 if sign > 0 else (input.shape[d] + 1) // 2 for d in dims]
    return half, dims


def fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """Move the zero frequency to the middle of dimensions, by default of all.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.fft.fftshift(candelabra.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    return FUNCTIONS["roll"](input, *_shifts(input, dim, 1))


def ifftshift(input: Tensor, dim: Any = None) -> Tensor:
    """Undo :func:`candelabra.fft.fftshift`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.fft.ifftshift(candelabra.tensor([-0.5, -0.25, 0.0, 0.25]))
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    return FUNCTIONS["roll"](input, *_shifts(input, dim, -1))
