"""Modules that expose the names of another module under their own name."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any


class Mirror(ModuleType):
    """A module under PyTorch's name, with added names first and then those of Candelabra's module.

    Assignments to names of Candelabra's module are also applied there, so that replaced functions
    take effect. Added names stand in for Candelabra's and are only replaced here.
    """

    def __init__(self, name: str, target: ModuleType | None, added: dict[str, Any]) -> None:
        super().__init__(name, target.__doc__ if target is not None else None)
        self.__dict__["_target"] = target
        self.__dict__["_added"] = frozenset(added)
        self.__dict__.update(added)

    def __getattr__(self, name: str) -> Any:
        target = self.__dict__.get("_target")
        if name == "__all__" and target is not None:
            # Exclude submodules, because those of packages that are not installed cannot be
            # imported.
            there = [
                name
                for name, value in vars(target).items()
                if not name.startswith("_") and not isinstance(value, ModuleType)
            ]
            return getattr(target, "__all__", there)
        if target is not None and not (name.startswith("__") and name.endswith("__")):
            try:
                found = getattr(target, name)
            except (AttributeError, ModuleNotFoundError) as error:
                reason = str(error)
            else:
                if isinstance(found, ModuleType):
                    return self._submodule(name)
                return found
        else:
            reason = "it has no such module"
        try:
            return self._submodule(name)
        except ModuleNotFoundError:
            pass
        raise AttributeError(
            f"module {self.__name__!r} has no attribute {name!r} on Candelabra: {reason}", name=name, obj=self
        ) from None

    def _submodule(self, name: str) -> ModuleType:
        if name.startswith("__") and name != "__config__":
            raise ModuleNotFoundError(name)
        return importlib.import_module(f"{self.__name__}.{name}")

    def __setattr__(self, name: str, value: Any) -> None:
        target = self.__dict__.get("_target")
        if isinstance(value, ModuleType) and callable(getattr(target, name, None)):
            # The import system binds a submodule to its name. A function of that name, such as
            # `torch.autograd.gradcheck`, hides its module.
            return
        # Do not forward what the import system sets: submodules and module metadata.
        ours = (
            target is not None
            and not name.startswith("__")
            and not isinstance(value, ModuleType)
            and name not in self.__dict__["_added"]
            and name in dir(target)
        )
        if ours:
            setattr(target, name, value)
        if not ours or name in self.__dict__:
            self.__dict__[name] = value

    def __delattr__(self, name: str) -> None:
        self.__dict__.pop(name, None)

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *dir(self.__dict__.get("_target"))})
