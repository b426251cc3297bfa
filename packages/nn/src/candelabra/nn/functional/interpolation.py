"""Other sizes of images and volumes, and samples at any places of them.

Each dimension is treated on its own: its new positions take a few old ones, weighted. Positions are those of PyTorch: pixels are
squares whose centres lie half a pixel inside, or, with `align_corners`, points of which the outermost stay where they are. The cubic
weights are those of Keys, "Cubic convolution interpolation for digital image processing", 1981, with a = -0.75; with antialiasing
a = -0.5 as in other libraries.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import candelabra
from candelabra import Tensor

_LINEAR = {"linear": 3, "bilinear": 4, "trilinear": 5}


def _along(input: Tensor, dim: int, places: Tensor) -> Tensor:
    return input.index_select(dim, places)


def _shaped(weights: Tensor, dim: int, ndim: int) -> Tensor:
    shape = [1] * ndim
    shape[dim] = -1
    return weights.reshape(shape)


def _ratio(old: int, new: int, align_corners: bool, scale: float | None) -> float:
    """How far apart new positions are, in old ones."""
    if align_corners:
        return (old - 1) / (new - 1) if new > 1 else 0.0
    return 1 / scale if scale is not None and scale > 0 else old / new


def _positions(old: int, new: int, align_corners: bool, scale: float | None, dtype: Any, device: Any, clip: bool) -> Tensor:
    ratio = _ratio(old, new, align_corners, scale)
    index = candelabra.arange(new, dtype=dtype, device=device)
    if align_corners:
        return index * ratio
    places = (index + 0.5) * ratio - 0.5
    return places.clamp(min=0) if clip else places


def _nearest(input: Tensor, dim: int, new: int, scale: float | None, exact: bool) -> Tensor:
    old = input.shape[dim]
    ratio = _ratio(old, new, False, scale)
    index = candelabra.arange(new, dtype=candelabra.float32, device=input.device)
    # In single precision as PyTorch, so that places exactly between two pixels go the same way.
    step = candelabra.tensor(ratio, dtype=candelabra.float32, device=input.device)
    places = ((index + 0.5) * step if exact else index * step).floor().to(candelabra.int64).clamp(max=old - 1)
    return _along(input, dim, places)


def _linear(input: Tensor, dim: int, new: int, align_corners: bool, scale: float | None) -> Tensor:
    old = input.shape[dim]
    if old == new:
        return input
    places = _positions(old, new, align_corners, scale, input.dtype, input.device, True)
    first = places.floor().to(candelabra.int64).clamp(max=old - 1)
    weight = _shaped((places - first.to(places.dtype)).clamp(min=0, max=1), dim, input.ndim)
    return _along(input, dim, first) * (1 - weight) + _along(input, dim, (first + 1).clamp(max=old - 1)) * weight


def _cubic_weights(t: Tensor, a: float) -> list[Tensor]:
    """The weights of the four neighbours of a place `t` behind the second."""
    near, far = 1 - t, 2 - t
    return [
        ((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a,
        ((a + 2) * t - (a + 3)) * t * t + 1,
        ((a + 2) * near - (a + 3)) * near * near + 1,
        ((a * far - 5 * a) * far + 8 * a) * far - 4 * a,
    ]


def _cubic(input: Tensor, dim: int, new: int, align_corners: bool, scale: float | None) -> Tensor:
    old = input.shape[dim]
    places = _positions(old, new, align_corners, scale, input.dtype, input.device, False)
    second = places.floor()
    weights = _cubic_weights(places - second, -0.75)
    second = second.to(candelabra.int64)
    total: Any = None
    for offset, weight in enumerate(weights, -1):
        part = _along(input, dim, (second + offset).clamp(min=0, max=old - 1)) * _shaped(weight, dim, input.ndim)
        total = part if total is None else total + part
    return total


def _antialiased(input: Tensor, dim: int, new: int, align_corners: bool, scale: float | None, cubic: bool) -> Tensor:
    """By a matrix of weights: the filter is widened where pixels are drawn together."""
    old = input.shape[dim]
    ratio = _ratio(old, new, align_corners, scale)
    wide = max(ratio, 1.0)
    dtype, device = candelabra.float64, input.device
    centres = (candelabra.arange(new, dtype=dtype, device=device) + 0.5) * ratio
    reach = (2.0 if cubic else 1.0) * wide
    places = candelabra.arange(old, dtype=dtype, device=device)
    first = (centres - reach + 0.5).trunc().clamp(min=0).unsqueeze(1)
    last = (centres + reach + 0.5).trunc().clamp(max=old).unsqueeze(1)
    distance = ((places - centres.unsqueeze(1) + 0.5) / wide).abs()
    if cubic:
        a = -0.5
        inner = ((a + 2) * distance - (a + 3)) * distance * distance + 1
        outer = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
        weights = candelabra.where(distance < 1, inner, candelabra.where(distance < 2, outer, 0.0))
    else:
        weights = (1 - distance).clamp(min=0)
    weights = candelabra.where((places >= first) & (places < last), weights, 0.0)
    weights = (weights / weights.sum(1, keepdim=True)).to(input.dtype)
    return (input.movedim(dim, -1) @ weights.t()).movedim(-1, dim)


def _output_size(input: Tensor, size: Any, scale_factor: Any, recompute: bool | None) -> tuple[list[int], list[float | None]]:
    """The new sizes, and the scales that positions are computed with, None where they follow from the sizes."""
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
    factors = [float(scale_factor)] * dims if isinstance(scale_factor, (int, float)) else [float(f) for f in scale_factor]
    if len(factors) != dims:
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but got input with spatial dimensions of "
            f"{list(input.shape[2:])} and scale_factor of shape {scale_factor}. Please provide input tensor in (N, C, d1, d2, ...,dK) "
            "format and scale_factor in (s1, s2, ...,sK) format."
        )
    sizes = [math.floor(n * f) for n, f in zip(input.shape[2:], factors, strict=True)]
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
    """Give signals, images or volumes another size.

    Parameters
    ----------
    input
        Of shape (N, C, L), (N, C, H, W) or (N, C, D, H, W).
    size
        The new spatial sizes, or
    scale_factor
        how many times larger they are.
    mode
        ``"nearest"``, ``"nearest-exact"``, ``"linear"`` (3-D), ``"bilinear"``, ``"bicubic"`` (4-D), ``"trilinear"`` (5-D), ``"area"``.
    align_corners
        Whether the outermost pixels stay in place; for the linear and cubic modes.
    recompute_scale_factor
        Whether positions follow from the sizes instead of the scale factor.
    antialias
        Whether the filter is widened where the image gets smaller; ``"bilinear"`` and ``"bicubic"``.

    Raises
    ------
    ValueError, NotImplementedError, RuntimeError
        As PyTorch: where size and scale factor do not go together, the mode does not go with the number of dimensions, or a size is
        not positive.

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
        raise ValueError("Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input")
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
    wide = input
    if mode not in ("nearest", "nearest-exact") and input.dtype in (candelabra.float16, candelabra.bfloat16, candelabra.uint8):
        wide = input.float()
    channels_last = input.ndim == 4 and not input.is_contiguous() and input.is_contiguous(memory_format=candelabra.channels_last)
    for i, (new, scale) in enumerate(zip(sizes, scales, strict=True)):
        dim = 2 + i
        if mode in ("nearest", "nearest-exact"):
            wide = _nearest(wide, dim, new, scale, mode == "nearest-exact")
        elif antialias:
            wide = _antialiased(wide, dim, new, bool(align_corners), scale, mode == "bicubic")
        elif mode == "bicubic":
            wide = _cubic(wide, dim, new, bool(align_corners), scale)
        else:
            wide = _linear(wide, dim, new, bool(align_corners), scale)
    if wide.dtype is not input.dtype:
        wide = wide.round().clamp(min=0, max=255).to(input.dtype) if whole else wide.to(input.dtype)
    if channels_last:
        return wide.contiguous(memory_format=candelabra.channels_last)
    return wide.clone() if wide is input else wide.contiguous()


