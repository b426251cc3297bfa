"""What the inputs and the results of an exported program are, with the names of
``torch.export``.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from .fx_graphs import placeholder_names
from .graph import Graph, Ref


class InputKind(enum.Enum):
    """What an input of the graph is."""

    USER_INPUT = enum.auto()
    PARAMETER = enum.auto()
    BUFFER = enum.auto()
    CONSTANT_TENSOR = enum.auto()


class OutputKind(enum.Enum):
    """What a result of the graph is."""

    USER_OUTPUT = enum.auto()
    BUFFER_MUTATION = enum.auto()
    USER_INPUT_MUTATION = enum.auto()


@dataclass
class TensorArgument:
    """A tensor, by the name of its node."""

    name: str


@dataclass
class ConstantArgument:
    """A value that is no tensor."""

    name: str
    value: Any


@dataclass
class InputSpec:
    """An input of the graph; `target` is the name of a parameter or a buffer."""

    kind: InputKind
    arg: TensorArgument | ConstantArgument
    target: str | None
    persistent: bool | None = None


@dataclass
class OutputSpec:
    """A result of the graph, or what it writes to."""

    kind: OutputKind
    arg: TensorArgument | ConstantArgument
    target: str | None


@dataclass
class ExportGraphSignature:
    """The inputs and the results of a program."""

    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]

    def _targets(self, kind: InputKind) -> dict[str, str]:
        return {one.arg.name: one.target for one in self.input_specs if one.kind is kind and one.target is not None}

    @property
    def inputs_to_parameters(self) -> dict[str, str]:
        """The names of parameters by those of their nodes."""
        return self._targets(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> dict[str, str]:
        """The names of buffers by those of their nodes."""
        return self._targets(InputKind.BUFFER)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return tuple(self.inputs_to_parameters.values())

    @property
    def buffers(self) -> tuple[str, ...]:
        """The names of the buffers."""
        return tuple(self.inputs_to_buffers.values())

    @property
    def inputs_to_lifted_tensor_constants(self) -> dict[str, str]:
        """The names of other tensors by those of their nodes."""
        return self._targets(InputKind.CONSTANT_TENSOR)

    @property
    def lifted_tensor_constants(self) -> tuple[str, ...]:
        """The names of the tensors that are neither parameters nor buffers."""
        return tuple(self.inputs_to_lifted_tensor_constants.values())

    @property
    def backward_signature(self) -> None:
        """None: programs have no backward pass."""

    @property
    def non_persistent_buffers(self) -> set[str]:
        """The names of the buffers that are not in the state dict."""
        return {
            one.target
            for one in self.input_specs
            if one.kind is InputKind.BUFFER and one.target is not None and one.persistent is False
        }

    @property
    def user_inputs(self) -> tuple[Any, ...]:
        """The names of the arguments, or the values of those that are no tensors."""
        return tuple(
            one.arg.name if isinstance(one.arg, TensorArgument) else one.arg.value
            for one in self.input_specs
            if one.kind is InputKind.USER_INPUT
        )

    @property
    def user_outputs(self) -> tuple[Any, ...]:
        """The names of the results, or the values of those that are no tensors."""
        return tuple(
            one.arg.name if isinstance(one.arg, TensorArgument) else one.arg.value
            for one in self.output_specs
            if one.kind is OutputKind.USER_OUTPUT
        )

    @property
    def buffers_to_mutate(self) -> dict[str, str]:
        """The names of buffers that the program writes to, by those of their nodes."""
        return {
            one.arg.name: one.target
            for one in self.output_specs
            if one.kind is OutputKind.BUFFER_MUTATION and one.target is not None
        }

    @property
    def user_inputs_to_mutate(self) -> dict[str, str]:
        """The names of arguments that the program writes to."""
        return {
            one.arg.name: one.target
            for one in self.output_specs
            if one.kind is OutputKind.USER_INPUT_MUTATION and one.target is not None
        }


_KINDS = {"parameter": InputKind.PARAMETER, "buffer": InputKind.BUFFER, "constant": InputKind.CONSTANT_TENSOR}


def signature_of(graph: Graph, result_names: list[str | None]) -> ExportGraphSignature:
    """Return the signature of a program, given the names of the nodes of its results."""
    names = placeholder_names(graph)
    inputs = [
        InputSpec(
            _KINDS[state.kind],
            TensorArgument(names[state.value]),
            state.name,
            state.is_persistent if state.kind == "buffer" else None,
        )
        for state in graph.states
    ]
    for one in graph.inputs:
        argument = TensorArgument(one.name) if one.value is not None else ConstantArgument(one.name, one.constant)
        inputs.append(InputSpec(InputKind.USER_INPUT, argument, None))
    outputs = []
    states = {state.value: state for state in graph.states}
    for value in graph.written:
        state = states.get(value)
        kind = OutputKind.USER_INPUT_MUTATION if state is None else OutputKind.BUFFER_MUTATION
        outputs.append(OutputSpec(kind, TensorArgument(names[value]), names[value] if state is None else state.name))
    for leaf, name in zip(graph.outputs, result_names, strict=True):
        is_tensor = type(leaf) is Ref and name is not None
        result = TensorArgument(str(name)) if is_tensor else ConstantArgument("", leaf)
        outputs.append(OutputSpec(OutputKind.USER_OUTPUT, result, None))
    return ExportGraphSignature(inputs, outputs)
