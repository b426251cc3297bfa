"""Discrete Fourier transforms as products with the matrix of the transform, in real arithmetic.

The work for n points is n**2. A device with long transforms has kernels for them.
"""

from __future__ import annotations

import math

import candelabra

from .registration import decomposes, from_parts, parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from candelabra import Tensor


def _matrices(rows: int, columns: int, n: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Return the cosines and sines of 2 pi j k / n."""
    j, k = (candelabra.arange(count, device=like.device) for count in (rows, columns))
    # The remainder is exact, so that the angle is below 2 pi.
    angles = candelabra.fmod(j.unsqueeze(1) * k, n).to(like.dtype) * (2 * math.pi / n)
    return angles.cos(), angles.sin()


def _times(x: Tensor, matrix: Tensor) -> Tensor:
    return candelabra.mm(x.reshape(-1, matrix.shape[0]), matrix).reshape(*x.shape[:-1], matrix.shape[1])


def _transformed(real: Tensor, imaginary: Tensor, dim: int, forward: bool) -> tuple[Tensor, Tensor]:
    a, b = real.movedim(dim, -1), imaginary.movedim(dim, -1)
    n = a.shape[-1]
    cosines, sines = _matrices(n, n, n, a)
    sines = -sines if forward else sines
    return (_times(a, cosines) - _times(b, sines)).movedim(-1, dim), (_times(a, sines) + _times(b, cosines)).movedim(
        -1, dim
    )


@decomposes("_fft_c2c")
def _fft_c2c(self: Tensor, dim: tuple[int, ...], forward: bool, scale: float) -> Tensor:
    if self.numel() == 0:
        return self
    real, imaginary = parts(self)
    for d in dim:
        real, imaginary = _transformed(real, imaginary, d, forward)
    return from_parts(real * scale, imaginary * scale)


@decomposes("_fft_r2c")
def _fft_r2c(self: Tensor, dim: int, scale: float) -> Tensor:
    x = self.movedim(dim, -1)
    n = x.shape[-1]
    cosines, sines = _matrices(n, n // 2 + 1, n, x)
    made = from_parts(_times(x, cosines) * scale, _times(x, sines) * -scale)
    return made.movedim(-1, dim)


@decomposes("_fft_c2r")
def _fft_c2r(self: Tensor, dim: int, n: int, scale: float) -> Tensor:
    real, imaginary = parts(self.movedim(dim, -1))
    count = n // 2 + 1
    real, imaginary = real.narrow(-1, 0, count), imaginary.narrow(-1, 0, count)
    cosines, sines = _matrices(count, n, n, real)
    # All but the first and, of an even number of points, the last stand for a conjugate too.
    weights = [1 if k == 0 or 2 * k == n else 2 for k in range(count)]
    weight = candelabra.tensor(weights, dtype=real.dtype, device=real.device) * scale
    return (_times(real * weight, cosines) - _times(imaginary * weight, sines)).movedim(-1, dim)
