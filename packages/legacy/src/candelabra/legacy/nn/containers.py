"""Modules that are made of others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import candelabra
from candelabra import Tensor
from candelabra.nn import functional

from .module import Module
from .tape import Value, add_tables

_Container = TypeVar("_Container", bound="Container")
#: Called with a submodule, its input and what comes back to it from above; it returns the gradient
#: of the submodule's input.
Visit = Callable[[Module, Value, Value], Value]


class Container(Module):
    """The base of modules that are made of others.

    A subclass defines ``updateOutput`` and ``_walk``: how gradients go back through its submodules.
    """

    _parameter_names = ()
    modules: list[Module]

    def __init__(self) -> None:
        super().__init__()
        self.modules = []

    def add(self: _Container, module: Module) -> _Container:
        """Append a module, and return this container."""
        self.modules.append(module)
        return self

    def get(self, index: int) -> Module:
        """Return a submodule."""
        return self.modules[index]

    def size(self) -> int:
        """Return the number of submodules."""
        return len(self.modules)

    def _walk(self, input: Value, gradOutput: Value, visit: Visit) -> Value:
        """Visit the submodules in the order of the backward pass."""
        raise NotImplementedError(f"{type(self).__name__} does not define how gradients go back")

    def updateGradInput(self, input: Value, gradOutput: Value) -> Value:
        """Compute the gradient of the input and keep it in ``gradInput``."""
        self.gradInput = self._walk(input, gradOutput, lambda module, value, grad: module.updateGradInput(value, grad))
        return self.gradInput

    def accGradParameters(self, input: Value, gradOutput: Value, scale: float = 1) -> None:
        """Accumulate the gradients of the submodules' parameters, after ``updateGradInput``."""

        def visit(module: Module, value: Value, grad: Value) -> Value:
            module.accGradParameters(value, grad, scale)
            return module.gradInput

        self._walk(input, gradOutput, visit)

    def accUpdateGradParameters(self, input: Value, gradOutput: Value, lr: float) -> None:
        """Make a step of gradient descent in the submodules, after ``updateGradInput``."""

        def visit(module: Module, value: Value, grad: Value) -> Value:
            module.accUpdateGradParameters(value, grad, lr)
            return module.gradInput

        self._walk(input, gradOutput, visit)

    def backward(self, input: Value, gradOutput: Value, scale: float = 1) -> Value:
        """Compute ``gradInput`` and accumulate the gradients of all parameters."""
        self.gradInput = self._walk(input, gradOutput, lambda module, value, grad: module.backward(value, grad, scale))
        return self.gradInput

    def parameters(self) -> tuple[list[Tensor], list[Tensor]]:
        """Return the parameters of all submodules, and their gradients."""
        found = [own for module in self.modules if (own := module.parameters()) is not None]
        return [p for parameters, _ in found for p in parameters], [g for _, gradients in found for g in gradients]

    def zeroGradParameters(self) -> None:
        """Set the gradients of all parameters to zero."""
        for module in self.modules:
            module.zeroGradParameters()

    def updateParameters(self, learningRate: float) -> None:
        """Subtract the gradients, times a learning rate, from the parameters."""
        for module in self.modules:
            module.updateParameters(learningRate)

    def training(self) -> None:
        """Switch all submodules to training."""
        super().training()
        for module in self.modules:
            module.training()

    def evaluate(self) -> None:
        """Switch all submodules to evaluation."""
        super().evaluate()
        for module in self.modules:
            module.evaluate()

    def share(self: _Container, mlp: Module, *names: str) -> _Container:
        """Let the named tensors of the submodules be those of another container's."""
        if mlp.modules is None or len(mlp.modules) != len(self.modules):
            raise ValueError("containers that share tensors have the same number of modules")
        for own, other in zip(self.modules, mlp.modules):
            own.share(other, *names)
        return self

    def reset(self, stdv: float | None = None) -> None:
        """Draw new parameters in all submodules."""
        for module in self.modules:
            module.reset(stdv)

    def clearState(self: _Container) -> _Container:
        """Free what all submodules keep of the last pass."""
        for module in self.modules:
            module.clearState()
        return super().clearState()

    def __repr__(self) -> str:
        lines = [f"  ({index}): " + repr(module).replace("\n", "\n  ") for index, module in enumerate(self.modules)]
        return "\n".join([f"nn.{type(self).__name__} {{", *lines, "}"])


class Sequential(Container):
    """A chain: the output of each module is the input of the next."""

    def insert(self, module: Module, index: int) -> None:
        """Insert a module before an index."""
        self.modules.insert(index, module)

    def remove(self, index: int = -1) -> Module:
        """Remove a module, by default the last, and return it."""
        return self.modules.pop(index)

    def updateOutput(self, input: Value) -> Value:
        """Compute the output of the last module."""
        for module in self.modules:
            input = module.updateOutput(input)
        self.output = input
        return input

    def _walk(self, input: Value, gradOutput: Value, visit: Visit) -> Value:
        inputs = [input, *(module.output for module in self.modules[:-1])]
        for module, value in zip(reversed(self.modules), reversed(inputs)):
            gradOutput = visit(module, value, gradOutput)
        return gradOutput


