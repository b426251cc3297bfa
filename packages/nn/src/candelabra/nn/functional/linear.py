"""Implement linear and bilinear maps."""

from __future__ import annotations

from candelabra import Tensor, ops
from candelabra.dispatch_hooks import computed

#: ``linear(input, weight, bias=None)``: ``input @ weight.T + bias`` over the last dimension. This
#: is the operator itself, without a Python wrapper.
linear = ops.linear


@computed("widest on accelerators")
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute ``input1^T weight[k] input2 + bias[k]`` for each k.

    Shapes: inputs (..., I) and (..., J) with equal leading dimensions, weight (K, I, J), bias (K),
    result (..., K).

    Raises
    ------
    RuntimeError
        If the shapes are incompatible.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.bilinear(candelabra.ones(2, 3), candelabra.ones(2, 4), candelabra.ones(1, 3, 4))
    tensor([[12.],
            [12.]])
    """
    if weight.ndim != 3:
        raise RuntimeError(f"bilinear(): weight must have 3 dimensions (out, in1, in2), but got {list(weight.shape)}")
    if input1.shape[:-1] != input2.shape[:-1]:
        raise RuntimeError(
            f"bilinear(): input batch dimensions do not match: got {list(input1.shape[:-1])} and {list(input2.shape[:-1])}"
        )
    outputs, in1, in2 = weight.shape
    for number, (given, wanted) in enumerate(((input1.shape[-1], in1), (input2.shape[-1], in2)), 1):
        if given != wanted:
            raise RuntimeError(
                f"bilinear(): input{number} size does not match weight size: got {given} but expected {wanted}"
            )
    if bias is not None and tuple(bias.shape) != (outputs,):
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {list(bias.shape)} but expected [{outputs}]"
        )
    leading = tuple(input1.shape[:-1])
    first = input1.reshape(-1, in1)
    # (n, i) x (i, k * j) -> (n, k, j), then the product with input2 along j.
    mixed = (first @ weight.permute(1, 0, 2).reshape(in1, outputs * in2)).reshape(-1, outputs, in2)
    result = (mixed @ input2.reshape(-1, in2, 1)).reshape(*leading, outputs)
    return result if bias is None else result + bias


__all__ = ["bilinear", "linear"]
