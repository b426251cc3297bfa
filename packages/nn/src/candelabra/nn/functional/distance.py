"""Compute distances and similarities of vectors."""

from __future__ import annotations

import candelabra
from candelabra import Tensor, ops
from candelabra.composite.transformed import is_differentiated

_vector_norm = ops.linalg_vector_norm


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Return the cosine similarity of `x1` and `x2` along `dim`.

    Norms are clamped to at least `eps`. The shapes are broadcast.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.cosine_similarity(candelabra.tensor([[1.0, 0.0]]), candelabra.tensor([[1.0, 1.0]]))
    tensor([0.7071])
    """
    common = candelabra.result_type(x1, x2)
    if not common.is_floating_point:
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {common}")
    x1, x2 = candelabra.broadcast_tensors(x1.to(common), x2.to(common))
    first = x1 / _vector_norm(x1, 2, dim, True).clamp(min=eps)
    second = x2 / _vector_norm(x2, 2, dim, True).clamp(min=eps)
    return (first * second).sum(dim)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """Return the p-norm of ``x1 - x2 + eps`` along the last dimension. The shapes are broadcast.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.pairwise_distance(candelabra.tensor([[0.0, 0.0]]), candelabra.tensor([[3.0, 4.0]]))
    tensor([5.0000])
    """
    return _vector_norm(x1 - x2 + eps, p, -1, keepdim)


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """Return the p-norm distances of all pairs of rows.

    The pairs are in row-major order of the upper triangle.

    Shapes: input (N, D), result (N * (N - 1) / 2).

    Raises
    ------
    RuntimeError
        If the input is not a floating-point matrix or p is negative.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.pdist(candelabra.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))
    tensor([5.0000, 1.0000, 4.2426])
    """
    if input.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    if not input.is_floating_point():
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    if not input.shape[1]:  # with zero-length vectors, some norms have no identity element
        p = 2.0
    if not is_differentiated(input):
        return ops._pdist_forward(input, float(p))
    rows = input.shape[0]
    first, second = candelabra.triu_indices(rows, rows, 1, device=input.device)
    # Computing the full cdist matrix is faster than gathering two copies of the rows, although it
    # computes each pair twice.
    return ops._cdist_forward(input, input, float(p)).take(first * rows + second)


__all__ = ["cosine_similarity", "pairwise_distance", "pdist"]
