"""The same on a GPU: ``python -m benchmarks --device cuda``, beside PyTorch on the same GPU where
it is installed, timed by events of the device.
"""
