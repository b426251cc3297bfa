"""Provide distances and similarities of vectors."""

from __future__ import annotations

from candelabra import Tensor

from .. import functional as F
from .module import Module


class CosineSimilarity(Module):
    """Return the cosine similarity of vectors along `dim`, from -1 to 1.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.CosineSimilarity(dim=0)(candelabra.tensor([1.0, 0.0]), candelabra.tensor([0.0, 2.0]))
    tensor(0.)
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """Return the p-norm of ``x1 - x2 + eps`` along the last dimension."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


__all__ = ["CosineSimilarity", "PairwiseDistance"]
