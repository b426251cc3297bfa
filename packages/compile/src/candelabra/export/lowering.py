"""Programs of kernel calls, which candelabra-runner runs without Python.

A graph is run once at given sizes, and the calls of kernels are noted below the shape rules and
decompositions: operators with the sizes, strides and offsets that kernels see. docs/export.md
describes the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import candelabra
from candelabra import Tensor, pytree

from .graph import Graph, Input, Scaled
from .running import Runner

VERSION = 1
#: The minor version of backend.h that describes what is in the file.
_ABI = [2, 1]
_ALIGNMENT = 64
#: What a buffer is: memory of the arena, an argument, stored bytes, stored bytes that calls change.
_ARENA, _INPUT, _STORED, _CHANGED = range(4)
#: Kinds of arguments, of backend.h.
_TENSOR, _TENSORS = 1, 2

Call = tuple[Any, ...]


def lowered(
    graph: Graph, signatures: Sequence[Mapping[str, int]], examples: Sequence[Any] | None = None
) -> dict[str, Any]:
    """Return the programs of a graph at these sizes, as plain data and storages.

    Parameters
    ----------
    graph
        The graph, on a device whose kernels are those of a backend.
    signatures
        Of each program, the sizes of the graph's symbols. Those of the export are the default.
    examples
        The leaves of the arguments to run the graph with where their sizes are those of a
        signature; else arguments are zeros.

    Raises
    ------
    ValueError
        If the graph cannot be lowered, or the sizes make no sense.
    """
    lowering = _Lowering(graph)
    programs = [lowering.program(_inputs(graph, sizes, examples)) for sizes in signatures]
    return {
        "version": VERSION,
        "abi": _ABI,
        "device": graph.device.type,
        "kernels": [list(kernel) for kernel in lowering.kernels],
        "storages": lowering.storages,
        "programs": programs,
    }


# ---- arguments


def _symbols(graph: Graph, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the size of each symbol."""
    unknown = [name for name in sizes if name not in graph.symbols]
    if unknown:
        known = ", ".join(graph.symbols) or "none"
        raise ValueError(f"runner: the program has no size {unknown[0]!r}; those that may differ: {known}")
    found = dict(sizes)
    for one in graph.inputs:
        for dim, size in enumerate(one.sizes):
            if isinstance(size, Scaled) and size.symbol not in found:
                assert one.value is not None
                found[size.symbol] = (graph.described[one.value].sizes[dim] - size.offset) // size.factor
    for name, size in found.items():
        if type(size) is not int or not graph.symbols[name].allows(size):
            symbol = graph.symbols[name]
            most = "" if symbol.most is None else f" to {symbol.most}"
            raise ValueError(f"runner: {name} must be an int from {symbol.least}{most}, but got {size!r}")
    return found


def _inputs(graph: Graph, sizes: Mapping[str, int], examples: Sequence[Any] | None) -> list[Any]:
    """Return the leaves of the arguments to run the graph with."""
    symbols = _symbols(graph, sizes)
    leaves: list[Any] = []
    for number, one in enumerate(graph.inputs):
        if one.value is None:
            leaves.append(one.constant)
            continue
        shape = [
            symbols[size.symbol] * size.factor + size.offset if isinstance(size, Scaled) else size for size in one.sizes
        ]
        given = None if examples is None else examples[number]
        if isinstance(given, Tensor) and list(given.shape) == shape and given.dtype is one.dtype:
            leaves.append(given.detach().to(graph.device).clone(memory_format=candelabra.contiguous_format))
        else:
            leaves.append(candelabra.zeros(shape, dtype=one.dtype, device=graph.device))
    return leaves


# ---- one program


