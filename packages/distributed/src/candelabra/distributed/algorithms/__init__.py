"""Algorithms on process groups."""
