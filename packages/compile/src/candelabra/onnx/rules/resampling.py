"""Rules of interpolation and sampling."""

from __future__ import annotations

from collections.abc import Sequence

from ..builder import FLOAT, AnySize, Builder, Value
from .table import rule

_MODES = {"nearest": "nearest", "nearest-exact": "nearest", "linear": "linear", "cubic": "cubic"}


@rule("_upsample", sizes="output_size")
def _upsample(
    b: Builder, self: Value, output_size: Sequence[AnySize], scales: Sequence[float], mode: str, align_corners: bool, antialias: bool
) -> str:  # fmt: skip
    places, rounding = "pytorch_half_pixel", None
    if mode == "nearest":
        places, rounding = "asymmetric", "floor"
    elif mode == "nearest-exact":
        places, rounding = "half_pixel", "round_prefer_ceil"
    elif align_corners:
        places = "align_corners"
    factors = sizes = None
    if len(scales):
        factors = b.constant([1.0, 1.0, *scales], FLOAT)
    else:
        sizes = b.sizes([*self.shape[:2], *output_size])
    cubic = (-0.5 if antialias else -0.75) if mode == "cubic" else None
    return b.op(
        "Resize", self, None, factors, sizes, mode=_MODES[mode], coordinate_transformation_mode=places, nearest_mode=rounding,
        cubic_coeff_a=cubic, antialias=1 if antialias else None, exclude_outside=1 if antialias else None,
    )  # fmt: skip


@rule("grid_sampler")
def _grid_sampler(b: Builder, self: Value, grid: Value, mode: str, padding_mode: str, align_corners: bool) -> str:
    if self.rank != 4 and b.opset < 20:
        b.refuse("sampling of volumes is in operator set 20")
    names = {"bilinear": "linear", "bicubic": "cubic"} if b.opset >= 20 else {}
    return b.op(
        "GridSample",
        self,
        grid,
        mode=names.get(mode, mode),
        padding_mode=padding_mode,
        align_corners=int(align_corners),
    )
