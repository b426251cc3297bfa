"""Modules that have the names of another module under their own name."""

from __future__ import annotations

import dis
import importlib
import importlib.util
from types import FunctionType, ModuleType
from typing import Any

_STORE_GLOBAL = dis.opmap["STORE_GLOBAL"]
#: Subpackages of candelabra that are none of torch.
_NOT_IN_TORCH = frozenset({"array_api", "legacy", "torch", "vision_ops"})


def _rebound(target: ModuleType) -> set[str]:
    """Return the global names of a module that its functions may assign, and others that these
    functions use.
    """
    return {
        name
        for value in vars(target).values()
        if isinstance(value, FunctionType) and _STORE_GLOBAL in value.__code__.co_code[::2]
        for name in value.__code__.co_names
    }


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _lasting(target: ModuleType) -> dict[str, Any]:
    """Return the names of a module that are bound once: they can be bound in its mirror too."""
    rebound = _rebound(target)
    return {
        name: value
        for name, value in vars(target).items()
        if not _is_dunder(name) and not isinstance(value, ModuleType) and (callable(value) or name not in rebound)
    }


class Mirror(ModuleType):
    """A module under PyTorch's name, with added names first and then those of Candelabra's module.

    Assignments to names of Candelabra's module are also applied there, so that replaced functions
    take effect. Added names stand in for Candelabra's and are only replaced here.
    """

    def __init__(self, name: str, target: ModuleType | None, added: dict[str, Any], submodules: list[str]) -> None:
        super().__init__(name, target.__doc__ if target is not None else None)
        own = self.__dict__
        own["_target"] = target
        own["_added"] = frozenset(added)
        own["_submodules"] = frozenset(submodules)
        if target is not None:
            own.update(_lasting(target))
            if getattr(target, "__file__", None):
                own["__file__"] = target.__file__
        own.update(added)

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        target = own.get("_target")
        if name == "__all__" and target is not None:
            # Exclude submodules, because those of packages that are not installed cannot be
            # imported.
            there = [
                name
                for name, value in vars(target).items()
                if not name.startswith("_") and not isinstance(value, ModuleType)
            ]
            return getattr(target, "__all__", there)
        if _is_dunder(name) and name != "__config__" and name != "__future__":
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)
        reason = "it has no such module"
        if target is not None:
            try:
                found = getattr(target, name)
            except (AttributeError, ModuleNotFoundError) as error:
                reason = str(error)
            else:
                if isinstance(found, ModuleType):
                    return self._mirrored(name, found)
                if callable(found):
                    own[name] = found
                return found
        try:
            return importlib.import_module(f"{self.__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{self.__name__}.{name}":
                raise
        raise AttributeError(
            f"module {self.__name__!r} has no attribute {name!r} on Candelabra: {reason}", name=name, obj=self
        ) from None

    def _mirrored(self, name: str, found: ModuleType) -> ModuleType:
        """Return the mirror of a module that is an attribute; Python's modules as they are."""
        whose, _, rest = found.__name__.partition(".")
        if whose != "candelabra":
            return found
        if rest == "torch":
            # PyTorch's package has itself as an attribute.
            rest = ""
        target = self.__dict__["_target"]
        if rest and found.__name__ != f"{target.__name__}.{name}" and name not in self.__dict__["_submodules"]:
            return importlib.import_module(f"torch.{rest}")
        return importlib.import_module(f"{self.__name__}.{name}" if rest else "torch")

    def __setattr__(self, name: str, value: Any) -> None:
        target = self.__dict__.get("_target")
        if isinstance(value, ModuleType) and (
            callable(self.__dict__.get(name)) or callable(getattr(target, name, None))
        ):
            # The import system binds a submodule to its name. A function of that name, such as
            # `torch.autograd.gradcheck`, hides its module.
            return
        # Do not forward what the import system sets: submodules and module metadata.
        ours = (
            target is not None
            and not name.startswith("__")
            and not isinstance(value, ModuleType)
            and name not in self.__dict__["_added"]
            and (name in vars(target) or name in dir(target))
        )
        if ours:
            setattr(target, name, value)
        if not ours or name in self.__dict__:
            self.__dict__[name] = value

    def __delattr__(self, name: str) -> None:
        self.__dict__.pop(name, None)

    def __dir__(self) -> list[str]:
        target = self.__dict__.get("_target")
        names = {*self.__dict__, *self.__dict__["_submodules"]}
        if target is not None:
            modules = {name for name, value in vars(target).items() if isinstance(value, ModuleType)}
            names |= {name for name in {*dir(target)} - names - modules if not _is_dunder(name)}
            names |= {name for name in modules if vars(target)[name].__name__.startswith("candelabra.")}
            if target.__name__ == "candelabra":
                names = {name for name in names if name not in _NOT_IN_TORCH and _can_be_imported(target, name)}
        return sorted(names)


def _can_be_imported(package: ModuleType, name: str) -> bool:
    """Return whether a name is not that of a distribution's subpackage that is not installed."""
    from candelabra.assembly import SUBPACKAGES

    return name not in SUBPACKAGES or importlib.util.find_spec(f"{package.__name__}.{name}") is not None
