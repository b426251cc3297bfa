"""Benchmarks of several processes, beside PyTorch with gloo: ``python -m benchmarks.distributed``."""
