"""Functorch layers of function transforms, and the wrapped tensors that belong to them.

Within ``grad``, ``jvp`` or ``vmap``, tensors are wrapped. A :class:`Wrapper` shares the memory of
the tensor it stands for and has the shape that the function sees. While a thread has a layer, the
core passes every operator call to :func:`interpose`, which passes it to the innermost layer. The
layer unwraps its tensors, runs the call one layer further out (finally in the core), and wraps the
results. Each layer adds its own data: a place on its tape, a tangent or a hidden batch dimension.
Layers do not know about each other, so transforms nest in any order.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any, NoReturn

from candelabra import _C, Tensor, dispatch_hooks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .function import Function

VIEW, RANDOM, NONDIFFERENTIABLE, COMPOSITE, DATA_DEPENDENT, CUSTOM = 2, 4, 8, 256, 512, 16384


class _State(threading.local):
    def __init__(self) -> None:
        #: The layers, outermost first. Layers from `depth` on are hidden while outer layers
        #: compute.
        self.stack: list[FunctorchLayer] = []
        self.depth = 0
        #: Called for every operator call, if set; used by the profiler.
        self.observer: Callable[..., Any] | None = None


_state = _State()


def interpose(operator: Any, arguments: tuple[Any, ...], out: Any, generator: Any, record: bool) -> Any:
    """Handle a call from the core; see :mod:`candelabra.dispatch_hooks`."""
    observer = _state.observer
    if observer is not None:
        return observer(operator, arguments, out, generator, record)
    return pass_on(operator, arguments, out, generator, record)


def pass_on(operator: Any, arguments: tuple[Any, ...], out: Any, generator: Any, record: bool) -> Any:
    """Pass a call to the innermost layer; without one, return NotImplemented."""
    depth = _state.depth
    if depth == 0:
        return NotImplemented
    return _state.stack[depth - 1].process(operator, arguments, out, generator, record)


def _refresh() -> None:
    """Install the dispatch hook on this thread if a layer or an observer needs it."""
    dispatch_hooks.set_inner(interpose if _state.stack or _state.observer is not None else None)


def set_observer(observer: Callable[..., Any] | None) -> None:
    """Set the observer of all operator calls on this thread, such as the profiler, or None."""
    _state.observer = observer
    _refresh()


@contextlib.contextmanager
def entered(layer: FunctorchLayer) -> Iterator[Any]:
    """Make `layer` the innermost layer within the block.

    After the block, tensors of the layer act as the values they stand for.
    """
    stack, depth = _state.stack, _state.depth
    _state.stack = [*stack[:depth], layer]
    _state.depth = depth + 1
    layer.number, layer.alive = depth + 1, True
    _refresh()
    try:
        yield layer
    finally:
        layer.alive = False
        _state.stack, _state.depth = stack, depth
        _refresh()


@contextlib.contextmanager
def outside() -> Iterator[None]:
    """Hide the innermost layer within the block."""
    _state.depth -= 1
    try:
        yield
    finally:
        _state.depth += 1


def layer_at(level: int) -> FunctorchLayer | None:
    """Return the active layer of a level, 1 for the outermost, or None."""
    return _state.stack[level - 1] if 0 < level <= _state.depth else None


def are_transforms_active() -> bool:
    """Return whether a function is being transformed on this thread."""
    return _state.depth > 0


def layer_of(arguments: tuple[Any, ...]) -> FunctorchLayer | None:
    """Return the innermost layer that any argument belongs to."""
    found: FunctorchLayer | None = None
    for argument in arguments:
        while isinstance(argument, Wrapper):
            layer = argument._layer
            if layer.alive:
                if found is None or layer.number > found.number:
                    found = layer
                break
            argument = argument._value
    return found


def apply_within(
    function: type[Function], arguments: tuple[Any, ...], keywords: dict[str, Any], layer: FunctorchLayer
) -> Any:
    """Apply a custom function to tensors of `layer`."""
    depth = _state.depth
    _state.depth = layer.number
    try:
        return layer.apply(function, arguments, keywords)
    finally:
        _state.depth = depth


class FunctorchLayer:
    """A functorch layer: one active function transform."""

    number = 0
    alive = True
    transformation = "a transformation"

    def process(self, operator: Any, arguments: tuple[Any, ...], out: Any, generator: Any, record: bool) -> Any:
        """Run an operator call."""
        raise NotImplementedError

    def apply(self, function: type[Function], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Apply a custom function as a whole, by the gradient, tangent or batch rule it defines."""
        raise NotImplementedError

    def detached(self, wrapper: Any) -> Tensor:
        """Return another wrapper of the same tensor, not connected to this layer's tape."""
        raise NotImplementedError

    def owns(self, value: Any) -> bool:
        """Return whether a value is a tensor of this layer."""
        return isinstance(value, Wrapper) and value._layer is self

    def unwrap(self, value: Any) -> Any:
        """Return the value that a tensor of this layer or of an ended layer stands for.

        Other values are returned unchanged.
        """
        while isinstance(value, Wrapper) and (value._layer is self or not value._layer.alive):
            value = value._value
        if isinstance(value, (tuple, list)) and any(isinstance(entry, Wrapper) for entry in value):
            return tuple(map(self.unwrap, value))
        return value

    def below(self, operator: Any, arguments: tuple[Any, ...], out: Any, generator: Any) -> Any:
        """Run a call on unwrapped arguments, one layer further out."""
        _state.depth -= 1
        try:
            return operator.again(arguments, out, generator)
        finally:
            _state.depth += 1


