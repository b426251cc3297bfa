"""Training in which ranks have different numbers of inputs, by PyTorch's name."""

from ..join_context import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
