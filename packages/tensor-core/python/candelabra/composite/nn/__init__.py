"""Layers of neural networks as decompositions."""
