"""Layers with parameters that work on vectors."""

from __future__ import annotations

import math
from typing import Any

import candelabra
from candelabra import Tensor
from candelabra.nn import functional

from .module import Module


def uniform_bound(stdv: float | None, inputs: int) -> float:
    """Return the bound of uniform values: of a standard deviation, or for a number of inputs."""
    return stdv * math.sqrt(3) if stdv is not None else 1 / math.sqrt(inputs)


class Weighted(Module):
    """The base of layers whose parameters are drawn from one uniform distribution."""

    def _inputs(self) -> int:
        """Return the number of inputs of one output, which bounds initial values."""
        raise NotImplementedError(f"{type(self).__name__} does not say how many inputs an output has")

    def reset(self, stdv: float | None = None) -> None:
        """Draw parameters between `-b` and `b`, with `b = 1 / sqrt(inputs)` by default."""
        bound = uniform_bound(stdv, self._inputs())
        for parameter in self._own_parameters()[0]:
            parameter.uniform_(-bound, bound)

    def noBias(self) -> Weighted:
        """Remove the bias."""
        self._register(bias=None)
        return self


class Linear(Weighted):
    """Multiply vectors by a matrix and add a bias.

    Parameters
    ----------
    inputSize, outputSize
        Numbers of elements.
    bias
        Whether there is a bias.
    """

    def __init__(self, inputSize: int, outputSize: int, bias: bool = True) -> None:
        super().__init__()
        self._register(
            weight=candelabra.empty(outputSize, inputSize), bias=candelabra.empty(outputSize) if bias else None
        )
        self.reset()

    def _inputs(self) -> int:
        assert self.weight is not None
        return self.weight.size(1)

    def _compute(self, input: Tensor, *parameters: Any) -> Tensor:
        if input.dim() not in (1, 2):
            raise RuntimeError("input must be vector or matrix")
        return functional.linear(input, *parameters)

    def __repr__(self) -> str:
        assert self.weight is not None
        text = f"nn.{type(self).__name__}({self.weight.size(1)} -> {self.weight.size(0)})"
        return text if self.bias is not None else text + " without bias"


class SparseLinear(Linear):
    """As :class:`Linear`, for sparse vectors: rows of an index and a value.

    The input is a matrix with two columns, a batch of such matrices, or a table of them. Indices
    count from zero. The gradient of the input has zeros in the column of the indices.
    """

    def _compute(self, input: Any, *parameters: Any) -> Tensor:
        if isinstance(input, list):
            return candelabra.stack([self._compute(sample, *parameters) for sample in input])
        weight, bias = parameters
        if input.dim() not in (2, 3) or input.size(-1) != 2:
            raise RuntimeError("input must be pairs of an index and a value: n x 2, or batch x n x 2")
        rows = functional.embedding(input[..., 0].detach().long(), weight.t())
        output = (rows * input[..., 1:]).sum(-2)
        return output if bias is None else output + bias


class PartialLinear(Linear):
    """As :class:`Linear`, where only the outputs of a partition are computed.

    Parameters
    ----------
    inputsize, outputsize
        Numbers of elements.
    bias
        Whether there is a bias.
    """

    _one_based = ("partition",)

    def __init__(self, inputsize: int, outputsize: int, bias: bool = True) -> None:
        super().__init__(inputsize, outputsize, bias)
        if bias:
            self._register(bias=candelabra.zeros(1, outputsize))
        self.resetPartition()

    def setPartition(self, indices: Tensor) -> PartialLinear:
        """Compute these outputs alone."""
        self.partition = indices.long()
        return self

    def resetPartition(self) -> PartialLinear:
        """Compute all outputs."""
        assert self.weight is not None
        self.partition = candelabra.arange(self.weight.size(0), device=self.weight.device)
        return self

    def _compute(self, input: Tensor, *parameters: Any) -> Tensor:
        weight, bias = parameters
        chosen = None if bias is None else bias.reshape(-1).index_select(0, self.partition)
        return functional.linear(input, weight.index_select(0, self.partition), chosen)


