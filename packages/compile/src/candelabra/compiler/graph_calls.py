"""Calls whose result has a graph: one node of the tape that replays the backward pass.

The forward pass is recorded as other calls are. Its backward pass is recorded when the first
gradient arrives, and replayed when both passes of two calls have agreed.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from typing import Any

import candelabra
import candelabra.autograd as _autograd  # noqa: F401
from candelabra import _C, Tensor
from candelabra.autograd.graph import GradientEdge
from candelabra.autograd.node import Node, next_sequence, raise_freed

from .building import Planning, build_forward
from .histories import Boundary, closed
from .recorded_call import RecordedCall
from .trees import UnsupportedError

DOUBLE = (
    "candelabra.compile: the backward pass of a compiled function cannot be recorded for another one "
    "(create_graph=True); run the function as written for that"
)


class RecordedGraph:
    """A recorded call whose result has a graph, and the recording of its backward pass."""

    def __init__(self, call: RecordedCall, output: Tensor, ready: Callable[[RecordedGraph], None]) -> None:
        self.call = call
        self.inner = output
        self.ready = ready
        #: Where gradients leave the graph: tensors, and boundaries of arguments with a history.
        self.boundaries = {} if call.boundaries is None else call.boundaries.nodes
        self.leaves = _leaves_of(output, list(self.boundaries.values()))
        known = {call.recording.find(output)}
        self.saved = [tensor for number, tensor in call.recording.living_memory() if number not in known]
        self.before: RecordedGraph | None = None
        self.owner: Any = None
        self.node: weakref.ref[CompiledGraph] | None = None
        self.forward: Any = None
        self.recording: Any = None
        self.gradient: Tensor | None = None
        self.gradients: tuple[Tensor | None, ...] = ()
        self.living: set[int] = set()
        #: Where the tensors that the backward pass takes begin in their memory, in bytes.
        self.offsets: list[int] = []
        self.refusal: str | None = None

    def build_forward(self, before: RecordedGraph, owner: Any, planning: Planning) -> None:
        """Make the program of the forward pass, while the state is that of the call's end."""
        self.before, self.owner = before, owner
        self.forward = build_forward(before.call, self.call, self.inner, self.saved, owner, planning)

    def outside(self) -> Tensor:
        """Return the result, whose graph is a node that records its backward pass."""
        result = self.inner._detached()
        edges = tuple(leaf._edge if isinstance(leaf, Boundary) else leaf for leaf in self.leaves)
        node = _new_node(_RecordingPass(self), edges)
        self.node = weakref.ref(node)
        result._set_history(node)
        return result

    def is_pending(self) -> bool:
        """Return whether a backward pass may still come that is the first one."""
        return self.recording is None and self.node is not None and self.node() is not None

    def run_backward(self, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Compute the gradients of the leaves; record it the first time."""
        gradient = laid_out_like(gradient, self.inner)
        if self.recording is not None or _C.is_recording():
            return self._gradients(gradient)
        recording = self.recording = _C.Recording()
        recording.start()
        try:
            self.gradients = self._gradients(gradient)
            known = {recording.find(grad) for grad in self.gradients if grad is not None}
            self.living = set(recording.living) - known
        finally:
            recording.stop()
        self.gradient = gradient
        operands = self._operands()
        for tensor in operands:
            recording.register(tensor)
        self.offsets = [tensor.storage_offset() * tensor.element_size() for tensor in operands]
        if recording.reason is not None:
            self.refusal = recording.reason[0]
        made = self.gradients
        self.ready(self)
        return made

    def _gradients(self, gradient: Tensor) -> tuple[Tensor | None, ...]:
        targets = tuple(GradientEdge(leaf, 0) if isinstance(leaf, Boundary) else leaf for leaf in self.leaves)
        with closed(list(self.boundaries.values())):
            return tuple(
                candelabra.autograd.grad((self.inner,), targets, (gradient,), retain_graph=True, allow_unused=True)
            )

    def _operands(self) -> list[Tensor]:
        """Return what a replay of the backward pass takes."""
        assert self.gradient is not None
        return [
            self.gradient,
            self.inner._detached(),
            *self.saved,
            *(tensor._detached() for tensor in self.call.inputs),
        ]

    def build_backward(self, planning: Planning) -> BackwardProgram:
        """Return the program of the backward pass.

        Raises
        ------
        UnsupportedError
            If the passes of the two calls differ, or the pass needs something that is not guarded.
        """
        before, recording = self.before, self.recording
        assert before is not None
        environment = self.call.environment
        assert environment is not None
        reason = before.refusal or self.refusal
        if reason is not None:
            raise UnsupportedError(f"{reason} in the backward pass")
        operands = self._operands()
        numbers = [recording.find(tensor) for tensor in operands]
        if len(before.offsets) != len(self.offsets):
            raise UnsupportedError("the graph of the result keeps other tensors in the next call")
        compared = list(zip(numbers, before.offsets, self.offsets, strict=True))
        difference = before.recording.difference(recording, compared)
        if difference:
            raise UnsupportedError(f"{difference} (backward pass)")
        reached = {recording.find(tensor) for tensor in environment.tensors}
        if not reached.union(numbers).issuperset(recording.existing) or self.living:
            raise UnsupportedError("the backward pass uses or keeps tensors that are not guarded")
        if any(recording.is_written(number) for number in recording.existing if number != numbers[0]):
            raise UnsupportedError("the backward pass writes to memory from before")
        program = planning.program(recording)
        for tensor, number in zip(operands, numbers, strict=True):
            program.add_input(tensor, number in reached, None, False)
        given: list[tuple[str, Any]] = []
        for grad in self.gradients:
            if grad is None:
                given.append(("value", None))
                continue
            given.append(("tensor", sum(kind == "tensor" for kind, _ in given)))
            self._give(program, grad, numbers, operands)
        program.set_trees(tuple(("tensor", k) for k in range(len(operands))), (), ("tuple", tuple, tuple(given)))
        try:
            program.finish()
        except ValueError as error:
            raise UnsupportedError(str(error)) from None
        reading = {number for number in recording.existing if not recording.is_written(number)}
        used = [tensor for tensor in environment.tensors if recording.find(tensor) in reading]
        arguments: list[Any] = list(self.call.inputs)
        for number, boundary in self.boundaries.items():
            arguments[number] = boundary
        places: list[Any] = [next((k for k, one in enumerate(arguments) if one is leaf), leaf) for leaf in self.leaves]
        watched = [number in reading for number in numbers]
        return BackwardProgram(program, places, used, watched[1], watched[2 + len(self.saved) :])

    def _give(self, program: Any, grad: Tensor, numbers: list[int], operands: list[Tensor]) -> None:
        buffer = self.recording.find(grad)
        if not self.recording.is_existing(buffer):
            program.add_result("memory", grad, -1, None, None)
        elif buffer == numbers[0]:
            program.add_result("input" if grad is operands[0] else "view", grad, 0, None, None)
        else:
            raise UnsupportedError("a gradient is memory from before the backward pass")


class _RecordingPass:
    """What the node of a recorded call does."""

    def __init__(self, graph: RecordedGraph) -> None:
        self._graph = graph

    def run(self, gradient: Tensor) -> tuple[Tensor | None, ...]:
        return self._graph.run_backward(gradient)


class Passes:
    """What a program of a forward pass returns first: the backward pass that belongs to it."""

    backward: BackwardProgram


class BackwardProgram:
    """The replayed backward pass of a compiled function."""

    def __init__(
        self,
        program: Any,
        leaves: list[Any],
        used: list[Tensor],
        uses_output: bool,
        uses_inputs: list[bool],
    ) -> None:
        self.program = program
        self._leaves = leaves
        self._used = used
        self._uses_output = uses_output
        self._uses_inputs = uses_inputs

    def attach(self, output: Tensor, saved: tuple[Tensor, ...], inputs: list[Tensor]) -> None:
        """Give a replayed result its place on the tape."""
        edges = tuple(inputs[leaf]._edge if isinstance(leaf, int) else leaf for leaf in self._leaves)
        kept = output._detached()
        watched = [
            *([kept] if self._uses_output else ()),
            *(tensor for tensor, used in zip(inputs, self._uses_inputs, strict=True) if used),
            *self._used,
        ]
        operands = (kept, *saved, *(tensor._detached() for tensor in inputs))
        output._set_history(_new_node(_ReplayedPass(self.program, operands, watched), edges))


class _ReplayedPass:
    """What the node of a replayed call does: the tensors of one call."""

    def __init__(self, program: Any, operands: tuple[Tensor, ...], watched: list[Tensor]) -> None:
        self._program = program
        self._output = operands[0]
        self._operands = operands
        self._watched = [(tensor, tensor._version) for tensor in watched]

    def run(self, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Replay the backward pass.

        Raises
        ------
        RuntimeError
            If a tensor that the pass needs has been changed in place since the forward pass.
        """
        for tensor, version in self._watched:
            if tensor._version != version:
                raise RuntimeError(
                    "one of the variables needed for gradient computation has been modified by an inplace operation: "
                    f"[{list(tensor.shape)}] is at version {tensor._version}; expected version {version} instead."
                )
        gradient = laid_out_like(gradient, self._output)
        while self._program.is_running:
            time.sleep(0)
        made = self._program.replay((gradient, *self._operands))
        if made is NotImplemented:
            made = self._program.replay((gradient.clone(), *self._operands))
        if made is NotImplemented:
            raise RuntimeError(
                "candelabra.compile: the backward pass does not fit the tensors of its forward pass: a gradient of "
                f"{gradient.dtype}, or memory that has been replaced since"
            )
        gradients: tuple[Tensor | None, ...] = made
        return gradients


class CompiledGraph(Node):
    """The node of a compiled function's result."""

    __slots__ = ("_edges",)

    _edges: tuple[Any, ...]

    def name(self) -> str:
        return "CompiledFunctionBackward"

    def all_edges(self) -> tuple[Any, ...]:
        return self._edges

    def backward(self, gradient: Tensor, edges: Any) -> list[Tensor | None]:
        if self._saved is None:
            raise_freed(self)
        if candelabra.is_grad_enabled():
            raise RuntimeError(DOUBLE)
        return list(self._saved.run(gradient))


def _new_node(saved: Any, edges: tuple[Any, ...]) -> CompiledGraph:
    node = CompiledGraph.__new__(CompiledGraph)
    node._sequence = next_sequence()
    node._hooks = None
    node._saved = saved
    node._edges = edges
    return node


def with_other(value: Any, old: Tensor, new: Tensor) -> Any:
    """Return a result with another tensor in place of one of its tensors."""
    if value is old:
        return new
    if type(value) is list:
        return [with_other(entry, old, new) for entry in value]
    if type(value) is dict:
        return {key: with_other(entry, old, new) for key, entry in value.items()}
    if isinstance(value, tuple):
        entries = [with_other(entry, old, new) for entry in value]
        return tuple(entries) if type(value) is tuple else type(value)(*entries)
    return value


def laid_out_like(gradient: Tensor, output: Tensor) -> Tensor:
    """Return a gradient with the strides of the result, so that all calls have one layout."""
    if gradient.stride() == output.stride() and type(gradient) is Tensor and not gradient.requires_grad:
        return gradient
    made = candelabra.empty_strided(output.shape, output.stride(), dtype=gradient.dtype, device=gradient.device)
    return made.copy_(gradient.detach())


def _leaves_of(output: Tensor, boundaries: list[Boundary]) -> tuple[Any, ...]:
    """Return the leaves of a graph, in the order of a walk from its result, which ends at
    boundaries.

    Raises
    ------
    UnsupportedError
        If a leaf has hooks.
    """
    leaves: dict[int, Any] = {}
    seen: set[int] = set()
    waiting: list[Any] = [output._edge]
    while waiting:
        edge = waiting.pop()
        if edge is None:
            continue
        if isinstance(edge, Tensor):
            if edge._hooks is not None:
                raise UnsupportedError("a leaf of the graph has hooks")
            leaves.setdefault(id(edge), edge)
            continue
        if any(edge is boundary for boundary in boundaries):
            leaves.setdefault(id(edge), edge)
            continue
        node = edge[0] if isinstance(edge, tuple) else edge
        if node._sequence in seen:
            continue
        seen.add(node._sequence)
        waiting.extend(node.all_edges())
    return tuple(leaves.values())
