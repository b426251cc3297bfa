"""Pooling of sequences, images and volumes. Torch 7 gives widths before heights."""

from __future__ import annotations

import math
from typing import Any, TypeVar

import candelabra
from candelabra import Tensor
from candelabra.nn import functional

from .containers import Sequential
from .elementwise import MulConstant, Power, Sqrt, Square
from .function import layer
from .module import Module
from .weighted import Weighted

_Pooling = TypeVar("_Pooling", bound="_Pool")


class _Pool(Module):
    """The base of layers that pool windows."""

    _parameter_names = ()
    ceil_mode = False
    indices: Tensor | None = None

    def ceil(self: _Pooling) -> _Pooling:
        """Round the size of the output up."""
        self.ceil_mode = True
        return self

    def floor(self: _Pooling) -> _Pooling:
        """Round the size of the output down."""
        self.ceil_mode = False
        return self

    def clearState(self: _Pooling) -> _Pooling:
        """Free what is kept of the last pass, and the places of the largest elements."""
        self.indices = None
        return super().clearState()


class SpatialMaxPooling(_Pool):
    """Return the largest elements of windows of images.

    Parameters
    ----------
    kW, kH
        The window.
    dW, dH
        The stride, by default the window.
    padW, padH
        The padding.
    """

    padW = padH = 0

    def __init__(
        self, kW: int, kH: int, dW: int | None = None, dH: int | None = None, padW: int = 0, padH: int = 0
    ) -> None:
        super().__init__()
        self.kW, self.kH, self.dW, self.dH = kW, kH, dW or kW, dH or kH
        self.padW, self.padH = padW, padH

    def _compute(self, input: Tensor, *parameters: Tensor) -> Tensor:
        self.iheight, self.iwidth = input.size(-2), input.size(-1)
        output, self.indices = functional.max_pool2d(
            input,
            (self.kH, self.kW),
            (self.dH, self.dW),
            (self.padH, self.padW),
            ceil_mode=self.ceil_mode,
            return_indices=True,
        )
        return output

    def __repr__(self) -> str:
        return f"nn.{type(self).__name__}({self.kW}x{self.kH}, {self.dW}, {self.dH}, {self.padW}, {self.padH})"


class VolumetricMaxPooling(_Pool):
    """Return the largest elements of windows of volumes: times, widths, heights."""

    padT = padW = padH = 0

    def __init__(
        self,
        kT: int,
        kW: int,
        kH: int,
        dT: int | None = None,
        dW: int | None = None,
        dH: int | None = None,
        padT: int = 0,
        padW: int = 0,
        padH: int = 0,
    ) -> None:
        super().__init__()
        self.kT, self.kW, self.kH = kT, kW, kH
        self.dT, self.dW, self.dH = dT or kT, dW or kW, dH or kH
        self.padT, self.padW, self.padH = padT, padW, padH

    def _compute(self, input: Tensor, *parameters: Tensor) -> Tensor:
        self.itime, self.iheight, self.iwidth = input.shape[-3:]
        output, self.indices = functional.max_pool3d(
            input,
            (self.kT, self.kH, self.kW),
            (self.dT, self.dH, self.dW),
            (self.padT, self.padH, self.padW),
            ceil_mode=self.ceil_mode,
            return_indices=True,
        )
        return output


class _Unpool(Module):
    """The base of layers that put elements back where a pooling layer found them."""

    _parameter_names = ()

    def __init__(self, poolingModule: Any) -> None:
        super().__init__()
        self.pooling = poolingModule

    def _prepare(self, input: Any) -> None:
        if self.pooling.indices is None:
            raise RuntimeError("the pooling module has not been used yet")

    def __repr__(self) -> str:
        return f"nn.{type(self).__name__} associated to {self.pooling!r}"


class SpatialMaxUnpooling(_Unpool):
    """Put elements where a :class:`SpatialMaxPooling` found them, and zeros elsewhere."""

    def __init__(self, poolingModule: SpatialMaxPooling) -> None:
        if not isinstance(poolingModule, SpatialMaxPooling):
            raise TypeError("SpatialMaxUnpooling takes a SpatialMaxPooling")
        if (poolingModule.kW, poolingModule.kH) != (poolingModule.dW, poolingModule.dH):
            raise ValueError("windows that overlap cannot be put back")
        super().__init__(poolingModule)

    def _compute(self, input: Tensor, *parameters: Tensor) -> Tensor:
        pooling = self.pooling
        size = [*input.shape[:-2], pooling.iheight, pooling.iwidth]
        return functional.max_unpool2d(
            input, pooling.indices, (pooling.kH, pooling.kW), padding=(pooling.padH, pooling.padW), output_size=size
        )


