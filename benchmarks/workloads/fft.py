"""Fourier transforms."""

from __future__ import annotations

import math
from typing import Any

from ..inputs import normal
from ..workload import both_ways, forward

M = 1 << 20


def _stft(xp: Any, x: Any) -> Any:
    return xp.stft(x, 512, 128, window=xp.hann_window(512), return_complex=True)


WORKLOADS = [
    forward("rfft, 1 K", lambda xp, x: xp.fft.rfft(x), normal(1024)),
    forward("rfft, 64 K", lambda xp, x: xp.fft.rfft(x), normal(1 << 16)),
    forward("rfft, 1 M", lambda xp, x: xp.fft.rfft(x), normal(1_000_000), operations=2.5e6 * math.log2(1e6)),
    forward(
        "irfft, 1 M", lambda xp, x: xp.fft.irfft(x), normal(M // 2 + 1, dtype="complex64"), operations=2.5 * M * 20
    ),
    forward("fft, 1 M, complex", lambda xp, x: xp.fft.fft(x), normal(M, dtype="complex64"), operations=5 * M * 20),
    forward(
        "fft, 1000 rows of 1024, complex",
        lambda xp, x: xp.fft.fft(x),
        normal(1000, 1024, dtype="complex64"),
        operations=5 * M * 10,
    ),
    forward(
        "rfft of columns, 1024 x 1024", lambda xp, x: xp.fft.rfft(x, dim=0), normal(1024, 1024), operations=2.5 * M * 10
    ),
    forward("fft2, 512 x 512", lambda xp, x: xp.fft.fft2(x), normal(512, 512), operations=5 * 512 * 512 * 18),
    forward(
        "rfft2, 8 x 16 x 64 x 64",
        lambda xp, x: xp.fft.rfft2(x),
        normal(8, 16, 64, 64),
        operations=2.5 * 128 * 4096 * 12,
    ),
    forward(
        "fft2, 8 x 16 x 64 x 64, complex",
        lambda xp, x: xp.fft.fft2(x),
        normal(8, 16, 64, 64, dtype="complex64"),
        operations=5 * 128 * 4096 * 12,
    ),
    forward("fftshift, 2048 x 2048", lambda xp, x: xp.fft.fftshift(x), normal(2048, 2048)),
    forward("stft, 160,000 samples", _stft, normal(160_000)),
    forward(
        "fftn, 64 x 64 x 64, complex",
        lambda xp, x: xp.fft.fftn(x),
        normal(64, 64, 64, dtype="complex64"),
        operations=5 * 64**3 * 18,
    ),
    forward(
        "fft of columns, 512 x 512, complex",
        lambda xp, x: xp.fft.fft(x, dim=0),
        normal(512, 512, dtype="complex64"),
        operations=5 * 512 * 512 * 9,
    ),
    forward(
        "irfft, 4096 rows of 62",
        lambda xp, x: xp.fft.irfft(x),
        normal(4096, 32, dtype="complex64"),
        operations=2.5 * 4096 * 62 * 6,
    ),
    both_ways(
        "rfft, magnitudes, forward and backward, 64 K",
        lambda xp, x: xp.fft.rfft(x).abs(),
        normal(1 << 16, grad=True),
        tolerance=1e-3,
    ),
]
