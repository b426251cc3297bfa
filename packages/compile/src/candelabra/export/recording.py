"""Recording: a function runs for real, and each operator that it calls becomes a node."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import candelabra
import candelabra.compiler as _compiler  # noqa: F401
import candelabra.library
from candelabra import _C, Tensor, nn, overrides, pytree
from candelabra.compiler.frames import line_of
from candelabra.library.aten_dispatch import operator_of
from candelabra.python_dispatch import TorchDispatchMode

from .graph import Described, ExportError, Node, Ref, State, walk
from .watching import Watch

#: Methods that tell a program what is in a tensor: what follows from it would be the same for ever.
_ASKING = frozenset(
    {"item", "tolist", "numpy", "__array__", "__bool__", "__int__", "__float__", "__index__", "__complex__"}
)
#: Functions that ask for values only to raise an error if there are wrong ones.
_CHECKING = frozenset({"binary_cross_entropy", "gaussian_nll_loss"})
#: Functions that copy values of tensors on the host.
_MAKING = frozenset({"tensor", "new_tensor"})
#: Operators whose results have sizes that depend on values.
_UNSIZED = frozenset({"nonzero", "masked_select", "bincount", "unique_consecutive"})
#: The tag of operators that draw random numbers.
RANDOM = 4
_PLAIN = (
    bool, int, float, complex, str, type(None), candelabra.dtype, candelabra.device, candelabra.memory_format,
    candelabra.layout,
)  # fmt: skip


class TracerWarning(Warning):
    """A trace keeps a value that follows from the arguments."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Do nothing: lines of libraries are warned of like others."""


def _line() -> tuple[str, int]:
    return line_of(sys._getframe(1))


def _at(place: tuple[str, int]) -> str:
    return f" ({place[0]}:{place[1]})" if place[0] else ""


class _Asking(overrides.TorchFunctionMode):
    """Notices where the program asks what is in a tensor that another call may compute
    otherwise.
    """

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        kwargs = {} if kwargs is None else kwargs
        if name in _MAKING and any(self.recorder.is_variable(one) for one in _tensors([*args, *kwargs.values()])):
            self.recorder.refuse_value(f"{name}() makes a tensor from the values of others", _line())
        if name in _CHECKING:
            with self.recorder.watch.pause():
                return func(*args, **kwargs)
        if name not in _ASKING or not args or not isinstance(args[0], Tensor):
            return func(*args, **kwargs)
        with self.recorder.watch.pause():
            if self.recorder.is_variable(args[0]):
                self.recorder.refuse_value(f"{name}() asks for the value of a tensor", _line())
            return func(*args, **kwargs)


@dataclass
class Recording:
    """What one call computed."""

    nodes: list[Node]
    described: dict[int, Described]
    constants: list[State]
    #: The leaves of the result: Ref or plain values.
    outputs: list[Any]
    out_spec: Any
    written: list[int]


@dataclass
class _Saved:
    """The values from before the recording of a tensor that it writes to."""

    tensor: Tensor
    values: Tensor


