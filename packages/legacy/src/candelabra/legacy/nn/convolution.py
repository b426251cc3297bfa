"""Convolutions of sequences, images and volumes. Torch 7 gives widths before heights."""

from __future__ import annotations

import math
from typing import Any

import candelabra
from candelabra import Tensor
from candelabra.nn import functional

from .weighted import Weighted, uniform_bound


def _check_adjustment(adjustment: tuple[int, ...], stride: tuple[int, ...]) -> None:
    if any(adj > step - 1 for adj, step in zip(adjustment, stride)):
        raise ValueError("the adjustment of the output's size must be smaller than the stride")


class _Convolution(Weighted):
    """The base of convolutions: planes, kernel sizes, and what initial values depend on."""

    nInputPlane: int
    nOutputPlane: int

    def _kernel(self) -> tuple[int, ...]:
        raise NotImplementedError(f"{type(self).__name__} does not say what its kernel is")

    def _inputs(self) -> int:
        return math.prod(self._kernel()) * self.nInputPlane

    def __repr__(self) -> str:
        kernel = "x".join(map(str, reversed(self._kernel())))
        text = f"nn.{type(self).__name__}({self.nInputPlane} -> {self.nOutputPlane}, {kernel})"
        return text if self.bias is not None else text + " without bias"


class SpatialConvolution(_Convolution):
    """Convolve images.

    Parameters
    ----------
    nInputPlane, nOutputPlane
        Numbers of channels.
    kW, kH
        The kernel.
    dW, dH
        The stride.
    padW, padH
        The padding with zeros; ``padH`` is as ``padW`` by default.
    """

    dW = dH = 1
    padW = padH = 0
    dilationW = dilationH = 1
    groups = 1

    def __init__(
        self,
        nInputPlane: int,
        nOutputPlane: int,
        kW: int,
        kH: int,
        dW: int = 1,
        dH: int = 1,
        padW: int = 0,
        padH: int | None = None,
    ) -> None:
        super().__init__()
        self.nInputPlane, self.nOutputPlane = nInputPlane, nOutputPlane
        self.kW, self.kH, self.dW, self.dH = kW, kH, dW, dH
        self.padW, self.padH = padW, padW if padH is None else padH
        self._register(weight=candelabra.empty(nOutputPlane, nInputPlane, kH, kW), bias=candelabra.empty(nOutputPlane))
        self.reset()

    def _kernel(self) -> tuple[int, ...]:
        return self.kH, self.kW

    def _compute(self, input: Tensor, *parameters: Any) -> Tensor:
        weight, bias = parameters
        # Files of older versions have matrices.
        weight = weight.reshape(self.nOutputPlane, self.nInputPlane // self.groups, self.kH, self.kW)
        return functional.conv2d(
            input,
            weight,
            bias,
            (self.dH, self.dW),
            (self.padH, self.padW),
            (self.dilationH, self.dilationW),
            self.groups,
        )


class SpatialConvolutionMM(SpatialConvolution):
    """The name of :class:`SpatialConvolution` in files of older versions of Torch 7."""


class SpatialDilatedConvolution(SpatialConvolution):
    """Convolve images with a kernel whose elements are ``dilationW`` and ``dilationH`` apart."""

    def __init__(
        self,
        nInputPlane: int,
        nOutputPlane: int,
        kW: int,
        kH: int,
        dW: int = 1,
        dH: int = 1,
        padW: int = 0,
        padH: int | None = None,
        dilationW: int = 1,
        dilationH: int | None = None,
    ) -> None:
        super().__init__(nInputPlane, nOutputPlane, kW, kH, dW, dH, padW, padH)
        self.dilationW, self.dilationH = dilationW, dilationW if dilationH is None else dilationH


class SpatialFullConvolution(_Convolution):
    """The transpose of a convolution of images.

    The input can be a table ``[input, target]``: the output has the size of the target then.

    Parameters
    ----------
    nInputPlane, nOutputPlane, kW, kH, dW, dH, padW, padH
        As of :class:`SpatialConvolution`.
    adjW, adjH
        Added to the size of the output; less than the stride.
    """

    dW = dH = 1
    padW = padH = adjW = adjH = 0

    def __init__(
        self,
        nInputPlane: int,
        nOutputPlane: int,
        kW: int,
        kH: int,
        dW: int = 1,
        dH: int = 1,
        padW: int = 0,
        padH: int | None = None,
        adjW: int = 0,
        adjH: int = 0,
    ) -> None:
        super().__init__()
        _check_adjustment((adjW, adjH), (dW, dH))
        self.nInputPlane, self.nOutputPlane = nInputPlane, nOutputPlane
        self.kW, self.kH, self.dW, self.dH = kW, kH, dW, dH
        self.padW, self.padH = padW, padW if padH is None else padH
        self.adjW, self.adjH = adjW, adjH
        self._register(weight=candelabra.empty(nInputPlane, nOutputPlane, kH, kW), bias=candelabra.empty(nOutputPlane))
        self.reset()

    def _kernel(self) -> tuple[int, ...]:
        return self.kH, self.kW

    def _compute(self, input: Any, *parameters: Any) -> Tensor:
        stride, padding, kernel = (self.dH, self.dW), (self.padH, self.padW), (self.kH, self.kW)
        adjustment = _adjustment(input, (self.adjH, self.adjW), stride, padding, kernel)
        value = input[0] if isinstance(input, list) else input
        return functional.conv_transpose2d(value, *parameters, stride, padding, adjustment)


def _adjustment(
    input: Any, given: tuple[int, ...], stride: tuple[int, ...], padding: tuple[int, ...], kernel: tuple[int, ...]
) -> tuple[int, ...]:
    """Return the adjustment of the output's size: as given, or for the size of a target."""
    if not isinstance(input, list):
        return given
    sizes = input[1].shape[-len(kernel) :]
    return tuple((size + 2 * pad - taps) % step for size, pad, taps, step in zip(sizes, padding, kernel, stride))


class SpatialConvolutionLocal(_Convolution):
    """Convolve images of one size with a kernel for each position.

    Parameters
    ----------
    nInputPlane, nOutputPlane
        Numbers of channels.
    iW, iH
        The size of images.
    kW, kH, dW, dH, padW, padH
        As of :class:`SpatialConvolution`.
    """

    dW = dH = 1
    padW = padH = 0

    def __init__(
        self,
        nInputPlane: int,
        nOutputPlane: int,
        iW: int,
        iH: int,
        kW: int,
        kH: int,
        dW: int = 1,
        dH: int = 1,
        padW: int = 0,
        padH: int | None = None,
    ) -> None:
        super().__init__()
        self.nInputPlane, self.nOutputPlane = nInputPlane, nOutputPlane
        self.iW, self.iH, self.kW, self.kH, self.dW, self.dH = iW, iH, kW, kH, dW, dH
        self.padW, self.padH = padW, padW if padH is None else padH
        self.oW = (2 * self.padW + iW - kW) // dW + 1
        self.oH = (2 * self.padH + iH - kH) // dH + 1
        if self.oW < 1 or self.oH < 1:
            raise ValueError("the kernel is larger than the padded image")
        self._register(
            weight=candelabra.empty(self.oH, self.oW, nOutputPlane, nInputPlane, kH, kW),
            bias=candelabra.empty(nOutputPlane, self.oH, self.oW),
        )
        self.reset()

    def _kernel(self) -> tuple[int, ...]:
        return self.kH, self.kW

    def _compute(self, input: Tensor, *parameters: Any) -> Tensor:
        weight, bias = parameters
        batch = input if input.dim() == 4 else input.unsqueeze(0)
        if tuple(batch.shape[1:]) != (self.nInputPlane, self.iH, self.iW):
            expected = (self.nInputPlane, self.iH, self.iW)
            raise RuntimeError(f"expected images of the shape {expected}, got {tuple(input.shape)}")
        columns = functional.unfold(
            batch, (self.kH, self.kW), padding=(self.padH, self.padW), stride=(self.dH, self.dW)
        )
        # One product of matrices for each position.
        products = weight.reshape(self.oH * self.oW, self.nOutputPlane, -1) @ columns.permute(2, 1, 0)
        output = products.permute(2, 1, 0).reshape(-1, self.nOutputPlane, self.oH, self.oW) + bias.reshape(
            self.nOutputPlane, self.oH, self.oW
        )
        return output if input.dim() == 4 else output.squeeze(0)


class maps:
    """Tables of connections: rows of an input and an output plane, counted from zero."""

    @staticmethod
    def full(nin: int, nout: int) -> Tensor:
        """Connect all planes."""
        return candelabra.tensor([[float(i), float(o)] for o in range(nout) for i in range(nin)])

    @staticmethod
    def oneToOne(nfeat: int) -> Tensor:
        """Connect each plane with that of the same number."""
        return candelabra.tensor([[float(plane), float(plane)] for plane in range(nfeat)])

    @staticmethod
    def random(nin: int, nout: int, nto: int) -> Tensor:
        """Connect each output with `nto` inputs, such that inputs are used about equally often."""
        if not 0 < nto <= nin:
            raise ValueError(f"an output has 1 to {nin} inputs, got {nto}")
        rows: list[list[float]] = []
        left: list[int] = []
        for output in range(nout):
            if len(left) < nto:
                left = candelabra.randperm(nin).tolist()
            rows += [[float(left.pop()), float(output)] for _ in range(nto)]
        return candelabra.tensor(rows)


class SpatialConvolutionMap(Weighted):
    """Convolve images, where a table says which planes are connected.

    Parameters
    ----------
    conMatrix
        A row for each connection, see ``SpatialConvolutionMap.maps``.
    kW, kH, dW, dH
        The kernel and the stride.
    """

    maps = maps
    _one_based = ("connTable",)
    dW = dH = 1

    def __init__(self, conMatrix: Tensor, kW: int, kH: int, dW: int = 1, dH: int = 1) -> None:
        super().__init__()
        self.connTable = conMatrix
        self.kW, self.kH, self.dW, self.dH = kW, kH, dW, dH
        self.nInputPlane = int(conMatrix[:, 0].max()) + 1
        self.nOutputPlane = int(conMatrix[:, 1].max()) + 1
        self._register(weight=candelabra.empty(conMatrix.size(0), kH, kW), bias=candelabra.empty(self.nOutputPlane))
        self.reset()

    def reset(self, stdv: float | None = None) -> None:
        """Draw parameters. Bounds depend on the connections of each output plane."""
        assert self.weight is not None and self.bias is not None
        outputs = self.connTable[:, 1].long()
        inputs = outputs.bincount(minlength=self.nOutputPlane).clamp(min=1).tolist()
        area = self.kW * self.kH
        bounds = candelabra.tensor([uniform_bound(stdv, area * count) for count in inputs]).to(self.weight)
        self.weight.uniform_(-1, 1).mul_(bounds[outputs].reshape(-1, 1, 1))
        self.bias.uniform_(-1, 1).mul_(bounds)

    def _dense(self, weight: Tensor, rows: int, columns: int, row: int) -> Tensor:
        """Return the weight of a full convolution, with zeros where nothing is connected."""
        table = self.connTable.long()
        dense = candelabra.zeros(rows * columns, self.kH, self.kW, dtype=weight.dtype, device=weight.device)
        places = table[:, row] * columns + table[:, 1 - row]
        return dense.index_add(0, places, weight).reshape(rows, columns, self.kH, self.kW)

    def _compute(self, input: Tensor, *parameters: Any) -> Tensor:
        weight, bias = parameters
        dense = self._dense(weight, self.nOutputPlane, self.nInputPlane, 1)
        return functional.conv2d(input, dense, bias, (self.dH, self.dW))


class SpatialFullConvolutionMap(SpatialConvolutionMap):
    """The transpose of a convolution of images, where a table says which planes are connected."""

    def _compute(self, input: Tensor, *parameters: Any) -> Tensor:
        weight, bias = parameters
        dense = self._dense(weight, self.nInputPlane, self.nOutputPlane, 0)
        return functional.conv_transpose2d(input, dense, bias, (self.dH, self.dW))


class VolumetricConvolution(_Convolution):
    """Convolve volumes: sizes are given as times, widths, heights."""

    dT = dW = dH = 1
    padT = padW = padH = 0
    dilationT = dilationW = dilationH = 1

    def __init__(
        self,
        nInputPlane: int,
        nOutputPlane: int,
        kT: int,
        kW: int,
        kH: int,
        dT: int = 1,
        dW: int = 1,
        dH: int = 1,
        padT: int = 0,
        padW: int | None = None,
        padH: int | None = None,
    ) -> None:
        super().__init__()
        self.nInputPlane, self.nOutputPlane = nInputPlane, nOutputPlane
        self.kT, self.kW, self.kH, self.dT, self.dW, self.dH = kT, kW, kH, dT, dW, dH
        self.padT = padT
        self.padW, self.padH = (padT if pad is None else pad for pad in (padW, padH))
        self._register(
            weight=candelabra.empty(nOutputPlane, nInputPlane, kT, kH, kW), bias=candelabra.empty(nOutputPlane)
        )
        self.reset()

    def _kernel(self) -> tuple[int, ...]:
        return self.kT, self.kH, self.kW

    def _compute(self, input: Tensor, *parameters: Any) -> Tensor:
        weight, bias = parameters
        weight = weight.reshape(self.nOutputPlane, self.nInputPlane, *self._kernel())
        return functional.conv3d(
            input,
            weight,
            bias,
            (self.dT, self.dH, self.dW),
            (self.padT, self.padH, self.padW),
            (self.dilationT, self.dilationH, self.dilationW),
        )


class VolumetricDilatedConvolution(VolumetricConvolution):
    """Convolve volumes with a kernel whose elements are apart."""

    def __init__(
        self,
        nInputPlane: int,
        nOutputPlane: int,
        kT: int,
        kW: int,
        kH: int,
        dT: int = 1,
        dW: int = 1,
        dH: int = 1,
        padT: int = 0,
        padW: int | None = None,
        padH: int | None = None,
        dilationT: int = 1,
        dilationW: int = 1,
        dilationH: int = 1,
    ) -> None:
        super().__init__(nInputPlane, nOutputPlane, kT, kW, kH, dT, dW, dH, padT, padW, padH)
        self.dilationT, self.dilationW, self.dilationH = dilationT, dilationW, dilationH


class VolumetricFullConvolution(_Convolution):
    """The transpose of a convolution of volumes; the input can be a table ``[input, target]``."""

    dT = dW = dH = 1
    padT = padW = padH = adjT = adjW = adjH = 0

    def __init__(
        self,
        nInputPlane: int,
        nOutputPlane: int,
        kT: int,
        kW: int,
        kH: int,
        dT: int = 1,
        dW: int = 1,
        dH: int = 1,
        padT: int = 0,
        padW: int = 0,
        padH: int = 0,
        adjT: int = 0,
        adjW: int = 0,
        adjH: int = 0,
    ) -> None:
        super().__init__()
        _check_adjustment((adjT, adjW, adjH), (dT, dW, dH))
        self.nInputPlane, self.nOutputPlane = nInputPlane, nOutputPlane
        self.kT, self.kW, self.kH, self.dT, self.dW, self.dH = kT, kW, kH, dT, dW, dH
        self.padT, self.padW, self.padH = padT, padW, padH
        self.adjT, self.adjW, self.adjH = adjT, adjW, adjH
        self._register(
            weight=candelabra.empty(nInputPlane, nOutputPlane, kT, kH, kW), bias=candelabra.empty(nOutputPlane)
        )
        self.reset()

    def _kernel(self) -> tuple[int, ...]:
        return self.kT, self.kH, self.kW

    def _compute(self, input: Any, *parameters: Any) -> Tensor:
        stride, padding = (self.dT, self.dH, self.dW), (self.padT, self.padH, self.padW)
        adjustment = _adjustment(input, (self.adjT, self.adjH, self.adjW), stride, padding, self._kernel())
        value = input[0] if isinstance(input, list) else input
        return functional.conv_transpose3d(value, *parameters, stride, padding, adjustment)


class TemporalConvolution(Weighted):
    """Convolve sequences of frames: ``time x frame``, or a batch of them.

    Parameters
    ----------
    inputFrameSize, outputFrameSize
        The sizes of frames.
    kW, dW
        The kernel and the stride.
    """

    dW = 1

    def __init__(self, inputFrameSize: int, outputFrameSize: int, kW: int, dW: int = 1) -> None:
        super().__init__()
        self.inputFrameSize, self.outputFrameSize = inputFrameSize, outputFrameSize
        self.kW, self.dW = kW, dW
        self._register(
            weight=candelabra.empty(outputFrameSize, inputFrameSize * kW), bias=candelabra.empty(outputFrameSize)
        )
        self.reset()

    def _inputs(self) -> int:
        return self.kW * self.inputFrameSize

    def _compute(self, input: Tensor, *parameters: Any) -> Tensor:
        weight, bias = parameters
        # A row of the weight has the taps one after the other, each for a whole frame.
        kernel = weight.reshape(self.outputFrameSize, self.kW, self.inputFrameSize).transpose(1, 2)
        return functional.conv1d(input.transpose(-1, -2), kernel, bias, self.dW).transpose(-1, -2)
