"""`ExportedProgram`: a graph with its parameters, buffers and constants."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, NoReturn

from candelabra import Tensor, fx

from .checking import check_shapes
from .fx_graphs import graph_module
from .graph import Graph, Symbol
from .modules import ExportedModule
from .signature import ExportGraphSignature, signature_of


def default_decompositions() -> dict[Any, Any]:
    """Return the table of what `ExportedProgram.run_decompositions` decomposes: nothing."""
    return {}


class ExportedProgram:
    """A program that `export` has recorded, or `load` has read.

    `module` returns what is called. The graph is that of the recorded call: branches and loops of
    the original are those that it took.
    """

    def __init__(self, graph: Graph, example_inputs: tuple[Any, dict[str, Any]] | None = None) -> None:
        self._graph = graph
        self._example_inputs = example_inputs
        self._graph_module: fx.GraphModule | None = None

    def module(self, check_guards: bool = True) -> ExportedModule:
        """Return a module that runs the program, and that shares parameters and buffers with it.

        Parameters
        ----------
        check_guards
            Accepted for compatibility: arguments are always checked.

        Examples
        --------
        >>> import candelabra
        >>> from candelabra import nn
        >>> program = candelabra.export.export(nn.ReLU(), (candelabra.ones(2),))
        >>> program.module()(candelabra.tensor([-1.0, 1.0]))
        tensor([0., 1.])
        """
        return ExportedModule(self._graph)

    @property
    def graph_module(self) -> fx.GraphModule:
        """The operators as a module of a graph, whose first arguments are the program's state."""
        if self._graph_module is None:
            self._graph_module = graph_module(self._graph)
        return self._graph_module

    @property
    def graph(self) -> fx.Graph:
        """The operators as a graph."""
        return self.graph_module.graph

    @property
    def graph_signature(self) -> ExportGraphSignature:
        """What the inputs and the results of the graph are."""
        (result,) = self.graph.find_nodes(op="output")
        return signature_of(self._graph, [getattr(value, "name", None) for value in result.args[0]])

    @property
    def state_dict(self) -> dict[str, Any]:
        """The parameters and the persistent buffers by name."""
        return OrderedDict(
            (state.name, state.tensor)
            for state in self._graph.states
            if state.kind != "constant" and state.is_persistent
        )

    @property
    def constants(self) -> dict[str, Tensor]:
        """The tensors that are neither parameters nor persistent buffers, by name."""
        return {
            state.name: state.tensor
            for state in self._graph.states
            if state.kind == "constant" or not state.is_persistent
        }

    @property
    def tensor_constants(self) -> dict[str, Tensor]:
        """The same as `constants`."""
        return self.constants

    @property
    def range_constraints(self) -> dict[str, Symbol]:
        """The sizes that may differ from call to call, by name, with their limits."""
        return self._graph.symbols

    @property
    def example_inputs(self) -> tuple[Any, dict[str, Any]] | None:
        """The arguments that the program was exported with; None of a program from a file."""
        return self._example_inputs

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """Iterate over the parameters with their names."""
        return ((state.name, state.tensor) for state in self._graph.states if state.kind == "parameter")

    def parameters(self) -> Iterator[Tensor]:
        """Iterate over the parameters."""
        return (tensor for _, tensor in self.named_parameters())

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """Iterate over the buffers with their names."""
        return ((state.name, state.tensor) for state in self._graph.states if state.kind == "buffer")

    def buffers(self) -> Iterator[Tensor]:
        """Iterate over the buffers."""
        return (tensor for _, tensor in self.named_buffers())

    def validate(self) -> None:
        """Check the program: let the shape rule of each operator look at its arguments.

        Raises
        ------
        candelabra.serialization.FileError
            If a rule refuses them.
        """
        check_shapes(self._graph)

    def run_decompositions(
        self, decomp_table: dict[Any, Any] | None = None, decompose_custom_triton_ops: bool = False
    ) -> ExportedProgram:
        """Return the program; the operators of the catalogue are not decomposed.

        Parameters
        ----------
        decomp_table
            Must be empty, as `default_decompositions` is.
        decompose_custom_triton_ops
            Accepted for compatibility: there are none.

        Raises
        ------
        NotImplementedError
            If there is a table of decompositions.
        """
        if decomp_table:
            raise NotImplementedError(
                "ExportedProgram.run_decompositions(): a table is not supported; candelabra.fx.experimental.proxy_tensor.make_fx takes one"
            )
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()` instead."
        )

    def __str__(self) -> str:
        lines = self.graph_module.code.strip().splitlines()
        sizes = [
            f"    {symbol.name}: {symbol.least} to {'any size' if symbol.most is None else symbol.most}"
            for symbol in self._graph.symbols.values()
        ]
        return "\n".join(
            ["ExportedProgram:", *(f"    {line}" for line in lines), *(["Sizes:", *sizes] if sizes else [])]
        )
