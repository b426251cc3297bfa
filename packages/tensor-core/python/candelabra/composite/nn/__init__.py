"""Decompositions of neural network layers."""
