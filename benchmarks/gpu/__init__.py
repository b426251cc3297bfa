"""Benchmarks on a GPU: ``python -m benchmarks --device cuda``. Device events time Candelabra and
PyTorch, if installed, on the same GPU.
"""
