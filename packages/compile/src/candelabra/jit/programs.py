"""What `trace` and `script` make: functions and modules with a graph that can be saved."""

from __future__ import annotations

import copy
import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Self

import candelabra
from candelabra import Tensor, nn, pytree
from candelabra.export.interface import (
    Dim,
    ExportedModule,
    ExportedProgram,
    ExportError,
    Graph,
    TracerWarning,
    exported_graph,
    resized,
)

from .modes import is_plain, tracing
from .recorded import Recorded


class Error(RuntimeError):
    """A program cannot be recorded or saved."""


#: Of larger arguments a part is kept: their values do not matter, but must be valid.
_LARGE = 1 << 14


class _Kept(NamedTuple):
    """A tensor of the arguments: its sizes, and all or the first of its values."""

    values: Tensor
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, leaf: Any) -> Any:
        """Return what is kept of a leaf of the arguments."""
        if not isinstance(leaf, Tensor):
            return leaf
        part = leaf.detach()
        for dim, size in enumerate(leaf.shape):
            if part.numel() > _LARGE:
                part = part.narrow(dim, 0, min(size, max(1, size * _LARGE // part.numel())))
        return cls(part.clone(), tuple(leaf.shape))

    def tensor(self) -> Tensor:
        """Return a tensor of the sizes."""
        return resized(self.values.clone(), dict(enumerate(self.sizes)))


class Recordable:
    """A function, the module that it is of, and the arguments that it is recorded with."""

    def __init__(self, function: Callable[..., Any], module: nn.Module | None, name: str) -> None:
        self.function, self.module, self.name = function, module, name
        #: Leaves of the arguments, and their form.
        self._example: tuple[list[Any], Any] | None = None

    def note(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Keep the arguments of the first call, which the graph is recorded with."""
        if self._example is not None or not is_plain():
            return
        leaves, spec = pytree.tree_flatten((args, kwargs))
        if all(not isinstance(leaf, Tensor) or type(leaf) in (Tensor, nn.Parameter) for leaf in leaves):
            with candelabra.no_grad():
                self._example = ([_Kept.of(leaf) for leaf in leaves], spec)

    def take(self, other: Recordable) -> None:
        """Take the kept arguments of another."""
        self._example = other._example

    def apply(self, fn: Callable[[Tensor], Tensor]) -> None:
        """Convert the kept arguments as those of the parameters that `fn` converts."""
        if self._example is not None:
            leaves, spec = self._example
            kept = [leaf._replace(values=fn(leaf.values)) if isinstance(leaf, _Kept) else leaf for leaf in leaves]
            self._example = (kept, spec)

    def example(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return arguments like those of the first call.

        Raises
        ------
        Error
            If there was no call.
        """
        if self._example is None:
            raise Error(f"{self.name}: call it once before, so that there are arguments to record it with")
        leaves, spec = self._example
        with candelabra.no_grad():
            given = [leaf.tensor() if isinstance(leaf, _Kept) else leaf for leaf in leaves]
        args, kwargs = pytree.tree_unflatten(given, spec)
        return args, kwargs

    def graph(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], keeps_values: bool = False, dynamic: Any = None
    ) -> Graph:
        """Return the graph of a call.

        Raises
        ------
        Error
            If it cannot be recorded.
        """
        signature = self.function if self.module is None else self.module.forward
        try:
            return exported_graph(self.function, signature, self.module, args, kwargs, dynamic, keeps_values)
        except ExportError as error:
            raise Error(f"{self.name} cannot be recorded: {error}") from error

    def program(self, keeps_values: bool = False) -> ExportedProgram:
        """Return a program for as many sizes as the function works with."""
        args, kwargs = self.example()
        dynamic = tuple(_any_size(value) for value in (*args, *kwargs.values()))
        with warnings.catch_warnings():
            if keeps_values:  # said when it was traced
                warnings.simplefilter("ignore", TracerWarning)
            return ExportedProgram(self.graph(args, kwargs, keeps_values, dynamic))


def _any_size(value: Any) -> Any:
    """Return the ``dynamic_shapes`` of an argument of any sizes."""
    if isinstance(value, Tensor):
        return tuple([Dim.AUTO] * value.ndim)
    children, spec = pytree.tree_flatten(value, lambda node: node is not value)
    return None if spec.is_leaf() else [_any_size(child) for child in children]


class ScriptFunction(Recorded):
    """A function that `script` or `trace` was called with; it can be saved."""

    __module__: str
    __qualname__: str

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._recordable = Recordable(function, None, getattr(function, "__name__", "function"))
        self._traced: Traced | None = None

    @property
    def name(self) -> str:
        """The name of the function."""
        return self._recordable.name

    @property
    def qualified_name(self) -> str:
        """The name of the function with those of its module and class."""
        return f"{self.__module__}.{self.__qualname__}"

    @property
    def schema(self) -> inspect.Signature:
        """The parameters of the function."""
        return inspect.signature(self._recordable.function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._traced is not None:
            return self._traced(*args, **kwargs)
        self._recordable.note(args, kwargs)
        return self._recordable.function(*args, **kwargs)

    def __reduce__(self) -> Any:
        found: Any = sys.modules.get(self.__module__)
        for atom in self.__qualname__.split("."):
            found = getattr(found, atom, None)
        return self.__qualname__ if found is self else (ScriptFunction, (self._recordable.function,))

    def _program(self) -> ExportedProgram:
        return self._recordable.program(self._traced is not None)


class Traced:
    """The graphs of a traced function or module, one for each form and sizes of the arguments."""

    #: Graphs that are kept; arguments of further forms run from the oldest's place.
    MOST = 16

    def __init__(self, recordable: Recordable) -> None:
        self.recordable = recordable
        self.programs: dict[Any, ExportedModule] = {}

    def prepare(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ExportedModule:
        """Return the module that runs the trace of these arguments, tracing them if need be."""
        key = _key(args, kwargs)
        module = self.programs.get(key)
        if module is None:
            module = ExportedModule(self.recorded(args, kwargs))
            if len(self.programs) >= self.MOST:
                del self.programs[next(iter(self.programs))]
            self.programs[key] = module
        return module

    def recorded(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Graph:
        """Return the graph of a call."""
        with tracing():
            return self.recordable.graph(args, kwargs, keeps_values=True)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.prepare(args, kwargs).forward(*args, **kwargs)


def _key(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    leaves, spec = pytree.tree_flatten((args, kwargs))
    return (
        repr(spec),
        tuple(
            (leaf.dtype, tuple(leaf.shape), leaf.device) if isinstance(leaf, Tensor) else (type(leaf), leaf)
            for leaf in leaves
        ),
    )


class ScriptModule(Recorded, nn.Module):
    """The class of modules that `script`, `trace` or `load` made; one that derives from it runs as
    Python.
    """

    def _program(self) -> ExportedProgram:
        raise Error(f"a {type(self).__name__} is no program: derive it from nn.Module, and use jit.script or jit.trace")


class RecursiveScriptModule(ScriptModule):
    """A module that shares the parameters, buffers and submodules of another, and runs its code.

    What it has not itself, it has of the other.
    """

    def __init__(self, original: nn.Module) -> None:
        super().__init__()
        own = self.__dict__
        own["_original"] = original
        for table in ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"):
            own[table] = original.__dict__[table]
        own["training"] = original.training
        own["_recordable"] = Recordable(original, original, type(original).__name__)

    @property
    def original_name(self) -> str:
        """The name of the class of the original."""
        return type(self._original).__name__

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            original = self.__dict__.get("_original")
            if original is None:
                raise
            return getattr(original, name)

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        return len(self._original)

    def __getitem__(self, index: Any) -> Any:
        return self._original[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._original)

    def __contains__(self, key: Any) -> bool:
        return key in self._original

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the original."""
        self._recordable.note(args, kwargs)
        return self._original(*args, **kwargs)

    def train(self, mode: bool = True) -> Self:
        """Set the mode of the original, too."""
        self._original.train(mode)
        self.training = mode
        return self

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        self._original._apply(fn, recurse)
        self._recordable.apply(fn)
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        original = self.__dict__.get("_original")
        if original is not None and name in original.__dict__ and name != "training":
            setattr(original, name, value)

    def __copy__(self) -> RecursiveScriptModule:
        return self._like(copy.copy(self._original))

    def __deepcopy__(self, memo: dict[int, Any]) -> RecursiveScriptModule:
        return self._like(copy.deepcopy(self._original, memo))

    def _like(self, original: nn.Module) -> RecursiveScriptModule:
        made = type(self)(original)
        made._recordable.take(self._recordable)
        return made

    def __reduce__(self) -> Any:
        return type(self), (self._original,)

    def copy(self) -> RecursiveScriptModule:
        """Return a copy with parameters of its own."""
        return copy.deepcopy(self)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Return the state dict of the original."""
        return self._original.state_dict(*args, **kwargs)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Load a state dict into the original."""
        return self._original.load_state_dict(*args, **kwargs)

    def _program(self) -> ExportedProgram:
        return self._recordable.program()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(original_name={self.original_name})\n{self._original!r}"


class TracedModule(RecursiveScriptModule):
    """The class of modules that were traced."""


class TopLevelTracedModule(TracedModule):
    """A module that runs the operators of a traced call. Other sizes are traced anew."""

    def __init__(self, original: nn.Module) -> None:
        super().__init__(original)
        self.__dict__["_traced"] = Traced(self._recordable)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the operators of the traced call."""
        self._recordable.note(args, kwargs)
        return self._traced(*args, **kwargs)

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        super()._apply(fn, recurse)
        # Parameters are other tensors, or on another device.
        self._traced.programs.clear()
        return self

    def train(self, mode: bool = True) -> Self:
        """Set the mode of the original, which is traced anew."""
        if mode != self.training:
            self._traced.programs.clear()
        return super().train(mode)

    def _program(self) -> ExportedProgram:
        with tracing():
            return self._recordable.program(keeps_values=True)


class LoadedModule(ScriptModule):
    """A module from a file: it runs the operators that were recorded."""

    def __init__(self, program: ExportedProgram) -> None:
        super().__init__()
        module = program.module()
        own = self.__dict__
        own["_stored"], own["_module"] = program, module
        for table in ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"):
            own[table] = module.__dict__[table]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program."""
        return self._module.forward(*args, **kwargs)

    def _program(self) -> ExportedProgram:
        graph = copy.copy(self._stored._graph)
        graph.states = [
            type(state)(state.value, state.kind, state.name, tensor, state.is_persistent)
            for state, tensor in zip(graph.states, self._module.states(), strict=True)
        ]
        return ExportedProgram(graph)

    def __deepcopy__(self, memo: dict[int, Any]) -> LoadedModule:
        graph = self._program()._graph
        for state in graph.states:
            state.tensor = copy.deepcopy(state.tensor, memo)
        made = LoadedModule(ExportedProgram(graph))
        made.training = self.training
        return made


class FrozenModule(ScriptModule):
    """A module whose parameters nobody changes: it has a copy of the original, and of its
    attributes those that are named.
    """

    def __init__(self, frozen: ScriptModule, preserved: Iterable[str] = ()) -> None:
        super().__init__()
        self.__dict__["_frozen"] = frozen
        self.training = False
        for name in preserved:
            self.__dict__[name] = getattr(frozen, name)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the copy."""
        with candelabra.no_grad():
            return self._frozen(*args, **kwargs)

    def _program(self) -> ExportedProgram:
        found: ExportedProgram = self._frozen._program()
        return found

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        self._frozen._apply(fn, recurse)
        return self
