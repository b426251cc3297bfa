"""Implement the base classes of `Module`: registry, tree, hooks, conversion and state dicts."""
