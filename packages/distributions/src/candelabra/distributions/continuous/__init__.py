"""Distributions of real numbers, and the continuous relaxations of discrete ones."""
