"""The state that recorded code reads besides its arguments, and the guards on it.

The walk begins at the function, its closure, its arguments and the globals that its code names, and
goes on through modules, optimizers, containers and the attributes that the code names. A tensor
that the walk does not find must not be part of a program, because nothing would notice that it has
been replaced.
"""

from __future__ import annotations

import functools
import pickle
import sys
from array import array
from collections import OrderedDict, defaultdict, deque
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any

import candelabra
from candelabra import Tensor, backends
from candelabra.settings import settings

from .frames import RanCode, is_inside, is_installed, names_of
from .trees import PLAIN, Description

#: Larger containers are not guarded. A program that uses their tensors is refused.
_MOST_ENTRIES = 4096
#: What a guard of items has for a name that is not there.
MISSING = object()
#: Attributes of modules that mirror others.
_MIRRORED = ("_parameters", "_buffers", "_modules")
#: The flag of classes that programs define.
_HEAP_TYPE = 1 << 9
#: Containers that change in place, and that no guard watches.
_UNWATCHED = (set, deque, bytearray, array)
_DICTS = (dict, OrderedDict, defaultdict)


class Environment:
    """The guards and the tensors that one walk found."""

    def __init__(self, ran: RanCode) -> None:
        self._names = ran.names()
        self._seen: set[int] = set()
        self._kept: list[Any] = []
        self.guards: list[Description] = [("modes",)]
        self.tensors: list[Tensor] = []
        self.modules: list[Any] = []
        #: Options that programs read anew in each call, as they were when the call began.
        self.live: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self._generators: list[tuple[Any, bytes]] = []
        #: The type of an object that the code reads and that no guard can watch, or None.
        self.unguarded: str | None = None
        self._settings()
        for code, namespace in ran.codes.items():
            self._globals(namespace, names_of(code))

    def _settings(self) -> None:
        """Guard the settings of Candelabra that functions of Python look at."""
        if "numpy.random.mtrand" in sys.modules:
            self.walk(sys.modules["numpy.random.mtrand"]._rand)
        for table in (vars(settings), backends.cuda._attention):
            self._items(table, table, True)
        if "candelabra.autograd" in sys.modules:
            from candelabra.autograd import anomaly, graph

            self._items(vars(anomaly._state), vars(anomaly._state), True)
            self.guards.append(("list", graph._packing.stack, tuple(graph._packing.stack)))

    def has_drawn(self) -> bool:
        """Return whether a random generator of NumPy has been used since the walk."""
        return any(pickle.dumps(generator) != state for generator, state in self._generators)

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
            self.guards.append(("items", table, tuple(items.items()), MISSING, size))

    def _globals(self, namespace: dict[str, Any], names: set[str]) -> None:
        read = {name: namespace.get(name, MISSING) for name in sorted(names)}
        # Names that are neither there nor builtins are attributes.
        read = {name: value for name, value in read.items() if value is not MISSING}
        self._items(namespace, read, False)
        self.walk(*read.values())

    def _visit(self, value: Any) -> list[Any]:
        if isinstance(value, Tensor):
            self.tensors.append(value)
            attributes = {name: entry for name, entry in vars(value).items() if name in self._names}
            self._items(vars(value), attributes, False)
            return list(attributes.values())
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, BuiltinFunctionType | candelabra.Generator):
            return []
        if isinstance(value, staticmethod | classmethod):
            return [value.__func__]
        if isinstance(value, property):
            return [value.fget]
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, MethodType):
            return [value.__self__, value.__func__]
        if isinstance(value, functools.partial):
            return [value.func, *value.args, *value.keywords.values()]
        if isinstance(value, CellType):
            return self._cell(value)
        if isinstance(value, ModuleType):
            return self._module(value)
        if type(value) in _DICTS:
            if len(value) > _MOST_ENTRIES:
                return []
            self._items(value, value, True)
            return [*value.keys(), *value.values()]
        if isinstance(value, list):
            if len(value) > _MOST_ENTRIES:
                return []
            self.guards.append(("list", value, tuple(value)))
            return value
        if isinstance(value, tuple):
            return list(value) if len(value) <= _MOST_ENTRIES else []
        if self._is_unwatched(value):
            self.unguarded = type(value).__name__
            return []
        return self._object(value)

    def _is_unwatched(self, value: Any) -> bool:
        """Return whether an object may change without a guard that notices it."""
        kind = type(value)
        if isinstance(value, _UNWATCHED) or hasattr(kind, "__next__") or kind.__module__ == "numpy":
            return kind.__name__ != "ufunc" and not kind.__module__.startswith("candelabra")
        slots = [name for base in kind.__mro__ for name in _slots_of(base)]
        return not kind.__module__.startswith("candelabra") and not self._names.isdisjoint(slots)

    def _module(self, module: ModuleType) -> list[Any]:
        """Guard what the code names of a module; of an installed one, numbers and the like
        alone.
        """
        file = getattr(module, "__file__", None)
        if is_inside(file):
            return []
        read = {name: entry for name, entry in vars(module).items() if name in self._names}
        if is_installed(file):
            read = {name: entry for name, entry in read.items() if isinstance(entry, PLAIN)}
        self._items(vars(module), read, False)
        return list(read.values())

    def _function(self, function: FunctionType) -> list[Any]:
        following: list[Any] = [*(function.__closure__ or ()), *(function.__defaults__ or ())]
        following.extend((function.__kwdefaults__ or {}).values())
        wrapped = function.__dict__.get("__wrapped__")
        if wrapped is not None:
            following.append(wrapped)
        return following

    def _cell(self, cell: CellType) -> list[Any]:
        try:
            contents = cell.cell_contents
        except ValueError:
            return []
        self.guards.append(("cell", cell, contents))
        return [contents]

    def _class(self, kind: type) -> list[Any]:
        """Guard a class of the program, and what its code names of it."""
        if not kind.__flags__ & _HEAP_TYPE:
            return []
        # A lookup gives the class the version that the guard compares.
        getattr(kind, "__module__", None)
        self.guards.append(("class", kind))
        module = sys.modules.get(kind.__module__)
        file = getattr(module, "__file__", None)
        if is_installed(file) or is_inside(file):
            return []
        named = [entry for name, entry in vars(kind).items() if name in self._names]
        return [*named, *(base for base in kind.__bases__ if base is not object)]

    def _object(self, value: Any) -> list[Any]:
        attributes = getattr(value, "__dict__", None)
        self.walk(type(value))
        if type(value).__module__.startswith("numpy.random"):
            self._generators.append((value, pickle.dumps(value)))
        if not isinstance(attributes, dict):
            return []
        if _is_module(value):
            self.modules.append(value)
            read = {name: entry for name, entry in attributes.items() if name not in _MIRRORED}
            self._items(attributes, read, True)
            # What no guard can watch matters only where the code names it.
            return [entry for name, entry in read.items() if name in self._names or not self._is_unwatched(entry)]
        if _is_optimizer(value):
            return self._optimizer(value, attributes)
        if type(value).__module__.startswith("candelabra."):
            # The code of Candelabra's own classes is not looked at. A scheduler may read any of its
            # attributes.
            self._items(attributes, attributes, True)
            return list(attributes.values())
        # An attribute of the class may later be hidden by one of the object.
        named = {name for name in self._names if name in attributes or hasattr(type(value), name)}
        read = {name: attributes.get(name, MISSING) for name in sorted(named)}
        self._items(attributes, read, False)
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
        self.guards.append(("list", optimizer.param_groups, tuple(optimizer.param_groups)))
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


def _slots_of(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _is_module(value: Any) -> bool:
    nn = sys.modules.get("candelabra.nn")
    return nn is not None and isinstance(value, nn.Module)


def _is_optimizer(value: Any) -> bool:
    optim = sys.modules.get("candelabra.optim")
    return optim is not None and isinstance(value, optim.Optimizer)
