"""Where PyTorch has `errors`."""
