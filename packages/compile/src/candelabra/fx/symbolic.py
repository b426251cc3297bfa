"""Tracing of a whole module or function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra.nn as nn

from .graph_module import GraphModule
from .tracing import Tracer

__all__ = ["symbolic_trace"]


def symbolic_trace(root: nn.Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """Return a module that does what a module or function does, with a graph of it.

    It runs on proxies, so that it cannot branch on the values of its arguments, nor on their
    shapes.

    Parameters
    ----------
    root
        The module or function.
    concrete_args
        Arguments that are no proxies, by name. The program may branch on them, and the result
        checks that it gets the same ones. Containers may have `candelabra.fx.PH` where they have
        proxies.

    Raises
    ------
    TraceError
        If the program does what cannot be traced.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import fx, nn
    >>> traced = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))
    >>> print(traced.graph)
    graph():
        %input_1 : [num_users=1] = placeholder[target=input]
        %_0 : [num_users=1] = call_module[target=0](args = (%input_1,), kwargs = {})
        %_1 : [num_users=1] = call_module[target=1](args = (%_0,), kwargs = {})
        return _1
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, nn.Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
