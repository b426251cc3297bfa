"""The extension ``fft`` of the array API standard 2024.12."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from candelabra import fft as transforms
from candelabra.types import Device

from .array_object import Array, fresh
from .data_types import Dtype

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft", "rfftfreq", "rfftn",
]  # fmt: skip

Norm = Literal["backward", "ortho", "forward"]


class AlongAxis(Protocol):
    """A transform along one axis."""

    def __call__(self, x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array: ...


class OverAxes(Protocol):
    """A transform over several axes."""

    def __call__(
        self, x: Array, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward"
    ) -> Array: ...


_NORM = """norm : {"backward", "ortho", "forward"}
        Where the factor one over the size goes: with the inverse, its root with both, or with the transform."""


def _along_axis(name: str, text: str) -> AlongAxis:
    function: Any = getattr(transforms, name)

    def transform(x: Array, /, *, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
        return fresh(function(x, n, axis, norm))

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"""{text}

    Parameters
    ----------
    x : Array
        Of one dimension or more.
    n : int, optional
        The length of the signal, to which the array is cut or filled up with zeros.
    axis : int
        Along which.
    {_NORM}

    Raises
    ------
    RuntimeError
        If the length is not positive, or `norm` another word.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.fft.{name}(xp.ones(4)).shape[0]
    {dict(rfft=3, ihfft=3, irfft=6, hfft=6).get(name, 4)}
    """
    return transform


def _over_axes(name: str, text: str) -> OverAxes:
    function: Any = getattr(transforms, name)

    def transform(
        x: Array, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward"
    ) -> Array:
        return fresh(function(x, s, axes, norm))

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"""{text}

    Parameters
    ----------
    x : Array
        Of one dimension or more.
    s : sequence of int, optional
        The sizes of the signal along the axes, to which the array is cut or filled up with zeros.
    axes : sequence of int, optional
        Over which; all, or the last ones, if `s` is given.
    {_NORM}

    Raises
    ------
    RuntimeError
        If a size is not positive, or `norm` another word.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.fft.{name}(xp.ones((4, 4))).shape[-1]
    {dict(rfftn=3, irfftn=6).get(name, 4)}
    """
    return transform


fft = _along_axis("fft", "Discrete Fourier transform along an axis.")
ifft = _along_axis("ifft", "Inverse of the discrete Fourier transform along an axis.")
fftn = _over_axes("fftn", "Discrete Fourier transform over several axes.")
ifftn = _over_axes("ifftn", "Inverse of the discrete Fourier transform over several axes.")
rfft = _along_axis("rfft", "Fourier transform of real numbers along an axis: the half without the conjugates.")
irfft = _along_axis("irfft", "Inverse of `rfft`: real numbers from half of their transform.")
rfftn = _over_axes(
    "rfftn", "Fourier transform of real numbers over several axes: along the last one, the half without the conjugates."
)
irfftn = _over_axes("irfftn", "Inverse of `rfftn`: real numbers from half of their transform.")
hfft = _along_axis(
    "hfft", "Fourier transform, which is real, of a signal with Hermitian symmetry, of which half is given."
)
ihfft = _along_axis("ihfft", "Inverse of `hfft`.")


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Dtype | None = None, device: Device | None = None) -> Array:
    """Frequencies of the bins of a transform of `n` samples with a distance of `d`, in cycles per
    unit of `d`.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.fft.fftfreq(4)
    Array([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    return fresh(transforms.fftfreq(n, d, dtype=dtype, device=device))


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Dtype | None = None, device: Device | None = None) -> Array:
    """Frequencies of the bins of `rfft` of `n` samples with a distance of `d`, in cycles per unit
    of `d`.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.fft.rfftfreq(4)
    Array([0.0000, 0.2500, 0.5000])
    """
    return fresh(transforms.rfftfreq(n, d, dtype=dtype, device=device))


def fftshift(x: Array, /, *, axes: int | Sequence[int] | None = None) -> Array:
    """Bring the bin of frequency 0 into the middle, along some axes or all.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.fft.fftshift(xp.asarray([0, 1, -2, -1]))
    Array([-2, -1,  0,  1])
    """
    return fresh(transforms.fftshift(x, axes))


def ifftshift(x: Array, /, *, axes: int | Sequence[int] | None = None) -> Array:
    """Inverse of `fftshift`.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.fft.ifftshift(xp.asarray([-2, -1, 0, 1]))
    Array([ 0,  1, -2, -1])
    """
    return fresh(transforms.ifftshift(x, axes))