@dataclass
class Recorder:
    """The values and the nodes of a recording.

    Tensors are known by their identity, and else by their memory and geometry.
    """

    #: Whether values that depend on data are kept with a warning, and do not raise.
    keeps_values: bool = False
    nodes: list[Node] = field(default_factory=list)
    described: dict[int, Described] = field(default_factory=dict)
    constants: list[State] = field(default_factory=list)
    written: dict[int, None] = field(default_factory=dict)
    saved: dict[int, _Saved] = field(default_factory=dict)
    count: int = 0

    def __post_init__(self) -> None:
        self.watch = Watch(self.refuse_value)
        #: By identity of a tensor: its memory and geometry when it was noted, and its value.
        self._values: dict[int, tuple[Any, int]] = {}
        self._places: dict[Any, int] = {}
        #: By storage: the first value in it that the recording did not make; else None.
        self._storages: dict[int, int | None] = {}
        #: Whether the storage is that of parameters and buffers.
        self._of_state: set[int] = set()
        #: Keeps tensors and storages alive, so that identities stay theirs.
        self._kept: list[Any] = []
        self._variable: set[int] = set()
        self._warned: set[tuple[str, int]] = set()

    def new(self, tensor: Tensor) -> int:
        """Return the number of a new value."""
        number = self.count
        self.count += 1
        self._note(tensor, number)
        self.described[number] = Described(tensor.dtype, tuple(tensor.shape))
        return number

    def _note(self, tensor: Tensor, number: int) -> None:
        place = _place(tensor)
        self._values[id(tensor)] = (place, number)
        self._places[place] = number
        self._storages.setdefault(place[0], None)
        self._kept += [tensor, tensor.untyped_storage()]

    def add_input(self, tensor: Tensor) -> int:
        """Make a tensor of the arguments a value."""
        number = self.new(tensor)
        self._variable.add(number)
        self._storages[_memory(tensor)] = number
        return number

    def add_state(self, tensor: Tensor) -> int:
        """Make a parameter or a buffer a value."""
        number = self.new(tensor)
        storage = _memory(tensor)
        self._storages[storage] = number
        self._of_state.add(storage)
        return number

    def find(self, tensor: Tensor) -> int | None:
        """Return the value of a tensor, or None."""
        place = _place(tensor)
        noted, number = self._values.get(id(tensor), (None, -1))
        return number if noted == place else self._places.get(place)

    def is_variable(self, tensor: Tensor) -> bool:
        """Return whether another call may compute other values of a tensor."""
        number = self.find(tensor)
        return number is not None and (number in self._variable or _memory(tensor) in self._of_state)

    def refuse_value(self, what: str, place: tuple[str, int]) -> None:
        """Raise because of a value that another call may compute otherwise, or warn."""
        if not self.keeps_values:
            raise ExportError(
                f"{what}{_at(place)}, which differs from call to call, and the graph would have that of this call for "
                "ever; compute with tensors (candelabra.where, masks), or ask outside of the exported program"
            )
        if place not in self._warned:
            self._warned.add(place)
            _C.warn(
                f"{what}{_at(place)}: the trace keeps what follows from it as a constant, so that it might not be "
                "right for other arguments",
                TracerWarning,
            )

    def argument(self, value: Any, name: str, op: str) -> Any:
        """Return what stands for a value in the arguments of a node."""
        if isinstance(value, Tensor):
            return Ref(self._value_of(value, op))
        if isinstance(value, list | tuple):
            return [self.argument(entry, name, op) for entry in value]
        if type(value) in _PLAIN:
            return value
        for kind in (bool, int, float, str):
            if isinstance(value, kind):
                return kind(value)
        try:
            return operator.index(value)
        except TypeError:
            raise ExportError(
                f"argument '{name}' of {op}{_at(_line())} is a {type(value).__name__}, which no file can hold"
            ) from None

    def _value_of(self, tensor: Tensor, op: str) -> int:
        number = self.find(tensor)
        if number is not None:
            return number
        storage = _memory(tensor)
        if storage in self._storages and storage not in self._of_state:
            raise ExportError(f"{op}{_at(_line())} uses a view that no operator has made in the recorded call")
        if tensor.is_meta:
            raise ExportError(f"{op}{_at(_line())} uses a tensor of the device meta, which has no values")
        number = self.add_state(tensor)
        if storage not in self._storages or self._storages[storage] == number:
            self._of_state.discard(storage)
        name = f"_tensor_constant{len(self.constants)}"
        self.constants.append(State(number, "constant", name, tensor.detach(), False))
        return number

    def note_writes(self, func: Any, args: Any, kwargs: dict[str, Any]) -> None:
        """Note which tensors from before the call an operator writes to, and keep their values."""
        targets = [kwargs["out"]] if kwargs.get("out") is not None else []
        names = func.parameters
        if func.functional is not None or _works_in_place(func.name):
            targets.append(args[0] if args else kwargs[names[0]])
        for position, kind in enumerate(func.parameter_types):
            if "!" in kind:
                targets.append(args[position] if position < len(args) else kwargs.get(names[position]))
        for tensor in _tensors(targets):
            self._value_of(tensor, func.name)
            number = self._storages.get(_memory(tensor))
            if number is None:
                continue
            if any(state.value == number for state in self.constants):
                raise ExportError(
                    f"{func.name}{_at(_line())} writes to a tensor that is neither an argument, a parameter nor a buffer; "
                    "make it in the program by an operator such as zeros, or register it as a buffer"
                )
            self.written[number] = None
            if number not in self.saved:
                # The whole memory is kept, because the operator may write to a view of it.
                self._save(number, tensor)

    def _save(self, number: int, tensor: Tensor) -> None:
        memory = candelabra._C.tensor_on_storage(tensor.untyped_storage(), candelabra.uint8)
        self.saved[number] = _Saved(memory, memory.clone())

    def restore(self) -> None:
        """Give the tensors from before the recording their values back.

        Those that have them still count as not written.
        """
        with candelabra.no_grad():
            for number, saved in self.saved.items():
                if saved.tensor.equal(saved.values):
                    del self.written[number]
                else:
                    saved.tensor.copy_(saved.values)

    def add(self, func: Any, args: Any, kwargs: dict[str, Any], result: Any) -> None:
        """Add the node of a call."""
        name = func.name
        if name in _UNSIZED or (name == "index" and _has_mask(args)):
            self.refuse_value(f"the shape of the result of {name} depends on the values of a tensor", _line())
        names = func.parameters
        node = Node(
            name,
            [self.argument(value, names[k], name) for k, value in enumerate(args)],
            {key: self.argument(value, key, name) for key, value in kwargs.items()},
            [],
            isinstance(result, Tensor),
            *_line(),
        )
        self._make_explicit(func, node, result)
        entries = [result] if node.is_single else result
        if not isinstance(entries, list | tuple) or not all(isinstance(one, Tensor | None) for one in entries):
            raise ExportError(f"{node.place()} returns a {type(result).__name__}, which is no tensor")
        is_variable = func.tags & RANDOM or any(
            leaf.value in self._variable for leaf in walk([*node.args, *node.kwargs.values()]) if type(leaf) is Ref
        )
        for one in entries:
            node.outputs.append(None if one is None else self.new(one))
            if is_variable and one is not None:
                self._variable.add(self.count - 1)
        self.nodes.append(node)

    def _make_explicit(self, func: Any, node: Node, result: Any) -> None:
        """Write down the dtype and the device that follow from defaults, and devices as devices."""
        kinds = dict(zip(func.parameters, func.parameter_types, strict=True))

        def device(name: str, value: Any) -> Any:
            is_device = type(value) is str and kinds.get(name, "").startswith(("device", "object"))
            return candelabra.device(value) if is_device else value

        node.args = [device(name, value) for name, value in zip(func.parameters, node.args, strict=False)]
        node.kwargs = {name: device(name, value) for name, value in node.kwargs.items()}
        if any(type(leaf) is Ref for leaf in walk([*node.args, *node.kwargs.values()])) or not node.is_single:
            return
        given = {*func.parameters[: len(node.args)], *node.kwargs}
        for name, value in (("dtype", result.dtype), ("device", result.device)):
            if name in kinds and (name not in given or node.kwargs.get(name, name) is None):
                node.kwargs[name] = value


