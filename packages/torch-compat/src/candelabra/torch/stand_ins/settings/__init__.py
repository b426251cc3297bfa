"""Settings of PyTorch that programs change: conversions, determinism, files, mixed precision."""