class Concat(Container):
    """Modules with the same input, whose outputs are concatenated along a dimension."""

    _one_based = ("dimension",)

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.dimension = dimension

    def updateOutput(self, input: Value) -> Value:
        """Concatenate the outputs."""
        self.output = candelabra.cat([module.updateOutput(input) for module in self.modules], self.dimension)
        return self.output

    def _walk(self, input: Value, gradOutput: Value, visit: Visit) -> Value:
        sizes = [module.output.size(self.dimension) for module in self.modules]
        grads = gradOutput.split(sizes, self.dimension)
        return _sum(visit(module, input, self._fit(grad, module)) for module, grad in zip(self.modules, grads))

    def _fit(self, grad: Tensor, module: Module) -> Tensor:
        """Return a module's part of the gradient."""
        return grad


class DepthConcat(Concat):
    """As :class:`Concat`; smaller outputs are padded with zeros to the largest, centred."""

    def updateOutput(self, input: Value) -> Value:
        """Pad the outputs and concatenate them."""
        outputs = [module.updateOutput(input) for module in self.modules]
        largest = [max(sizes) for sizes in zip(*(output.shape for output in outputs))]
        self.output = candelabra.cat([self._pad(output, largest) for output in outputs], self.dimension)
        return self.output

    def _pad(self, output: Tensor, largest: list[int]) -> Tensor:
        padding: list[int] = []
        for dim in reversed(range(output.dim())):
            missing = 0 if dim == self.dimension % output.dim() else largest[dim] - output.size(dim)
            padding += [missing // 2, missing - missing // 2]
        return functional.pad(output, padding)

    def _fit(self, grad: Tensor, module: Module) -> Tensor:
        for dim, size in enumerate(module.output.shape):
            if grad.size(dim) != size:
                grad = grad.narrow(dim, (grad.size(dim) - size) // 2, size)
        return grad


class ConcatTable(Container):
    """Modules with the same input, whose outputs are a table."""

    def updateOutput(self, input: Value) -> Value:
        """Compute all outputs."""
        self.output = [module.updateOutput(input) for module in self.modules]
        return self.output

    def _walk(self, input: Value, gradOutput: Value, visit: Visit) -> Value:
        _check_length(gradOutput, self.modules)
        return _sum(visit(module, input, grad) for module, grad in zip(self.modules, gradOutput))


class ParallelTable(Container):
    """Modules with one entry of the input table each, whose outputs are a table."""

    def updateOutput(self, input: Value) -> Value:
        """Compute all outputs."""
        _check_length(input, self.modules)
        self.output = [module.updateOutput(value) for module, value in zip(self.modules, input)]
        return self.output

    def _walk(self, input: Value, gradOutput: Value, visit: Visit) -> Value:
        _check_length(gradOutput, self.modules)
        return [visit(module, value, grad) for module, value, grad in zip(self.modules, input, gradOutput)]


class Parallel(Container):
    """Modules with one slice of the input each, whose outputs are concatenated.

    Parameters
    ----------
    inputDimension
        The dimension of the input that is taken apart.
    outputDimension
        The dimension along which outputs are concatenated.
    """

    _one_based = ("inputDimension", "outputDimension")

    def __init__(self, inputDimension: int, outputDimension: int) -> None:
        super().__init__()
        self.inputDimension = inputDimension
        self.outputDimension = outputDimension

    def updateOutput(self, input: Value) -> Value:
        """Concatenate the outputs."""
        slices = input.unbind(self.inputDimension)
        _check_length(slices, self.modules)
        outputs = [module.updateOutput(value) for module, value in zip(self.modules, slices)]
        self.output = candelabra.cat(outputs, self.outputDimension)
        return self.output

    def _walk(self, input: Value, gradOutput: Value, visit: Visit) -> Value:
        sizes = [module.output.size(self.outputDimension) for module in self.modules]
        grads = gradOutput.split(sizes, self.outputDimension)
        slices = input.unbind(self.inputDimension)
        found = [visit(module, value, grad) for module, value, grad in zip(self.modules, slices, grads)]
        return candelabra.stack(found, self.inputDimension)


def _sum(gradients: Iterable[Value]) -> Value:
    total: Any = None
    for gradient in gradients:
        total = gradient if total is None else add_tables(total, gradient)
    return total


def _check_length(table: Any, modules: list[Module]) -> None:
    if len(table) != len(modules):
        raise RuntimeError(f"the table has {len(table)} entries, but the container has {len(modules)} modules")
