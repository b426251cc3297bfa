"""Graphs: lists of nodes in the order in which they run."""

from __future__ import annotations

import contextlib
import copy
import inspect
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from candelabra import _C

from .codegen import CodeGen, PythonCode
from .naming import Namespace
from .node import Argument, Node, Target, map_arg, target_text
from .printing import table

if TYPE_CHECKING:
    from .graph_module import GraphModule

__all__ = ["CodeGen", "Graph", "PythonCode"]

#: Changes generated code: takes its lines and returns others.
TransformCode = Callable[[list[str]], list[str]]


class NodeList:
    """The nodes of a graph in order. It may change while it is iterated."""

    def __init__(self, graph: Graph, direction: Literal["_prev", "_next"] = "_next") -> None:
        self.graph = graph
        self.direction = direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        root = self.graph._root
        current = getattr(root, self.direction)
        while current is not root:
            if not current._erased:
                yield current
            current = getattr(current, self.direction)

    def __reversed__(self) -> NodeList:
        return NodeList(self.graph, "_next" if self.direction == "_prev" else "_prev")


class _InsertPoint:
    def __init__(self, graph: Graph, new_insert: Callable[[Node], None]) -> None:
        self.graph = graph
        self._before, graph._insert = graph._insert, new_insert

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.graph._insert = self._before


