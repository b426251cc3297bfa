"""The state that recorded code reads besides its arguments, and the guards on it.

The walk begins at the function, its closure, its arguments and the globals that its code names, and
goes on through modules, optimizers, containers and the attributes that the code names. A tensor
that the walk does not find must not be part of a program, because nothing would notice that it has
been replaced.
"""

from __future__ import annotations

import abc
import builtins
import functools
import gc
import operator
import os
import sys
import weakref
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import candelabra
from candelabra import _C, Tensor, backends
from candelabra.settings import settings

from .code_names import asks_for_classes, globals_of, imports_of, names_of
from .frames import RanCode, is_inside, is_installed
from .opaque import decimal_settings, is_decimal, is_unwatched, slots_of_library, values_of_slots
from .trees import PLAIN

#: Larger containers are not guarded. A program that reads one is refused.
_MOST_ENTRIES = 1 << 16
#: What a guard of items has for a name that is not there.
MISSING = object()
#: Attributes of modules that mirror others.
_MIRRORED = ("_parameters", "_buffers", "_modules")
#: The flag of classes that programs define.
_HEAP_TYPE = 1 << 9
#: Names that lead to the variables of the process.
_OF_PROCESS = {"environ", "environb", "getenv", "getenvb"}
#: Names that lead to the context of `decimal`.
_OF_DECIMAL = {"Decimal", "getcontext", "setcontext", "localcontext"}
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()), type(vars(type)))


