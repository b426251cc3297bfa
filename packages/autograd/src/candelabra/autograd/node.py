"""An entry of the tape.

A node is left behind by one recorded operation. It knows where the gradients of its inputs go next:
its edges. An edge is

- ``None``: this input needs no gradient;
- a tensor: a leaf, whose ``grad`` takes the gradient;
- a node: the node that made the input, when the input is its first (mostly: only) result;
- a tuple ``(node, number)``: the node that made the input, and which of its results the input is.

``Tensor._edge`` gives the edge of a tensor. Nodes are numbered downwards as they are made, so that
everything a node was made from has a higher ``_sequence``, and the next one to be walked over is
always the smallest that waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from candelabra import _C, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from .hooks import NodeHooks, RemovableHandle

Edge = Any

#: The number of the next node. Called as it is by the autograd functions.
next_sequence: Callable[[], int] = _C.next_sequence

FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). "
    "Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you "
    "need to backward through the graph a second time or if you need to access saved tensors after calling backward."
)


class Node:
    """What one recorded operation left behind.

    Subclasses say how gradients pass: ``_single`` ones have one slot ``_edge`` and a method
    ``backward(grad)`` that returns one gradient; the others a slot ``_edges`` and ``backward(grad,
    edges)`` that returns as many gradients as there are edges. A node of several differentiable
    results (``_outputs`` above 1) gets a list of gradients, ``None`` where none arrived.
    """

    __slots__ = ("__weakref__", "_hooks", "_metadata", "_saved", "_sequence")

    _sequence: int
    _hooks: NodeHooks | None
    _saved: Any
    _metadata: dict[Any, Any]

    _outputs = 1
    _single = False
    #: Whether it is that of a view of a part, whose gradients are put together (see
    #: :mod:`.assembly`).
    _is_part = False
    #: The names of what `_saved` holds: tensor and version in turn.
    _saved_names: tuple[str, ...] = ()

    def _saved_value(self, name: str) -> Any:
        """Give a tensor that the node keeps, checked for changes since."""
        hooks = self._hooks
        if hooks is not None and hooks.prepare is not None:
            hooks.prepare(self)
        if self._saved is None:
            raise_freed(self)
        position = 2 * self._saved_names.index(name)
        tensor, version = self._saved[position : position + 2]
        if isinstance(tensor, Tensor) and version is not None and tensor._version != version:
            raise_modified(self, tensor, version, name == "result")
        return own_result(tensor, self) if name == "result" else tensor

    def backward(self, *arguments: Any) -> Any:
        """Turn gradients of the results into gradients of the inputs."""
        raise NotImplementedError(f"{type(self).__name__} has no backward")

    def all_edges(self) -> tuple[Edge, ...]:
        """Where gradients go next, one entry an input."""
        raise NotImplementedError(f"{type(self).__name__} has no edges")

    def name(self) -> str:
        """Name of the operation, such as ``"MulBackward0"``.

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
        """Pairs of the nodes that the gradients of the inputs go to, and of the number of their
        result.
        """
        return tuple(resolve(edge) for edge in self.all_edges())

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for whoever wants to note something about this node."""
        try:
            return self._metadata
        except AttributeError:
            self._metadata = {}
            return self._metadata

    def _sequence_nr(self) -> int:
        return -self._sequence

    @property
    def _input_metadata(self) -> tuple[Any, ...]:
        """As many entries as the operation has results."""
        return (None,) * self._outputs

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Have ``hook(grad_inputs, grad_outputs)`` called after this node's gradients are computed.

        Parameters
        ----------
        hook
            Gets two tuples of tensors or None. It may return a tuple in the place of
            ``grad_inputs``.

        Returns
        -------
        RemovableHandle
            Its ``remove()`` takes the hook away.

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
        from .hooks import node_hooks, register

        return register(node_hooks(self).after, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Have ``hook(grad_outputs)`` called before this node's gradients are computed; it may
        return a tuple in their place.
        """
        from .hooks import node_hooks, register

        return register(node_hooks(self).before, hook)


_C.set_node_type(Node)


class SingleNode(Node):
    """A node of one differentiable input."""

    __slots__ = ("_edge",)

    _edge: Edge
    _single = True

    def all_edges(self) -> tuple[Edge, ...]:
        return (self._edge,)


class MultiNode(Node):
    """A node of several differentiable inputs."""

    __slots__ = ("_edges",)

    _edges: tuple[Edge, ...]

    def all_edges(self) -> tuple[Edge, ...]:
        return self._edges


class AccumulateGrad:
    """The end of the tape at a leaf, as PyTorch shows it: adds what arrives to ``variable.grad``.

    The engine goes to leaves directly; this object is made when it is asked for, once a leaf.
    """

    __slots__ = ("__weakref__", "_metadata", "after", "before", "variable")

    def __init__(self, variable: Tensor) -> None:
        self.variable = variable
        self.before: dict[int, Callable[..., Any]] = {}
        self.after: dict[int, Callable[..., Any]] = {}
        self._metadata: dict[Any, Any] = {}

    next_functions: tuple[tuple[Any, int], ...] = ()

    def name(self) -> str:
        """Name of the operation."""
        return "AccumulateGrad"

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for whoever wants to note something about this node."""
        return self._metadata

    def __repr__(self) -> str:
        return f"<AccumulateGrad object at {id(self):#x}>"

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Have ``hook(grad_inputs, grad_outputs)`` called after the leaf took a gradient."""
        return self._register(self.after, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Have ``hook(grad_outputs)`` called before the leaf takes a gradient; it may return a
        tuple in its place.
        """
        return self._register(self.before, hook)

    def _register(self, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> RemovableHandle:
        from .hooks import leaf_hooks, register

        leaf_hooks(self.variable).hold(self)
        return register(hooks, hook)


def resolve(edge: Edge) -> tuple[Any, int]:
    """Give an edge as a pair of node and number, as PyTorch shows it."""
    if edge is None:
        return (None, 0)
    if edge.__class__ is tuple:
        return edge
    if isinstance(edge, Tensor):
        from .hooks import leaf_hooks

        return (leaf_hooks(edge).accumulate_node(edge), 0)
    return (edge, 0)


def raise_freed(node: Node) -> NoReturn:
    """Raise the error about a graph that was walked already."""
    raise RuntimeError(FREED)


def raise_modified(node: Node, tensor: Tensor, expected: int, own: bool = False) -> NoReturn:
    """Raise the error about a saved tensor (the `node`'s `own` result or an input) that was changed
    in place since.
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
    """Give a saved result back its place on the tape, for gradients of gradients.

    A node keeps its own result apart from the tape, for the result refers to the node.
    """
    tensor = alias._detached()
    tensor._set_history(node, number)
    return tensor
