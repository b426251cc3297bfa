"""Proxies: values of nodes, on which a program that is traced runs."""

from __future__ import annotations

import copy
import dataclasses
import dis
import enum
import operator
import sys
import traceback as python_traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

import candelabra
from candelabra import Tensor, overrides

from . import traceback
from .immutable_collections import immutable_dict, immutable_list
from .node import Argument, Node, Target, base_types, map_aggregate, map_arg, target_text
from .operator_schemas import check_for_mutable_operation

if TYPE_CHECKING:
    from .graph import Graph

__all__ = [
    "Attribute", "GraphAppendingTracer", "ParameterProxy", "Proxy", "Scope", "ScopeContextManager", "TraceError", "TracerBase",
]  # fmt: skip

_HERE = __file__.rpartition("/")[0]

BINARY = (
    "eq", "ne", "lt", "gt", "le", "ge", "add", "sub", "mul", "floordiv", "truediv", "mod", "pow", "lshift", "rshift", "and_", "or_",
    "xor", "getitem", "matmul",
)  # fmt: skip
UNARY = ("pos", "neg", "invert")
#: Binary operators whose right operand may be the proxy.
REFLECTABLE = (
    "add", "sub", "mul", "floordiv", "truediv", "mod", "pow", "lshift", "rshift", "and_", "or_", "xor", "matmul",
)  # fmt: skip


class TraceError(ValueError):
    """The program does what cannot be traced."""


class Scope:
    """The module that is traced: its path and its type."""

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path = module_path
        self.module_type = module_type


