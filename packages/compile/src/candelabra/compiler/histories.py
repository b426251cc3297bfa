"""Arguments that are results of earlier operations: their graph stays outside of a recording."""

from __future__ import annotations

from typing import Any

from candelabra import _C, Tensor
from candelabra import autograd as _autograd  # noqa: F401  (a package is imported before its modules)
from candelabra.autograd.node import SingleNode, next_sequence


class Boundary(SingleNode):
    """Passes a gradient on from a recorded call into the graph of an argument."""

    __slots__ = ("is_open",)

    is_open: bool

    def name(self) -> str:
        return "CompiledArgument"

    def all_edges(self) -> tuple[Any, ...]:
        return (self._edge,) if self.is_open else ()

    def backward(self, grad: Tensor) -> Tensor:
        if _C.is_recording():
            _C.refuse_recording("a backward pass in the function goes on into the graph of an argument")
        return grad


class Boundaries:
    """While entered, the graph of a call ends at its arguments, as far as it looks at all edges.

    A backward pass goes through a boundary, so that the result of the call is an ordinary one.
    """

    def __init__(self, inputs: list[Tensor]) -> None:
        #: By position among the inputs: what the gradient of the input goes through.
        self.nodes: dict[int, Boundary] = {}
        self.have_changed = False
        self._tensors: list[Tensor] = []
        for number, tensor in enumerate(inputs):
            if tensor.grad_fn is None or any(tensor is known for known in self._tensors):
                continue
            self._tensors.append(tensor)
            self.nodes[number] = node = Boundary.__new__(Boundary)
            node._sequence, node._hooks, node._saved = next_sequence(), None, ()
            node._edge, node.is_open = tensor._edge, True

    def __enter__(self) -> None:
        for tensor, node in zip(self._tensors, self.nodes.values(), strict=True):
            tensor._set_history(node)

    def __exit__(self, *exception: object) -> None:
        for tensor, node in zip(self._tensors, self.nodes.values(), strict=True):
            if tensor.grad_fn is not node:
                self.have_changed = True  # in place
            elif isinstance(node._edge, tuple):
                tensor._set_history(*node._edge)
            else:
                tensor._set_history(node._edge)
        self._tensors = []


class closed:
    """While entered, backward passes end at these boundaries."""

    def __init__(self, nodes: list[Boundary]) -> None:
        self._nodes = nodes

    def __enter__(self) -> None:
        for node in self._nodes:
            node.is_open = False

    def __exit__(self, *exception: object) -> None:
        for node in self._nodes:
            node.is_open = True
