"""Compiled modules."""

from __future__ import annotations

from typing import Any

from candelabra import nn

from .building import Planning
from .compiled import compile_function


class OptimizedModule(nn.Module):
    """A module whose calls are compiled. It shares everything with the original, ``_orig_mod``.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> model = candelabra.compile(nn.Linear(2, 3))
    >>> sorted(name for name, _ in model.named_parameters())
    ['_orig_mod.bias', '_orig_mod.weight']
    """

    _orig_mod: nn.Module

    def __init__(
        self, module: nn.Module, fullgraph: bool = False, planning: Planning | None = None, name: str | None = None
    ) -> None:
        super().__init__()
        self._orig_mod = module
        self.__dict__["_compiled_call"] = compile_function(module.__call__, fullgraph, planning or Planning(), name)
        self.__dict__["training"] = module.training

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._compiled_call(*args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        del state["_compiled_call"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__["_compiled_call"] = compile_function(self._orig_mod.__call__, False, Planning())


def _attribute_of_original(self: OptimizedModule, name: str) -> Any:
    module = self.__dict__.get("_modules", {}).get("_orig_mod")
    if name == "_orig_mod" or module is None:
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
    return getattr(module, name)


# Set after the class is made: Module would define __getattr__ for all modules otherwise, whose
# attributes are slower to find then.
OptimizedModule.__getattr__ = _attribute_of_original  # type: ignore[method-assign]