def _type_name(input: Tensor) -> str:
    return {"int64": "Long", "int32": "Int", "int16": "Short", "int8": "Char", "bool": "Bool"}.get(
        input.dtype.name, input.dtype.name
    )


def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """The older name of :func:`interpolate`."""
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """The older name of :func:`interpolate` with ``mode="nearest"``."""
    warnings.warn("`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """The older name of :func:`interpolate` with ``mode="bilinear"`` and ``align_corners=True``."""
    warnings.warn("`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


# ---- samples at any places


def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """The places, for :func:`grid_sample`, that affine maps take each pixel from.

    Parameters
    ----------
    theta
        Of shape (N, 2, 3) for images, (N, 3, 4) for volumes.
    size
        Of the output: (N, C, H, W) or (N, C, D, H, W).
    align_corners
        Whether -1 and 1 are the centres of the outermost pixels, or their outer edges.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.affine_grid(candelabra.eye(2, 3).unsqueeze(0), (1, 1, 1, 2), align_corners=True)[0]
    tensor([[[-1.,  0.],
             [ 1.,  0.]]])
    """
    if align_corners is None:
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
    axes = []
    for i, length in enumerate(reversed(size[2:])):
        line = candelabra.linspace(-1, 1, length, dtype=theta.dtype, device=theta.device) if length > 1 else theta.new_zeros(1)
        if not align_corners:
            line = line * ((length - 1) / length)
        elif length == 1:
            line = line - 0.0
        shape = [1] * dims
        shape[dims - 1 - i] = length
        axes.append(line.reshape(shape).expand(tuple(size[2:])))
    base = candelabra.stack([*axes, candelabra.ones_like(axes[0])], -1).reshape(1, -1, dims + 1)
    return (base @ theta.transpose(1, 2)).reshape((size[0], *size[2:], dims))


def _reflected(places: Tensor, low: float, high: float) -> Tensor:
    """Fold places back into [low, high]."""
    if low == high:
        return candelabra.zeros_like(places)
    span = high - low
    distance = (places - low).abs()
    turns = (distance / span).floor()
    rest = distance - turns * span
    return candelabra.where(turns.remainder(2) == 0, rest + low, span - rest + low)


def _unnormalized(grid: Tensor, size: int, align_corners: bool) -> Tensor:
    return (grid + 1) * ((size - 1) / 2) if align_corners else ((grid + 1) * size - 1) / 2


def _confined(places: Tensor, size: int, padding_mode: str, align_corners: bool) -> Tensor:
    """Bring places inside where the mode says so; those that are no numbers go to the beginning."""
    if padding_mode == "border":
        return candelabra.where(places.isnan(), 0.0, places).clamp(min=0, max=size - 1)
    if padding_mode == "reflection":
        low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
        places = _reflected(places, low, high)
        return candelabra.where(places.isnan(), 0.0, places).clamp(min=0, max=size - 1)
    return places


def _picked(input: Tensor, places: list[Tensor]) -> Tensor:
    """The elements at whole places, one list a spatial dimension (the first is the outermost); 0 outside."""
    sizes = input.shape[2:]
    inside: Any = None
    flat: Any = None
    for place, size in zip(places, sizes, strict=True):
        there = (place >= 0) & (place < size)
        inside = there if inside is None else inside & there
        at = candelabra.where(there, place, 0.0).to(candelabra.int64)
        flat = at if flat is None else flat * size + at
    batch, channels = input.shape[:2]
    index = flat.reshape(batch, 1, math.prod(flat.shape[1:])).expand(batch, channels, math.prod(flat.shape[1:]))
    values = input.reshape(batch, channels, math.prod(sizes)).gather(2, index).reshape((batch, channels, *flat.shape[1:]))
    return candelabra.where(inside.unsqueeze(1), values, 0.0)


def _checked(input: Tensor, grid: Tensor) -> None:
    name = "grid_sampler()"
    if input.dtype is not grid.dtype:
        raise RuntimeError(
            f"{name}: expected input and grid to have same dtype, but input has {input.dtype} and grid has {grid.dtype}"
        )
    if input.ndim not in (4, 5) or input.ndim != grid.ndim:
        raise RuntimeError(
            f"{name}: expected 4D or 5D input and grid with same number of dimensions, but got input with sizes {list(input.shape)} and "
            f"grid with sizes {list(grid.shape)}"
        )
    if input.shape[0] != grid.shape[0]:
        raise RuntimeError(
            f"{name}: expected grid and input to have same batch size, but got input with sizes {list(input.shape)} and grid with sizes "
            f"{list(grid.shape)}"
        )
    if grid.shape[-1] != input.ndim - 2:
        raise RuntimeError(
            f"{name}: expected grid to have size {input.ndim - 2} in last dimension, but got grid with sizes {list(grid.shape)}"
        )
    if 0 in input.shape[2:]:
        raise RuntimeError(f"{name}: expected input to have non-empty spatial dimensions, but input has sizes {list(input.shape)}")


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """Take values of images or volumes at any places.

    Parameters
    ----------
    input
        Of shape (N, C, H, W) or (N, C, D, H, W).
    grid
        Of shape (N, H_out, W_out, 2) or (N, D_out, H_out, W_out, 3): places, x first, from -1 to 1.
    mode
        ``"bilinear"`` (of volumes trilinear), ``"nearest"`` or, for images, ``"bicubic"``.
    padding_mode
        What is outside: ``"zeros"``, the nearest pixel of the ``"border"``, or the image's ``"reflection"``.
    align_corners
        Whether -1 and 1 are the centres of the outermost pixels, or their outer edges.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> image = candelabra.tensor([[[[0.0, 1.0], [2.0, 3.0]]]])
    >>> F.grid_sample(image, candelabra.zeros(1, 1, 1, 2), align_corners=True).item()
    1.5
    """
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            f"nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: '{padding_mode}'"
        )
    if align_corners is None:
        align_corners = False
    _checked(input, grid)
    if input.ndim == 5 and mode == "bicubic":
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    dtype = input.dtype
    if dtype in (candelabra.float16, candelabra.bfloat16):
        input, grid = input.float(), grid.float()
    sizes = input.shape[2:]
    dims = len(sizes)
    places = [_unnormalized(grid[..., dims - 1 - i], sizes[i], align_corners) for i in range(dims)]
    if mode == "bicubic":
        output = _bicubic(input, places, sizes, padding_mode, align_corners)
    else:
        places = [_confined(place, size, padding_mode, align_corners) for place, size in zip(places, sizes, strict=True)]
        if mode == "nearest":
            output = _picked(input, [place.detach().round() for place in places])
        else:
            output = _multilinear(input, places)
    return output.to(dtype)


def _multilinear(input: Tensor, places: list[Tensor]) -> Tensor:
    lows = [place.detach().floor() for place in places]
    parts = [place - low for place, low in zip(places, lows, strict=True)]
    total: Any = None
    for corner in range(1 << len(places)):
        weight: Any = None
        at = []
        for i, (low, part) in enumerate(zip(lows, parts, strict=True)):
            upper = corner >> i & 1
            at.append(low + upper)
            factor = part if upper else 1 - part
            weight = factor if weight is None else weight * factor
        value = _picked(input, at) * weight.unsqueeze(1)
        total = value if total is None else total + value
    return total


def _bicubic(input: Tensor, places: list[Tensor], sizes: Any, padding_mode: str, align_corners: bool) -> Tensor:
    lows = [place.detach().floor() for place in places]
    weights = [_cubic_weights(place - low, -0.75) for place, low in zip(places, lows, strict=True)]
    total: Any = None
    for i in range(4):
        for j in range(4):
            at = [
                _confined(low + offset - 1, size, padding_mode, align_corners)
                for low, offset, size in zip(lows, (i, j), sizes, strict=True)
            ]
            if padding_mode == "reflection":
                at = [place.round() for place in at]
            value = _picked(input, at) * (weights[0][i] * weights[1][j]).unsqueeze(1)
            total = value if total is None else total + value
    return total


_MODES, _PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    """:func:`grid_sample` with modes as numbers, in the order that they are listed there."""
    return grid_sample(input, grid, _MODES[interpolation_mode], _PADDINGS[padding_mode], align_corners)


grid_sampler_2d = grid_sampler_3d = grid_sampler


def affine_grid_generator(theta: Tensor, size: Any, align_corners: bool) -> Tensor:
    """:func:`affine_grid` as PyTorch has it in the package."""
    return affine_grid(theta, size, align_corners)


__all__ = ["affine_grid", "grid_sample", "interpolate", "upsample", "upsample_bilinear", "upsample_nearest"]
