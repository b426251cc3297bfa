"""Finding the places of a graph that look like a pattern."""

from __future__ import annotations

import copy
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from candelabra import Tensor

from ... import attributes
from ...graph import Graph
from ...node import Node

__all__ = ["InternalMatch", "SubgraphMatcher"]


@dataclass
class InternalMatch:
    """A place that looks like a pattern.

    Attributes
    ----------
    anchors : list of Node
        The nodes of the pattern from which it was compared: those that give its result.
    nodes_map : dict
        The nodes of the graph by those of the pattern.
    placeholder_nodes : list of Node
        What the graph has for the pattern's parameters, in order.
    returning_nodes : list of Node
        What the graph has for the pattern's results, in order.
    """

    anchors: list[Node]
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Node] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self) -> InternalMatch:
        return InternalMatch(
            self.anchors, self.nodes_map.copy(), self.placeholder_nodes.copy(), self.returning_nodes.copy(), {}
        )


class SubgraphMatcher:
    """Finds a pattern in graphs.

    Parameters
    ----------
    pattern
        The graph of the pattern. Its parameters match anything.
    match_output
        Whether its result must be that of the graph.
    match_placeholder
        Whether its parameters must be parameters of the graph.
    remove_overlapping_matches
        Whether no node is in two matches.
    ignore_literals
        Whether numbers and other constants match any others.
    """

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        self.pattern = pattern
        self.match_output = match_output
        self.match_placeholder = match_placeholder
        self.remove_overlapping_matches = remove_overlapping_matches
        self.ignore_literals = ignore_literals
        if len(pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in pattern.nodes:
            if node.op != "output" and not node.is_impure() and not node.users:
                raise AssertionError("SubgraphMatcher cannot be initialized with an pattern with dead code")
        self.pattern_placeholder_nodes = [node for node in pattern.nodes if node.op == "placeholder"]
        output = pattern.output_node()
        self.pattern_returning_nodes: list[Node] = output.all_input_nodes
        if match_output:
            self.pattern_anchors = [output]
        else:
            # Results that other results use are reached from those.
            self.pattern_anchors = [node for node in self.pattern_returning_nodes if len(node.users) == 1]

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """Return the places of a graph that look like the pattern.

        Parameters
        ----------
        graph
            The graph.
        node_name_match
            If given, the node of the graph for the first anchor has it in its name.
        """
        candidates: dict[Node, list[Node]] = defaultdict(list)
        for anchor in self.pattern_anchors:
            for node in graph.nodes:
                if self._equal(anchor, node) and (not node_name_match or node_name_match in node.name):
                    candidates[anchor].append(node)
        found: list[InternalMatch] = []

        def extend(match: InternalMatch, anchors: list[Node]) -> None:
            if not anchors:
                if self._complete(match):
                    found.append(match)
                return
            for node in candidates[anchors[0]]:
                trial = copy.copy(match)
                if self._match_nodes(anchors[0], node, trial):
                    extend(trial, anchors[1:])

        # From the end: of places that overlap, the last ones are kept.
        extend(InternalMatch(anchors=self.pattern_anchors), self.pattern_anchors)
        found = [match for match in found if self._is_contained(match.nodes_map)]
        return self._without_overlaps(found) if self.remove_overlapping_matches else found

    # ---- comparing

    def _equal(self, pattern: Node, node: Node) -> bool:
        if not self.match_placeholder and pattern.op == "placeholder":
            return True
        if pattern.op != node.op:
            return False
        if pattern.op in ("placeholder", "output"):
            return True
        if pattern.op == "get_attr":
            return self._equal_attributes(pattern, node)
        return pattern.target == node.target

    def _equal_attributes(self, pattern: Node, node: Node) -> bool:
        theirs, ours = pattern.graph.owning_module, node.graph.owning_module
        if theirs is None or ours is None:
            return pattern.target == node.target
        first, second = (attributes.fetch(m, str(n.target)) for m, n in ((theirs, pattern), (ours, node)))
        if type(first) is not type(second):
            return False
        return isinstance(first, Tensor) or first is second

    def _match_nodes(self, pattern: Node, node: Any, match: InternalMatch) -> bool:
        if pattern in match.nodes_map:
            return match.nodes_map[pattern] is node
        if any(node is other for other in match.nodes_map.values()):
            return False
        if not isinstance(node, Node) or not self._equal(pattern, node):
            return False
        match.nodes_map[pattern] = node
        if pattern.op == "placeholder":
            return True
        if self._match_arguments(pattern, node, match):
            return True
        match.nodes_map.pop(pattern)
        return False

    def _match_arguments(self, pattern: Node, node: Node, match: InternalMatch) -> bool:
        from ...operator_schemas import normalized_pair

        args, kwargs = pattern.args, pattern.kwargs
        other_args, other_kwargs = node.args, node.kwargs
        if len(args) != len(other_args) or kwargs.keys() != other_kwargs.keys():
            pair = normalized_pair(pattern, node)
            if pair is None:
                return False
            (args, kwargs), (other_args, other_kwargs) = pair
            if len(args) != len(other_args) or kwargs.keys() != other_kwargs.keys():
                return False
        return self._match_values(list(args), list(other_args), match) and all(
            self._match_values(value, other_kwargs[name], match) for name, value in kwargs.items()
        )

    def _match_values(self, pattern: Any, value: Any, match: InternalMatch) -> bool:
        if isinstance(pattern, Node):
            if isinstance(value, Node):
                return self._match_nodes(pattern, value, match)
            # A parameter of the pattern matches constants too.
            if pattern.op != "placeholder" or self.match_placeholder:
                return False
            if pattern in match.nodes_map:
                return bool(match.nodes_map[pattern] == value)
            match.nodes_map[pattern] = value
            return True
        if isinstance(value, Node):
            return False
        if isinstance(pattern, list | tuple):
            return (
                isinstance(value, list | tuple)
                and len(pattern) == len(value)
                and all(self._match_values(p, v, match) for p, v in zip(pattern, value, strict=True))
            )
        if isinstance(pattern, dict):
            return (
                isinstance(value, dict)
                and pattern.keys() == value.keys()
                and all(self._match_values(p, value[key], match) for key, p in pattern.items())
            )
        if isinstance(pattern, slice):
            return isinstance(value, slice) and all(
                self._match_values(getattr(pattern, name), getattr(value, name), match)
                for name in ("start", "stop", "step")
            )
        return self.ignore_literals or (type(pattern) is type(value) and bool(pattern == value))

    # ---- what a match must be

    def _complete(self, match: InternalMatch) -> bool:
        """Add what the graph has for the parameters and results; return whether it has all."""
        if any(node not in match.nodes_map for node in self.pattern_returning_nodes):
            return False
        match.placeholder_nodes = [
            match.nodes_map[node] for node in self.pattern_placeholder_nodes if node in match.nodes_map
        ]
        match.returning_nodes = [match.nodes_map[node] for node in self.pattern_returning_nodes]
        return True

    def _is_contained(self, nodes_map: dict[Node, Any]) -> bool:
        """Return whether nothing outside uses the values inside, which a replacement would not
        have.
        """
        inside = {node for pattern, node in nodes_map.items() if pattern.op != "placeholder"}
        free = {*self.pattern_placeholder_nodes, *self.pattern_returning_nodes}
        return all(
            user in inside
            for pattern, node in nodes_map.items()
            if pattern not in free and isinstance(node, Node)
            for user in node.users
        )

    def _without_overlaps(self, matches: list[InternalMatch]) -> list[InternalMatch]:
        kept: list[InternalMatch] = []
        used: set[Node] = set()
        for match in matches:
            nodes = {node for pattern, node in match.nodes_map.items() if pattern.op not in ("placeholder", "output")}
            if used.isdisjoint(nodes):
                used |= nodes
                kept.append(match)
        return kept
