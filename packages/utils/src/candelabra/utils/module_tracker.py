"""Which modules are running, forward or backward."""

from __future__ import annotations

import weakref
from typing import Any

# Import the package before its submodules: otherwise two importing threads can deadlock.
import candelabra.autograd as _autograd  # noqa: F401
import candelabra.nn as _nn  # noqa: F401
from candelabra import Tensor, pytree
from candelabra.autograd.graph import register_multi_grad_hook
from candelabra.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """A context manager that knows which modules are running.

    `parents` has their names, such as ``"Sequential.0"``, and always ``"Global"``. While a backward
    pass computes the gradients of a module, its name is there too.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> from candelabra.utils.module_tracker import ModuleTracker
    >>> class Show(nn.Module):
    ...     def forward(self, x):
    ...         print(sorted(tracker.parents))
    ...         return x
    >>> with ModuleTracker() as tracker:
    ...     _ = nn.Sequential(Show())(candelabra.ones(1))
    ['Global', 'Sequential', 'Sequential.0']
    """

    def __init__(self) -> None:
        self.parents = {"Global"}
        #: Whether gradients of a module are being computed.
        self.is_bw = False
        self._names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._handles: list[Any] = []
        self._hooks: list[Any] = []

    def _name_of(self, module: Any) -> str:
        if module not in self._names:
            self._names[module] = type(module).__name__
        name = self._names[module]
        for child_name, child in module.named_children():
            if child not in self._names:
                self._names[child] = f"{name}.{child_name}"
        return name

    def _at_gradients(self, values: Any, change: Any) -> None:
        """Call a function when the gradients of the tensors among some values are computed."""
        tensors = [leaf for leaf in pytree.tree_leaves(values) if isinstance(leaf, Tensor) and leaf.requires_grad]
        if tensors:
            self._hooks.append(register_multi_grad_hook(tensors, change))

    def _before(self, module: Any, args: Any) -> None:
        name = self._name_of(module)
        self.is_bw = False
        self.parents.add(name)
        self._at_gradients(args, lambda gradients: self._leave(name))

    def _after(self, module: Any, args: Any, result: Any) -> None:
        name = self._name_of(module)
        self.parents.discard(name)
        self._at_gradients(result, lambda gradients: self._enter(name))

    def _enter(self, name: str) -> None:
        if not self.is_bw:
            # Modules of an earlier pass whose inputs required no gradients.
            self.parents = {"Global"}
        self.is_bw = True
        self.parents.add(name)

    def _leave(self, name: str) -> None:
        self.parents.discard(name)

    def __enter__(self) -> ModuleTracker:
        self._handles = [register_module_forward_pre_hook(self._before), register_module_forward_hook(self._after)]
        return self

    def __exit__(self, *error: object) -> None:
        for handle in (*self._handles, *self._hooks):
            handle.remove()
        self._handles.clear()
        self._hooks.clear()
