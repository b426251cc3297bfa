"""``torch.utils.data``: private names of PyTorch's loader."""
