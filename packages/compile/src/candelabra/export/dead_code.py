"""Operators whose results nothing needs, such as those of checks of values."""

from __future__ import annotations

from .graph import Node, find_operator, uses
from .recording import RANDOM, Recording


def remove_dead(recording: Recording) -> None:
    """Remove the operators of a recording that only compute what nothing needs, and their constants.

    Those that write to an argument or draw random numbers stay.
    """
    needed = set(uses(recording.outputs))
    kept: list[Node] = []
    for node in reversed(recording.nodes):
        if _has_effect(node) or any(number in needed for number in node.outputs):
            kept.append(node)
            needed.update(uses([*node.args, *node.kwargs.values()]))
    recording.nodes = kept[::-1]
    recording.constants = [state for state in recording.constants if state.value in needed]


def _has_effect(node: Node) -> bool:
    op = find_operator(node.op)
    writes = op.functional is not None or node.op.endswith("_") or "out" in node.kwargs or "!" in op.schema
    return bool(writes or op.tags & RANDOM)
