"""Engines: the libraries that carry collectives out. See `interface`."""
