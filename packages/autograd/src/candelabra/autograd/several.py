"""Autograd functions of operators with several differentiable results, such as QR."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import candelabra
from candelabra import Tensor
from candelabra.catalogue import OPERATORS

from .node import MultiNode, next_sequence, own_result, raise_freed, raise_modified
from .table import WRITTEN, title_of

if TYPE_CHECKING:
    from collections.abc import Callable


class SeveralNode(MultiNode):
    """A node with one formula that takes the gradients of all results."""

    __slots__ = ("values",)

    values: dict[str, Any]

    _formula: Callable[..., Any]
    _tensor_names: tuple[str, ...]

    def backward(self, grads: Any, edges: tuple[Any, ...]) -> Any:
        saved = self._saved
        if saved is None:
            raise_freed(self)
        tensors = saved[::2]
        count = len(self._tensor_names)
        for position, (tensor, version) in enumerate(zip(tensors, saved[1::2], strict=True)):
            if tensor is not None and tensor._version != version:
                raise_modified(self, tensor, version, position >= count)
        arguments = dict(zip(self._tensor_names, tensors[:count], strict=True)) | self.values
        results = list(tensors[count:])
        if candelabra.is_grad_enabled():
            results = [own_result(result, self, number) for number, result in enumerate(results)]
        return type(self)._formula(grads, results, arguments, tuple(edge is not None for edge in edges))


def several_derivative(
    name: str, inputs: tuple[str, ...], formula: Callable[..., Any], unsaved: tuple[str, ...] = ()
) -> None:
    """Register the derivative of an operator with several differentiable results.

    Parameters
    ----------
    name
        The operator's name in the catalogue.
    inputs
        Names of the differentiable tensor arguments.
    formula
        Called as ``formula(grads, results, arguments, needs)``. `grads` has None for undefined
        gradients, `arguments` maps names to values, and `needs` says which inputs need a
        gradient. Returns a tuple with one entry per input.
    unsaved
        Tensor arguments that the formula does not use, and that are therefore not saved.
    """
    operator = OPERATORS[name]
    names = list(operator.parameters)
    tensor_positions = [
        position for position, kind in enumerate(operator.parameter_types) if kind in ("Tensor", "Tensor?")
    ]
    value_positions = [position for position in range(len(names)) if position not in tensor_positions]
    tensor_positions = [position for position in tensor_positions if names[position] not in unsaved]
    input_positions = [names.index(one) for one in inputs]
    count = operator.result_count
    title = f"{title_of(name)}Backward0"
    members = {
        "__slots__": (), "_outputs": count, "_formula": staticmethod(formula),
        "_tensor_names": tuple(names[position] for position in tensor_positions),
    }  # fmt: skip
    made: Any = type(title, (SeveralNode,), members)
    made.__module__ = "candelabra.autograd"

    def record(result: Any, *arguments: Any) -> Any:
        node = made()
        node._sequence, node._hooks = next_sequence(), None
        node._edges = tuple(
            None if (argument := arguments[position]) is None else argument._edge for position in input_positions
        )
        node.values = {names[position]: arguments[position] for position in value_positions}
        saved: list[Any] = []
        for tensor in (arguments[position] for position in tensor_positions):
            saved += [tensor, 0 if tensor is None else tensor._version]
        for tensor in result:
            saved += [tensor._detached(), tensor._version]
        node._saved = tuple(saved)
        for number, tensor in enumerate(result):
            if isinstance(tensor, Tensor) and (tensor.is_floating_point() or tensor.is_complex()):
                tensor._set_history(node, number)
        return result

    WRITTEN[name] = record
