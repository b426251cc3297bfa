"""Stand-ins of modules under ``torch.nn``."""