class Wrapper(Tensor):
    """A tensor of a functorch layer, on the memory of the tensor it stands for (``_value``)."""

    _layer: FunctorchLayer
    _value: Tensor
    __torch_function__ = _C._disabled_torch_function_impl

    def _detached(self) -> Tensor:
        return self._layer.detached(self)

    def _readable(self, what: str) -> Tensor:
        """Return the tensor to read values from."""
        return self._value

    @property
    def _all_values(self) -> Tensor:
        return innermost_value(self)

    @property
    def _is_differentiated(self) -> bool:
        value = self._value
        return value.requires_grad or getattr(value, "_is_differentiated", False)

    def item(self) -> Any:
        return self._readable("item").item()

    def tolist(self) -> Any:
        return self._readable("tolist").tolist()

    def numpy(self, *, force: bool = False) -> Any:
        return self._readable("numpy").numpy(force=force)

    def __array__(self, *arguments: Any, **keywords: Any) -> Any:
        return self._readable("numpy").__array__(*arguments, **keywords)

    def __bool__(self) -> bool:
        return bool(self._readable("bool"))

    def __int__(self) -> int:
        return int(self._readable("int"))

    def __float__(self) -> float:
        return float(self._readable("float"))

    def __complex__(self) -> complex:
        return complex(self._readable("complex").item())

    def __index__(self) -> int:
        return self._readable("index").__index__()

    def requires_grad_(self, requires_grad: bool = True) -> NoReturn:
        raise RuntimeError(
            "You are attempting to call Tensor.requires_grad_() (or perhaps using candelabra.autograd.functional.* APIs) inside of a "
            f"function being transformed by {self._layer.transformation}. This is unsupported: use the transformations of candelabra.func "
            "(grad, vjp, jacrev, jacfwd, hessian), or call requires_grad_() outside of the function."
        )

    @property
    def data(self) -> Tensor:
        return self._detached()

    @data.setter
    def data(self, value: Tensor) -> NoReturn:
        raise RuntimeError(
            f"the data of a tensor cannot be set inside of a function being transformed by {self._layer.transformation}"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(level={self._layer.number}, value={self._value!r})"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise RuntimeError(
            f"cannot pickle a tensor inside of a function being transformed by {self._layer.transformation}"
        )

    def __deepcopy__(self, memo: Any) -> Tensor:
        return self.clone()


def innermost_value(tensor: Tensor) -> Tensor:
    """Return the tensor inside all wrappers."""
    while isinstance(tensor, Wrapper):
        tensor = tensor._value
    return tensor


_keyword_only: dict[str, tuple[str, ...]] = {}


def split_arguments(operator: Any, arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Split the arguments of a call into positional and keyword-only ones."""
    names = _keyword_only.get(operator.schema)
    if names is None:
        names = _keyword_only[operator.schema] = operator.parameters[operator.positional_count :]
    if not names:
        return arguments, {}
    return arguments[: -len(names)], dict(zip(names, arguments[-len(names) :], strict=True))


def call_composite(operator: Any, arguments: tuple[Any, ...], generator: Any) -> Any:
    """Call the decomposition of an operator."""
    positional, named = split_arguments(operator, arguments)
    if generator is not None:
        named["generator"] = generator
    return operator.composite(*positional, **named)


def changes_arguments(operator: Any) -> bool:
    """Return whether an operator changes one of its arguments."""
    return operator.functional is not None or "!)" in operator.schema


def changes_first(operator: Any) -> bool:
    """Return whether an operator changes and returns its first argument."""
    if operator.tags & CUSTOM:
        return False
    return operator.functional is not None or operator.schema.startswith(f"{operator.name}(Tensor(a!) self")


def differentiable(value: Any) -> bool:
    """Return whether a value is a tensor with a floating-point or complex dtype."""
    return isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex())


def tensors_in(arguments: tuple[Any, ...]) -> Iterator[Tensor]:
    """Yield all tensors among the arguments of a call, including those in lists."""
    for argument in arguments:
        if isinstance(argument, Tensor):
            yield argument
        elif isinstance(argument, (tuple, list)):
            yield from (entry for entry in argument if isinstance(entry, Tensor))


def map_results(result: Any, function: Callable[[Any], Any]) -> Any:
    """Apply `function` to each result of a call, preserving the tuple type."""
    if isinstance(result, tuple):
        made = [function(part) for part in result]
        kind = type(result)
        return tuple(made) if kind is tuple else kind(made)
    return function(result)