def _works_in_place(name: str) -> bool:
    return name.endswith("_") and not name.endswith("__")


def _tensors(values: list[Any]) -> list[Tensor]:
    found = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, list | tuple):
            found += _tensors(list(value))
    return found


def _has_mask(args: Any) -> bool:
    return len(args) > 1 and any(index.dtype in (candelabra.bool, candelabra.uint8) for index in _tensors([args[1]]))


def _memory(tensor: Tensor) -> Any:
    """Return what tensors of the same memory share, aliases with other storages included."""
    storage = tensor.untyped_storage()
    address = 0 if tensor.is_meta or storage.nbytes() == 0 else storage.data_ptr()
    return (address, str(tensor.device)) if address else id(storage)


def _place(tensor: Tensor) -> Any:
    return (_memory(tensor), tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)


class RecordingMode(TorchDispatchMode):
    """Gives each operator to a recorder."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        func = operator_of(func)
        kwargs = {} if kwargs is None else dict(kwargs)
        if kwargs.pop("generator", None) is not None:
            raise ExportError(f"{func.name}{_at(_line())} draws from a generator of its own, which no file can hold")
        with self.recorder.watch.pause():
            self.recorder.note_writes(func, args, kwargs)
            result = func(*args, **kwargs)
            self.recorder.add(func, args, kwargs, result)
        return result


def record(function: Callable[[], Any], recorder: Recorder) -> Recording:
    """Call a function and return what it computed.

    Tensors from before the call, and the random numbers of the CPU, are left as they were.
    """
    if candelabra._C.is_recording():
        raise ExportError("a program is exported within a call of a compiled function; export it outside")
    state = candelabra.get_rng_state()
    # Parameters that were cast before the call would be constants of the program.
    candelabra.clear_autocast_cache()
    try:
        with _Asking(recorder), RecordingMode(recorder):
            recorder.watch.start()
            result = function()
            recorder.watch.check()
        leaves, spec = pytree.tree_flatten(result)
        outputs = [recorder.argument(leaf, "output", "the result") for leaf in leaves]
    finally:
        recorder.watch.stop()
        recorder.restore()
        candelabra.set_rng_state(state)
        candelabra.clear_autocast_cache()
    return Recording(recorder.nodes, recorder.described, recorder.constants, outputs, spec, list(recorder.written))


def named_states(module: nn.Module) -> list[tuple[str, str, Tensor, bool]]:
    """Return the parameters and buffers of a module: kind, name, tensor, and whether it is
    saved.
    """
    found: list[tuple[str, str, Tensor, bool]] = [
        ("parameter", name, tensor, True) for name, tensor in module.named_parameters(remove_duplicate=False)
    ]
    for path, child in module.named_modules(remove_duplicate=False):
        for name, tensor in child._buffers.items():
            if tensor is not None:
                is_persistent = name not in child._non_persistent_buffers_set
                found.append(("buffer", f"{path}.{name}" if path else name, tensor, is_persistent))
    return found
