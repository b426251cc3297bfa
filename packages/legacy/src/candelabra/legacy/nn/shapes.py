"""Layers that change shapes, pad or reduce: one row of a table each."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Tensor
from candelabra.nn import functional

from .function import layer
from .module import Module


def with_batch(dimension: int, input: Tensor, nInputDims: int | None) -> int:
    """Return the dimension of an input that may have batch dimensions in front of `nInputDims`."""
    if dimension >= 0 and nInputDims is not None and nInputDims > 0:
        return dimension + max(input.dim() - nInputDims, 0)
    return dimension


def _sizes(sizes: tuple[Any, ...]) -> tuple[int, ...]:
    """Return sizes that were given one by one, or as one sequence."""
    given = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (list, tuple)) else sizes
    return tuple(int(size) for size in given)


class View(Module):
    """View the input with other sizes.

    Parameters
    ----------
    sizes
        The sizes of the output; one may be -1. If the input has several times as many elements, the
        output has a batch dimension in front.
    """

    _parameter_names = ()
    numInputDims: int | None = None

    def __init__(self, *sizes: Any) -> None:
        super().__init__()
        self.resetSize(*sizes)

    def resetSize(self, *sizes: Any) -> View:
        """Change the sizes."""
        self.size = _sizes(sizes)
        if any(size < -1 for size in self.size) or self.size.count(-1) > 1:
            raise ValueError(f"sizes are not negative, but for one that is -1, got {self.size}")
        return self

    def setNumInputDims(self, numInputDims: int) -> View:
        """Set how many dimensions the input has without its batch."""
        self.numInputDims = numInputDims
        return self

    def _compute(self, input: Tensor, *parameters: Tensor) -> Tensor:
        shape = tuple(input.shape)
        if self.numInputDims is not None and input.dim() > self.numInputDims:
            return input.reshape(*shape[: input.dim() - self.numInputDims], *self.size)
        elements = 1
        for size in self.size:
            elements *= size
        if 0 < elements < input.numel() and input.numel() % elements == 0:
            return input.reshape(-1, *self.size)
        return input.reshape(self.size)

    def __repr__(self) -> str:
        return f"nn.View({', '.join(map(str, self.size))})"


class Reshape(Module):
    """Give each sample of a batch other sizes.

    Parameters
    ----------
    size
        The sizes of a sample.
    batchMode
        Whether the first dimension of the input is a batch. With None it is one unless the input
        has the elements of one sample.
    """

    _parameter_names = ()
    #: Torch 7's default, which its files leave out. The constructor's is that of `torch.legacy`.
    batchMode: bool | None = None

    def __init__(self, *size: Any, batchMode: bool | None = True) -> None:
        super().__init__()
        self.size = _sizes(size)
        self.batchMode = batchMode

    def _compute(self, input: Tensor, *parameters: Tensor) -> Tensor:
        elements = 1
        for size in self.size:
            elements *= size
        batch = self.batchMode
        if batch is None:
            batch = input.numel() != elements or input.size(0) == 1
        return input.reshape(input.size(0), *self.size) if batch else input.reshape(self.size)

    def __repr__(self) -> str:
        return f"nn.Reshape({'x'.join(map(str, self.size))})"


class Transpose(Module):
    """Swap pairs of dimensions, one after the other.

    Parameters
    ----------
    permutations
        Pairs of dimensions.
    """

    _parameter_names = ()
    _one_based = ("permutations",)

    def __init__(self, *permutations: tuple[int, int]) -> None:
        super().__init__()
        self.permutations: list[Any] = [tuple(pair) for pair in permutations]

    def _compute(self, input: Tensor, *parameters: Tensor) -> Tensor:
        for first, second in self.permutations:
            input = input.transpose(first, second)
        return input.contiguous()

    def __repr__(self) -> str:
        return f"nn.Transpose({', '.join(map(str, self.permutations))})"


def _squeeze(input: Tensor, dim: int | None = None, numInputDims: int | None = None) -> Tensor:
    return input.squeeze() if dim is None else input.squeeze(with_batch(dim, input, numInputDims))


def _replicate(input: Tensor, nfeatures: int, dim: int = 0, ndim: int | None = None) -> Tensor:
    if dim < 0:
        raise ValueError(f"dim is not negative, got {dim}")
    position = with_batch(dim, input, ndim)
    shape = list(input.shape)
    shape.insert(position, nfeatures)
    return input.unsqueeze(position).expand(shape)


def _narrow(input: Tensor, dimension: int, offset: int, length: int = 1) -> Tensor:
    size = input.size(dimension)
    start = offset + size if offset < 0 else offset
    return input.narrow(dimension, start, length if length >= 0 else size - start + length + 1)


def _pad(input: Tensor, dim: int, pad: int, nInputDim: int, value: float = 0, index: int = 0) -> Tensor:
    position = dim + (1 if input.dim() != nInputDim else 0)
    place = input.size(position) - index if pad > 0 else index
    shape = list(input.shape)
    shape[position] = abs(pad)
    added = candelabra.full(shape, value, dtype=input.dtype, device=input.device)
    before = input.narrow(position, 0, place)
    after = input.narrow(position, place, input.size(position) - place)
    return candelabra.cat([before, added, after], position)


def _extreme(name: str, input: Tensor, dimension: int, nInputDims: int | None) -> Tensor:
    """Return the largest or the smallest elements; the gradient goes to one of them."""
    values: Tensor = getattr(input, name)(with_batch(dimension, input, nInputDims), keepdim=input.dim() == 1)[0]
    return values


def _sum(
    input: Tensor, dimension: int = 0, sizeAverage: bool = False, nInputDims: int | None = None, squeeze: bool = True
) -> Tensor:
    position = with_batch(dimension, input, nInputDims)
    keep = input.dim() == 1 or not squeeze
    return input.mean(position, keepdim=keep) if sizeAverage else input.sum(position, keepdim=keep)


def _normalize(input: Tensor, p: float, eps: float = 1e-10) -> Tensor:
    if p <= 0 or input.dim() > 2:
        raise RuntimeError("Normalize takes a vector or a matrix, and p is positive")
    sizes = input.abs()
    if p == float("inf"):
        return input / (sizes.max(-1, keepdim=True)[0] + eps)
    return input / (sizes.pow(p).sum(-1, keepdim=True) + eps).pow(1 / p)


def _spatial_pad(mode: str, input: Tensor, *padding: int) -> Tensor:
    batch = input if input.dim() == 4 else input.unsqueeze(0)
    padded = functional.pad(batch, list(padding), mode)
    return padded if input.dim() == 4 else padded.squeeze(0)


def _sides(first: int, *others: int | None) -> list[int]:
    """Return the padding of all sides; those that were not given are as wide as the first."""
    return [first, *(first if other is None else other for other in others)]


Squeeze = layer("Squeeze", _squeeze, "Remove all dimensions of size one, or only the given one.", one_based=("dim",))
Unsqueeze = layer(
    "Unsqueeze",
    lambda input, pos, numInputDims=None: input.unsqueeze(with_batch(pos, input, numInputDims)),
    "Insert a dimension of size one.",
    one_based=("pos",),
)
Replicate = layer(
    "Replicate", _replicate, "Repeat the input `nfeatures` times along a new dimension.", one_based=("dim",)
)
Narrow = layer(
    "Narrow",
    _narrow,
    "Return a part of the input along a dimension. A negative length counts from the end.",
    one_based=("dimension", "offset"),
    torch7_names={"index": "offset"},
)
Select = layer(
    "Select",
    lambda input, dimension, index: input.select(dimension, index),
    "Return one slice of the input along a dimension.",
    one_based=("dimension", "index"),
)
Padding = layer(
    "Padding",
    _pad,
    "Insert `|pad|` slices of a value: before `index` if `pad` is negative, else so far from the end.",
    one_based=("dim", "index"),
)
Max = layer(
    "Max",
    lambda input, dimension=0, nInputDims=None: _extreme("max", input, dimension, nInputDims),
    "Compute the largest elements along a dimension.",
    one_based=("dimension",),
)
Min = layer(
    "Min",
    lambda input, dimension=0, nInputDims=None: _extreme("min", input, dimension, nInputDims),
    "Compute the smallest elements along a dimension.",
    one_based=("dimension",),
)
Sum = layer("Sum", _sum, "Compute sums along a dimension, or means.", one_based=("dimension",))
Mean = layer(
    "Mean",
    lambda input, dimension=0, nInputDims=None: _sum(input, dimension, True, nInputDims),
    "Compute means along a dimension.",
    one_based=("dimension",),
)
Normalize = layer("Normalize", _normalize, "Divide rows by their p-norm.")
PixelShuffle = layer(
    "PixelShuffle",
    lambda input, upscaleFactor: functional.pixel_shuffle(input, upscaleFactor),
    "Rearrange groups of channels as larger images.",
)
SpatialUpSamplingNearest = layer(
    "SpatialUpSamplingNearest",
    lambda input, scale_factor: input.repeat_interleave(scale_factor, -2).repeat_interleave(scale_factor, -1),
    "Enlarge images by repeating their pixels.",
)
SpatialUpSamplingBilinear = layer(
    "SpatialUpSamplingBilinear",
    lambda input, scale_factor: functional.interpolate(
        input, scale_factor=scale_factor, mode="bilinear", align_corners=True
    ),
    "Enlarge batches of images by bilinear interpolation between the corners.",
)
SpatialZeroPadding = layer(
    "SpatialZeroPadding",
    lambda input, pad_l, pad_r=None, pad_t=None, pad_b=None: functional.pad(input, _sides(pad_l, pad_r, pad_t, pad_b)),
    "Pad images with zeros; negative widths crop.",
)
SpatialReflectionPadding = layer(
    "SpatialReflectionPadding",
    lambda input, pad_l, pad_r=None, pad_t=None, pad_b=None: _spatial_pad(
        "reflect", input, *_sides(pad_l, pad_r, pad_t, pad_b)
    ),
    "Pad images with their reflection.",
)
SpatialReplicationPadding = layer(
    "SpatialReplicationPadding",
    lambda input, pad_l, pad_r=None, pad_t=None, pad_b=None: _spatial_pad(
        "replicate", input, *_sides(pad_l, pad_r, pad_t, pad_b)
    ),
    "Pad images by repeating their edges.",
)
VolumetricReplicationPadding = layer(
    "VolumetricReplicationPadding",
    lambda input, pleft, pright=None, ptop=None, pbottom=None, pfront=None, pback=None: functional.pad(
        input, _sides(pleft, pright, ptop, pbottom, pfront, pback), "replicate"
    ),
    "Pad batches of volumes by repeating their edges.",
)
