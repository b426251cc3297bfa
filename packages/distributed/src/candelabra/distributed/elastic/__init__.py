"""PyTorch's modules of its launcher that programs import."""
