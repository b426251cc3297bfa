"""Running a graph node by node."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import candelabra.nn as nn

from . import attributes, traceback
from .codegen import last_uses
from .graph import Graph
from .graph_module import GraphModule
from .node import Argument, Node, Target, map_aggregate, map_arg
from .proxy import Proxy, Scope
from .tracing import Tracer

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs the nodes of a module's graph. Subclasses change what a node does.

    Parameters
    ----------
    module
        The module.
    garbage_collect_values
        Whether to drop values after their last use.
    graph
        The graph; by default that of the module.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import fx
    >>> class Doubling(fx.Interpreter):
    ...     def call_function(self, target, args, kwargs):
    ...         return super().call_function(target, args, kwargs) * 2
    >>> Doubling(fx.symbolic_trace(lambda x: x + 1)).run(candelabra.ones(2))
    tensor([4., 4.])
    """

    def __init__(self, module: nn.Module, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = graph if graph is not None else module.graph  # type: ignore[assignment]
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.user_to_last_uses = last_uses(self.graph.nodes) if garbage_collect_values else {}
        self.args_iter: Iterator[Any] = iter(())

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """Run the graph.

        Parameters
        ----------
        args
            The arguments of the module, in order.
        initial_env
            Values of nodes that are known.
        enable_io_processing
            Whether the arguments and the result are the containers of the function rather than the
            leaves of the graph.
        """
        self.env = {} if initial_env is None else dict(initial_env)
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    _explain(error, node)
                    if isinstance(error, KeyError):
                        raise RuntimeError(*error.args) from error
                raise
            for unused in self.user_to_last_uses.get(node, ()):
                self.env.pop(unused, None)
            if node.op == "output":
                result = self.env[node]
                return self.graph.process_outputs(result) if enable_io_processing else result
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """Run the graph with arguments in a list, which is emptied so that they can be freed."""
        placeholders = self.graph.find_nodes(op="placeholder")
        known = dict(zip(placeholders, args_list, strict=True))
        args_list.clear()
        return self.run(initial_env=known, enable_io_processing=False)

    def run_node(self, n: Node) -> Any:
        """Run one node, and return its value."""
        with traceback.set_current_meta(n, f"Interpreter_{type(self).__name__}"):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Return the next argument; for ``*args``, all that are left."""
        if not isinstance(target, str):
            raise AssertionError(f"Expected target to be str, got {type(target)}")
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Return an attribute of the module."""
        return self.fetch_attr(str(target))

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a function."""
        if not callable(target):
            raise AssertionError(f"Expected a function, got {target!r}")
        return target(*args, **kwargs)

    def call_method(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a method of the first argument."""
        self_obj, *others = args
        return getattr(self_obj, str(target))(*others, **kwargs)

    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a submodule."""
        return self.fetch_attr(str(target))(*args, **kwargs)

    def output(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of the graph."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """Return an attribute of the module, by its dotted path.

        Raises
        ------
        RuntimeError
            If there is none.
        """
        return attributes.fetch(self.module, target)

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a node with values in place of nodes."""
        args = self.map_nodes_to_values(n.args, n)
        kwargs = self.map_nodes_to_values(n.kwargs, n)
        return args, kwargs

    def map_nodes_to_values(self, args: Argument, n: Node) -> Argument:
        """Return arguments of a node with values in place of nodes."""

        def value(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose such issues"
                )
            return self.env[node]

        return map_arg(args, value)


def _explain(error: Exception, node: Node) -> None:
    """Add to the text of an error which node has raised it."""
    text = f"While executing {node.format_node()}"
    if error.args:
        text = f"{error.args[0]}\n\n{text}"
    text += f"\nOriginal traceback:\n{node.stack_trace}"
    error.args = (text, *error.args[1:])


class Transformer(Interpreter):
    """Makes another graph by running one on proxies. Subclasses change what a node becomes.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import fx
    >>> class Sigmoids(fx.Transformer):
    ...     def call_method(self, target, args, kwargs):
    ...         return super().call_method("sigmoid" if target == "relu" else target, args, kwargs)
    >>> traced = fx.symbolic_trace(lambda x: x.relu())
    >>> Sigmoids(traced).transform()(candelabra.zeros(2))
    tensor([0.5000, 0.5000])
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)

        class TransformerTracer(Tracer):
            def __init__(self, graph: Graph, root: nn.Module) -> None:
                super().__init__()
                self.graph = graph
                self.root = root
                self.tensor_attrs = {}
                self.scope = Scope("", None)
                self.module_stack = OrderedDict()
                self._collect_tensors(root, [])

            def is_leaf_module(self, _: nn.Module, __: str) -> bool:
                return True

        self.tracer = TransformerTracer(self.new_graph, module)

    def placeholder(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Proxy:
        """Make a placeholder of the new graph."""
        default = args[0] if args else inspect.Signature.empty
        return Proxy(self.new_graph.placeholder(str(target), default_value=default), self.tracer)

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Proxy:
        """Make a node of an attribute."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Make a node of the call of a submodule."""
        module = self.fetch_attr(str(target))
        return self.tracer.call_module(module, module.forward, args, kwargs)

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Make a node of the call of a function."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """Return a module with the new graph."""
        with traceback.preserve_node_meta():
            result = super().run(enable_io_processing=False)
        if result is not None:
            self.new_graph.output(map_aggregate(result, lambda a: a.node if isinstance(a, Proxy) else a))
        return GraphModule(self.module, self.new_graph)
