"""Nodes: the steps of a graph, with their arguments and users."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import candelabra
from candelabra import _C

from .immutable_collections import immutable_dict, immutable_list
from .naming import is_ours, qualified_name, snake_case, type_text

if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["Argument", "Node", "Target", "base_types", "has_side_effect", "map_aggregate", "map_arg"]

#: What a node calls: a function, or the name of a method, attribute or module.
Target = Callable[..., Any] | str
#: What a node is called with: constants, nodes, and containers of them.
Argument = Any

base_types = (
    str,
    int,
    float,
    bool,
    complex,
    type(None),
    type(...),
    candelabra.dtype,
    candelabra.Tensor,
    candelabra.device,
    candelabra.memory_format,
    candelabra.layout,
)

LEGAL_OPS = frozenset({"call_function", "call_method", "call_module", "get_attr", "output", "placeholder", "root"})

_Function = TypeVar("_Function", bound=Callable[..., Any])

#: Functions whose calls stay in a graph even if nothing uses their results.
_SIDE_EFFECTS: set[Any] = {
    candelabra._assert,
    candelabra.bernoulli,
    candelabra.multinomial,
    candelabra.normal,
    candelabra.rand,
    candelabra.rand_like,
    candelabra.randint,
    candelabra.randint_like,
    candelabra.randn,
    candelabra.randn_like,
    candelabra.randperm,
    candelabra.set_grad_enabled,
    operator.delitem,
    operator.setitem,
}
_RANDOM = frozenset(
    {
        "bernoulli",
        "multinomial",
        "normal",
        "rand",
        "rand_like",
        "randint",
        "randint_like",
        "randn",
        "randn_like",
        "randperm",
    }
)


def has_side_effect(fn: _Function) -> _Function:
    """Mark a function, whose calls then stay in a graph although nothing uses their results; a
    decorator.

    Examples
    --------
    >>> from candelabra import fx
    >>> @fx.has_side_effect
    ... def log(x):
    ...     print(x)
    """
    _SIDE_EFFECTS.add(fn)
    return fn


def map_aggregate(a: Argument, fn: Callable[[Argument], Argument]) -> Argument:
    """Return an argument with `fn` applied to everything in its containers.

    Examples
    --------
    >>> from candelabra.fx.node import map_aggregate
    >>> map_aggregate(({"a": 1}, slice(2, 3)), lambda x: None if x is None else x * 2)
    ({'a': 2}, slice(4, 6, None))
    """
    kind = type(a)
    if isinstance(a, tuple):
        mapped = [map_aggregate(entry, fn) for entry in a]
        if hasattr(a, "_fields"):
            return kind(*mapped)
        return tuple(mapped) if kind is tuple or isinstance(a, candelabra.Size) else _rebuilt(kind, mapped)
    if isinstance(a, list):
        return immutable_list([map_aggregate(entry, fn) for entry in a])
    if isinstance(a, dict):
        return immutable_dict({key: map_aggregate(value, fn) for key, value in a.items()})
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


def _rebuilt(kind: type, entries: list[Any]) -> tuple[Any, ...]:
    # Results such as candelabra.return_types.max are tuples of their own type.
    try:
        return kind(entries)
    except TypeError:
        return tuple(entries)


def map_arg(a: Argument, fn: Callable[[Node], Argument]) -> Argument:
    """Return an argument with `fn` applied to each node in it.

    Examples
    --------
    >>> from candelabra import fx
    >>> graph = fx.Graph()
    >>> x = graph.placeholder("x")
    >>> fx.map_arg([x, 1], lambda node: node.name)
    ['x', 1]
    """
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda entry: fn(entry) if isinstance(entry, Node) else entry)


def _argument_text(arg: Any) -> str:
    if isinstance(arg, list):
        return "[" + ", ".join(map(_argument_text, arg)) + "]"
    if isinstance(arg, tuple):
        return "(" + ", ".join(map(_argument_text, arg)) + ("," if len(arg) == 1 else "") + ")"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{key}: {_argument_text(value)}" for key, value in arg.items()) + "}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


class Node:
    """One step of a graph.

    Attributes
    ----------
    op : str
        ``placeholder`` (a parameter), ``get_attr`` (an attribute of the module), ``call_function``,
        ``call_method``, ``call_module``, or ``output``.
    name : str
        The name of its value in generated code.
    target : callable or str
        The function; the name of the method, which is called on the first argument; or the dotted
        name of the module or attribute.
    args, kwargs : tuple, dict
        Constants, nodes, and containers of them. Assign new ones to change them.
    users : dict
        The nodes that have this one in their arguments, as keys.
    type : type or None
        An annotation.
    meta : dict
        What programs note of the node.
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        return_type: Any | None = None,
    ) -> None:
        if op not in LEGAL_OPS:
            raise AssertionError(f"op {op!r} is not in _legal_ops")
        if op == "call_function":
            if not callable(target):
                raise ValueError(
                    f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target).__name__} but a Callable is expected"
                )
        elif not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target).__name__} but a str is expected"
            )
        self.graph = graph
        self.name = name
        self.op = op
        self.target = target
        self.type = return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._input_nodes: dict[Node, None] = {}
        self._repr_fn: Callable[[Node], str] | None = None
        self._erased = False
        self._prev = self._next = self
        self._position = 0
        self._update_args_kwargs(args, kwargs)

    # ---- arguments

    @property
    def args(self) -> tuple[Argument, ...]:
        """The positional arguments."""
        return self._args

    @args.setter
    def args(self, a: tuple[Argument, ...]) -> None:
        self._update_args_kwargs(a, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        """The arguments by name."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k: dict[str, Argument]) -> None:
        self._update_args_kwargs(self._args, k)

    def _update_args_kwargs(self, args: Any, kwargs: Any) -> None:
        if not isinstance(args, list | tuple) or not isinstance(kwargs, dict):
            raise TypeError(
                f"the arguments of a Node are a tuple and a dict, but got {type(args).__name__} and {type(kwargs).__name__}"
            )
        for node in self._input_nodes:
            node.users.pop(self, None)
        self._input_nodes = {}

        def note(node: Node) -> Node:
            self._input_nodes[node] = None
            node.users[self] = None
            return node

        self._args: tuple[Argument, ...] = map_arg(tuple(args), note)
        self._kwargs: dict[str, Argument] = map_arg(kwargs, note)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes in the arguments, each once."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replace one positional argument."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Insert a positional argument before the one of that index."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Replace or add an argument by name."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Use another node wherever `old_input` is in the arguments."""

        def replace(node: Node) -> Node:
            return new_input if node is old_input else node

        for hook in _replace_hooks(self.graph):
            hook(old=old_input, new=new_input.name, user=self)
        self._update_args_kwargs(map_arg(self._args, replace), map_arg(self._kwargs, replace))

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] | None = None,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Use another node wherever this one is an argument, and return the users that changed.

        Parameters
        ----------
        replace_with
            The other node.
        delete_user_cb
            Returns whether a user is to change; all are by default.
        propagate_meta
            Whether to copy the meta of this node to the other, which has none yet.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but replace_with already has .meta keys"
                )
            replace_with.meta.update(self.meta)
        changed = [user for user in self.users if delete_user_cb is None or delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    # ---- order

    @property
    def next(self) -> Node:
        """The node after this one."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Move a node of the same graph before this one."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if self is x:
            _C.warn("Trying to prepend a node to itself. This behavior has no effect on the graph.")
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x
        self.graph._order_is_known = False

    def append(self, x: Node) -> None:
        """Move a node of the same graph after this one."""
        if self._next is not x:
            self._next.prepend(x)

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def __lt__(self, other: Node) -> bool:
        return self.graph._position_of(self) < self.graph._position_of(other)

    def __gt__(self, other: Node) -> bool:
        return other < self

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return self is other or other < self

    # ---- what is known of it

    @property
    def stack_trace(self) -> str | None:
        """Where the program made the node, if the tracer recorded it."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def is_impure(self, impure_random: bool = True) -> bool:
        """Return whether the node has an effect besides its value: then dead code does not include
        it.

        Unlike PyTorch's, operations in place and those with ``out=`` have one.
        """
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_module":
            owner = self.graph.owning_module
            if owner is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            return bool(getattr(owner.get_submodule(self.target), "_is_impure", False))
        if self.op not in ("call_function", "call_method"):
            return False
        name = self.target if isinstance(self.target, str) else getattr(self.target, "__name__", "")
        if (name.endswith("_") and not name.endswith("__") and name not in ("and_", "or_", "not_", "is_")) or (
            self.kwargs.get("inplace") or self.kwargs.get("out") is not None
        ):
            return True
        if self.op == "call_method":
            return name in _INPLACE_METHODS
        if not impure_random and name in _RANDOM and is_ours(self.target):
            return False
        return self.target in _SIDE_EFFECTS or self.target in _INPLACE_OPERATORS

    @staticmethod
    def _pretty_print_target(target: Any) -> str:
        if isinstance(target, str):
            return target
        if is_ours(target):
            return qualified_name(target)
        name = getattr(target, "__name__", None)
        if name is None:
            return repr(target)
        if getattr(builtins, name, None) is target:
            return f"builtins.{name}"
        if getattr(operator, name, None) is target:
            return f"operator.{name}"
        return qualified_name(target)

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """Return a line that describes the node.

        Parameters
        ----------
        placeholder_names
            A list to which the text of a placeholder is appended.
        maybe_return_typename
            A list whose first entry is set to the annotation of the output.
        include_tensor_metadata
            Whether to add the shape and dtype that `ShapeProp` has noted.
        """
        annotation = f"{type_text(self.type)} " if self.type is not None else ""
        if include_tensor_metadata and "tensor_meta" in self.meta:
            known = self.meta["tensor_meta"]
            if hasattr(known, "shape"):
                annotation = f"{known.dtype}{list(known.shape)} "
        head = f"%{self.name} : {annotation}[num_users={len(self.users)}] = {self.op}"
        target = self._pretty_print_target(self.target)
        if self.op == "placeholder":
            if placeholder_names is not None:
                placeholder_names.append(f"{self.target}: {type_text(self.type)}" if self.type else str(self.target))
            default = f"(default={self.args[0]})" if self.args else ""
            return f"{head}[target={target}]{default}"
        if self.op == "get_attr":
            return f"{head}[target={target}]"
        if self.op == "output":
            if self.type is not None and maybe_return_typename:
                maybe_return_typename[0] = f" -> {type_text(self.type)}"
            return f"return {self.args[0]}"
        return (
            f"{head}[target={target}](args = {_argument_text(self.args)}, kwargs = {_argument_text(dict(self.kwargs))})"
        )

    def normalized_arguments(
        self,
        root: Any,
        arg_types: tuple[Any, ...] | None = None,
        kwarg_types: dict[str, Any] | None = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> Any:
        """Return the arguments as the signature of the target orders them, or None if it is
        unknown.
        """
        from .operator_schemas import normalize_function, normalize_module

        target: Any = self.target
        if self.op == "call_function":
            return normalize_function(
                target, self.args, self.kwargs, arg_types, kwarg_types, normalize_to_only_use_kwargs
            )
        if self.op == "call_module":
            return normalize_module(root, target, self.args, self.kwargs, normalize_to_only_use_kwargs)
        return None

    def __repr__(self) -> str:
        return self.name if self._repr_fn is None else self._repr_fn(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Node:
        raise TypeError("a Node belongs to its Graph: copy the Graph, or use Graph.node_copy")


#: Operators that Python's ``+=`` and its relatives call.
_INPLACE_OPERATORS = frozenset({
    operator.iadd, operator.iand, operator.iconcat, operator.ifloordiv, operator.ilshift, operator.imatmul, operator.imod,
    operator.imul, operator.ior, operator.ipow, operator.irshift, operator.isub, operator.itruediv, operator.ixor,
})  # fmt: skip


_INPLACE_METHODS = frozenset(
    {"__setitem__", "__delitem__", *(f"__{function.__name__}__" for function in _INPLACE_OPERATORS)}
)


def _replace_hooks(graph: Graph) -> Sequence[Callable[..., Any]]:
    return getattr(graph.owning_module, "_replace_hooks", None) or ()


def target_text(target: Target | None) -> str:
    """Return the name that a node is called by, made of its target."""
    if callable(target):
        name = target.__name__ if hasattr(target, "__name__") else type(target).__name__
    else:
        name = str(target)
    if name.startswith("__") and name.endswith("__"):
        name = name[2:-2]
    return snake_case(name.rpartition("::")[2])


def nodes_in(arguments: Iterable[Any]) -> list[Node]:
    """Return the nodes in some arguments, in order, each once."""
    found: dict[Node, None] = {}
    for argument in arguments:
        map_arg(argument, lambda node: found.setdefault(node) or node)
    return list(found)
