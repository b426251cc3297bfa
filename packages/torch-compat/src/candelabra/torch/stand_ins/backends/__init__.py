"""``torch.backends``: availability of libraries, and their settings."""
