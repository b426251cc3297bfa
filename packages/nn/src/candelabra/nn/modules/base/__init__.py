"""What every module inherits: its registry, tree, hooks, conversions and state."""
