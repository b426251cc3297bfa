"""Replacement of patterns in graphs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import candelabra.nn as nn

from . import attributes
from .graph import Graph
from .graph_module import GraphModule
from .node import Node
from .passes.utils.matcher_utils import InternalMatch, SubgraphMatcher
from .symbolic import symbolic_trace

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]

#: Takes a match, the graph and the pattern, and returns whether to replace it.
MatchFilter = Callable[[InternalMatch, Graph, Graph], bool]


class Match(NamedTuple):
    """A place where a pattern was found: the node of its result, and nodes by those of the
    pattern.
    """

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """A place where a pattern was replaced: as a `Match`, with the new nodes."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node] = field(default_factory=list)


def replace_pattern(
    gm: GraphModule,
    pattern: Callable[..., Any] | GraphModule,
    replacement: Callable[..., Any] | GraphModule,
) -> list[Match]:
    """Replace all places of a module's graph that look like a pattern, and return them.

    Parameters
    ----------
    gm
        The module. It is changed and recompiled.
    pattern
        A function, which is traced. Its parameters match anything.
    replacement
        A function with as many parameters, which is traced.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import fx
    >>> traced = fx.symbolic_trace(lambda x, y: candelabra.relu(x + y) * 2)
    >>> matches = fx.replace_pattern(traced, lambda a, b: candelabra.relu(a + b), lambda a, b: a - b)
    >>> print(traced.code)
    <BLANKLINE>
    <BLANKLINE>
    <BLANKLINE>
    def forward(self, x, y):
        sub = x - y;  x = y = None
        mul = sub * 2;  sub = None
        return mul
    <BLANKLINE>
    """
    found = _replace_pattern(gm, pattern, replacement)
    return [Match(anchor=each.anchor, nodes_map=each.nodes_map) for each in found]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Callable[..., Any] | Graph | GraphModule,
    replacement: Callable[..., Any] | Graph | GraphModule | None = None,
    match_filters: list[MatchFilter] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """Replace the places of a module's graph that look like a pattern, and return them.

    Parameters
    ----------
    gm, pattern, replacement
        As of `replace_pattern`; also graphs.
    match_filters
        Functions of the match, the graph and the pattern, which return whether to replace it.
    ignore_literals
        Whether constants match any others.
    replacement_callback
        Returns the replacement's graph for a match, in place of `replacement`.
    node_name_match
        Text that the name of the result's node must contain.
    """
    return _replace_pattern(
        gm, pattern, replacement, match_filters, ignore_literals, replacement_callback, node_name_match
    )


def _graph_of(source: Callable[..., Any] | Graph | GraphModule) -> Graph:
    if isinstance(source, GraphModule):
        return source.graph
    return source if isinstance(source, Graph) else symbolic_trace(source).graph


def _replace_pattern(
    gm: GraphModule,
    pattern: Callable[..., Any] | Graph | GraphModule,
    replacement: Callable[..., Any] | Graph | GraphModule | None = None,
    match_filters: list[MatchFilter] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    graph, pattern_graph = gm.graph, _graph_of(pattern)
    if replacement is None and replacement_callback is None:
        raise AssertionError("Must provide either replacement GraphModule or replacement_callback")
    common = None if replacement is None else _graph_of(replacement)
    matcher = SubgraphMatcher(pattern_graph, remove_overlapping_matches=True, ignore_literals=ignore_literals)
    matches = [
        match
        for match in matcher.match(graph, node_name_match=node_name_match)
        if all(wanted(match, graph, pattern_graph) for wanted in match_filters or ())
    ]
    #: Nodes that were replaced, and by what: later matches may have them as arguments.
    changed: dict[Node, Node] = {}
    done = []
    for match in matches:
        if common is not None:
            new = common
        else:
            assert replacement_callback is not None
            new = replacement_callback(match, graph, pattern_graph)
        done.append(_replace_match(graph, match, new, changed))
    gm.recompile()
    if isinstance(replacement, nn.Module):
        _copy_attributes(gm, replacement)
    elif common is not None and common.owning_module is not None:
        _copy_attributes(gm, common.owning_module)
    return done


def _replace_match(graph: Graph, match: InternalMatch, new: Graph, changed: dict[Node, Node]) -> ReplacedPatterns:
    parameters = [node for node in new.nodes if node.op == "placeholder"]
    if len(match.placeholder_nodes) != len(parameters):
        raise AssertionError(
            f"the pattern has {len(match.placeholder_nodes)} parameters that are used, but the replacement has {len(parameters)}"
        )
    values: dict[Node, Any] = {}
    for parameter, value in zip(parameters, match.placeholder_nodes, strict=True):
        values[parameter] = changed.get(value, value) if isinstance(value, Node) else value
    inside = {
        node for pattern, node in match.nodes_map.items() if pattern.op != "placeholder" and isinstance(node, Node)
    }
    # Insert before the first user of the results, if all arguments are known there.
    users = {user for node in match.returning_nodes for user in node.users if user not in inside}
    first = next((node for node in graph.nodes if node in users), None)
    known = [value for value in values.values() if isinstance(value, Node)]
    if first is not None and all(value < first for value in known):
        point = graph.inserting_before(first)
    else:
        point = graph.inserting_after(max([*known, *match.returning_nodes]))
    with point:
        results = graph.graph_copy(new, values)
    made = [values[node] for node in new.nodes if node not in parameters and node in values]
    returned = list(results) if isinstance(results, list | tuple) else [results]
    if len(returned) != len(match.returning_nodes):
        raise AssertionError(
            f"the pattern returns {len(match.returning_nodes)} values, but the replacement returns {len(returned)}"
        )
    for old, value in zip(match.returning_nodes, returned, strict=True):
        old.replace_all_uses_with(value, lambda user: user not in made)
        changed[old] = value
    for node in reversed(graph.nodes):
        if node in inside and node.op != "output" and not node.users:
            graph.erase_node(node)
    return ReplacedPatterns(anchor=match.anchors[0], nodes_map=match.nodes_map, replacements=made)


def _copy_attributes(gm: GraphModule, replacement: nn.Module) -> None:
    """Give the module what the replacement refers to, and drop what nothing refers to any more."""
    for node in gm.graph.nodes:
        if node.op in ("call_module", "get_attr"):
            path = str(node.target)
            if not attributes.has(gm, path) and attributes.has(replacement, path):
                attributes.copy_attribute(replacement, gm, path)
    gm.delete_all_unused_submodules()
    gm.graph.lint()