class ScopeContextManager:
    """Sets the scope of a tracer to another one, and restores it."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._before = copy.copy(scope)
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type
        self._scope = scope

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._scope.module_path = self._before.module_path
        self._scope.module_type = self._before.module_type


class TracerBase:
    """Makes nodes of what a program does with proxies."""

    graph: Graph
    #: Whether nodes get the stack trace of the program.
    record_stack_traces: bool = False
    #: Whether functions that change tensors raise an error.
    check_mutable_operations: bool = False
    #: Whether ``assert`` statements about proxies are traced.
    trace_asserts: bool = False
    #: Whether buffers of modules are proxies too, like parameters.
    proxy_buffer_attributes: bool = False
    #: The method of the root module that is traced.
    traced_func_name: str = "forward"
    scope: Scope
    #: The modules that are being called, by path.
    module_stack: OrderedDict[str, tuple[str, Any]]

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: Any | None = None,
    ) -> Node:
        """Make a node of the graph; the arguments are those of a node."""
        if kind == "call_function" and self.check_mutable_operations:
            check_for_mutable_operation(target, args, kwargs)  # type: ignore[arg-type]
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        if traceback.has_preserved_node_meta():
            node.meta.update(traceback.get_current_meta())
        stack = getattr(self, "module_stack", None)
        if stack and "nn_module_stack" not in node.meta:
            node.meta["nn_module_stack"] = copy.copy(stack)
        return node

    def proxy(self, node: Node) -> Proxy:
        """Return the proxy of a node."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any | None = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Make a node, and return its proxy.

        Parameters
        ----------
        kind, target, args, kwargs
            See `Node`; the arguments may have proxies in them.
        name, type_expr
            The name that is wished for, and an annotation.
        proxy_factory_fn
            Makes the proxy of the node; by default `proxy`.
        """
        node_args, node_kwargs = self.create_arg(args), self.create_arg(kwargs)
        if not isinstance(node_args, tuple) or not isinstance(node_kwargs, dict):
            raise AssertionError("create_arg must return a tuple for a tuple, and a dict for a dict")
        node = self.create_node(kind, target, node_args, node_kwargs, name, type_expr)
        proxy = self.proxy(node) if proxy_factory_fn is None else proxy_factory_fn(node)
        if self.record_stack_traces and not node.stack_trace:
            frames = [frame for frame in python_traceback.extract_stack() if not frame.filename.startswith(_HERE)]
            node.stack_trace = "".join(python_traceback.format_list(frames)).strip()
        return proxy

    def create_arg(self, a: Any) -> Argument:
        """Return what stands for a value in the arguments of a node.

        Raises
        ------
        NotImplementedError
            If the value is nothing that arguments can have.
        """
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            entries = [self.create_arg(entry) for entry in a]
            return type(a)(*entries) if hasattr(a, "_fields") else tuple(entries)
        if isinstance(a, list):
            return immutable_list([self.create_arg(entry) for entry in a])
        if isinstance(a, dict):
            return self._dict_argument(a)
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, range):
            return range(a.start, a.stop, a.step)
        if isinstance(a, (base_types, enum.Enum)) or a is ...:
            return a
        if dataclasses.is_dataclass(a) and not isinstance(a, type):
            fields = {field.name: self.create_arg(getattr(a, field.name)) for field in dataclasses.fields(a)}
            return self.create_node("call_function", type(a), (), fields)
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _dict_argument(self, entries: dict[Any, Any]) -> Argument:
        made = {}
        for key, value in entries.items():
            if not isinstance(key, str):
                key = self.create_arg(key)

                def refuse(node: Node, key: Any = key) -> Node:
                    raise RuntimeError(
                        f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {key}"
                    )

                map_arg(key, refuse)
            made[key] = self.create_arg(value)
        return immutable_dict(made)

    def to_bool(self, obj: Proxy) -> bool:
        """Return the truth of a proxy, which a program asks for; subclasses may know it.

        Raises
        ------
        TraceError
            Always, because it is not known.
        """
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Return an iterator over a proxy; subclasses may know its length.

        Raises
        ------
        TraceError
            Always, because it is not known.
        """
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or **kwargs function "
            "argument. See the torch.fx docs on pytorch.org for a more detailed explanation of what types of control flow can be traced, and "
            "check out the Proxy docstring for help troubleshooting Proxy iteration errors"
        )

    def keys(self, obj: Proxy) -> Any:
        """Return what ``keys`` of a proxy is, such as for ``**``; subclasses may know them."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Appends to a graph: the tracer of proxies that are made of nodes by hand."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = OrderedDict()


class Proxy:
    """The value of a node. What a program does with it becomes nodes.

    Attributes become nodes when they are used, calls of methods and of functions of the package at
    once. A program that asks for its truth, its length or its elements cannot be traced, because
    they are not known. Assigning to several names is possible: ``a, b = proxy``.

    Parameters
    ----------
    node : Node
        The node.
    tracer : TracerBase, optional
        Makes the nodes; by default they are appended to the node's graph.

    Examples
    --------
    >>> from candelabra import fx
    >>> graph = fx.Graph()
    >>> x = fx.Proxy(graph.placeholder("x"))
    >>> _ = graph.output((x + 1).relu().node)
    >>> [node.name for node in graph.nodes]
    ['x', 'add', 'relu', 'output']
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        if k in ("node", "tracer"):  # not set yet, as while it is copied
            raise AttributeError(k)
        return Attribute(self, k)

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        # Copy the attributes, not the graph: the node stays the same.
        new = Proxy.__new__(type(self))
        memo[id(self)] = new
        new.__dict__.update(self.__dict__)
        return new

    if TYPE_CHECKING:

        def __getitem__(self, key: Any) -> Proxy: ...

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __iter__(self) -> Iterator[Any]:
        frame = _caller()
        instruction = _instruction(frame)
        if instruction is not None and instruction.opname == "UNPACK_SEQUENCE":
            return (self[position] for position in range(instruction.argval))
        return self.tracer.iter(self)

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        message = _message_of_assert(_caller()) if self.tracer.trace_asserts else None
        if message is None:
            return self.tracer.to_bool(self)
        self.tracer.create_proxy("call_function", candelabra._assert, (self, message), {})
        return True

    def keys(self) -> Any:
        """Return what ``keys`` of the value is."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call torch.fx.wrap('len') "
            "at module scope"
        )

    @classmethod
    def __torch_function__(
        cls, orig_method: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = {} if kwargs is None else kwargs
        tracers: dict[TracerBase, None] = {}

        def note(a: Any) -> Any:
            if isinstance(a, Proxy):
                tracers[a.tracer] = None
            return a

        map_aggregate(args, note)
        map_aggregate(kwargs, note)
        if len(tracers) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {list(tracers)} while trying to trace operations {orig_method}"
            )
        (tracer,) = tracers
        if _is_only_a_method(orig_method):
            return tracer.create_proxy("call_method", orig_method.__name__, args, kwargs)
        name = target_text(orig_method)
        return tracer.create_proxy("call_function", orig_method, args, kwargs, name=name)


def _is_only_a_method(function: Any) -> bool:
    # Operators are functions and methods at once.
    if isinstance(function, candelabra._C.Operator):
        name = function.name
        return getattr(candelabra, name, None) is not function and getattr(Tensor, name, None) is function
    return (
        overrides.is_tensor_method_or_property(function)
        and getattr(candelabra, function.__name__, None) is not function
    )


class Attribute(Proxy):
    """An attribute of a proxy: a method if it is called, and a node else, which is made when it
    is used.
    """

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node of the attribute's value."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """The proxy of a parameter whose shape is known: programs may ask for it."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Tensor) -> None:
        super().__init__(node, tracer)
        self.param = param
        self.name = name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        """The shape of the parameter."""
        return self.param.shape

    def size(self, *args: Any) -> Any:
        """Return the shape, or the size along one dimension."""
        return self.param.size(*args)

    def dim(self) -> int:
        """Return the number of dimensions."""
        return self.param.dim()

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.param.ndim

    def numel(self) -> int:
        """Return the number of elements."""
        return self.param.numel()

    def nelement(self) -> int:
        """Return the number of elements."""
        return self.param.numel()