class Graph:
    """The steps of a function: nodes in the order in which they run.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import fx
    >>> graph = fx.Graph()
    >>> x = graph.placeholder("x")
    >>> y = graph.call_function(candelabra.relu, (x,))
    >>> _ = graph.output(y)
    >>> print(graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %relu : [num_users=1] = call_function[target=candelabra.relu](args = (%x,), kwargs = {})
        return relu
    """

    def __init__(
        self,
        owning_module: GraphModule | None = None,
        tracer_cls: type | None = None,
        tracer_extras: dict[str, Any] | None = None,
    ) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._order_is_known = False
        self._graph_namespace = Namespace()
        self._owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen = CodeGen()
        self._transform_code: TransformCode | None = None

    @property
    def owning_module(self) -> GraphModule | None:
        """The module that runs the graph."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, module: GraphModule | None) -> None:
        self._owning_module = module

    @property
    def nodes(self) -> NodeList:
        """The nodes in order."""
        return NodeList(self)

    def _position_of(self, node: Node) -> int:
        if not self._order_is_known:
            for position, each in enumerate(self.nodes):
                each._position = position
            self._order_is_known = True
        return node._position

    def _target_to_str(self, target: Target | None) -> str:
        return target_text(target)

    def output_node(self) -> Node:
        """Return the node of the result."""
        last = next(iter(reversed(self.nodes)))
        if last.op != "output":
            raise AssertionError(f"Expected output node, got op={last.op}")
        return last

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """Return the nodes of a kind, in order; only those of a target, if one is given."""
        return [node for node in self.nodes if node.op == op and (target is None or node.target == target)]

    # ---- making nodes

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any | None = None,
    ) -> Node:
        """Make a node at the insert point, and return it.

        Parameters
        ----------
        op, target, args, kwargs
            See `Node`.
        name
            The name that is wished for; a number is added to one that is taken.
        type_expr
            An annotation of the value.
        """
        args = () if args is None else args
        kwargs = {} if kwargs is None else kwargs
        if not isinstance(args, tuple):
            raise AssertionError(f"args must be a tuple, got {type(args)}")
        if not isinstance(kwargs, dict):
            raise AssertionError(f"kwargs must be a dict, got {type(kwargs)}")
        new = self._graph_namespace.create_name(name if name is not None else target_text(target), None)
        node = Node(self, new, op, target, args, kwargs, type_expr)
        for hook in getattr(self._owning_module, "_create_node_hooks", ()):
            hook(node)
        self._graph_namespace.associate_name_with_obj(new, node)
        self._insert(node)
        self._len += 1
        return node

    def placeholder(
        self, name: str, type_expr: Any | None = None, default_value: Any = inspect.Signature.empty
    ) -> Node:
        """Make a parameter of the function; ``*args`` and ``**kwargs`` are names of such."""
        args = () if default_value is inspect.Signature.empty else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any | None = None) -> Node:
        """Make a node for an attribute of the module, by its dotted path."""
        if self._owning_module is not None and not _is_attribute(self._owning_module, qualified_name):
            _C.warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule! Call "
                "GraphModule.add_submodule to add the necessary submodule, GraphModule.add_parameter to add the necessary Parameter, or "
                "nn.Module.register_buffer to add the necessary buffer",
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any | None = None,
    ) -> Node:
        """Make a node that calls a submodule, by its dotted path."""
        if self._owning_module is not None and not _is_attribute(self._owning_module, module_name):
            _C.warn(
                "Attempted to insert a call_module Node with no underlying reference in the owning GraphModule! Call "
                "GraphModule.add_submodule to add the necessary submodule",
            )
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any | None = None,
    ) -> Node:
        """Make a node that calls a method of its first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any | None = None,
        name: str | None = None,
    ) -> Node:
        """Make a node that calls a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result: Argument, type_expr: Any | None = None) -> Node:
        """Make the node of the result, which is the last of a graph."""
        return self.create_node("output", "output", args=(result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda x: x) -> Node:
        """Copy a node of another graph to this one.

        Parameters
        ----------
        node
            The node.
        arg_transform
            Returns what stands in the copy's arguments for a node of the other graph.
        """
        args = map_arg(node.args, arg_transform)
        kwargs = map_arg(node.kwargs, arg_transform)
        copied = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        copied.meta = copy.copy(node.meta)
        return copied

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Copy the nodes of another graph to this one, and return the result's argument.

        Parameters
        ----------
        g
            The other graph.
        val_map
            Nodes of this graph that stand for nodes of the other; those copied are added.
        return_output_node
            Whether to return the other graph's output node as well.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        memo = {} if memo is None else memo
        new = Graph(tracer_cls=self._tracer_cls, tracer_extras=self._tracer_extras)
        memo[id(self)] = new
        copied: dict[Node, Node] = {}
        result = new.graph_copy(self, copied, return_output_node=True)
        new._codegen = copy.deepcopy(self._codegen, memo)
        new._transform_code = self._transform_code
        if result is not None:
            value, old = result
            output = new.output(value, type_expr=old.type)
            output.meta = copy.copy(old.meta)
            new._graph_namespace.rename_object(output, old.name)
            output.name = old.name
        for old_node, node in copied.items():
            memo[id(old_node)] = node
        return new

    # ---- changing

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Insert new nodes before a node, or before all; as a context, until it ends."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Insert new nodes after a node, or after all; as a context, until it ends."""
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        last = n

        def insert(node: Node) -> None:
            nonlocal last
            last.append(node)
            last = node

        return _InsertPoint(self, insert)

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node that has no users.

        Raises
        ------
        RuntimeError
            If it has users, or is of another graph.
        """
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            _C.warn(f"erase_node({to_erase}) on an already erased node")
            return
        for hook in getattr(self._owning_module, "_erase_node_hooks", ()):
            hook(to_erase)
        to_erase._remove_from_list()
        to_erase._erased = True
        to_erase.args, to_erase.kwargs = (), {}
        self._len -= 1

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Remove nodes that nothing uses and that have no effect, and return whether there were
        any.

        Parameters
        ----------
        is_impure_node
            Returns whether a node has an effect; by default `Node.is_impure`.
        """
        self.lint()
        is_impure = is_impure_node if is_impure_node is not None else Node.is_impure
        before = len(self.nodes)
        for node in reversed(self.nodes):
            if not node.users and not is_impure(node):
                self.erase_node(node)
        return len(self.nodes) != before

    # ---- code

    def set_codegen(self, codegen: CodeGen) -> None:
        """Set what writes the code."""
        self._codegen = codegen

    def process_inputs(self, *args: Any) -> Any:
        """Return what the placeholders get for some arguments of the function."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """Return the result of the function for that of the graph."""
        return self._codegen.process_outputs(out)

    def python_code(self, root_module: str, **comments: Any) -> PythonCode:
        """Return the code of the graph, in which the module is named `root_module`.

        Parameters
        ----------
        root_module
            The name.
        **comments
            `verbose`, `include_stride` and other options of the comments of PyTorch's code, which
            has none here.

        Examples
        --------
        >>> from candelabra import fx
        >>> print(fx.symbolic_trace(lambda x: x.abs() + 1).graph.python_code("self").src)
        <BLANKLINE>
        <BLANKLINE>
        <BLANKLINE>
        def forward(self, x):
            abs_1 = x.abs();  x = None
            add = abs_1 + 1;  abs_1 = None
            return add
        <BLANKLINE>
        """
        namespace = Namespace()
        namespace.create_name(root_module, self)
        nodes = list(self.nodes)
        before = [node._repr_fn for node in nodes]
        for node in nodes:
            node._repr_fn = lambda n: namespace.create_name(n.name, n)
        try:
            code = self._codegen.generate(nodes, root_module, namespace)
        finally:
            for node, text in zip(nodes, before, strict=True):
                node._repr_fn = text
        if self._transform_code is not None:
            code.src = "".join(self._transform_code(code.src.splitlines(keepends=True)))
        return code

    @contextlib.contextmanager
    def _restoring(self, before: TransformCode | None) -> Iterator[None]:
        try:
            yield
        finally:
            self._transform_code = before

    def on_generate_code(
        self, make_transformer: Callable[[TransformCode | None], TransformCode]
    ) -> contextlib.AbstractContextManager[None]:
        """Register a function that changes the lines of generated code.

        Parameters
        ----------
        make_transformer
            Takes the function registered before, or None, and returns the new one.

        Returns
        -------
        context manager
            One that restores the function registered before.
        """
        before = self._transform_code
        self._transform_code = make_transformer(before)
        return self._restoring(before)

    # ---- printing and checking

    def __str__(self) -> str:
        lines = [node.format_node() for node in self.nodes]
        return "graph():" + "".join(f"\n    {line}" for line in lines if line)

    def print_tabular(self) -> None:
        """Print a table of the nodes."""
        rows = [[node.op, node.name, node.target, node.args, node.kwargs] for node in self.nodes]
        print(table(["opcode", "name", "target", "args", "kwargs"], rows))

    def lint(self) -> None:
        """Check that the graph can run.

        Raises
        ------
        RuntimeError
            If a node has an unknown opcode, its name twice, or an argument that is computed later;
            or if the module lacks what the node refers to.
        """
        from .lint import check

        check(self)


def _is_attribute(module: Any, path: str) -> bool:
    for atom in path.split("."):
        if not hasattr(module, atom):
            return False
        module = getattr(module, atom)
    return True
