"""The node of a result whose graph the compiled function has used up."""

from __future__ import annotations

from typing import Any

import candelabra.autograd as _autograd  # noqa: F401
from candelabra.autograd.node import Node, next_sequence, raise_freed


class CompiledBackward(Node):
    """Raises when a backward pass reaches it, as the node of a freed graph does."""

    __slots__ = ("_edges", "_name")

    _edges: tuple[Any, ...]
    _name: str

    def name(self) -> str:
        return self._name

    def all_edges(self) -> tuple[Any, ...]:
        return self._edges

    def backward(self, *arguments: Any) -> Any:
        raise_freed(self)


def node_like(node: Any) -> CompiledBackward:
    """Return a node that stands for a freed one."""
    made = CompiledBackward.__new__(CompiledBackward)
    made._sequence = next_sequence()
    made._hooks = None
    made._saved = None
    made._edges = ()
    made._name = node.name()
    return made
