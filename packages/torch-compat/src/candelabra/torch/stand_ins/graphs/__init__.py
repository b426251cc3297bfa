"""Private names of the modules of ``torch.fx`` that libraries use."""
