"""Creation of tensors: from data, numbers, files and random generators."""
