"""Distributions of correlated vectors and of matrices."""
