"""Benchmarks of several processes, beside PyTorch with gloo.

Run them by ``python -m benchmarks.distributed``.
"""
