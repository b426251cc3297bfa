"""Tensors from data, numbers, files and random generators."""
