"""The one mechanism behind every layer: a function is recorded by the tape, and its gradients are
asked for when Torch 7's methods want them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import candelabra
from candelabra import Tensor, autograd

#: A tensor, or a list of values: what Torch 7 calls a table.
Value = Any


def tensors_of(value: Value) -> Iterator[Tensor]:
    """Yield the tensors of a nested table, in order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_of(item)


def map_tensors(function: Callable[[Tensor], Any], value: Value) -> Value:
    """Return a nested table with a function applied to each tensor; tuples become lists."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, (list, tuple)):
        return [map_tensors(function, item) for item in value]
    return value


def add_tables(left: Value, right: Value) -> Value:
    """Return the sum of two nested tables of the same form."""
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        return left + right
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        return [add_tables(a, b) for a, b in zip(left, right)]
    raise RuntimeError(f"expected tables of the same form, got {type(left).__name__} and {type(right).__name__}")


def key_of(value: Value) -> Any:
    """Return what tells a value from others: of tensors, their memory and its version."""
    if isinstance(value, Tensor):
        return value.data_ptr(), value.dtype, tuple(value.shape), tuple(value.stride()), value._version
    if isinstance(value, (list, tuple)):
        return [key_of(item) for item in value]
    return value


class Recording:
    """One run of a function with the tape on.

    Parameters
    ----------
    function
        Called with the input and the parameters.
    value
        The input: a tensor or a nested table. Tensors of whole numbers get no gradient.
    parameters
        Tensors, or None for those that the layer has not.
    """

    def __init__(self, function: Callable[..., Value], value: Value, parameters: Sequence[Tensor | None]) -> None:
        # The recorded tensors own the memory whose addresses identify the input.
        recorded = map_tensors(_leaf, value)
        self.inputs = list(tensors_of(recorded))
        self.input = recorded
        self.parameters = [None if parameter is None else _leaf(parameter) for parameter in parameters]
        with candelabra.enable_grad():
            self._result = function(recorded, *self.parameters)
        self.output = map_tensors(lambda tensor: tensor.detach(), self._result)

    def gradients(self, wanted: Sequence[Tensor], grad_output: Value = None) -> list[Tensor]:
        """Return the gradients of leaves; zeros where the result does not depend on one."""
        pairs = self._pairs(grad_output)
        taped = [leaf for leaf in wanted if leaf.requires_grad]
        found: Sequence[Tensor | None] = [None] * len(taped)
        if pairs and taped:
            found = autograd.grad(
                [result for result, _ in pairs],
                taped,
                [grad for _, grad in pairs],
                retain_graph=True,
                allow_unused=True,
            )
        by_leaf = {id(leaf): gradient for leaf, gradient in zip(taped, found)}
        gradients = [by_leaf.get(id(leaf)) for leaf in wanted]
        return [
            candelabra.zeros_like(leaf.detach()) if gradient is None else gradient
            for leaf, gradient in zip(wanted, gradients)
        ]

    def _pairs(self, grad_output: Value) -> list[tuple[Tensor, Tensor | None]]:
        """Pair the results that have gradients with what comes back from above."""
        results = list(tensors_of(self._result))
        if grad_output is None:
            grads: list[Tensor | None] = [None] * len(results)
        else:
            grads = list(tensors_of(grad_output))
            if len(grads) != len(results):
                raise RuntimeError(f"gradOutput has {len(grads)} tensors, but the output has {len(results)}")
        return [
            (result, None if grad is None else _fit(grad, result))
            for result, grad in zip(results, grads)
            if result.requires_grad
        ]


def _leaf(tensor: Tensor) -> Tensor:
    leaf = tensor.detach()
    return leaf.requires_grad_() if leaf.is_floating_point() or leaf.is_complex() else leaf


def _fit(grad: Tensor, result: Tensor) -> Tensor:
    """Return a gradient in the shape and dtype of a result that has as many elements."""
    if grad.numel() != result.numel():
        raise RuntimeError(
            f"gradOutput has the shape {tuple(grad.shape)}, but the output has the shape {tuple(result.shape)}"
        )
    return grad.detach().reshape(result.shape).to(result.dtype)
