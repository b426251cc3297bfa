"""Provide the embeddings under PyTorch's module name; see `embedding`."""

from .embedding import Embedding, EmbeddingBag

__all__ = ["Embedding", "EmbeddingBag"]
