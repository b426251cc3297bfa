"""Private modules of PyTorch from which libraries import."""