class Bilinear(Weighted):
    """Compute `x1 @ W[k] @ x2 + b[k]` for the rows of two matrices."""

    def __init__(self, inputSize1: int, inputSize2: int, outputSize: int, bias: bool = True) -> None:
        super().__init__()
        self._register(
            weight=candelabra.empty(outputSize, inputSize1, inputSize2),
            bias=candelabra.empty(outputSize) if bias else None,
        )
        self.reset()

    def _inputs(self) -> int:
        assert self.weight is not None
        return self.weight.size(1)

    def _compute(self, input: list[Tensor], *parameters: Any) -> Tensor:
        first, second = input
        return functional.bilinear(first, second, *parameters)


class Add(Weighted):
    """Add a bias.

    Parameters
    ----------
    inputSize
        The number of elements of a sample, or its sizes.
    scalar
        Whether one number is added to all elements.
    """

    scalar = False

    def __init__(self, inputSize: Any, scalar: bool = False) -> None:
        super().__init__()
        if scalar and inputSize != 1:
            raise ValueError("a scalar bias has the size 1")
        self.scalar = scalar
        self._register(bias=candelabra.empty(inputSize))
        self.reset()

    def _inputs(self) -> int:
        assert self.bias is not None
        return self.bias.size(0)

    def _compute(self, input: Tensor, *parameters: Any) -> Tensor:
        bias = parameters[1]
        if bias.numel() == 1:
            return input + bias.reshape(())
        if input.shape == bias.shape:
            return input + bias
        return (input.reshape(input.size(0), -1) + bias.reshape(-1)).reshape(input.shape)


class Mul(Weighted):
    """Multiply by one learned number."""

    def __init__(self) -> None:
        super().__init__()
        self._register(weight=candelabra.empty(1))
        self.reset()

    def _inputs(self) -> int:
        return 1

    def _compute(self, input: Tensor, *parameters: Any) -> Tensor:
        return input * parameters[0].reshape(())


class CMul(Weighted):
    """Multiply by a weight for each element of a sample.

    Parameters
    ----------
    size
        The sizes of the weight. Dimensions of size one are for all elements.
    """

    def __init__(self, *size: Any) -> None:
        super().__init__()
        self.size = tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
        self._register(weight=candelabra.empty(self.size))
        self.reset()

    def _inputs(self) -> int:
        assert self.weight is not None
        return self.weight.numel()

    def _compute(self, input: Tensor, *parameters: Any) -> Tensor:
        weight = parameters[0]
        if input.numel() == weight.numel():
            return input * weight.reshape(input.shape)
        if input.numel() == input.size(0) * weight.numel():
            return (input.reshape(input.size(0), -1) * weight.reshape(1, -1)).reshape(input.shape)
        return input * weight

    def __repr__(self) -> str:
        return f"nn.CMul({', '.join(map(str, self.size))})"


class Cosine(Weighted):
    """Compute the cosines between inputs and the rows of the weight."""

    def __init__(self, inputSize: int, outputSize: int) -> None:
        super().__init__()
        self._register(weight=candelabra.empty(outputSize, inputSize))
        self.reset()

    def _inputs(self) -> int:
        assert self.weight is not None
        return self.weight.size(0)

    def _compute(self, input: Tensor, *parameters: Any) -> Tensor:
        weight = parameters[0]
        products = functional.linear(input, weight)
        return products / (weight.norm(2, 1) + 1e-12) / (input.norm(2, -1, keepdim=True) + 1e-12)


class Euclidean(Weighted):
    """Compute the distances between inputs and the columns of the weight."""

    def __init__(self, inputSize: int, outputSize: int) -> None:
        super().__init__()
        self._register(weight=candelabra.empty(inputSize, outputSize))
        self.reset()

    def _inputs(self) -> int:
        assert self.weight is not None
        return self.weight.size(0)

    def _compute(self, input: Tensor, *parameters: Any) -> Tensor:
        return (input.unsqueeze(-1) - parameters[0]).norm(2, -2)


