"""Distributions of whole numbers and of categories."""
