"""Normalization of batches, and of the surroundings of pixels."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Tensor
from candelabra.nn import functional

from .elementwise import square_root
from .module import Module


class BatchNormalization(Module):
    """Normalize each feature of a batch of vectors.

    Parameters
    ----------
    nOutput
        The number of features.
    eps
        Added to the variance.
    momentum
        The weight of a batch in the running statistics, which evaluation uses.
    affine
        Whether features have a learned scale and offset.
    """

    nDim = 2
    eps = 1e-5
    momentum = 0.1
    affine = True
    running_mean: Tensor
    running_var: Tensor
    _updates = False

    def __init__(self, nOutput: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = True) -> None:
        super().__init__()
        if nOutput <= 0:
            raise ValueError(f"the number of features is positive, got {nOutput}")
        self.eps, self.momentum, self.affine = eps, momentum, affine
        self.running_mean = candelabra.zeros(nOutput)
        self.running_var = candelabra.ones(nOutput)
        if affine:
            self._register(weight=candelabra.empty(nOutput), bias=candelabra.empty(nOutput))
        self.reset()

    def reset(self, stdv: float | None = None) -> None:
        """Draw scales between 0 and 1, and forget the running statistics."""
        if self.weight is not None:
            self.weight.uniform_()
        if self.bias is not None:
            self.bias.zero_()
        self.running_mean.zero_()
        self.running_var.fill_(1)

    def updateOutput(self, input: Tensor) -> Tensor:
        """Compute the output, and update the running statistics while training."""
        self._updates = True
        try:
            return super().updateOutput(input)
        finally:
            self._updates = False

    def _compute(self, input: Tensor, *parameters: Any) -> Tensor:
        if input.dim() != self.nDim:
            raise RuntimeError(f"only mini-batch supported ({self.nDim}D tensor), got {input.dim()}D tensor instead")
        if input.size(1) != self.running_mean.numel():
            raise RuntimeError(f"got {input.size(1)}-feature tensor, expected {self.running_mean.numel()}")
        mean, var = self.running_mean, self.running_var
        if not self._updates:
            # The function is recorded again: the statistics have this batch already.
            mean, var = mean.clone(), var.clone()
        return functional.batch_norm(input, mean, var, *parameters, self.train, self.momentum, self.eps)

    def __repr__(self) -> str:
        return f"nn.{type(self).__name__}({self.running_mean.numel()})"


class SpatialBatchNormalization(BatchNormalization):
    """Normalize each channel of a batch of images."""

    nDim = 4


class VolumetricBatchNormalization(BatchNormalization):
    """Normalize each channel of a batch of volumes."""

    nDim = 5


class SpatialCrossMapLRN(Module):
    """Divide by what the neighbouring channels have: local response normalization.

    Parameters
    ----------
    size
        The number of channels that are summed over.
    alpha, beta, k
        The output is `x / (k + alpha / size * sum(x ** 2)) ** beta`.
    """

    _parameter_names = ()
    alpha = 1e-4
    beta = 0.75
    k = 1.0

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def _compute(self, input: Tensor, *parameters: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise RuntimeError(f"expected an image or a batch of images, got {input.dim()} dimensions")
        images = input if input.dim() == 4 else input.unsqueeze(0)
        # The window is symmetric, also where the size is even.
        reach = (self.size - 1) // 2
        squares = (images * images).flatten(2).unsqueeze(1)
        sums = functional.avg_pool2d(squares, (2 * reach + 1, 1), 1, (reach, 0)) * (2 * reach + 1)
        scale = sums.reshape(images.shape) * (self.alpha / self.size) + self.k
        return (images * scale.pow(-self.beta)).reshape(input.shape)


class _LocalNormalization(Module):
    """The base of layers that compare pixels with a weighted mean of their surroundings."""

    _parameter_names = ()
    nInputPlane = 1
    kernel: Tensor

    def __init__(self, nInputPlane: int = 1, kernel: Tensor | None = None) -> None:
        super().__init__()
        self.nInputPlane = nInputPlane
        self.kernel = candelabra.ones(9, 9) if kernel is None else kernel
        if self.kernel.dim() not in (1, 2):
            raise ValueError(f"{type(self).__name__} averaging kernel must be 2D or 1D")
        if any(size % 2 == 0 for size in self.kernel.shape):
            raise ValueError(f"{type(self).__name__} averaging kernel must have ODD dimensions")

    def _local_mean(self, images: Tensor) -> Tensor:
        """Return the weighted means over the surroundings and all channels, with zeros outside."""
        kernel = self.kernel.to(images)
        # A kernel with one dimension is for rows and for columns.
        square = candelabra.outer(kernel, kernel) if kernel.dim() == 1 else kernel
        weight = (square / (square.sum() * self.nInputPlane)).expand(1, self.nInputPlane, *square.shape)
        return functional.conv2d(images, weight, padding=(square.size(0) // 2, square.size(1) // 2))

    def _inside(self, images: Tensor) -> Tensor:
        """Return which part of the surroundings is inside of the image."""
        return self._local_mean(candelabra.ones_like(images[:1]))

    def _normalize(self, images: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not define what it does")

    def _compute(self, input: Tensor, *parameters: Tensor) -> Tensor:
        if input.dim() == 3:
            return self._normalize(input.unsqueeze(0)).squeeze(0)
        return self._normalize(input)

    def _subtract(self, images: Tensor) -> Tensor:
        return images - self._local_mean(images) / self._inside(images)


class SpatialSubtractiveNormalization(_LocalNormalization):
    """Subtract the weighted mean of the surroundings.

    Parameters
    ----------
    nInputPlane
        The number of channels.
    kernel
        The weights: a matrix, or a vector for rows and columns. By default 9 x 9 equal ones.
    """

    def _normalize(self, images: Tensor) -> Tensor:
        return self._subtract(images)


class SpatialDivisiveNormalization(_LocalNormalization):
    """Divide by the weighted standard deviation of the surroundings.

    Parameters
    ----------
    nInputPlane, kernel
        As of :class:`SpatialSubtractiveNormalization`.
    threshold, thresval
        Deviations up to the threshold are replaced by a value, by default the threshold.
    """

    threshold = 1e-4
    thresval: float | None = None

    def __init__(
        self,
        nInputPlane: int = 1,
        kernel: Tensor | None = None,
        threshold: float = 1e-4,
        thresval: float | None = None,
    ) -> None:
        super().__init__(nInputPlane, kernel)
        self.threshold = threshold
        self.thresval = threshold if thresval is None else thresval

    def _divide(self, images: Tensor) -> Tensor:
        deviation = square_root(self._local_mean(images * images)) / self._inside(images)
        value = self.threshold if self.thresval is None else self.thresval
        return images / functional.threshold(deviation, self.threshold, value)

    def _normalize(self, images: Tensor) -> Tensor:
        return self._divide(images)


class SpatialContrastiveNormalization(SpatialDivisiveNormalization):
    """Subtract the mean of the surroundings, then divide by their standard deviation."""

    def _normalize(self, images: Tensor) -> Tensor:
        return self._divide(self._subtract(images))
