"""``torch.backends``: what libraries there are, and switches that programs set."""
