"""``torch._C._autograd``: what autograd has saved, and the backward pass that is running."""

from __future__ import annotations

from candelabra import autograd  # noqa: F401  (a package is imported before its modules)
from candelabra.autograd.engine import current_walk
from candelabra.autograd.graph import SavedTensor, are_saved_tensors_hooks_enabled

__all__ = ["SavedTensor", "_get_current_graph_task_keep_graph", "_saved_tensors_hooks_is_enabled"]


def _saved_tensors_hooks_is_enabled() -> bool:
    """Return whether saved_tensors_hooks() may be entered."""
    return are_saved_tensors_hooks_enabled()


def _get_current_graph_task_keep_graph() -> bool:
    """Return whether the backward pass that is running keeps its graph; True where none runs."""
    walk = current_walk()
    return walk is None or not walk.free
