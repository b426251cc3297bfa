"""Resize signals, images and volumes, and sample them at arbitrary positions.

Coordinates are those of PyTorch. By default a pixel is a square whose centre is half a pixel from
its edges. With `align_corners` pixels are points, and the outermost ones keep their positions. The
cubic weights are from Keys, "Cubic convolution interpolation for digital image processing", 1981,
with a = -0.75. Antialiasing uses a = -0.5, like other libraries.
"""

from __future__ import annotations

import math
from typing import Any

import candelabra
from candelabra import _C, Tensor, ops

_LINEAR = {"linear": 3, "bilinear": 4, "trilinear": 5}


def _output_size(
    input: Tensor, size: Any, scale_factor: Any, recompute: bool | None
) -> tuple[list[int], list[float | None]]:
    """Return the output sizes and the scales for the coordinates.

    A scale is None if it follows from the sizes.
    """
    dims = input.ndim - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        sizes = [size] * dims if isinstance(size, int) else list(size)
        if len(sizes) != dims:
            raise ValueError(
                "Input and output must have the same number of spatial dimensions, but got input with spatial dimensions of "
                f"{list(input.shape[2:])} and output size of {size}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
                "output size in (o1, o2, ...,oK) format."
            )
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        return [int(n) for n in sizes], [None] * dims
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    factors = (
        [float(scale_factor)] * dims if isinstance(scale_factor, (int, float)) else [float(f) for f in scale_factor]
    )
    if len(factors) != dims:
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but got input with spatial dimensions of "
            f"{list(input.shape[2:])} and scale_factor of shape {scale_factor}. Please provide input tensor in (N, C, d1, d2, ...,dK) "
            "format and scale_factor in (s1, s2, ...,sK) format."
        )
    scaled = [n * f for n, f in zip(input.shape[2:], factors, strict=True)]
    if not all(abs(size) < 2**63 for size in scaled):  # false for NaN
        raise RuntimeError("value cannot be converted to type int64_t without overflow")
    sizes = [math.floor(size) for size in scaled]
    return sizes, [None] * dims if recompute else list(factors)


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resize signals, images or volumes.

    Parameters
    ----------
    input
        (N, C, L), (N, C, H, W) or (N, C, D, H, W).
    size
        Spatial sizes of the output. Give this or `scale_factor`.
    scale_factor
        Ratio of output size to input size.
    mode
        ``"nearest"``, ``"nearest-exact"``, ``"linear"`` (3-D), ``"bilinear"``, ``"bicubic"`` (4-D),
        ``"trilinear"`` (5-D), ``"area"``.
    align_corners
        Whether the outermost pixels keep their positions; for the linear and cubic modes.
    recompute_scale_factor
        Whether to compute the coordinates from the sizes instead of the scale factor.
    antialias
        Whether to widen the filter when downsampling; for ``"bilinear"`` and ``"bicubic"``.

    Raises
    ------
    ValueError, NotImplementedError, RuntimeError
        As in PyTorch: if size and scale factor are inconsistent, the mode does not support the
        number of dimensions, or a size is not positive.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.interpolate(candelabra.tensor([[[1.0, 3.0]]]), scale_factor=2, mode="linear")
    tensor([[[1.0000, 1.5000, 2.5000, 3.0000]]])
    """
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
            )
    elif align_corners is None:
        align_corners = False
    sizes, scales = _output_size(input, size, scale_factor, recompute_scale_factor)
    if antialias and not (mode in ("bilinear", "bicubic") and input.ndim == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input"
        )
    known = {"nearest", "nearest-exact", "area", "bicubic", *_LINEAR}
    if mode not in known or input.ndim not in (3, 4, 5):
        raise NotImplementedError(
            "Input Error: Only 3D, 4D and 5D input Tensors supported "
            f"(got {input.ndim}D) for the modes: nearest | linear | bilinear | bicubic | trilinear | area | nearest-exact (got {mode})"
        )
    if mode in _LINEAR and _LINEAR[mode] != input.ndim:
        raise NotImplementedError(f"Got {input.ndim}D input, but {mode} mode needs {_LINEAR[mode]}D input")
    if mode == "bicubic" and input.ndim != 4:
        raise NotImplementedError(f"Got {input.ndim}D input, but bicubic mode needs 4D input")
    if any(n <= 0 for n in sizes) or any(n <= 0 for n in input.shape[2:]):
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input {list(input.shape[2:])} and output {sizes}"
        )
    if mode == "area":
        from .pooling import adaptive_avg_pool1d, adaptive_avg_pool2d
        from .spatial import adaptive_avg_pool3d

        pools: tuple[Any, ...] = (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)
        return pools[input.ndim - 3](input, sizes)
    whole = not input.is_floating_point()
    if mode not in ("nearest", "nearest-exact") and whole and input.dtype is not candelabra.uint8:
        raise NotImplementedError(f"\"upsample_{mode}\" not implemented for '{_type_name(input)}'")
    if mode in ("nearest", "nearest-exact"):
        kind = mode
    else:
        kind = "cubic" if mode == "bicubic" else "linear"
    given = [] if all(scale is None for scale in scales) else [scale or 0.0 for scale in scales]
    return ops._upsample(input, sizes, given, kind, bool(align_corners), antialias)


def _type_name(input: Tensor) -> str:
    return {"int64": "Long", "int32": "Int", "int16": "Short", "int8": "Char", "bool": "Bool"}.get(
        input.dtype.name, input.dtype.name
    )


def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """Call :func:`interpolate`, which replaces this function."""
    _C.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Call :func:`interpolate` with ``mode="nearest"``."""
    _C.warn("`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.")
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Call :func:`interpolate` with ``mode="bilinear"`` and ``align_corners=True``."""
    _C.warn("`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


# ---- sampling at arbitrary positions


def _warn_of_corners() -> None:
    _C.warn(
        "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
        "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details.",
    )


def _sum_of_axes(theta: Tensor, axes: list[Tensor]) -> Tensor:
    """Compute the grid as a sum of one term per axis.

    The terms broadcast, so only the last addition has the full size of the grid.
    """
    dims = len(axes)
    *columns, places = theta.reshape((*theta.shape, *[1] * dims)).unbind(2)
    for column, axis in reversed(list(zip(columns, axes, strict=True))):
        places = places + column * axis
    return places.movedim(1, -1).contiguous()


def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """Return a sampling grid for :func:`grid_sample` from affine maps.

    Parameters
    ----------
    theta
        (N, 2, 3) for images, (N, 3, 4) for volumes.
    size
        Output size: (N, C, H, W) or (N, C, D, H, W).
    align_corners
        Whether -1 and 1 refer to the centres of the outermost pixels, rather than to their outer
        edges.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.affine_grid(candelabra.eye(2, 3).unsqueeze(0), (1, 1, 1, 2), align_corners=True)[0]
    tensor([[[-1.,  0.],
             [ 1.,  0.]]])
    """
    if align_corners is None:
        _warn_of_corners()
        align_corners = False
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    size = list(size)
    if len(size) not in (4, 5):
        raise NotImplementedError(
            f"affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size {size}."
        )
    dims = len(size) - 2
    if theta.ndim != 3 or theta.shape[-2] != dims or theta.shape[-1] != dims + 1:
        raise ValueError(
            f"Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1} for size {size}. Got {list(theta.shape)}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    if align_corners and min(size[2:]) == 1:
        _C.warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. "
            "See the documentation of affine_grid for details.",
        )
    axes = []
    for i, length in enumerate(reversed(size[2:])):
        line = (
            candelabra.linspace(-1, 1, length, dtype=theta.dtype, device=theta.device)
            if length > 1
            else theta.new_zeros(1)
        )
        if not align_corners:
            line = line * ((length - 1) / length)
        elif length == 1:
            line = line - 0.0
        shape = [1] * dims
        shape[dims - 1 - i] = length
        axes.append(line.reshape(shape))
    if theta.dtype in (candelabra.float32, candelabra.float64):
        return _sum_of_axes(theta, axes)
    # In half precision, the matrix product accumulates the terms before it rounds.
    axes = [axis.expand(tuple(size[2:])) for axis in axes]
    base = candelabra.stack([*axes, candelabra.ones_like(axes[0])], -1).reshape(1, -1, dims + 1)
    return (base @ theta.transpose(1, 2)).reshape((size[0], *size[2:], dims))


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """Sample images or volumes at the positions of a grid.

    Parameters
    ----------
    input
        (N, C, H, W) or (N, C, D, H, W).
    grid
        (N, H_out, W_out, 2) or (N, D_out, H_out, W_out, 3): coordinates in [-1, 1], x first.
    mode
        ``"bilinear"`` (trilinear for volumes), ``"nearest"`` or, for images only, ``"bicubic"``.
    padding_mode
        Values outside the image: ``"zeros"``, the nearest ``"border"`` pixel, or ``"reflection"``.
    align_corners
        Whether -1 and 1 refer to the centres of the outermost pixels, rather than to their outer
        edges.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> image = candelabra.tensor([[[[0.0, 1.0], [2.0, 3.0]]]])
    >>> F.grid_sample(image, candelabra.zeros(1, 1, 1, 2), align_corners=True).item()
    1.5
    """
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            f"nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: '{padding_mode}'"
        )
    if align_corners is None:
        _warn_of_corners()
        align_corners = False
    return ops.grid_sampler(input, grid, mode, padding_mode, align_corners)


_MODES, _PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Call :func:`grid_sample` with its modes as integers, in the order of their listing there."""
    return grid_sample(input, grid, _MODES[interpolation_mode], _PADDINGS[padding_mode], align_corners)


grid_sampler_2d = grid_sampler_3d = grid_sampler


def affine_grid_generator(theta: Tensor, size: Any, align_corners: bool) -> Tensor:
    """Call :func:`affine_grid` with the signature of PyTorch's top-level package."""
    return affine_grid(theta, size, align_corners)


__all__ = ["affine_grid", "grid_sample", "interpolate", "upsample", "upsample_bilinear", "upsample_nearest"]