class WeightedEuclidean(Module):
    """As :class:`Euclidean`, where each column scales the differences by factors of its own."""

    _parameter_names = ("weight", "diagCov")
    diagCov: Tensor | None = None

    def __init__(self, inputSize: int, outputSize: int) -> None:
        super().__init__()
        self._register(weight=candelabra.empty(inputSize, outputSize), diagCov=candelabra.empty(inputSize, outputSize))
        self.reset()

    def reset(self, stdv: float | None = None) -> None:
        """Draw new centers, and set all factors to one."""
        assert self.weight is not None and self.diagCov is not None
        bound = uniform_bound(stdv, self.weight.size(1))
        self.weight.uniform_(-bound, bound)
        self.diagCov.fill_(1)

    def _compute(self, input: Tensor, *parameters: Any) -> Tensor:
        weight, factors = parameters
        return ((input.unsqueeze(-1) - weight) * factors).norm(2, -2)


class PReLU(Module):
    """Compute `x` where positive, and a learned multiple of `x` elsewhere.

    Parameters
    ----------
    nOutputPlane
        The number of channels with a factor each, or 0 for one factor.
    """

    nOutputPlane = 0

    def __init__(self, nOutputPlane: int = 0) -> None:
        super().__init__()
        self.nOutputPlane = nOutputPlane
        self._register(weight=candelabra.empty(nOutputPlane or 1))
        self.reset()

    def reset(self, stdv: float | None = None) -> None:
        """Set all factors to 0.25."""
        assert self.weight is not None
        self.weight.fill_(0.25)

    def _compute(self, input: Tensor, *parameters: Any) -> Tensor:
        weight = parameters[0]
        if weight.numel() > 1 and input.dim() % 2:
            return functional.prelu(input.unsqueeze(0), weight).squeeze(0)
        return functional.prelu(input, weight)


class LookupTable(Module):
    """Return the rows of a table for a vector or a matrix of indices, which count from zero.

    Parameters
    ----------
    nIndex, nOutput
        The number of rows, and their size.
    paddingValue
        An index whose row gets no gradient, or a negative number for none.
    maxNorm
        Rows with a larger norm are scaled down before they are used.
    normType
        The norm, by default 2.
    """

    _one_based = ("paddingValue",)
    paddingValue = -1
    maxNorm: float | None = None
    normType: float | None = None
    shouldScaleGradByFreq = False

    def __init__(
        self,
        nIndex: int,
        nOutput: int,
        paddingValue: int = -1,
        maxNorm: float | None = None,
        normType: float | None = None,
    ) -> None:
        super().__init__()
        self.paddingValue = paddingValue
        self.maxNorm = maxNorm
        self.normType = normType
        self._register(weight=candelabra.empty(nIndex, nOutput))
        self.reset()

    def setPadding(self, paddingValue: int) -> LookupTable:
        """Set the index whose row gets no gradient."""
        self.paddingValue = paddingValue
        return self

    def setMaxNorm(self, maxNorm: float) -> LookupTable:
        """Set the largest norm of rows."""
        self.maxNorm = maxNorm
        return self

    def setNormType(self, normType: float) -> LookupTable:
        """Set which norm is limited."""
        self.normType = normType
        return self

    def scaleGradByFreq(self) -> LookupTable:
        """Divide the gradients of rows by how often they were looked up."""
        self.shouldScaleGradByFreq = True
        return self

    def reset(self, stdv: float | None = None) -> None:
        """Draw new rows from the normal distribution."""
        assert self.weight is not None
        self.weight.normal_(0, 1 if stdv is None else stdv)

    def _prepare(self, input: Tensor) -> None:
        if self.maxNorm is None:
            return
        assert self.weight is not None
        used = input.reshape(-1).long().unique()
        self.weight[used] = self.weight[used].renorm(self.normType or 2, 0, self.maxNorm)

    def _compute(self, input: Tensor, *parameters: Any) -> Tensor:
        if input.dim() not in (1, 2):
            raise RuntimeError("input must be a vector or matrix")
        weight = parameters[0]
        padding = self.paddingValue if 0 <= self.paddingValue < weight.size(0) else None
        return functional.embedding(
            input.detach().long(), weight, padding, scale_grad_by_freq=self.shouldScaleGradByFreq
        )