class Environment:
    """The guards and the tensors that one walk found."""

    def __init__(self, ran: RanCode) -> None:
        self._names = ran.names()
        #: Whether code looks up attributes by computed names, so that it may read any.
        self._reads_all = ran.computes_names()
        self._codes: set[CodeType] = set(ran.codes)
        self._seen: set[int] = set()
        self._kept: list[Any] = []
        self.guards: list[Any] = [_C.Guard(("modes",))]
        self.tensors: list[Tensor] = []
        self.modules: list[Any] = []
        #: Options that programs read anew in each call, as they were when the call began.
        self.live: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self._generators: list[tuple[Any, bytes]] = []
        #: The type of an object that the code reads and that no guard can watch, or None.
        self.unguarded: str | None = None
        #: Code that an earlier call ran, and whose result this one may have taken from a cache.
        self.cached: list[CodeType] = []
        self._uses_decimal = False
        self._settings()
        for code, namespace in ran.codes.items():
            self._globals(namespace, code)

    def _guard(self, *description: Any) -> None:
        """Guard a part of the state as it is now."""
        self.guards.append(_C.Guard(description))

    def _settings(self) -> None:
        """Guard the settings of Candelabra that functions of Python look at."""
        if "numpy.random.mtrand" in sys.modules:
            self.walk(sys.modules["numpy.random.mtrand"]._rand)
        for table in (vars(settings), backends.cuda._attention):
            self._items(table, table, True)
        self._guard("class", _versioned(Tensor))
        if not self._names.isdisjoint(_OF_PROCESS):
            variables = os.environ._data  # type: ignore[attr-defined]
            self._items(variables, variables, True)
        if "_version" in self._names and any("_version" in code.co_names for code in self._own_codes()):
            self.unguarded = "version counter"
        if any(map(asks_for_classes, self._codes)):
            # Abstract classes keep those that are registered with them where no guard looks.
            self._guard("call", abc.get_cache_token, abc.get_cache_token(), "a class registered with an abstract one")
        if "decimal" in sys.modules and not self._names.isdisjoint(_OF_DECIMAL):
            self._decimal()
        if "RecursionError" in self._names:
            self.unguarded = "RecursionError"
        if "candelabra.autograd" in sys.modules:
            from candelabra.autograd import anomaly, graph

            self._items(vars(anomaly._state), vars(anomaly._state), True)
            self._guard("list", graph._packing.stack, tuple(graph._packing.stack))

    def _decimal(self) -> None:
        if not self._uses_decimal:
            self._uses_decimal = True
            read = functools.partial(decimal_settings, "flags" in self._names)
            self._guard("call", read, read(), "the context of decimal")

    def _own_codes(self) -> list[CodeType]:
        return [code for code in self._codes if not is_installed(code.co_filename)]

    def has_drawn(self) -> bool:
        """Return whether a random generator of NumPy has been used since the walk."""
        return any(_state_of(generator) != state for generator, state in self._generators)

    def changed_option(self) -> str | None:
        """Return the name of a live option that has changed since the walk, or None."""
        return next(
            (name for group, options in self.live for name, value in options.items() if group.get(name) is not value),
            None,
        )

    def walk(self, *roots: Any) -> None:
        """Guard what can be reached from these values."""
        waiting = list(roots)
        while waiting:
            value = waiting.pop()
            if isinstance(value, PLAIN) or id(value) in self._seen:
                continue
            self._seen.add(id(value))
            self._kept.append(value)
            waiting.extend(self._visit(value))

    def _items(self, table: dict[Any, Any], items: dict[Any, Any], exact: bool) -> None:
        size = len(table) if exact else -1
        if items or exact:
            self._guard("items", table, tuple(items.items()), MISSING, size)

    def _globals(self, namespace: dict[str, Any], code: CodeType) -> None:
        """Guard the globals and builtins that the code names, and walk the modules that it
        imports.
        """
        named = globals_of(code)
        read = {name: namespace.get(name, MISSING) for name in sorted(named | names_of(code))}
        # Of the names that are not there, some are attributes.
        read = {name: value for name, value in read.items() if value is not MISSING or name in named}
        self._items(namespace, read, False)
        missing = [name for name, value in read.items() if value is MISSING]
        self._items(vars(builtins), {name: vars(builtins).get(name, MISSING) for name in missing}, False)
        for name in imports_of(code):
            # A relative import names a module of the same package.
            found = sys.modules.get(name) or sys.modules.get(f"{namespace.get('__package__')}.{name}")
            if found is not None:
                self.walk(found)
        self.walk(*(value for value in read.values() if value is not MISSING))

    def _visit(self, value: Any) -> list[Any]:
        if isinstance(value, Tensor):
            return self._attributes(value, vars(value), False)
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, CellType):
            return self._cell(value)
        if isinstance(value, ModuleType):
            return self._module(value)
        if isinstance(value, _C.Replayer):
            return [value.compiled.function]
        if isinstance(value, dict | list | tuple):
            return self._container(value)
        led_to = _led_to(value)
        if led_to is not None:
            return led_to
        if isinstance(value, operator.attrgetter | operator.methodcaller) and not self._reads_all:
            self.unguarded = type(value).__name__
        if isinstance(value, functools._lru_cache_wrapper):
            # What is in a cache was computed by code that may not have run in this call.
            function = value.__wrapped__
            self.cached.extend([function.__code__] if isinstance(function, FunctionType) else [])
            return [function]
        if is_unwatched(value, self._names):
            self.unguarded = type(value).__name__
            return []
        if is_decimal(value):
            self._decimal()
        return [*self._slots(value), *self._object(value)]

    def _slots(self, value: Any) -> tuple[Any, ...]:
        """Guard the slots that the code of Python's library reads, such as those of a Fraction."""
        slots = slots_of_library(value)
        if not slots:
            return ()
        read = functools.partial(values_of_slots, value, slots)
        self._guard("call", read, read(), f"a slot of a {type(value).__name__}")
        return read()

    def _container(self, value: Any) -> list[Any]:
        if len(value) > _MOST_ENTRIES:
            self.unguarded = f"{type(value).__name__} of {len(value)} entries"
            return []
        following: list[Any] = []
        if isinstance(value, dict):
            self._items(value, value, True)
            following = [*value.keys(), *value.values()]
        elif isinstance(value, list):
            self._guard("list", value, tuple(value))
            following = list(value)
        else:
            following = list(value)
        if getattr(value, "__dict__", None):
            following.extend(self._object(value))
        return following

    def _module(self, module: ModuleType) -> list[Any]:
        """Guard what the code names of a module; of an installed one and of Candelabra, look no
        further than that.
        """
        file = getattr(module, "__file__", None)
        read = {name: entry for name, entry in vars(module).items() if name in self._names}
        if is_inside(file) or is_installed(file):
            self._items(vars(module), read, False)
            return [entry for entry in read.values() if isinstance(entry, PLAIN)]
        looks = {"hasattr", "getattr"} & self._names
        absent = {name: MISSING for name in sorted(self._names) if looks and name not in read}
        self._items(vars(module), read | absent, False)
        return list(read.values())

    def _function(self, function: FunctionType) -> list[Any]:
        following: list[Any] = [*(function.__closure__ or ()), *(function.__defaults__ or ())]
        keywords = function.__kwdefaults__
        if keywords:
            self._items(keywords, keywords, True)
            following.extend(keywords.values())
        if not is_inside(function.__code__.co_filename):
            self._guard("function", function)
        if vars(function):
            following.extend(self._attributes(function, vars(function), False))
        wrapped = vars(function).get("__wrapped__")
        if wrapped is not None:
            following.append(wrapped)
        return following

    def _cell(self, cell: CellType) -> list[Any]:
        try:
            contents = cell.cell_contents
        except ValueError:
            return []
        self._guard("cell", cell, contents)
        return [contents]

    def _class(self, kind: type) -> list[Any]:
        """Guard a class of the program, and what its code names of it or has run."""
        if not kind.__flags__ & _HEAP_TYPE:
            return []
        self._guard("class", _versioned(kind))
        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        if is_installed(file) or is_inside(file):
            return []
        read = [entry for name, entry in vars(kind).items() if name in self._names or self._has_run(entry)]
        return [*read, *(base for base in kind.__bases__ if base is not object), type(kind)]

    def _has_run(self, entry: Any) -> bool:
        """Return whether an entry of a class is a function whose code ran, such as __getattr__."""
        return getattr(getattr(entry, "__func__", entry), "__code__", None) in self._codes

    def _object(self, value: Any) -> list[Any]:
        try:
            attributes = object.__getattribute__(value, "__dict__")
        except AttributeError:
            attributes = None
        kind = type(value)
        self.walk(kind)
        if kind.__module__.startswith("numpy.random"):
            self._generators.append((value, _state_of(value)))
        if not isinstance(attributes, dict):
            return []
        if _is_module(value):
            self._guard("object", value, attributes)
            self.modules.append(value)
            read = {name: entry for name, entry in attributes.items() if name not in _MIRRORED}
            self._items(attributes, read, True)
            # What no guard can watch matters only where the code names it.
            return [
                entry for name, entry in read.items() if name in self._names or not is_unwatched(entry, self._names)
            ]
        if _is_optimizer(value):
            return self._optimizer(value, attributes)
        if kind.__flags__ & _HEAP_TYPE:
            self._guard("object", value, attributes)
        # The code of Candelabra's own classes and of Python's is not looked at: it may read any
        # attribute, such as that of a scheduler or a ChainMap.
        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        is_closed = kind.__module__ != "__main__" and is_inside(file) and kind.__module__ != "types"
        return self._attributes(value, attributes, is_closed)

    def _attributes(self, value: Any, attributes: dict[str, Any], reads_all: bool) -> list[Any]:
        """Guard the attributes that the code reads of an object, and how many there are."""
        if isinstance(value, Tensor):
            self.tensors.append(value)
        if reads_all or (self._reads_all and not isinstance(value, Tensor | FunctionType)):
            self._items(attributes, attributes, True)
            return list(attributes.values())
        # An attribute of the class may later be hidden by one of the object.
        named = {name for name in self._names if name in attributes or hasattr(type(value), name)}
        read = {name: attributes.get(name, MISSING) for name in sorted(named)}
        # Others that come later are new names, such as for hasattr().
        size = len(attributes)
        self._guard("items", attributes, tuple(read.items()), MISSING, size)
        return [entry for entry in read.values() if entry is not MISSING]

    def _optimizer(self, optimizer: Any, attributes: dict[str, Any]) -> list[Any]:
        live = getattr(optimizer, "_live_options", ())
        numbers = getattr(optimizer, "_numbers", ())
        hooks = {name: table for name, table in attributes.items() if name.endswith("_hooks")}
        self._items(
            attributes,
            {"param_groups": optimizer.param_groups, "state": optimizer.state, **hooks},
            False,
        )
        following: list[Any] = [*hooks.values()]
        self._guard("list", optimizer.param_groups, tuple(optimizer.param_groups))
        for group in optimizer.param_groups:
            fixed = {name: option for name, option in group.items() if name not in live}
            self._items(group, fixed, True)
            self.live.append((group, {name: group[name] for name in live if name in group}))
            following.extend(fixed.values())
        self._items(optimizer.state, optimizer.state, True)
        for parameter, state in list(optimizer.state.items()):
            following.append(parameter)
            if isinstance(state, dict):
                kept = {name: entry for name, entry in state.items() if name not in numbers}
                self._items(state, kept, True)
                following.extend(kept.values())
        return following


