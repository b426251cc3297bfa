"""The base class of passes over modules of graphs."""

from __future__ import annotations

import abc
from typing import NamedTuple

from ...graph_module import GraphModule

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """What a pass returns: the module, and whether it changed."""

    graph_module: GraphModule
    modified: bool


class PassBase(abc.ABC):
    """A pass: `call` does the work; `requires` and `ensures` check the module before and after
    it.
    """

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """Return the changed module."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027  (optional)
        """Raise an error if the pass cannot take the module."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027  (optional)
        """Raise an error if the result is not what the pass promises."""
