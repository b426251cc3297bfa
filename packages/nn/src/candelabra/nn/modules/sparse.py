"""Embeddings under the module name they have in PyTorch; see `embedding`."""

from .embedding import Embedding, EmbeddingBag

__all__ = ["Embedding", "EmbeddingBag"]
