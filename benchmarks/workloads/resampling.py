"""Interpolation and grid sampling."""

from __future__ import annotations

from typing import Any

from ..inputs import normal, uniform
from ..workload import both_ways, forward


def _interpolated(mode: str, size: Any, **options: Any) -> Any:
    return lambda xp, x: xp.nn.functional.interpolate(x, size=size, mode=mode, **options)


def _sampled(mode: str, padding: str) -> Any:
    return lambda xp, x, grid: xp.nn.functional.grid_sample(x, grid, mode, padding, align_corners=False)


IMAGES, GRID = normal(8, 16, 64, 64), uniform(4, 64, 64, 2, low=-1.1, high=1.1)

WORKLOADS = [
    forward("interpolate bilinear 2x8x32x32 to 64", _interpolated("bilinear", 64), normal(2, 8, 32, 32)),
    forward("interpolate nearest 1x3x16x16 to 32", _interpolated("nearest", 32), normal(1, 3, 16, 16)),
    forward("interpolate bilinear 1x3x16x16 to 32", _interpolated("bilinear", 32), normal(1, 3, 16, 16)),
    forward("interpolate bilinear 8x16x64x64 to 128", _interpolated("bilinear", 128), IMAGES),
    forward("interpolate bilinear, channels last", _interpolated("bilinear", 128), normal(8, 16, 64, 64, layout="channels_last")),
    both_ways("interpolate bilinear, forward and backward", _interpolated("bilinear", 128), normal(8, 16, 64, 64, grad=True), linear=True),
    forward("interpolate nearest 8x16x64x64 to 128", _interpolated("nearest", 128), IMAGES),
    both_ways("interpolate nearest, forward and backward", _interpolated("nearest", 128), normal(8, 16, 64, 64, grad=True), linear=True),
    forward("interpolate bicubic 8x16x64x64 to 128", _interpolated("bicubic", 128), IMAGES),
    forward("interpolate antialiased 8x3x256x256 to 96", _interpolated("bilinear", 96, antialias=True), normal(8, 3, 256, 256)),
    forward("interpolate trilinear 2x4x32x32x32 to 64", _interpolated("trilinear", 64), normal(2, 4, 32, 32, 32)),
    forward("interpolate area 8x16x128x128 to 60", _interpolated("area", 60), normal(8, 16, 128, 128)),
    forward("grid_sample bilinear 4x16x64x64", _sampled("bilinear", "zeros"), normal(4, 16, 64, 64), GRID),
    both_ways(
        "grid_sample bilinear, forward and backward", _sampled("bilinear", "zeros"), normal(4, 16, 64, 64, grad=True),
        uniform(4, 64, 64, 2, low=-1.1, high=1.1, grad=True), tolerance=1e-3,
    ),
    forward("grid_sample nearest, border", _sampled("nearest", "border"), normal(4, 16, 64, 64), GRID, comparable=False),
    forward("grid_sample bicubic, reflection", _sampled("bicubic", "reflection"), normal(4, 16, 64, 64), GRID, tolerance=1e-3),
    forward("grid_sample bilinear 2x4x16x32x32", _sampled("bilinear", "zeros"), normal(2, 4, 16, 32, 32), uniform(2, 16, 32, 32, 3, low=-1.1, high=1.1)),
    forward("affine_grid 4x64x64", lambda xp, t: xp.nn.functional.affine_grid(t, (4, 3, 64, 64), align_corners=False), normal(4, 2, 3)),
]  # fmt: skip
