"""``__torch_function__``: classes and modes that take over the functions of the package.

A class that defines the class method ``__torch_function__(cls, func, types, args=(), kwargs=None)``
is asked wherever an object of it is an argument of a public function, or stands in a sequence of
tensors. The name is PyTorch's, since libraries define it. Subclasses of Tensor inherit an
implementation that calls the function and returns its results as instances of the subclass.

A call asks the innermost mode first, then the classes, subclasses before their base classes. Who
returns NotImplemented passes the call on.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import types
from collections import defaultdict

import candelabra
from candelabra import _C
from candelabra.assembly import NATIVE_FUNCTIONS, NN_FUNCTIONS, MissingPackageError
from candelabra.catalogue import OPERATORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, TypeVar

    _Function = TypeVar("_Function", bound=Callable[..., Any])

__all__ = [
    "BaseTorchFunctionMode", "TorchFunctionMode", "enable_reentrant_dispatch", "get_default_nowrap_functions",
    "get_ignored_functions", "get_overridable_functions", "get_testing_overrides", "handle_torch_function", "has_torch_function",
    "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like", "is_tensor_method_or_property",
    "redispatch_function", "resolve_name", "wrap_torch_function",
]  # fmt: skip

handle_torch_function = _C.handle_torch_function
has_torch_function = _C.has_torch_function
has_torch_function_variadic = _C.has_torch_function_variadic
redispatch_function = _C.redispatch_function


def has_torch_function_unary(input: Any) -> bool:
    """Return whether one argument takes over functions, or a mode is on.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.overrides.has_torch_function_unary(candelabra.ones(2))
    False
    """
    return _C.has_torch_function_variadic(input)


_get_overloaded_args = _C.overriding_arguments


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[_Function], _Function]:
    """Decorate a function of a program, so that ``__torch_function__`` may take it over.

    Parameters
    ----------
    dispatcher : callable
        Takes the arguments of the function, and returns those whose classes are asked.

    Examples
    --------
    >>> import candelabra
    >>> @candelabra.overrides.wrap_torch_function(lambda x: (x,))
    ... def plus_two(x):
    ...     return x + 2
    >>> plus_two(candelabra.ones(1))
    tensor([3.])
    """

    def decorate(function: _Function) -> _Function:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """Return whether an object is a tensor, or of a class that defines ``__torch_function__``.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.overrides.is_tensor_like(candelabra.ones(2)), candelabra.overrides.is_tensor_like(2)
    (True, False)
    """
    return type(inp) is _C.Tensor or hasattr(inp, "__torch_function__")


# ---- modes


class TorchFunctionMode:
    """A context in which all functions of the package go to ``__torch_function__`` of the mode, of
    this thread.

    Within it, the mode itself is off: what it calls goes to the modes around it.

    Examples
    --------
    >>> import candelabra
    >>> class Names(candelabra.overrides.TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         print(candelabra.overrides.resolve_name(func))
    ...         return func(*args, **(kwargs or {}))
    >>> with Names():
    ...     x = candelabra.linalg.norm(candelabra.ones(4))
    candelabra.ones
    candelabra.linalg.norm
    """

    inner: TorchFunctionMode

    def __init__(self) -> None:
        pass

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> TorchFunctionMode:
        if isinstance(inspect.getattr_static(type(self), "__torch_function__"), classmethod):
            raise RuntimeError(
                "Defining your mode's `__torch_function__` as a classmethod is not supported, please make it a plain method"
            )
        _C.push_torch_function_mode(self)
        return self

    def __exit__(self, exc_type: object, exc_val: object, exc_tb: object) -> None:
        _C.pop_torch_function_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchFunctionMode:
        """Return an instance, which ``with`` enters; PyTorch's old form."""
        _C.warn("`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`")
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that calls every function as it is; a base for modes that change a few."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **({} if kwargs is None else kwargs))


def _get_current_function_mode() -> TorchFunctionMode | None:
    modes = _C.torch_function_modes()
    return modes[-1] if modes else None


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    return list(_C.torch_function_modes())


@contextlib.contextmanager
def _pop_mode_temporarily() -> Iterator[TorchFunctionMode]:
    old = _C.pop_torch_function_mode()
    try:
        yield old
    finally:
        _C.push_torch_function_mode(old)


class _State:
    """A context in which this thread asks fewer overrides."""

    _wanted: int

    def __enter__(self) -> None:
        self._before = _C.torch_function_state()
        _C.set_torch_function_state(max(self._before, self._wanted))

    def __exit__(self, exc_type: object, exc_val: object, exc_tb: object) -> None:
        _C.set_torch_function_state(self._before)


class DisableTorchFunctionSubclass(_State):
    """A context in which no class is asked, only modes."""

    _wanted = 1


class DisableTorchFunction(_State):
    """A context in which neither classes nor modes are asked."""

    _wanted = 2


@contextlib.contextmanager
def _enable_torch_function() -> Iterator[None]:
    before = _C.set_torch_function_state(0)
    try:
        yield
    finally:
        _C.set_torch_function_state(before)


def enable_reentrant_dispatch() -> Any:
    """Return a context in which the functions that an override calls are asked for anew."""
    return _enable_torch_function()


# ---- what can be taken over

#: Where public functions are, as attributes of the package.
_NAMESPACES = ("", "functional", "nn.functional", "Tensor", "linalg", "fft", "special", "nn.init", "distributed")
_OVERRIDABLE = (_C.Operator, _C.OverridableFunction, _C.FastPath)


def _namespaces() -> Iterator[tuple[str, Any]]:
    for path in _NAMESPACES:
        found: Any = candelabra
        for part in filter(None, path.split(".")):
            found = getattr(found, part, None)
        if found is not None:
            yield path, found


def _names_of(namespace: Any) -> list[str]:
    names = {*getattr(namespace, "__all__", ()), *dir(namespace)}
    if namespace is candelabra:
        names |= {*NN_FUNCTIONS, *NATIVE_FUNCTIONS}
    return sorted(names)


def _members() -> Iterator[tuple[str, Any, str, Any]]:
    """Yield the namespaces' public members: path, namespace, name and member."""
    for path, namespace in _namespaces():
        for name in _names_of(namespace):
            if namespace is not _C.Tensor and name.startswith("_"):
                continue
            member = inspect.getattr_static(namespace, name, None) if namespace is _C.Tensor else None
            if member is None:
                # Functions such as vmap are of distributions that may not be installed.
                with contextlib.suppress(AttributeError, MissingPackageError):
                    member = getattr(namespace, name, None)
            if member is not None and not isinstance(member, (types.ModuleType, type)):
                yield path, namespace, name, member


def _is_overridable(member: Any, namespace: Any) -> bool:
    if isinstance(member, _OVERRIDABLE) or member is candelabra.einsum:  # einsum asks them itself
        return True
    return namespace is _C.Tensor and isinstance(member, (types.MethodDescriptorType, types.WrapperDescriptorType))


#: Parameters of any type that may be tensors, or sequences of them.
_OF_TENSORS = frozenset({"a", "args", "arguments", "b", "tensors"})
#: Private attributes of Tensor that classes may take over, as in PyTorch.
_PRIVATE_ATTRIBUTES = frozenset({"_base", "_version"})


def _is_factory(member: Any) -> bool:
    """Return whether a function takes no tensor, so that only modes see it."""
    if isinstance(member, _C.Operator):
        return not any("Tensor" in kind for kind in member.parameter_types)
    try:
        parameters = inspect.signature(member).parameters.values()
    except (TypeError, ValueError):
        return False
    return not any(
        "Tensor" in str(p.annotation) or p.annotation is p.empty or p.name in _OF_TENSORS
        for p in parameters
        if p.name != "out"
    )


@functools.cache
def _overridable() -> tuple[dict[Any, list[Any]], dict[Any, str]]:
    """Return the overridable functions by namespace, and the names of all."""
    found: dict[Any, list[Any]] = defaultdict(list)
    names: dict[Any, str] = {}
    ignored = get_ignored_functions()
    for path, namespace, name, member in _members():
        full = ".".join(filter(None, ("candelabra", path, name)))
        if namespace is _C.Tensor and isinstance(member, (property, types.GetSetDescriptorType)):
            names.setdefault(member.__get__, f"{full}.__get__")
            names.setdefault(member.__set__, f"{full}.__set__")
            if not name.startswith("_") or name in _PRIVATE_ATTRIBUTES:
                found[member].append(member.__get__)
        elif _is_overridable(member, namespace):
            names.setdefault(member, full)
            if member not in ignored and getattr(object, name, None) is not member:
                found[namespace].append(member)
    return dict(found), names


def get_overridable_functions() -> dict[Any, list[Any]]:
    """Return the functions that ``__torch_function__`` may take over, by namespace.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.add in candelabra.overrides.get_overridable_functions()[candelabra]
    True
    """
    return _overridable()[0]


@functools.cache
def get_ignored_functions() -> set[Any]:
    """Return the public functions that no class takes over: they take no tensors, or only ask.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.zeros in candelabra.overrides.get_ignored_functions()
    True
    """
    found = set()
    for _, namespace, _, member in _members():
        if not callable(member) or isinstance(member, property):
            continue
        if namespace is not _C.Tensor and (not _is_overridable(member, namespace) or _is_factory(member)):
            with contextlib.suppress(TypeError):  # what cannot be hashed is no function
                found.add(member)
    return found


@functools.cache
def get_default_nowrap_functions() -> set[Any]:
    """Return the functions whose results the default ``Tensor.__torch_function__`` leaves as they
    are: tensors that belong to the tensor.
    """
    tensor: Any = _C.Tensor
    return {tensor._base.__get__, tensor.grad.__get__}


def _signature_of(function: Any) -> inspect.Signature:
    if isinstance(function, _C.Operator):
        empty = inspect.Parameter.empty
        optional = [kind.endswith("?") or "=" in kind for kind in function.parameter_types]
        return inspect.Signature(
            [
                inspect.Parameter(
                    "input" if name == "self" else name,
                    inspect.Parameter.POSITIONAL_OR_KEYWORD
                    if position < function.positional_count
                    else inspect.Parameter.KEYWORD_ONLY,
                    default=None if all(optional[position:]) and optional[position] else empty,
                )
                for position, name in enumerate(function.parameters)
            ]
        )
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return inspect.Signature(
            [
                inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
                inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD),
            ]
        )


