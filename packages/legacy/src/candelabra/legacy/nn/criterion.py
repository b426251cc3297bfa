"""The base class of criteria, and the criteria that are made of others."""

from __future__ import annotations

from typing import Any, TypeVar

import candelabra

from .base import LegacyObject, default_type
from .module import Module
from .tape import Recording, Value, add_tables, key_of, map_tensors

_Criterion = TypeVar("_Criterion", bound="Criterion")


class Criterion(LegacyObject):
    """A loss: a number that is computed from an input and a target.

    A subclass defines ``_compute(input, target)``, whose gradient the tape computes, or the methods
    themselves.
    """

    _recording: tuple[Any, Any, Recording] | None = None

    def __init__(self) -> None:
        self.output = 0.0
        self._type = default_type()
        self.gradInput: Any = candelabra.empty(0)

    def _compute(self, input: Any, target: Any) -> Any:
        """Compute the loss from tensors that the tape follows."""
        raise NotImplementedError(f"{type(self).__name__} does not define its function")

    def __call__(self, input: Value, target: Value) -> float:
        return self.forward(input, target)

    def forward(self, input: Value, target: Value) -> float:
        """Return the loss."""
        return self.updateOutput(input, target)

    def backward(self, input: Value, target: Value) -> Value:
        """Return the gradient of the input."""
        return self.updateGradInput(input, target)

    def updateOutput(self, input: Value, target: Value) -> float:
        """Compute the loss and keep it in ``output``."""
        self.output = float(self._record(input, target).output)
        return self.output

    def updateGradInput(self, input: Value, target: Value) -> Value:
        """Compute the gradient of the input and keep it in ``gradInput``."""
        recording = self._recorded(input, target)
        remaining = iter(recording.gradients(recording.inputs))
        self.gradInput = map_tensors(lambda _: next(remaining), recording.input)
        return self.gradInput

    def clearState(self: _Criterion) -> _Criterion:
        """Free the gradient of the input and the tape."""
        self.gradInput, self._recording = candelabra.empty(0), None
        return self

    def _record(self, input: Value, target: Value) -> Recording:
        recording = Recording(lambda value: self._compute(value, target), input, ())
        # The target is kept: else another tensor could get its address.
        self._recording = key_of([input, target]), target, recording
        return recording

    def _recorded(self, input: Value, target: Value) -> Recording:
        if self._recording is not None and self._recording[0] == key_of([input, target]):
            return self._recording[2]
        return self._record(input, target)


class MultiCriterion(Criterion):
    """The weighted sum of several criteria of one input and one target."""

    def __init__(self) -> None:
        super().__init__()
        self.criterions: list[Criterion] = []
        self.weights: list[float] = []

    def add(self, criterion: Criterion, weight: float = 1) -> MultiCriterion:
        """Add a criterion."""
        self.criterions.append(criterion)
        self.weights.append(weight)
        return self

    def updateOutput(self, input: Value, target: Value) -> float:
        """Compute the weighted sum."""
        self.output = sum(w * c.updateOutput(input, target) for w, c in zip(self.weights, self.criterions))
        return self.output

    def updateGradInput(self, input: Value, target: Value) -> Value:
        """Compute the weighted sum of the gradients."""
        total = map_tensors(candelabra.zeros_like, input)
        for weight, criterion in zip(self.weights, self.criterions):
            total = add_tables(total, _scaled(criterion.updateGradInput(input, target), weight))
        self.gradInput = total
        return total


class ParallelCriterion(Criterion):
    """The weighted sum of criteria, one for each entry of the input.

    Parameters
    ----------
    repeatTarget
        Whether all criteria have the same target, instead of one each.
    """

    repeatTarget = False

    def __init__(self, repeatTarget: bool = False) -> None:
        super().__init__()
        self.repeatTarget = repeatTarget
        self.criterions: list[Criterion] = []
        self.weights: list[float] = []

    def add(self, criterion: Criterion, weight: float = 1) -> ParallelCriterion:
        """Add a criterion for the next entry."""
        self.criterions.append(criterion)
        self.weights.append(weight)
        return self

    def updateOutput(self, input: Value, target: Value) -> float:
        """Compute the weighted sum."""
        self.output = sum(w * c.updateOutput(value, goal) for w, c, value, goal in self._parts(input, target))
        return self.output

    def updateGradInput(self, input: Value, target: Value) -> Value:
        """Compute the gradient of each entry."""
        gradients = [_scaled(c.updateGradInput(value, goal), w) for w, c, value, goal in self._parts(input, target)]
        # Entries without a criterion have no influence.
        self.gradInput = gradients + [map_tensors(candelabra.zeros_like, value) for value in input[len(gradients) :]]
        return self.gradInput

    def _parts(self, input: Value, target: Value) -> list[tuple[float, Criterion, Value, Value]]:
        targets = [target] * len(self.criterions) if self.repeatTarget else target
        return list(zip(self.weights, self.criterions, input, targets))


class CriterionTable(Module):
    """A criterion as a module, whose input is the list of its input and its target."""

    _parameter_names = ()

    def __init__(self, criterion: Criterion) -> None:
        super().__init__()
        self.criterion = criterion
        self.gradInput = [criterion.gradInput]

    def updateOutput(self, input: Value) -> Value:
        """Compute the loss."""
        self.output = self.criterion.updateOutput(*input)
        return self.output

    def updateGradInput(self, input: Value, gradOutput: Value = None) -> Value:
        """Compute the gradient of the criterion's input."""
        self.gradInput = [self.criterion.updateGradInput(*input)]
        return self.gradInput

    def accGradParameters(self, input: Value, gradOutput: Value = None, scale: float = 1) -> None:
        """Do nothing: a criterion has no parameters."""

    def backward(self, input: Value, gradOutput: Value = None, scale: float = 1) -> Value:
        """Compute the gradient of the criterion's input."""
        return self.updateGradInput(input)


def _scaled(value: Value, weight: float) -> Value:
    return map_tensors(lambda tensor: tensor * weight, value)
