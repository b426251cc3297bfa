"""Nodes of the tape.

Each recorded operation creates a node. Its edges say where the gradients of its inputs go. An edge
is

- ``None`` if the input needs no gradient;
- a tensor: a leaf, which accumulates the gradient in ``grad``;
- a node: the node that created the input, if the input is its first (usually only) result;
- a tuple ``(node, number)``: the node that created the input, and the output number of the input.

``Tensor._edge`` returns the edge of a tensor. Sequence numbers decrease: a node has a lower
``_sequence`` than the nodes it depends on. The engine always processes the pending node with the
lowest number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from candelabra import _C, Tensor

from .hooks import leaf_hooks, node_hooks, register

if TYPE_CHECKING:
    from collections.abc import Callable

    from .hooks import NodeHooks, RemovableHandle

Edge = Any

#: Returns the sequence number of the next node. Autograd functions call it directly.
next_sequence: Callable[[], int] = _C.next_sequence

FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). "
    "Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you "
    "need to backward through the graph a second time or if you need to access saved tensors after calling backward."
)


class Node:
    """The record of one operation on the tape.

    ``_single`` subclasses have a slot ``_edge`` and a method ``backward(grad)`` that returns one
    gradient. Other subclasses have a slot ``_edges`` and a method ``backward(grad, edges)`` that
    returns one gradient per edge. A node with several differentiable results (``_outputs`` > 1)
    gets a list of gradients, with None for undefined ones.
    """

    __slots__ = ("__weakref__", "_hooks", "_metadata", "_saved", "_sequence")

    _sequence: int
    _hooks: NodeHooks | None
    _saved: Any
    _metadata: dict[Any, Any]

    _outputs = 1
    _single = False
    #: Whether this is a node of a partial view, whose gradients are assembled (see
    #: :mod:`.assembly`).
    _is_part = False
    #: Names of the tensors in `_saved`, which alternates tensors and versions.
    _saved_names: tuple[str, ...] = ()
    #: Makes the :class:`~.graph.SavedTensor` of a node and a position in `_saved`.
    _saved_tensor: Callable[[Node, int], Any]

    def _saved_value(self, name: str) -> Any:
        """Return a saved tensor; raise if it was freed or changed since."""
        if self._saved is None:
            raise_freed(self)
        position = 2 * self._saved_names.index(name)
        tensor, version = self._saved[position : position + 2]
        hooks = self._hooks
        if hooks is not None and hooks.prepare is not None and position in hooks.prepare.histories:
            tensor, version = hooks.prepare.entry(self, position), None
        if isinstance(tensor, Tensor) and version is not None and tensor._version != version:
            raise_modified(self, tensor, version, name == "result")
        return own_result(tensor, self) if name == "result" else tensor

    def backward(self, *arguments: Any) -> Any:
        """Return the gradients of the inputs, given the gradients of the results."""
        raise NotImplementedError(f"{type(self).__name__} has no backward")

    def all_edges(self) -> tuple[Edge, ...]:
        """Return the edges of the node, one per input."""
        raise NotImplementedError(f"{type(self).__name__} has no edges")

    def name(self) -> str:
        """Return the name of the operation, such as ``"MulBackward0"``.

        Examples
        --------
        >>> import candelabra
        >>> x = candelabra.ones(2, requires_grad=True)
        >>> (x * 2).grad_fn.name()
        'MulBackward0'
        """
        return type(self).__name__

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The nodes that receive the gradients of the inputs, each with an output number."""
        return tuple(resolve(edge) for edge in self.all_edges())

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for arbitrary data about this node."""
        try:
            return self._metadata
        except AttributeError:
            self._metadata = {}
            return self._metadata

    def _sequence_nr(self) -> int:
        return -self._sequence

    @property
    def _input_metadata(self) -> tuple[Any, ...]:
        """A tuple with one entry per output."""
        return (None,) * self._outputs

    def __call__(self, *gradients: Any) -> Any:
        """Return the gradients of the inputs, given those of the results."""
        if len(gradients) != self._outputs:
            raise TypeError(f"{self.name()} expected {self._outputs} arguments, got {len(gradients)} arguments instead")
        hooks = self._hooks
        packed = None if hooks is None or hooks.prepare is None else hooks.prepare(self)
        try:
            gradient = list(gradients) if self._outputs > 1 else gradients[0]
            if self._single:
                return self.backward(gradient)
            made = tuple(self.backward(gradient, self.all_edges()))
        finally:
            if packed is not None:
                self._saved = packed
        return made[0] if len(made) == 1 else made

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(grad_inputs, grad_outputs)`` after this node's gradients are computed.

        Parameters
        ----------
        hook
            Takes two tuples of tensors or None. It may return a replacement for
            ``grad_inputs``.

        Returns
        -------
        RemovableHandle
            Call its ``remove()`` to remove the hook.

        Examples
        --------
        >>> import candelabra
        >>> x = candelabra.ones(2, requires_grad=True)
        >>> y = (x * 2).sum()
        >>> handle = y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 10,))
        >>> y.backward()
        >>> x.grad
        tensor([20., 20.])
        """
        return register(node_hooks(self).after, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(grad_outputs)`` before this node runs; it may return a replacement tuple."""
        return register(node_hooks(self).before, hook)


_C.set_node_type(Node)


class SingleNode(Node):
    """A node with one differentiable input."""

    __slots__ = ("_edge",)

    _edge: Edge
    _single = True

    def all_edges(self) -> tuple[Edge, ...]:
        return (self._edge,)


class MultiNode(Node):
    """A node with several differentiable inputs."""

    __slots__ = ("_edges",)

    _edges: tuple[Edge, ...]

    def all_edges(self) -> tuple[Edge, ...]:
        return self._edges


_C.set_edge_slot(SingleNode, "_edge", False)
_C.set_edge_slot(MultiNode, "_edges", True)


class AccumulateGrad:
    """PyTorch's view of a leaf in the graph: accumulates gradients into ``variable.grad``.

    The engine accumulates into leaves directly. This object is created on demand, once per leaf.
    """

    __slots__ = ("__weakref__", "_metadata", "after", "before", "variable")

    def __init__(self, variable: Tensor) -> None:
        self.variable = variable
        self.before: dict[int, Callable[..., Any]] = {}
        self.after: dict[int, Callable[..., Any]] = {}
        self._metadata: dict[Any, Any] = {}

    next_functions: tuple[tuple[Any, int], ...] = ()

    def name(self) -> str:
        """Return the name of the operation."""
        return "AccumulateGrad"

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for arbitrary data about this node."""
        return self._metadata

    def __repr__(self) -> str:
        return f"<AccumulateGrad object at {id(self):#x}>"

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(grad_inputs, grad_outputs)`` after the leaf accumulated a gradient."""
        return self._register(self.after, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(grad_outputs)`` before the leaf's gradient is accumulated.

        The hook may return a replacement tuple.
        """
        return self._register(self.before, hook)

    def _register(self, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> RemovableHandle:
        leaf_hooks(self.variable).hold(self)
        return register(hooks, hook)


def accumulate_node(leaf: Tensor) -> AccumulateGrad:
    """Return the AccumulateGrad node of a leaf; the same object while it is referenced or has
    hooks.
    """
    hooks = leaf_hooks(leaf)
    made = hooks.active_node()
    if made is None:
        made = AccumulateGrad(leaf)
        hooks.refer(made)
    return made


def resolve(edge: Edge) -> tuple[Any, int]:
    """Return an edge in PyTorch's form, a pair of node and output number."""
    if edge is None:
        return (None, 0)
    if edge.__class__ is tuple:
        return edge
    if isinstance(edge, Tensor):
        return (accumulate_node(edge), 0)
    return (edge, 0)


def raise_freed(node: Node) -> NoReturn:
    """Raise the error for a graph whose saved tensors are freed."""
    raise RuntimeError(FREED)


def raise_modified(node: Node, tensor: Tensor, expected: int, own: bool = False) -> NoReturn:
    """Raise the error for a saved tensor that was changed in place.

    `own` says whether the tensor is a result of `node` rather than an input.
    """
    maker = node if own else tensor.grad_fn
    origin = f", which is output {tensor.output_nr} of {maker.name()}," if maker is not None else ""
    kind = str(tensor.dtype).removeprefix("candelabra.")
    raise RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[candelabra.{_TYPE_NAMES.get(kind, kind)} {list(tensor.shape)}]{origin} is at version {tensor._version}; expected version "
        f"{expected} instead. It was saved for {node.name()}. Hint: enable anomaly detection to find the operation that failed to compute "
        "its gradient, with candelabra.autograd.set_detect_anomaly(True)."
    )


_TYPE_NAMES = {
    "float16": "HalfTensor", "bfloat16": "BFloat16Tensor", "float32": "FloatTensor", "float64": "DoubleTensor",
    "complex64": "ComplexFloatTensor", "complex128": "ComplexDoubleTensor", "int64": "LongTensor", "int32": "IntTensor",
    "int16": "ShortTensor", "int8": "CharTensor", "uint8": "ByteTensor", "bool": "BoolTensor",
}  # fmt: skip


def own_result(alias: Tensor, node: Node, number: int = 0) -> Tensor:
    """Reconnect a saved result to its node, for double backward.

    A node saves its own result detached, because the result references the node.
    """
    tensor = alias._detached()
    tensor._set_history(node, number)
    return tensor
