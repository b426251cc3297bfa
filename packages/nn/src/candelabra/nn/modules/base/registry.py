"""Store the named parameters, buffers or submodules of one module."""

from __future__ import annotations

import weakref
from typing import Any


class Registry(dict[str, Any]):
    """Mirror the entries of a dictionary as attributes of the module that owns it.

    Every change is also applied to the instance dictionary of the owner. ``module.weight`` is
    therefore an ordinary attribute that is found without Python code.
    ``module._parameters["weight"] = ...`` works as in PyTorch. The reference to the owner is weak,
    so a module is freed with its last reference, without the garbage collector.
    """

    __slots__ = ("_owner",)

    def __init__(self, owner: Any = None, entries: dict[str, Any] | None = None) -> None:
        super().__init__()
        self._owner = None if owner is None else weakref.ref(owner)
        if entries:
            self.update(entries)

    def _attributes(self) -> dict[str, Any]:
        owner = self._owner() if self._owner is not None else None
        return owner.__dict__ if owner is not None else {}

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        self._attributes()[name] = value

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        self._attributes().pop(name, None)

    def pop(self, name: str, *default: Any) -> Any:
        value = super().pop(name, *default)
        if name not in self:
            self._attributes().pop(name, None)
        return value

    def popitem(self) -> tuple[str, Any]:
        name, value = super().popitem()
        self._attributes().pop(name, None)
        return name, value

    def clear(self) -> None:
        for name in list(self):
            del self[name]

    def update(self, *entries: Any, **more: Any) -> None:
        for name, value in dict(*entries, **more).items():
            self[name] = value

    def setdefault(self, name: str, default: Any = None) -> Any:
        if name not in self:
            self[name] = default
        return self[name]

    def __ior__(self, entries: Any) -> Registry:  # type: ignore[override,misc]
        self.update(entries)
        return self

    def copy(self) -> dict[str, Any]:
        return dict(self)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        # Module.__setstate__ restores the owner.
        return Registry, (None, dict(self))
