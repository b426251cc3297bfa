"""The base class of layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import candelabra
from candelabra import Tensor

from . import flattening
from .base import LegacyObject, default_type
from .tape import Recording, Value, key_of, map_tensors

_Module = TypeVar("_Module", bound="Module")


class Module(LegacyObject):
    """A layer with Torch 7's methods.

    A subclass defines ``_compute(input, *parameters)``, a function of nn, or the methods it needs.
    ``updateOutput`` records the function on the tape; ``updateGradInput`` and ``accGradParameters``
    ask the tape for the gradients of the input and of the parameters. If the input or a parameter
    has changed since, the function is recorded again.
    """

    #: Names of the parameters, in the order in which ``_compute`` takes them.
    _parameter_names: tuple[str, ...] = ("weight", "bias")
    #: None, or the submodules of a container.
    modules: list[Module] | None = None
    weight: Tensor | None = None
    bias: Tensor | None = None
    gradWeight: Tensor | None = None
    gradBias: Tensor | None = None
    inplace = False
    train = True
    _shared = False
    _recording: tuple[Any, Recording] | None = None

    def __init__(self) -> None:
        self.output: Any = candelabra.empty(0)
        self.gradInput: Any = candelabra.empty(0)
        self.train = True
        self._type = default_type()

    # ---- what subclasses define

    def _compute(self, input: Any, *parameters: Any) -> Any:
        """Compute the output from tensors that the tape follows."""
        raise NotImplementedError(f"{type(self).__name__} does not define its function")

    def _prepare(self, input: Value) -> None:
        """Do what a new output needs once: draw noise, renormalize weights."""

    def reset(self, stdv: float | None = None) -> None:
        """Draw new parameters."""

    # ---- forward and backward

    def __call__(self, input: Value, gradOutput: Value = None) -> Value:
        """Return the output; with ``gradOutput``, the output and the gradient of the input."""
        self.forward(input)
        if gradOutput is None:
            return self.output
        self.backward(input, gradOutput)
        return self.output, self.gradInput

    def forward(self, input: Value) -> Value:
        """Return the output."""
        return self.updateOutput(input)

    def updateOutput(self, input: Value) -> Value:
        """Compute the output and keep it in ``output``."""
        with candelabra.no_grad():
            self._prepare(input)
        self.output = self._record(input).output
        if self.inplace:
            self._write_in_place(input)
        return self.output

    def updateGradInput(self, input: Value, gradOutput: Value) -> Value:
        """Compute the gradient of the input and keep it in ``gradInput``."""
        recording = self._recorded(input)
        return self._set_grad_input(recording, recording.gradients(recording.inputs, gradOutput))

    def accGradParameters(self, input: Value, gradOutput: Value, scale: float = 1) -> None:
        """Add the gradients of the parameters, times a scale, to ``gradWeight`` and the like."""
        if not self._own_parameters()[0]:
            return
        recording = self._recorded(input)
        leaves = [leaf for leaf in recording.parameters if leaf is not None]
        self._accumulate(recording.gradients(leaves, gradOutput), scale)

    def backward(self, input: Value, gradOutput: Value, scale: float = 1) -> Value:
        """Compute ``gradInput`` and accumulate the gradients of the parameters."""
        kind = type(self)
        if kind.updateGradInput is not Module.updateGradInput or kind.accGradParameters is not Module.accGradParameters:
            # A class that defines its gradients by hand, as in Torch 7.
            self.updateGradInput(input, gradOutput)
            self.accGradParameters(input, gradOutput, scale)
            return self.gradInput
        recording = self._recorded(input)
        leaves = [leaf for leaf in recording.parameters if leaf is not None]
        gradients = recording.gradients([*recording.inputs, *leaves], gradOutput)
        count = len(recording.inputs)
        self._accumulate(gradients[count:], scale)
        return self._set_grad_input(recording, gradients[:count])

    def backwardUpdate(self, input: Value, gradOutput: Value, lr: float) -> Value:
        """Compute ``gradInput`` and make a step of gradient descent."""
        self.updateGradInput(input, gradOutput)
        self.accUpdateGradParameters(input, gradOutput, lr)
        return self.gradInput

    def accUpdateGradParameters(self, input: Value, gradOutput: Value, lr: float) -> None:
        """Make a step of gradient descent, without ``gradWeight`` unless parameters are shared."""
        if self._shared:
            self.sharedAccUpdateGradParameters(input, gradOutput, lr)
            return
        names = [name for name in self._parameter_names if getattr(self, name) is not None]
        gradients = [getattr(self, gradient_name(name)) for name in names]
        # What is accumulated goes to the parameters themselves.
        for name in names:
            setattr(self, gradient_name(name), getattr(self, name))
        try:
            self.accGradParameters(input, gradOutput, -lr)
        finally:
            for name, gradient in zip(names, gradients):
                setattr(self, gradient_name(name), gradient)

    def sharedAccUpdateGradParameters(self, input: Value, gradOutput: Value, lr: float) -> None:
        """Make a step of gradient descent with parameters that other modules share."""
        if self.parameters() is not None:
            self.zeroGradParameters()
            self.accGradParameters(input, gradOutput, 1)
            self.updateParameters(lr)

    def _record(self, input: Value) -> Recording:
        parameters = [getattr(self, name) for name in self._parameter_names]
        # A function that writes to its input would spoil what the tape saved of it.
        recorded = map_tensors(lambda tensor: tensor.clone(), input) if self.inplace else input
        recording = Recording(self._compute, recorded, parameters)
        self._recording = self._key(input), recording
        return recording

    def _recorded(self, input: Value) -> Recording:
        """Return the recording of the output, made again if it is not of these values."""
        if self._recording is not None and self._recording[0] == self._key(input):
            return self._recording[1]
        return self._record(input)

    def _key(self, input: Value) -> Any:
        parameters = [getattr(self, name) for name in self._parameter_names]
        return self.train, key_of([input, parameters])

    def _write_in_place(self, input: Value) -> None:
        target = input[0] if isinstance(input, list) else input
        target.copy_(self.output)
        self.output = target
        assert self._recording is not None
        self._recording = self._key(input), self._recording[1]

    def _set_grad_input(self, recording: Recording, gradients: list[Tensor]) -> Value:
        remaining = iter(gradients)
        self.gradInput = map_tensors(lambda _: next(remaining), recording.input)
        return self.gradInput

    def _accumulate(self, gradients: Sequence[Tensor], scale: float) -> None:
        for target, gradient in zip(self._own_parameters()[1], gradients):
            target.add_(gradient, alpha=scale)

    # ---- parameters

    def _own_parameters(self) -> tuple[list[Tensor], list[Tensor]]:
        names = [name for name in self._parameter_names if getattr(self, name) is not None]
        return [getattr(self, name) for name in names], [getattr(self, gradient_name(name)) for name in names]

    def _register(self, **parameters: Tensor | None) -> None:
        """Set parameters and their gradients, which start at zero."""
        for name, parameter in parameters.items():
            setattr(self, name, parameter)
            setattr(self, gradient_name(name), None if parameter is None else candelabra.zeros_like(parameter))

    def parameters(self) -> tuple[list[Tensor], list[Tensor]] | None:
        """Return the parameters and their gradients, or None if there are none."""
        parameters, gradients = self._own_parameters()
        return (parameters, gradients) if parameters else None

    def flattenParameters(self) -> tuple[Tensor, Tensor]:
        """Return all parameters as one vector, and all gradients as another.

        The parameters become views of the vectors: what changes one, changes the other. Call it
        once for a network, after it is complete and converted.

        Raises
        ------
        RuntimeError
            If parameters are shared and their gradients are not, or the other way round.
        """
        parameters, gradients = self.parameters() or ([], [])
        flat, flat_gradients = flattening.flatten(parameters), flattening.flatten(gradients)
        if any(p.storage_offset() != g.storage_offset() for p, g in zip(parameters, gradients)):
            raise RuntimeError("parameters and gradients are not shared in the same way")
        return flat, flat_gradients

    def getParameters(self) -> tuple[Tensor, Tensor]:
        """Return what :meth:`flattenParameters` does, under Torch 7's name."""
        return self.flattenParameters()

    def zeroGradParameters(self) -> None:
        """Set the gradients of the parameters to zero."""
        for gradient in (self.parameters() or ([], []))[1]:
            gradient.zero_()

    def updateParameters(self, learningRate: float) -> None:
        """Subtract the gradients, times a learning rate, from the parameters."""
        for parameter, gradient in zip(*(self.parameters() or ([], []))):
            parameter.add_(gradient, alpha=-learningRate)

    def share(self: _Module, mlp: Module, *names: str) -> _Module:
        """Let the named tensors, such as ``'weight'``, be those of another module."""
        for name in names:
            own, other = getattr(self, name, None), getattr(mlp, name, None)
            if own is not None and other is not None:
                own.set_(other)
                self._shared = mlp._shared = True
        return self

    # ---- the tree of modules

    def training(self) -> None:
        """Switch to training: noise is drawn, statistics are of the batch."""
        self.train = True

    def evaluate(self) -> None:
        """Switch to evaluation."""
        self.train = False

    def clone(self: _Module, *names: str) -> _Module:
        """Return a copy that shares the named tensors with this module, and no others."""
        copied = super().clone()
        return copied.share(self, *names) if names else copied

    def apply(self, callback: Callable[[Module], Any]) -> None:
        """Call a function with this module and all below it."""
        for module in self.listModules():
            callback(module)

    def listModules(self) -> list[Module]:
        """Return this module and all below it."""
        return [self, *(found for child in self.modules or () for found in child.listModules())]

    def findModules(self, typename: Any, container: Module | None = None) -> tuple[list[Module], list[Module | None]]:
        """Return all modules of a class, and the containers they are in.

        Parameters
        ----------
        typename
            A class, or its name: ``'nn.Linear'`` or ``'Linear'``.
        container
            What the module itself is in.

        Returns
        -------
        tuple of lists
            The modules, and the container of each. A module that is in none has itself.
        """
        container = self if container is None else container
        name = typename.__name__ if isinstance(typename, type) else typename.removeprefix("nn.")
        nodes: list[Module] = [self] if type(self).__name__ == name else []
        containers: list[Module | None] = [container] * len(nodes)
        for child in self.modules or ():
            found = child.findModules(name, self)
            nodes += found[0]
            containers += found[1]
        return nodes, containers

    def replace(self, callback: Callable[[Module], Module]) -> Module:
        """Replace this module and all below it by what a function returns for each."""
        replaced = callback(self)
        if self.modules is not None:
            self.modules[:] = [module.replace(callback) for module in self.modules]
        return replaced

    def clearState(self: _Module) -> _Module:
        """Free the output, the gradient of the input and the tape."""
        self.output, self.gradInput, self._recording = candelabra.empty(0), candelabra.empty(0), None
        return self


def gradient_name(name: str) -> str:
    """Return the attribute that has the gradient of a parameter: ``gradWeight`` for ``weight``."""
    return f"grad{name[0].upper()}{name[1:]}"