class VolumetricMaxUnpooling(_Unpool):
    """Put elements where a :class:`VolumetricMaxPooling` found them, and zeros elsewhere."""

    def __init__(self, poolingModule: VolumetricMaxPooling) -> None:
        if not isinstance(poolingModule, VolumetricMaxPooling):
            raise TypeError("VolumetricMaxUnpooling takes a VolumetricMaxPooling")
        window = poolingModule.kT, poolingModule.kW, poolingModule.kH
        if window != (poolingModule.dT, poolingModule.dW, poolingModule.dH):
            raise ValueError("windows that overlap cannot be put back")
        super().__init__(poolingModule)

    def _compute(self, input: Tensor, *parameters: Tensor) -> Tensor:
        pooling = self.pooling
        size = [*input.shape[:-3], pooling.itime, pooling.iheight, pooling.iwidth]
        return functional.max_unpool3d(
            input,
            pooling.indices,
            (pooling.kT, pooling.kH, pooling.kW),
            padding=(pooling.padT, pooling.padH, pooling.padW),
            output_size=size,
        )


class SpatialAveragePooling(_Pool):
    """Return the means of windows of images.

    Parameters
    ----------
    kW, kH, dW, dH
        The window, and the stride.
    padW, padH
        The padding with zeros.
    """

    dW = dH = 1
    padW = padH = 0
    count_include_pad = True
    #: Files of older versions have sums.
    divide = True

    def __init__(self, kW: int, kH: int, dW: int = 1, dH: int = 1, padW: int = 0, padH: int = 0) -> None:
        super().__init__()
        self.kW, self.kH, self.dW, self.dH, self.padW, self.padH = kW, kH, dW, dH, padW, padH

    def setCountIncludePad(self) -> SpatialAveragePooling:
        """Let the padding count."""
        self.count_include_pad = True
        return self

    def setCountExcludePad(self) -> SpatialAveragePooling:
        """Divide by the number of elements that are not padding."""
        self.count_include_pad = False
        return self

    def _compute(self, input: Tensor, *parameters: Tensor) -> Tensor:
        output = functional.avg_pool2d(
            input,
            (self.kH, self.kW),
            (self.dH, self.dW),
            (self.padH, self.padW),
            self.ceil_mode,
            self.count_include_pad,
        )
        return output if self.divide else output * (self.kW * self.kH)


