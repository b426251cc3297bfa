"""``torch.ao``: what float models of libraries use of quantization."""
