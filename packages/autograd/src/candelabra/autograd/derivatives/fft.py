"""Gradients of Fourier transforms: the adjoint is the transform with the opposite sign."""

from __future__ import annotations

import candelabra
from candelabra import Tensor, ops

from ..table import derivative

derivative("_fft_c2c", self=lambda grad, dim, forward, scale: ops._fft_c2c(grad, dim, not forward, scale))


def _real_to_complex(grad: Tensor, dim: int, scale: float, self_shape: tuple[int, ...]) -> Tensor:
    # Only the stored coefficients contribute; the redundant conjugates are zero.
    missing = list(grad.shape)
    missing[dim] = self_shape[dim] - grad.shape[dim]
    whole = candelabra.cat([grad, grad.new_zeros(missing)], dim) if missing[dim] else grad
    return ops._fft_c2c(whole, [dim], False, scale).real


def _complex_to_real(grad: Tensor, dim: int, n: int, scale: float) -> Tensor:
    # Each coefficient stands for its conjugate too, except the first and, for even n, the last.
    counts = candelabra.full((n // 2 + 1,), 2.0, dtype=grad.dtype, device=grad.device)
    counts[0] = 1.0
    if n % 2 == 0:
        counts[-1] = 1.0
    shape = [1] * grad.ndim
    shape[dim] = n // 2 + 1
    return ops._fft_r2c(grad, dim, scale) * counts.view(shape)


derivative("_fft_r2c", self=_real_to_complex)
derivative("_fft_c2r", self=_complex_to_real)