def _state_of(generator: Any) -> bytes:
    import pickle  # few programs have a generator of NumPy

    return pickle.dumps(generator)


def _versioned(kind: type) -> type:
    """Return a class after a lookup, which gives it the version that a guard compares."""
    getattr(kind, "_is_no_attribute_", None)
    return kind


def _led_to(value: Any) -> list[Any] | None:
    """Return what an object that wraps others leads to; None for other objects."""
    if isinstance(value, BuiltinFunctionType):
        owner = value.__self__
        return [] if isinstance(owner, ModuleType | type) else [owner]
    if isinstance(value, candelabra.Generator):
        return []
    if isinstance(value, staticmethod | classmethod):
        return [value.__func__]
    if isinstance(value, property):
        return [value.fget]
    if isinstance(value, MethodType):
        return [value.__self__, value.__func__]
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values(), value.keywords]
    if isinstance(value, weakref.ref):
        return [value()]
    # Views of dicts refer to them.
    return gc.get_referents(value) if isinstance(value, _VIEWS) else None


def _is_module(value: Any) -> bool:
    nn = sys.modules.get("candelabra.nn")
    return nn is not None and isinstance(value, nn.Module)


def _is_optimizer(value: Any) -> bool:
    optim = sys.modules.get("candelabra.optim")
    return optim is not None and isinstance(value, optim.Optimizer)
