"""`export`: record a module, at several sizes if sizes differ from call to call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import candelabra
from candelabra import Tensor, nn, pytree
from candelabra.compiler import stance

from .dead_code import remove_dead
from .dims import Shapes, read_shapes
from .graph import ExportError, Graph, Input, Scaled, State, Symbol
from .program import ExportedProgram
from .recording import Recorder, Recording, named_states, record
from .shape_builders import AdditionalInputs, ShapesCollection
from .sizes import resized, unify
from .trees import names_of_arguments


def export(
    mod: nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """Record a call of a module, as a program that runs and is saved without the module's code.

    The module runs for real, once, or several times at other sizes if there are `dynamic_shapes`.
    Its buffers, the arguments and the CPU's random numbers are left as they were.

    Parameters
    ----------
    mod
        The module. The program is that of its present mode, `train()` or `eval()`.
    args, kwargs
        The arguments of the call. Values that are no tensors are those of all calls.
    dynamic_shapes
        Sizes that differ from call to call, by argument: for tensors a dict of `Dim` by dimension,
        or a tuple with a `Dim`, ``Dim.AUTO`` or None for each. Containers have containers. A
        `ShapesCollection` or `AdditionalInputs`, too.
    strict, prefer_deferred_runtime_asserts_over_guards
        Accepted for compatibility: nothing is analyzed, and calls are checked when they are made.
    preserve_module_call_signature
        Not supported; must be empty.

    Returns
    -------
    ExportedProgram

    Raises
    ------
    ExportError
        If the program asks for values, writes to tensors that are not its own, or computes
        something else at other sizes. The message names the operator and the line.
    ValueError
        If `mod` is no module.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> from candelabra.export import Dim, export
    >>> batch = Dim("batch")
    >>> program = export(nn.Linear(3, 2), (candelabra.ones(4, 3),), dynamic_shapes=({0: batch},))
    >>> program.module()(candelabra.ones(7, 3)).shape
    candelabra.Size([7, 2])
    """
    if not isinstance(mod, nn.Module):
        raise ValueError(f"Expected `mod` to be an instance of `candelabra.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise TypeError(f"export(): args must be a tuple of the arguments, but got {type(args).__name__}")
    if preserve_module_call_signature:
        raise NotImplementedError("export(): preserve_module_call_signature is not supported")
    kwargs = dict(kwargs or {})
    if isinstance(dynamic_shapes, ShapesCollection | AdditionalInputs):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, kwargs)
    graph = exported_graph(mod, mod.forward, mod, args, kwargs, dynamic_shapes)
    return ExportedProgram(graph, (args, kwargs))


def exported_graph(
    function: Callable[..., Any],
    signature: Callable[..., Any],
    module: nn.Module | None,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    dynamic_shapes: Any = None,
    keeps_values: bool = False,
) -> Graph:
    """Return the graph of a call of `function`, whose parameters are those of `signature`.

    `keeps_values` says that values which depend on data are kept, with a warning.
    """
    names = names_of_arguments(signature, args)
    arguments = dict(zip(names, args, strict=True)) | kwargs
    leaves, spec = pytree.tree_flatten((args, kwargs))
    recorder = _Exporter(function, module, leaves, spec, keeps_values)
    shapes = read_shapes(arguments, leaves, _by_argument(signature, names, kwargs, dynamic_shapes))
    recording, shapes = _record_optional(recorder, shapes)
    paths = pytree.tree_leaves_with_path(arguments)
    remove_dead(recording)
    inputs = _inputs(leaves, [_name_of(path) for path, _ in paths], recorder.values, shapes)
    name = type(module).__name__ if module is not None else getattr(function, "__name__", "program")
    return Graph(
        name if name.isidentifier() else "program",
        _device(recorder.tensors()),
        inputs,
        [*recorder.states, *recording.constants],
        recording.nodes,
        recording.outputs,
        shapes.symbols,
        recording.described,
        _parameter_names(signature, names),
        spec,
        recording.out_spec,
        recording.written,
    )


def _record_optional(exporter: _Exporter, shapes: Shapes) -> tuple[Recording, Shapes]:
    """Return the recording with as many sizes of ``Dim.AUTO`` as the program works with.

    These are all, those of the first dimensions, or none.
    """
    first = {one.symbol for sizes in shapes.by_leaf for dim, one in sizes.items() if dim == 0} & shapes.optional
    for kept in (shapes.optional, first) if shapes.optional else ():
        some = _without(shapes, shapes.optional - kept)
        try:
            return exporter.record_all(some), some
        except ExportError:
            continue
    rest = _without(shapes, shapes.optional)
    try:
        return exporter.record_all(rest), rest
    except ExportError:
        joined = _joined(rest)
        if len(joined.symbols) == len(rest.symbols):
            raise
    return exporter.record_all(joined), joined


def _joined(shapes: Shapes) -> Shapes:
    """Return the shapes with one symbol for equal sizes of ``Dim.DYNAMIC``."""
    first: dict[int, str] = {}
    names = {
        name: first.setdefault(value, name) if name in shapes.joinable else name
        for name, value in shapes.example.items()
    }
    by_leaf = [
        {dim: Scaled(names[one.symbol], one.factor, one.offset) for dim, one in sizes.items()}
        for sizes in shapes.by_leaf
    ]
    kept = set(names.values())
    return Shapes(
        by_leaf,
        {name: symbol for name, symbol in shapes.symbols.items() if name in kept},
        {name: value for name, value in shapes.example.items() if name in kept},
        shapes.optional,
        shapes.joinable & kept,
    )


def _without(shapes: Shapes, fixed: set[str]) -> Shapes:
    """Return the shapes with some symbols as fixed sizes."""
    by_leaf = [{dim: one for dim, one in sizes.items() if one.symbol not in fixed} for sizes in shapes.by_leaf]
    used = {one.symbol for sizes in by_leaf for one in sizes.values()}
    symbols = {name: symbol for name, symbol in shapes.symbols.items() if name in used}
    return Shapes(
        by_leaf,
        symbols,
        {name: shapes.example[name] for name in symbols},
        shapes.optional - fixed,
        shapes.joinable - fixed,
    )


class _Exporter:
    """Records a call at several sizes."""

    def __init__(
        self, function: Callable[..., Any], module: nn.Module | None, leaves: list[Any], spec: Any, keeps_values: bool
    ) -> None:
        self._function = function
        self._leaves, self._spec = leaves, spec
        self._keeps_values = keeps_values
        self._named = [] if module is None else named_states(module)
        self.states: list[State] = []
        #: The values of the arguments; None of those that are no tensors.
        self.values: list[int | None] = []

    def tensors(self) -> list[Tensor]:
        """Return the state and the arguments."""
        return [tensor for _, _, tensor, _ in self._named] + [leaf for leaf in self._leaves if isinstance(leaf, Tensor)]

    def record_all(self, shapes: Shapes) -> Recording:
        """Return the recording, with formulas for sizes."""
        # Sizes 0 and 1 broadcast, and are no example of others.
        base = {
            name: value if value > 1 else next(iter(_other_sizes(shapes.symbols[name], value)), value)
            for name, value in shapes.example.items()
        }
        recordings = [self._record(self._resized(shapes, base))]
        for name, symbol in shapes.symbols.items():
            others = ({**base, name: other} for other in _other_sizes(symbol, base[name]))
            recordings.append(self._record_first(shapes, others))
        if shapes.symbols:
            recordings.append(self._record_first(shapes, _all_other(shapes, base)))
        return unify(recordings)

    def _record_first(self, shapes: Shapes, candidates: Iterator[dict[str, int]]) -> Recording:
        """Return the recording at the first sizes at which the program runs."""
        first: tuple[dict[str, int], Exception] | None = None
        for sizes in candidates:
            try:
                return self._record(self._resized(shapes, sizes))
            except ExportError:
                raise
            except Exception as error:
                first = first or (sizes, error)
        if first is None:
            raise ExportError(f"there is no other size than {shapes.example} to record the program at")
        raise ExportError(
            f"the program does not run at other sizes: with {', '.join(f'{name}={size}' for name, size in first[0].items())} it "
            f"raises {type(first[1]).__name__}: {first[1]}"
        ) from first[1]

    def _resized(self, shapes: Shapes, values: dict[str, int]) -> list[Any]:
        return [
            leaf
            if not sizes
            else resized(leaf, {dim: values[one.symbol] * one.factor + one.offset for dim, one in sizes.items()})
            for leaf, sizes in zip(self._leaves, shapes.by_leaf, strict=True)
        ]

    def _record(self, leaves: list[Any]) -> Recording:
        recorder = Recorder(self._keeps_values)
        known: dict[int, int] = {}
        self.states = []
        for kind, name, tensor, is_persistent in self._named:
            number = known.get(id(tensor))
            if number is None:
                number = known[id(tensor)] = recorder.add_state(tensor)
                self.states.append(State(number, kind, name, tensor, is_persistent))
        given = [_alone(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        self.values = [recorder.add_input(leaf) if isinstance(leaf, Tensor) else None for leaf in given]
        args, kwargs = pytree.tree_unflatten(given, self._spec)
        with stance.exporting():
            return record(lambda: self._function(*args, **kwargs), recorder)


def _alone(tensor: Tensor) -> Tensor:
    """Return a tensor as an argument of its own, also if it is given twice or is a parameter."""
    return tensor.detach().requires_grad_(tensor.requires_grad)


def _other_sizes(symbol: Symbol, size: int) -> Iterator[int]:
    """Iterate over sizes to record at, other than the one given and those that broadcast."""
    for other in (2 * size, size + 1, 3 * size + 1, size - 1, size + 2, 3 * size, size + 32, 4 * size, 2, 3):
        if other > 1 and other != size and symbol.allows(other):
            yield other


def _all_other(shapes: Shapes, base: dict[str, int]) -> Iterator[dict[str, int]]:
    """Iterate over sizes that all differ from those of the example."""
    for make in (
        lambda k, size: size + 1 + k,
        lambda k, size: 3 * size,
        lambda k, size: (k + 2) * size,
        lambda k, size: 2 * size,
        lambda k, size: size - 1,
    ):
        sizes = {name: make(k, base[name]) for k, name in enumerate(base)}
        if all(size > 1 and shapes.symbols[name].allows(size) for name, size in sizes.items()):
            yield sizes


def _by_argument(signature: Callable[..., Any], names: list[str], kwargs: dict[str, Any], specification: Any) -> Any:
    """Return ``dynamic_shapes`` with an entry for each argument, also of ``*args`` and
    ``**kwargs``, which have one entry as in PyTorch.
    """
    try:
        parameters = inspect.signature(signature).parameters.values()
    except (TypeError, ValueError):
        return specification
    rest = next((one.name for one in parameters if one.kind is one.VAR_POSITIONAL), None)
    named = {one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)}
    others = [name for name in names if name not in named]
    if isinstance(specification, list | tuple) and rest is not None and others:
        before = len(names) - len(others)
        entry = specification[before] if len(specification) > before else None
        if not isinstance(entry, list | tuple) or len(entry) != len(others) or any(map(_is_size, entry)):
            return specification
        if len(specification) != before + 1 + len(kwargs):
            return specification
        return [*specification[:before], *entry, *specification[before + 1 :]]
    if not isinstance(specification, dict):
        return specification
    found = dict(specification)
    if rest in found and rest not in (*names, *kwargs) and isinstance(found[rest], list | tuple):
        if len(found[rest]) != len(others):
            raise ExportError(f"dynamic_shapes has {len(found[rest])} entries for the {len(others)} arguments {others}")
        found |= dict(zip(others, found.pop(rest), strict=True))
    keywords = next((one.name for one in parameters if one.kind is one.VAR_KEYWORD), None)
    if keywords in found and keywords not in (*names, *kwargs) and isinstance(found[keywords], dict):
        found |= found.pop(keywords)
    return found


def _is_size(entry: Any) -> bool:
    """Return whether an entry is a size of a tensor and no description of one."""
    return entry is not None and not isinstance(entry, dict | list | tuple)


def _parameter_names(signature: Callable[..., Any], names: list[str]) -> list[str]:
    """Return the names of all arguments that can be given by position, beginning with `names`."""
    try:
        parameters = inspect.signature(signature).parameters.values()
    except (TypeError, ValueError):
        return names
    return names + [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD and one.name not in names]


def _name_of(path: Any) -> str:
    parts = [str(getattr(key, "key", getattr(key, "idx", getattr(key, "name", "x")))) for key in path]
    text = "_".join("".join(c if c.isalnum() else "_" for c in part) for part in parts)
    return text if text.isidentifier() else f"arg_{text}"


def _inputs(leaves: list[Any], names: list[str], values: list[int | None], shapes: Shapes) -> list[Input]:
    inputs = []
    seen: dict[str, int] = {}
    for name, leaf, value, dynamic in zip(names, leaves, values, shapes.by_leaf, strict=True):
        seen[name] = seen.get(name, 0) + 1
        unique = name if seen[name] == 1 else f"{name}_{seen[name]}"
        if not isinstance(leaf, Tensor):
            if not isinstance(
                leaf, bool | int | float | complex | str | type(None) | candelabra.dtype | candelabra.device
            ):
                raise ExportError(f"argument {name} is a {type(leaf).__name__}; arguments are tensors and plain values")
            inputs.append(Input(unique, None, constant=leaf))
            continue
        sizes: list[int | Scaled] = [dynamic.get(dim, size) for dim, size in enumerate(leaf.shape)]
        inputs.append(Input(unique, value, leaf.dtype, sizes))
    return inputs


def _device(tensors: list[Tensor]) -> candelabra.device:
    for tensor in tensors:
        if tensor.ndim > 0 or tensor.device.type != "cpu":
            return tensor.device
    return candelabra.get_default_device()
