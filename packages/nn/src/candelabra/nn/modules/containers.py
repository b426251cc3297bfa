"""Provide containers of modules and of parameters."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from candelabra import _C, Tensor

from ..parameter import Parameter
from .module import Module, indent, typename


def _position(index: Any, length: int) -> int:
    """Convert an index, possibly negative, to a nonnegative one."""
    position = operator.index(index)
    if not -length <= position < length:
        raise IndexError(f"index {position} is out of range")
    return position % length


class Container(Module):
    """Hold modules by name. This is the oldest container; prefer `ModuleDict`."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        _C.warn(
            "nn.Container is deprecated. All of it's functionality is now implemented in nn.Module. Subclass that instead.",
            FutureWarning,
        )
        for name, module in kwargs.items():
            self.add_module(name, module)


class Sequential(Module):
    """Call modules in sequence; each takes the result of the one before.

    Parameters
    ----------
    *args
        The modules, or one OrderedDict of names and modules.

    Examples
    --------
    >>> from candelabra import nn
    >>> nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    Sequential(
      (0): Linear(in_features=2, out_features=3, bias=True)
      (1): ReLU()
    )
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for number, module in enumerate(args):
                self.add_module(str(number), module)

    def _name_at(self, index: Any) -> str:
        return list(self._modules)[_position(index, len(self))]

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)(OrderedDict(list(self._modules.items())[idx]))
        return self._modules[self._name_at(idx)]

    def __setitem__(self, idx: Any, module: Module) -> None:
        setattr(self, self._name_at(idx), module)

    def __delitem__(self, idx: Any) -> None:
        if isinstance(idx, slice):
            for name in list(self._modules)[idx]:
                delattr(self, name)
        else:
            delattr(self, self._name_at(idx))
        self._renumber(list(self._modules.values()))

    def _renumber(self, modules: list[Any]) -> None:
        self._modules.clear()
        for number, module in enumerate(modules):
            self._modules[str(number)] = module

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __add__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Self:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return self.extend(list(other))

    def __mul__(self, other: int) -> Sequential:
        self._check_factor(other)
        return Sequential(*(module for _ in range(other) for module in self))

    def __rmul__(self, other: int) -> Sequential:
        return self.__mul__(other)

    def __imul__(self, other: int) -> Self:
        self._check_factor(other)
        modules = list(self)
        for _ in range(other - 1):
            self.extend(modules)
        return self

    @staticmethod
    def _check_factor(other: Any) -> None:
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {Sequential} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {Sequential}")

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, module: Module) -> Self:
        """Append a module."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Insert a module before position `index`."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        count = len(self)
        if not -count <= index <= count:
            raise IndexError(f"Index out of range: {index}")
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Append several modules."""
        for module in list(sequential):
            self.append(module)
        return self

    def pop(self, key: int | slice) -> Module:
        """Remove and return the module at position `key`."""
        module = self[key]
        del self[key]
        return module

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)  # type: ignore[misc]
        return input


class ModuleList(Module):
    """Hold modules in a list. The containing module's `forward` decides how to call them.

    Examples
    --------
    >>> from candelabra import nn
    >>> nn.ModuleList(nn.Linear(2, 2) for _ in range(3))
    ModuleList(
      (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)
    )
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)(list(self._modules.values())[idx])  # type: ignore[arg-type]
        return self._modules[str(_position(idx, len(self)))]

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, str(_position(idx, len(self))), module)

    def __delitem__(self, idx: Any) -> None:
        modules = list(self)
        if isinstance(idx, slice):
            del modules[idx]
        else:
            del modules[_position(idx, len(self))]
        self._renumber(modules)

    def _renumber(self, modules: list[Any]) -> None:
        self._modules.clear()
        for number, module in enumerate(modules):
            self._modules[str(number)] = module

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __repr__(self) -> str:
        lines: list[str] = []
        run: list[Any] = []  # first index, last index and repr of the current run of equal modules

        def flush() -> None:
            if run:
                first, last, text = run
                label = f"({first}): " if first == last else f"({first}-{last}): {last - first + 1} x "
                lines.append(label + indent(text))

        for number, module in enumerate(self):
            text = repr(module)
            if run and run[2] == text:
                run[1] = number
            else:
                flush()
                run = [number, number, text]
        flush()
        return f"{self._get_name()}()" if not lines else f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"

    def insert(self, index: int, module: Module) -> None:
        """Insert a module before position `index`."""
        modules = list(self)
        modules.insert(index, module)
        if not isinstance(module, Module):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._renumber(modules)

    def append(self, module: Module | None) -> Self:
        """Append a module."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: int | slice) -> Module:
        """Remove and return the module at position `key`."""
        module = self[key]
        del self[key]
        return module

    def extend(self, modules: Iterable[Module]) -> Self:
        """Append several modules."""
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        for module in list(modules):
            self.append(module)
        return self


class ModuleDict(Module):
    """Hold modules by name, in insertion order.

    Examples
    --------
    >>> from candelabra import nn
    >>> choices = nn.ModuleDict({"relu": nn.ReLU(), "tanh": nn.Tanh()})
    >>> choices["tanh"]
    Tanh()
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Remove and return the module with the name `key`."""
        module = self[key]
        del self[key]
        return module

    def keys(self) -> Any:
        """Return the names."""
        return self._modules.keys()

    def items(self) -> Any:
        """Return the pairs of name and module."""
        return self._modules.items()

    def values(self) -> Any:
        """Return the modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add modules from a mapping, or from pairs of name and module."""
        for key, module in _pairs("ModuleDict", modules):
            self[key] = module


def _pairs(owner: str, entries: Any) -> list[tuple[str, Any]]:
    if isinstance(entries, Mapping | ModuleDict | ParameterDict):
        return list(entries.items())
    if not isinstance(entries, Iterable):
        raise TypeError(
            f"{owner}.update should be called with an iterable of key/value pairs, but got {type(entries).__name__}"
        )
    pairs = []
    for number, pair in enumerate(entries):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{owner} update sequence element #{number} should be Iterable; is {type(pair).__name__}")
        pair = list(pair)
        if len(pair) != 2:
            raise ValueError(f"{owner} update sequence element #{number} has length {len(pair)}; 2 is required")
        pairs.append((pair[0], pair[1]))
    return pairs


class MissingParameter(KeyError, AttributeError):
    """Signal a missing name in a `ParameterDict`.

    PyTorch raises AttributeError, and a mapping must raise KeyError. This class is both.
    """

    def __str__(self) -> str:
        return str(self.args[0])


def _as_parameter(value: Any) -> Any:
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _describe(value: Any) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    size = "x".join(str(n) for n in value.shape)
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    place = "" if value.device.type == "cpu" else f" ({value.device})"
    return f"{kind} containing: [{value.dtype} of size {size}{place}]"


class ParameterList(Module):
    """Hold parameters and other values in a list. Tensors become parameters.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.ParameterList([candelabra.ones(2, 3), candelabra.ones(4)])
    ParameterList(
        (0): Parameter containing: [candelabra.float32 of size 2x3]
        (1): Parameter containing: [candelabra.float32 of size 4]
    )
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            result = type(self)()
            for number in range(*idx.indices(len(self))):
                result.append(self[number])
            return result
        return getattr(self, str(_position(idx, len(self))))

    def __setitem__(self, idx: int, param: Any) -> None:
        setattr(self, str(_position(idx, len(self))), _as_parameter(param))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (self[number] for number in range(len(self)))

    def __iadd__(self, parameters: Iterable[Any]) -> Self:
        return self.extend(parameters)

    def append(self, value: Any) -> Self:
        """Append a value."""
        number = len(self)
        self._size += 1
        self[number] = value
        return self

    def pop(self, idx: int = -1) -> Any:
        """Remove and return the value at position `idx`."""
        values = list(self)
        value = values.pop(idx)
        for number in range(len(self)):
            delattr(self, str(number))
        self._size = 0
        self.extend(values)
        return value

    def extend(self, values: Iterable[Any]) -> Self:
        """Append several values."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    def __repr__(self) -> str:
        return _repr_of_parameters(self, [(str(number), value) for number, value in enumerate(self)])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


def _repr_of_parameters(owner: Module, entries: list[tuple[str, Any]]) -> str:
    if not entries:
        return f"{owner._get_name()}()"
    lines = [
        f"    ({name}): {indent(repr(value) if isinstance(value, Module) else _describe(value), 4)}"
        for name, value in entries
    ]
    return f"{owner._get_name()}(\n" + "\n".join(lines) + "\n)"


class ParameterDict(Module):
    """Hold parameters and other values by name. Tensors become parameters.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> scales = nn.ParameterDict({"left": candelabra.ones(2)})
    >>> scales["left"].requires_grad
    True
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _attribute(self, key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(
                f"Index given to ParameterDict cannot be used as a key as it is not a string (type is '{type(key).__name__}')."
            )
        return key

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise MissingParameter(f"'{type(self).__name__}' object has no attribute '{key}'")
        return getattr(self, self._attribute(key))

    def __setitem__(self, key: str, value: Any) -> None:
        name = self._attribute(key)
        if key not in self._keys and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")
        self._keys[key] = None
        setattr(self, name, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._attribute(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __or__(self, other: ParameterDict) -> ParameterDict:
        result = self.copy()
        result.update(other)
        return result

    def __ior__(self, other: ParameterDict) -> Self:
        self.update(other)
        return self

    def copy(self) -> ParameterDict:
        """Return a new dictionary with the same parameters."""
        return ParameterDict(OrderedDict((key, self[key]) for key in self._keys))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the value of `key`. If there is none, set it to `default` first."""
        if key not in self._keys:
            self[key] = default
        return self[key]

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of `key`, or `default` if there is none."""
        return self[key] if key in self._keys else default

    def clear(self) -> None:
        """Remove all values."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Remove and return the value of `key`."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove and return the last name and its value."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Return a new dictionary with these keys, all with the value `default`."""
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> Any:
        """Return the names."""
        return self._keys.keys()

    def items(self) -> Iterator[tuple[str, Any]]:
        """Return the pairs of name and value."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterator[Any]:
        """Return the values."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Add values from a mapping, or from pairs of name and value."""
        pairs = _pairs("ParameterDict", parameters)
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            # PyTorch sorts the names of a plain dict, which determines the order of the parameters.
            pairs = sorted(pairs, key=lambda pair: pair[0])
        for key, value in pairs:
            self[key] = value

    def __repr__(self) -> str:
        return _repr_of_parameters(self, list(self.items()))

    def __call__(self, input: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")


__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]
