"""Names of ``torch.nested``."""
