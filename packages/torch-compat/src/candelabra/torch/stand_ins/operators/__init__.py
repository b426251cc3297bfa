"""Operators under PyTorch's names: how they are registered, counted and dispatched."""
