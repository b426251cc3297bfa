"""Discrete Fourier transforms. NumPy's inverse divides by the number of points, but the operators
do not normalize.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from candelabra_numpy.kernels import kernel

Array = Any


@kernel("_fft_c2c")
def complex_to_complex(a: Array, dim: tuple[int, ...], forward: bool, scale: float) -> Array:
    if forward:
        return np.fft.fftn(a, axes=dim) * scale
    return np.fft.ifftn(a, axes=dim) * (scale * prod(a.shape[d] for d in dim))


@kernel("_fft_r2c")
def real_to_complex(a: Array, dim: int, scale: float) -> Array:
    return np.fft.rfft(a, axis=dim) * scale


@kernel("_fft_c2r")
def complex_to_real(a: Array, dim: int, n: int, scale: float) -> Array:
    return np.fft.irfft(a, n, axis=dim) * (n * scale)