class _Lowering:
    """The programs of one graph, with the kernels and storages that they share."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._run = Runner(graph)
        self._states = [state.tensor.detach() for state in graph.states]
        written = set(graph.written)
        self._written = [
            tensor for state, tensor in zip(graph.states, self._states, strict=True) if state.value in written
        ]
        self.kernels: dict[tuple[str, int], int] = {}
        self.storages: list[Any] = []

    def program(self, leaves: list[Any]) -> dict[str, Any]:
        """Return the program of a call with these arguments."""
        recording = candelabra._C.Recording()
        saved = [tensor.clone() for tensor in self._written]
        with candelabra.no_grad():
            # The first call may do what later calls do not, such as choosing a kernel.
            self._run(leaves, self._states)
            recording.start()
            try:
                results = [self._tensor(value) for value in self._run(leaves, self._states)]
            finally:
                recording.stop()
            for tensor, before in zip(self._written, saved, strict=True):
                tensor.copy_(before)
        if recording.reason is not None:
            reason, file, line = recording.reason
            raise ValueError(f"runner: {reason} ({file}:{line}), which no program of kernel calls can have")
        try:
            calls = recording.lowered_instructions()
        except ValueError as error:
            raise ValueError(f"runner: {error}, which no program of kernel calls can have") from None
        return _Program(self, recording, calls, leaves, results).described(self._graph)

    def _tensor(self, value: Any) -> Tensor:
        if not isinstance(value, Tensor):
            raise ValueError(
                f"runner: a result of the program is a {type(value).__name__}; the results of a program of kernel calls are tensors"
            )
        if value.device.type != self._graph.device.type:
            raise ValueError(f"runner: a result is on {value.device}, and the program is for {self._graph.device}")
        return value.contiguous()

    def states(self) -> list[Tensor]:
        return self._states

    def kernel(self, name: str, flags: int) -> int:
        return self.kernels.setdefault((name, flags), len(self.kernels))

    def storage(self, storage: Any) -> int:
        for number, known in enumerate(self.storages):
            if known is storage:
                return number
        self.storages.append(storage)
        return len(self.storages) - 1


class _Program:
    """One recording, whose buffers are given their places."""

    def __init__(
        self, lowering: _Lowering, recording: Any, calls: list[Call], leaves: list[Any], results: list[Tensor]
    ) -> None:
        self._lowering = lowering
        self._recording = recording
        self._leaves = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        self._results = results
        # Memory that no call used gets a number too: a result may be an argument or a parameter.
        self._states = {recording.register(state): state for state in lowering.states()}
        self._inputs = {recording.register(leaf): number for number, leaf in enumerate(self._leaves)}
        self._ends = [recording.register(result) if result.numel() else -1 for result in results]
        self._buffers = recording.lowered_buffers()
        self._constants: list[Tensor] = []
        self._calls = self._with_constants(calls)
        #: Numbers in the file of the recording's buffers.
        self._numbers: dict[int, int] = {}

    def described(self, graph: Graph) -> dict[str, Any]:
        """Return the program as plain data."""
        calls = [self._call(call) for call in self._calls]
        outputs = [self._output(*one) for one in zip(_output_names(graph), self._results, self._ends, strict=True)]
        arena, places = self._placed({end for end in self._ends if end >= 0})
        return {
            "inputs": [
                [one.name, tensor.dtype._number, list(tensor.shape), self._number(self._recording.find(tensor), False)]
                for one, tensor in zip(_tensor_inputs(graph), self._leaves, strict=True)
            ],
            "outputs": outputs,
            "arena": arena,
            "buffers": [self._buffer(buffer, places) for buffer in self._numbers],
            "calls": calls,
        }

    def _with_constants(self, calls: list[Call]) -> list[Call]:
        """Return the calls, where copies give changed constants their values before their first
        use.
        """
        found: list[Call] = []
        made: set[int] = set()
        for call in calls:
            for buffer in _buffers_of(call):
                _, is_existing, is_written, constant = self._buffers[buffer]
                if constant is None or is_existing or not is_written or buffer in made:
                    continue
                made.add(buffer)
                source = len(self._buffers)
                self._buffers.append((len(constant), False, False, constant))
                found.append(("copy", (buffer, 0), (source, 0), len(constant)))
            found.append(call)
        return found

    def _number(self, buffer: int, is_needed: bool = True) -> int:
        """Return the number of a buffer in the file; -1 for an argument that no call uses."""
        if not is_needed and buffer not in self._numbers:
            return -1
        return self._numbers.setdefault(buffer, len(self._numbers))

    def _output(self, name: str, result: Tensor, buffer: int) -> list[Any]:
        number = self._number(buffer) if buffer >= 0 else -1
        offset = result.storage_offset() * result.element_size() if number >= 0 else 0
        return [name, result.dtype._number, list(result.shape), number, offset]

    def _buffer(self, buffer: int, places: dict[int, int]) -> list[int]:
        """Return (kind, bytes, where)."""
        size, is_existing, is_written, constant = self._buffers[buffer]
        if buffer in places:
            return [_ARENA, size, places[buffer]]
        if buffer in self._inputs:
            if is_written:
                name = _tensor_inputs(self._lowering._graph)[self._inputs[buffer]].name
                raise ValueError(f"runner: the program writes to its argument {name}")
            return [_INPUT, size, self._inputs[buffer]]
        if buffer in self._states:
            return [_CHANGED if is_written else _STORED, size, self._stored(self._states[buffer], size)]
        if constant is None or is_existing:
            raise ValueError(f"runner: {self._recording.first_use(buffer)} uses memory from outside the program")
        held = candelabra.tensor(list(constant), dtype=candelabra.uint8)
        self._constants.append(held)
        return [_STORED, size, self._stored(held, size)]

    def _stored(self, tensor: Tensor, size: int) -> int:
        storage = tensor.untyped_storage()
        if storage.nbytes() != size:
            raise ValueError("runner: a parameter is a part of other memory; export the module again")
        return self._lowering.storage(storage)

    def _is_made(self, buffer: int) -> bool:
        _, is_existing, is_written, constant = self._buffers[buffer]
        return not is_existing and (constant is None or is_written)

    def _placed(self, ends: set[int]) -> tuple[int, dict[int, int]]:
        """Return the size of the arena, and where each buffer lies in it.

        The largest come first, each at the lowest offset that no buffer in use at the same time
        covers.
        """
        lives: dict[int, list[int]] = {}
        for number, call in enumerate(self._calls):
            for buffer in _buffers_of(call):
                lives.setdefault(buffer, [number, number])[1] = number
        for buffer in ends:
            lives.setdefault(buffer, [len(self._calls)] * 2)[1] = len(self._calls)
        made = [buffer for buffer in lives if self._is_made(buffer)]
        placed: list[tuple[int, int, int, int]] = []
        places: dict[int, int] = {}
        for buffer in sorted(made, key=lambda one: -self._buffers[one][0]):
            begin, end = lives[buffer]
            size = -(-max(self._buffers[buffer][0], 1) // _ALIGNMENT) * _ALIGNMENT
            offset = 0
            for low, high, first, last in placed:
                if last < begin or first > end:
                    continue
                if low >= offset + size:
                    break
                offset = max(offset, high)
            places[buffer] = offset
            placed.append((offset, offset + size, begin, end))
            placed.sort()
        return max((high for _, high, _, _ in placed), default=0), places

    def _call(self, call: Call) -> list[Any]:
        if call[0] == "copy":
            _, to, source, size = call
            return ["copy", self._number(to[0]), to[1], self._number(source[0]), source[1], size]
        if call[0] == "fill":
            _, to, size, pattern = call
            return ["fill", self._number(to[0]), to[1], size, list(pattern)]
        _, name, flags, outputs, arguments = call
        return [
            self._lowering.kernel(name, flags),
            [self._described(one) for one in outputs],
            [self._argument(*one) for one in arguments],
        ]

    def _described(self, one: Any) -> list[Any] | None:
        """Return (buffer, offset, dtype, sizes, strides) or (-1, bytes of a number, dtype,
        sizes).
        """
        if one is None:
            return None
        if one[0] is None:
            return [-1, list(one[1]), one[2], list(one[3])]
        buffer, offset, dtype, sizes, strides = one
        return [self._number(buffer), offset, dtype, list(sizes), list(strides)]

    def _argument(self, kind: int, *held: Any) -> list[Any]:
        if kind == _TENSOR:
            return [kind, self._described(held[0])]
        if kind == _TENSORS:
            return [kind, [self._described(one) for one in held[0]]]
        return [kind, *(list(one) if isinstance(one, tuple) else one for one in held)]


def _tensor_inputs(graph: Graph) -> list[Input]:
    return [one for one in graph.inputs if one.value is not None]


def _output_names(graph: Graph) -> list[str]:
    """Return a name for each result: ``output``, or the keys that lead to it."""
    leaves = pytree.tree_unflatten(list(range(graph.out_spec.num_leaves)), graph.out_spec)
    paths = pytree.tree_leaves_with_path(leaves)
    names: list[str] = []
    for path, _ in paths:
        keys = (getattr(key, "key", getattr(key, "idx", getattr(key, "name", ""))) for key in path)
        parts = ["".join(c if c.isascii() and c.isalnum() else "_" for c in str(key)) for key in keys]
        name = "_".join(["output", *parts] if not parts or parts[0].isdigit() else parts)
        names.append(name if name not in names else f"{name}_{len(names)}")
    return names


def _buffers_of(call: Call) -> list[int]:
    """Return the buffers that a call uses."""
    if call[0] == "copy":
        return [call[1][0], call[2][0]]
    if call[0] == "fill":
        return [call[1][0]]
    tensors = list(call[3])
    for argument in call[4]:
        if argument[0] == _TENSOR:
            tensors.append(argument[1])
        elif argument[0] == _TENSORS:
            tensors += argument[1]
    return [one[0] for one in tensors if one is not None and one[0] is not None]