def _define_operator(name: str, reflected: bool) -> None:
    target = getattr(operator, name)
    plain = name.rstrip("_")

    def method(*args: Any, **kwargs: Any) -> Proxy:
        return args[0].tracer.create_proxy("call_function", target, args, kwargs)

    def reflected_method(self: Proxy, rhs: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", target, (rhs, self), {})

    made = reflected_method if reflected else method
    made.__name__ = f"__{'r' if reflected else ''}{plain}__"
    made.__qualname__ = f"Proxy.{made.__name__}"
    setattr(Proxy, made.__name__, made)


for _name in (*BINARY, *UNARY):
    _define_operator(_name, reflected=False)
for _name in REFLECTABLE:
    _define_operator(_name, reflected=True)
# Comparing by value makes nodes, but proxies are keys.
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]


# ---- the code of the program that uses a proxy


def _caller() -> FrameType:
    """Return the frame that uses the proxy: the first outside of this file."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    if frame is None:
        raise RuntimeError("a proxy is used by no frame")
    return frame


def _instruction(frame: FrameType) -> dis.Instruction | None:
    return next((each for each in dis.get_instructions(frame.f_code) if each.offset == frame.f_lasti), None)


def _message_of_assert(frame: FrameType) -> str | None:
    """Return the message of the ``assert`` whose test runs: '' if it is not a constant, and None if
    there is no ``assert``.
    """
    later = [each for each in dis.get_instructions(frame.f_code) if each.offset >= frame.f_lasti]
    for position, each in enumerate(later[:4]):
        if each.opname.startswith("POP_JUMP"):
            raised = later[position + 1 : position + 3]
            if not raised or raised[0].opname not in ("LOAD_ASSERTION_ERROR", "LOAD_COMMON_CONSTANT"):
                return None
            has_text = len(raised) == 2 and raised[1].opname == "LOAD_CONST" and isinstance(raised[1].argval, str)
            return raised[1].argval if has_text else ""
    return None
