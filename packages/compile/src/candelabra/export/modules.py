"""Modules that run exported programs."""

from __future__ import annotations

from typing import Any, NoReturn, Self

from candelabra import Tensor, nn, pytree

from .graph import Graph, State
from .running import Arguments, Runner


class ExportedModule(nn.Module):
    """A module that runs a program, with the parameters and buffers of the original.

    The module is called as the original, with arguments of the form, the dtypes and the sizes that
    the program was exported for.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.__dict__["_program"] = graph
        #: Where each state is: the table of its module, and its name there.
        slots = [self._add(state) for state in graph.states]
        self.__dict__["_slots"] = slots
        self.__dict__["_runner"] = Runner(graph)
        self.__dict__["_arguments"] = Arguments(graph)

    def _add(self, state: State) -> tuple[dict[str, Any], str]:
        path, _, name = state.name.rpartition(".")
        owner: nn.Module = self
        for atom in path.split(".") if path else ():
            child = owner._modules.get(atom)
            if child is None:
                child = owner._modules[atom] = nn.Module()
            owner = child
        if state.kind == "parameter":
            owner._parameters[name] = state.tensor  # type: ignore[assignment]
            return owner._parameters, name
        owner._buffers[name] = state.tensor
        if not state.is_persistent:
            owner._non_persistent_buffers_set.add(name)
        return owner._buffers, name

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program."""
        leaves = self._arguments.flatten(args, kwargs)
        results = self._runner(leaves, [table[name] for table, name in self._slots])
        return pytree.tree_unflatten(results, self._program.out_spec)

    def train(self, mode: bool = True) -> Self:
        """Raise an error: the program is that of one mode."""
        self._refuse_mode("train")

    def eval(self) -> Self:
        """Raise an error: the program is that of one mode."""
        self._refuse_mode("eval")

    def _refuse_mode(self, name: str) -> NoReturn:
        raise NotImplementedError(f"Calling {name}() is not supported yet: an exported program is that of one mode.")

    def __reduce__(self) -> NoReturn:
        raise TypeError("a module of an exported program is saved by candelabra.export.save")

    @property
    def graph_module(self) -> Any:
        """The program as a `candelabra.fx.GraphModule`, with its state among the arguments."""
        from .fx_graphs import graph_module

        return graph_module(self._program)

    @property
    def graph(self) -> Any:
        """The program as a `candelabra.fx.Graph`."""
        return self.graph_module.graph

    @property
    def code(self) -> str:
        """The program as Python code."""
        return str(self.graph_module.code)

    def states(self) -> list[Tensor]:
        """Return the parameters, buffers and constants that the program uses."""
        return [table[name] for table, name in self._slots]
