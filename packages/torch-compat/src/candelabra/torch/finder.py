"""Import hook for ``torch`` and its submodules, placed before all other finders."""

from __future__ import annotations

import importlib
import importlib.abc
import sys
import typing
from collections.abc import Iterable
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from types import ModuleType
from typing import Any

from candelabra import type_hints

from . import children, distribution, stand_ins
from .mirror import Mirror


def is_mirrored(name: str) -> bool:
    """Return whether a module name is that of torch or of one of its submodules."""
    return name == "torch" or name.startswith("torch.")


class TorchFinder(DistributionFinder, importlib.abc.Loader):
    """Finds torch and its submodules as mirrors of Candelabra's modules, or as stand-ins."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the spec of a module, or None if it is not PyTorch's."""
        if not is_mirrored(name):
            return None
        return ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Create the mirror of the corresponding Candelabra module, with its stand-in names."""
        rest = spec.name.partition(".")[2]
        added = stand_ins.names(rest)
        counterpart = stand_ins.counterpart(rest)
        try:
            module: ModuleType | None = importlib.import_module(counterpart)
        except ModuleNotFoundError as error:
            if added is None:
                raise ModuleNotFoundError(
                    f"No module named {spec.name!r}: PyTorch's name is looked up in Candelabra, and there is no {counterpart} ({error})",
                    name=spec.name,
                ) from None
            module = None
        return Mirror(spec.name, module, added or {}, stand_ins.submodules(rest))

    def find_distributions(self, context: DistributionFinder.Context | None = None) -> Iterable[Distribution]:
        """Find the distribution ``torch``, for ``importlib.metadata``."""
        return distribution.find(context or DistributionFinder.Context())

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing, because a mirror is complete when it is created."""


_FINDER = TorchFinder()


def is_installed() -> bool:
    """Return whether ``import torch`` imports Candelabra.

    Examples
    --------
    >>> from candelabra.torch import is_installed
    >>> is_installed()
    False
    """
    return _FINDER in sys.meta_path


def install() -> None:
    """Make ``import torch`` and its submodules import Candelabra, also in child processes.

    Raises
    ------
    RuntimeError
        If PyTorch itself is already imported.

    Examples
    --------
    >>> import candelabra.torch
    >>> candelabra.torch.install()
    >>> import torch
    >>> torch.ones(2) + 1
    tensor([2., 2.])
    >>> candelabra.torch.uninstall()
    """
    if is_installed():
        return
    there = sys.modules.get("torch")
    if there is not None and not isinstance(there, Mirror):
        raise RuntimeError(
            "candelabra.torch.install(): PyTorch itself is imported already, and its tensors are others; install before anything imports torch"
        )
    sys.meta_path.insert(0, _FINDER)
    # Libraries resolve the hints of their modules' base classes, which are Candelabra's.
    typing.get_type_hints = type_hints.get_type_hints
    children.start_installed()


def uninstall() -> None:
    """Undo `install` and remove the modules under ``torch``; existing objects remain valid."""
    if not is_installed():
        return
    sys.meta_path.remove(_FINDER)
    for name in [name for name, module in sys.modules.items() if is_mirrored(name) and isinstance(module, Mirror)]:
        del sys.modules[name]
    typing.get_type_hints = type_hints.plain
    children.start_plain()
