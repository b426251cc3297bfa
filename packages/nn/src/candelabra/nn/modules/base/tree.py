"""Traverse the parameters, buffers and submodules of a module by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from candelabra import Tensor

from ...parameter import Buffer, Parameter

if TYPE_CHECKING:
    from ..module import Module


class Tree:
    """Implement the methods of `Module` that find parameters, buffers and submodules.

    Names are dotted paths such as ``"encoder.0.weight"``.
    """

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Iterate over this module and its submodules at all depths, with their paths.

        Each module is visited once, unless `remove_duplicate` is False.

        Examples
        --------
        >>> from candelabra import nn
        >>> [name for name, module in nn.Sequential(nn.Linear(2, 2), nn.ReLU()).named_modules()]
        ['', '0', '1']
        """
        if memo is None:
            memo = set()
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self  # type: ignore[misc]
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """Iterate over this module and its submodules at all depths, each once."""
        for _, module in self.named_modules():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Iterate over the direct submodules and their names, each once."""
        seen: set[Any] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """Iterate over the direct submodules."""
        for _, module in self.named_children():
            yield module

    def _named_members(
        self,
        members_of: Callable[[Module], Any],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, member in members_of(module):  # type: ignore[arg-type]
                if member is None or id(member) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(member))
                yield (f"{path}.{name}" if path else name), member

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Iterate over the parameters and their paths; `recurse` includes those of submodules.

        Examples
        --------
        >>> from candelabra import nn
        >>> [name for name, parameter in nn.Linear(2, 3).named_parameters()]
        ['weight', 'bias']
        """
        yield from self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Iterate over the parameters, each once. Pass the result to an optimizer."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def _names_parameters_itself(self) -> bool:
        """Return whether no subclass overrides `parameters` or `named_parameters`."""
        return type(self).parameters is Tree.parameters and type(self).named_parameters is Tree.named_parameters

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Iterate over the buffers and their paths; `recurse` includes those of submodules."""
        yield from self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Iterate over the buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target: str) -> Module:
        """Return the module at the path `target`.

        Raises
        ------
        AttributeError
            If a component of the path does not exist or is not a module.

        Examples
        --------
        >>> from candelabra import nn
        >>> nn.Sequential(nn.Sequential(nn.ReLU())).get_submodule("0.0")
        ReLU()
        """
        module: Any = self
        if target:
            for name in target.split("."):
                if not hasattr(module, name):
                    raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
                module = getattr(module, name)
                if not isinstance(module, Tree):
                    raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Set the module at the path `target`. With `strict`, a module must already exist there."""
        if not target:
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Tree):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        *path, name = target.split(".")
        parent = self.get_submodule(".".join(path))
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{type(parent).__name__} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Tree):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter at the path `target`, or raise AttributeError."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        parameter = getattr(module, name)
        if not isinstance(parameter, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return parameter

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer at the path `target`, or raise AttributeError."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        buffer = getattr(module, name)
        if not (isinstance(buffer, Buffer) or name in module._buffers):
            raise AttributeError(f"`{name}` is not a buffer")
        return buffer