@functools.cache
def get_testing_overrides() -> dict[Any, Any]:
    """Return a function for each overridable one, which has its signature and returns -1.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.overrides.get_testing_overrides()[candelabra.add](1, 2)
    -1
    """
    found: dict[Any, Any] = {}
    for functions in get_overridable_functions().values():
        for function in functions:

            def override(*args: Any, **kwargs: Any) -> int:
                return -1

            override.__signature__ = _signature_of(function)  # type: ignore[attr-defined]
            found.setdefault(function, override)
    return found


def resolve_name(f: Any) -> str | None:
    """Return the name of a function that ``__torch_function__`` was given; None if there is none.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.overrides.resolve_name(candelabra.Tensor.shape.__get__)
    'candelabra.Tensor.shape.__get__'
    """
    name = _overridable()[1].get(f)
    if name is None and isinstance(f, _C.Operator) and f.name in OPERATORS:
        return f"candelabra.ops.{f.name}"
    return name


def is_tensor_method_or_property(func: Any) -> bool:
    """Return whether a function is a method of Tensor, or the ``__get__`` of an attribute.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.overrides.is_tensor_method_or_property(candelabra.Tensor.size)
    True
    """
    return func in get_overridable_functions()[_C.Tensor] or getattr(func, "__name__", "") == "__get__"
