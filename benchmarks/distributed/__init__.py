"""Benchmarks of several processes, beside PyTorch with gloo.

Run ``python -m benchmarks.distributed``.
"""
