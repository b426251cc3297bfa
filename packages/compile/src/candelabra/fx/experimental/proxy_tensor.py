"""Graphs of operators: a function runs on tensors, and each operator that it calls becomes a
node.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any

import candelabra.nn as nn
from candelabra import Tensor, overrides, pytree
from candelabra import library as _library  # noqa: F401  (a package is imported before its modules)
from candelabra.library.aten_dispatch import operator_of
from candelabra.python_dispatch import TorchDispatchMode

from ..codegen import PyTreeCodeGen, PyTreeInfo
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_aggregate

__all__ = ["get_proxy_mode", "make_fx"]

#: Methods that tell a program what is in a tensor: what follows from it would be the same for ever.
_ASKING = frozenset(
    {"item", "tolist", "numpy", "__array__", "__bool__", "__int__", "__float__", "__index__", "__complex__"}
)


class _Refusing(overrides.TorchFunctionMode):
    """Raises where the program asks what is in a tensor that another run may compute otherwise."""

    def __init__(self, recorder: ProxyMode) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in _ASKING and args and isinstance(args[0], Tensor) and self.recorder.is_variable(args[0]):
            raise RuntimeError(
                f"make_fx: the program asks for the value of a tensor with {name}(), which is not always the same; the graph would have that of "
                "this run for ever"
            )
        return func(*args, **({} if kwargs is None else kwargs))


class ProxyMode(TorchDispatchMode):
    """Records operators in a graph. Tensors are known by their identity, and else by their
    memory.
    """

    def __init__(self, decompositions: dict[Any, Callable[..., Any]]) -> None:
        super().__init__()
        self.graph = Graph()
        self.root = nn.Module()
        self.decompositions = decompositions
        self._nodes: dict[int, Node] = {}
        self._places: dict[Any, Node] = {}
        self._storages: dict[int, Any] = {}
        #: Keeps all tensors alive, so that identities stay theirs.
        self._kept: list[Tensor] = []

    def note(self, tensor: Tensor, node: Node) -> None:
        """Note that a tensor is the value of a node."""
        self._nodes[id(tensor)] = node
        self._kept.append(tensor)
        self._places[_place(tensor)] = node
        storage = tensor.untyped_storage()
        self._storages[id(storage)] = storage

    def node_of(self, tensor: Tensor) -> Node | None:
        """Return the node of a tensor; None if it does not depend on the arguments.

        Raises
        ------
        RuntimeError
            If it is a view of one that does, made where the graph does not see it.
        """
        found = self._nodes.get(id(tensor)) or self._places.get(_place(tensor))
        if found is None and id(tensor.untyped_storage()) in self._storages:
            raise RuntimeError("make_fx: a tensor is a view that no recorded operator has made")
        return found

    def is_variable(self, tensor: Tensor) -> bool:
        """Return whether the value of a tensor depends on the arguments or on random numbers."""
        node = self.node_of(tensor)
        waiting = [] if node is None else [node]
        seen = set(waiting)
        for each in waiting:
            if each.op == "placeholder" or each.is_impure():
                return True
            waiting += [used for used in each.all_input_nodes if used not in seen]
            seen.update(each.all_input_nodes)
        return False

    def argument(self, value: Any) -> Any:
        """Return what stands for a value in the arguments of a node."""
        if not isinstance(value, Tensor):
            return value
        node = self.node_of(value)
        if node is None:
            kind = "_param_constant" if isinstance(value, nn.Parameter) else "_tensor_constant"
            number = 0
            while hasattr(self.root, f"{kind}{number}"):
                number += 1
            setattr(self.root, f"{kind}{number}", value)
            node = self.graph.get_attr(f"{kind}{number}")
            self.note(value, node)
        return node

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = {} if kwargs is None else kwargs
        overload, func = func, operator_of(func)
        # A table has operators, or overloads of them.
        for known in (overload, func):
            if known in self.decompositions:
                with self:
                    return self.decompositions[known](*args, **kwargs)
        node_args, node_kwargs = map_aggregate(args, self.argument), map_aggregate(kwargs, self.argument)
        result = func(*args, **kwargs)
        node = self.graph.call_function(func, node_args, node_kwargs)
        if isinstance(result, Tensor):
            self.note(result, node)
        elif isinstance(result, list | tuple):
            for position, entry in enumerate(result):
                if isinstance(entry, Tensor):
                    self.note(entry, self.graph.call_function(operator.getitem, (node, position)))
        return result


def _place(tensor: Tensor) -> Any:
    return (
        id(tensor.untyped_storage()), tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype,
    )  # fmt: skip


_current: list[ProxyMode] = []


def get_proxy_mode() -> ProxyMode | None:
    """Return what records operators now, or None."""
    return _current[-1] if _current else None


def make_fx(
    f: Callable[..., Any],
    decomposition_table: dict[Any, Callable[..., Any]] | None = None,
    tracing_mode: str = "real",
) -> Callable[..., GraphModule]:
    """Return a function that runs `f` on some arguments and returns a module of the operators it
    called.

    Layers, and backward passes in `f`, become the operators that they consist of. The program may
    branch on shapes: the graph is for arguments of the same shapes. Tensors that it takes from
    elsewhere become constants.

    Parameters
    ----------
    f
        The function.
    decomposition_table
        Functions by operator, which are traced in place of it.
    tracing_mode
        ``"real"``: the function runs on its arguments.

    Raises
    ------
    ValueError
        For another mode: sizes are never symbolic.
    RuntimeError
        If the program asks for the value of a tensor that depends on the arguments or on random
        numbers.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.fx.experimental.proxy_tensor import make_fx
    >>> made = make_fx(lambda x: (x * x).sum())(candelabra.ones(3))
    >>> print(made.code)
    <BLANKLINE>
    <BLANKLINE>
    <BLANKLINE>
    def forward(self, x_1):
        mul = candelabra.mul(x_1, x_1);  x_1 = None
        sum_1 = candelabra.sum(mul);  mul = None
        return sum_1
    <BLANKLINE>
    """
    if tracing_mode != "real":
        raise ValueError(
            f"make_fx: tracing_mode={tracing_mode!r} is not available, because sizes are never symbolic; 'real' runs the function"
        )

    def trace(*args: Any) -> GraphModule:
        mode = ProxyMode(dict(decomposition_table or {}))
        leaves, spec = pytree.tree_flatten(list(args))
        names = _names_of(f, args)
        for name, leaf in zip(names, leaves, strict=True):
            node = mode.graph.placeholder(name)
            if isinstance(leaf, Tensor):
                mode.note(leaf, node)
        _current.append(mode)
        try:
            with _Refusing(mode), mode:
                result = f(*args)
        finally:
            _current.pop()
        results, out_spec = pytree.tree_flatten(result)
        values = [mode.argument(value) for value in results]
        if all(child.is_leaf() for child in spec.children()) and out_spec.is_leaf():
            mode.graph.output(values[0])
        else:
            mode.graph._codegen = PyTreeCodeGen(PyTreeInfo([f"arg{k}" for k in range(len(args))], spec, out_spec))
            mode.graph.output(values)
        return GraphModule(mode.root, mode.graph, getattr(f, "__name__", type(f).__name__))

    return trace


def _names_of(f: Callable[..., Any], args: tuple[Any, ...]) -> list[str]:
    """Return the names of the placeholders, made of those of the parameters."""
    try:
        parameters = list(inspect.signature(f).parameters)
    except (TypeError, ValueError):
        parameters = []
    names = []
    for position, arg in enumerate(args):
        name = parameters[position] if position < len(parameters) else f"arg{position}"
        names += [f"{name}_{k + 1}" for k in range(len(pytree.tree_leaves(arg)))]
    return names