class VolumetricAveragePooling(_Pool):
    """Return the means of windows of volumes: times, widths, heights."""

    padT = padW = padH = 0
    count_include_pad = True

    def __init__(
        self,
        kT: int,
        kW: int,
        kH: int,
        dT: int | None = None,
        dW: int | None = None,
        dH: int | None = None,
        padT: int = 0,
        padW: int = 0,
        padH: int = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kT, self.kW, self.kH = kT, kW, kH
        self.dT, self.dW, self.dH = dT or kT, dW or kW, dH or kH
        self.padT, self.padW, self.padH = padT, padW, padH
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def _compute(self, input: Tensor, *parameters: Tensor) -> Tensor:
        return functional.avg_pool3d(
            input,
            (self.kT, self.kH, self.kW),
            (self.dT, self.dH, self.dW),
            (self.padT, self.padH, self.padW),
            self.ceil_mode,
            self.count_include_pad,
        )


class SpatialFractionalMaxPooling(_Pool):
    """Return the largest elements of windows at random places.

    Parameters
    ----------
    poolSizeW, poolSizeH
        The window.
    arg1, arg2
        The width and the height of the output; or, between 0 and 1, their ratios to the input's.
    """

    #: Whether the places of the windows stay.
    newRandomPool = False
    randomSamples: Tensor | None = None
    outW: int | None = None
    outH: int | None = None
    ratioW: float | None = None
    ratioH: float | None = None

    def __init__(self, poolSizeW: int, poolSizeH: int, arg1: float, arg2: float) -> None:
        super().__init__()
        if poolSizeW < 2 or poolSizeH < 2:
            raise ValueError("a window has at least two rows and columns")
        self.poolSizeW, self.poolSizeH = poolSizeW, poolSizeH
        if arg1 >= 1 and arg2 >= 1:
            self.outW, self.outH = int(arg1), int(arg2)
        elif 0 < arg1 < 1 and 0 < arg2 < 1:
            self.ratioW, self.ratioH = arg1, arg2
        else:
            raise ValueError("sizes are at least 1, and ratios between 0 and 1")

    def fixPoolingRegions(self, val: bool = True) -> SpatialFractionalMaxPooling:
        """Keep the places of the windows."""
        self.newRandomPool = val
        return self

    def _prepare(self, input: Tensor) -> None:
        shape = ((input if input.dim() == 4 else input.unsqueeze(0)).shape[0], input.shape[-3], 2)
        samples = self.randomSamples
        if samples is None or tuple(samples.shape) != shape or not self.newRandomPool:
            self.randomSamples = candelabra.rand(shape, dtype=input.dtype, device=input.device)

    def _compute(self, input: Tensor, *parameters: Tensor) -> Tensor:
        size: Any = (self.outH, self.outW)
        if self.ratioW is not None and self.ratioH is not None:
            size = (math.floor(input.size(-2) * self.ratioH), math.floor(input.size(-1) * self.ratioW))
        output, self.indices = functional.fractional_max_pool2d(
            input,
            (self.poolSizeH, self.poolSizeW),
            output_size=size,
            return_indices=True,
            _random_samples=self.randomSamples,
        )
        return output

    def clearState(self) -> SpatialFractionalMaxPooling:
        """Free what is kept of the last pass, and the places of the windows."""
        self.randomSamples = None
        return super().clearState()


class SpatialLPPooling(Sequential):
    """Compute the p-norms of windows of images: a chain of layers without parameters.

    Parameters
    ----------
    nInputPlane
        The number of channels, which it does not depend on.
    pnorm
        The norm.
    kW, kH, dW, dH
        The window, and the stride, by default the window.
    """

    def __init__(
        self, nInputPlane: int, pnorm: float, kW: int, kH: int, dW: int | None = None, dH: int | None = None
    ) -> None:
        super().__init__()
        self.kW, self.kH, self.dW, self.dH = kW, kH, dW or kW, dH or kH
        self.add(Square() if pnorm == 2 else Power(pnorm))
        self.add(SpatialAveragePooling(kW, kH, self.dW, self.dH))
        self.add(MulConstant(kW * kH))
        self.add(Sqrt() if pnorm == 2 else Power(1 / pnorm))


class SpatialSubSampling(Weighted):
    """Multiply the sums of windows of images by a weight for each channel, and add a bias."""

    dW = dH = 1

    def __init__(self, nInputPlane: int, kW: int, kH: int, dW: int = 1, dH: int = 1) -> None:
        super().__init__()
        self.nInputPlane = nInputPlane
        self.kW, self.kH, self.dW, self.dH = kW, kH, dW, dH
        self._register(weight=candelabra.empty(nInputPlane), bias=candelabra.empty(nInputPlane))
        self.reset()

    def _inputs(self) -> int:
        return self.kW * self.kH

    def _compute(self, input: Tensor, *parameters: Any) -> Tensor:
        weight, bias = (parameter.reshape(-1, 1, 1) for parameter in parameters)
        sums = functional.avg_pool2d(input, (self.kH, self.kW), (self.dH, self.dW)) * (self.kW * self.kH)
        return sums * weight + bias


class TemporalSubSampling(Weighted):
    """Multiply sums of windows of sequences by a weight for each element, and add a bias."""

    dW = 1

    def __init__(self, inputFrameSize: int, kW: int, dW: int = 1) -> None:
        super().__init__()
        self.inputFrameSize = inputFrameSize
        self.kW, self.dW = kW, dW
        self._register(weight=candelabra.empty(inputFrameSize), bias=candelabra.empty(inputFrameSize))
        self.reset()

    def _inputs(self) -> int:
        return self.kW

    def _compute(self, input: Tensor, *parameters: Any) -> Tensor:
        weight, bias = parameters
        means = functional.avg_pool1d(input.transpose(-1, -2), self.kW, self.dW).transpose(-1, -2)
        return means * self.kW * weight + bias


TemporalMaxPooling = layer(
    "TemporalMaxPooling",
    lambda input, kW, dW=None: functional.max_pool1d(input.transpose(-1, -2), kW, dW or kW).transpose(-1, -2),
    "Return the largest elements of windows of sequences, `time x frame`.",
)
SpatialAdaptiveMaxPooling = layer(
    "SpatialAdaptiveMaxPooling",
    lambda input, w, h: functional.adaptive_max_pool2d(input, (h, w)),
    "Return the largest elements of `w x h` windows that cover an image.",
    torch7_names={"W": "w", "H": "h"},
)
SpatialAdaptiveAveragePooling = layer(
    "SpatialAdaptiveAveragePooling",
    lambda input, w, h: functional.adaptive_avg_pool2d(input, (h, w)),
    "Return the means of `w x h` windows that cover an image.",
    torch7_names={"W": "w", "H": "h"},
)
