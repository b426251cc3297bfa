"""Read and replace tensors and submodules of a module by path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from candelabra import Tensor

from ..modules.module import Module

_MISSING: Any = object()


def swap_tensor(module: Module, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Replace a tensor of the module itself and return the previous one.

    Unlike assignment, this accepts plain tensors in place of parameters. The value `_MISSING`
    removes the attribute.
    """
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if name == "":
        raise KeyError('tensor name can\'t be empty string ""')
    if tensor is not _MISSING and tensor is not None and not isinstance(tensor, Tensor):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    tables: tuple[Any, Any] = (module._parameters, module._buffers)
    for table in tables:
        if name in table:
            old = table[name]
            if tensor is _MISSING:
                del table[name]
            else:
                table[name] = tensor
            return old
    before: Any = getattr(module, name, _MISSING)
    if before is _MISSING and not allow_missing:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    if before is not _MISSING and not isinstance(before, Tensor):
        raise TypeError(f"attribute `{name}`: {before} is not an instance of torch.Tensor")
    if tensor is not _MISSING:
        setattr(module, name, tensor)
    elif before is not _MISSING:
        delattr(module, name)
    return before


class NamedMemberAccessor:
    """Read and replace the tensors of a module and its submodules by path.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> from candelabra.nn.utils.named_members import NamedMemberAccessor
    >>> accessor = NamedMemberAccessor(nn.Sequential(nn.Linear(2, 1)))
    >>> before = accessor.swap_tensor("0.weight", candelabra.ones(1, 2))
    >>> accessor.get_tensor("0.weight")
    tensor([[1., 1.]])
    """

    def __init__(self, module: Module) -> None:
        self.module = module

    def get_submodule(self, name: str) -> Module:
        """Return the module at this path."""
        return self.module.get_submodule(name)

    def swap_submodule(self, path: str, value: Module) -> Module:
        """Set the module at this path and return the previous one."""
        prefix, _, name = path.rpartition(".")
        parent = self.get_submodule(prefix)
        before = getattr(parent, name)
        setattr(parent, name, value)
        return before

    def _place(self, path: str) -> tuple[Module, str]:
        prefix, _, name = path.rpartition(".")
        return self.get_submodule(prefix), name

    def get_tensor(self, name: str) -> Any:
        """Return the tensor at this path."""
        module, attribute = self._place(name)
        if not hasattr(module, attribute):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        tensor = getattr(module, attribute)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"{tensor} is not an instance of torch.Tensor")
        return tensor

    def set_tensor(self, name: str, value: Any) -> None:
        """Set the tensor at this path."""
        self.swap_tensor(name, value, allow_missing=True)

    def del_tensor(self, name: str) -> None:
        """Remove the tensor at this path."""
        module, attribute = self._place(name)
        swap_tensor(module, attribute, _MISSING)

    def swap_tensor(self, name: str, value: Any, allow_missing: bool = False) -> Any:
        """Set the tensor at this path and return the previous one."""
        module, attribute = self._place(name)
        return swap_tensor(module, attribute, value, allow_missing)

    def get_tensors(self, names: Iterable[str]) -> list[Tensor]:
        """Return the tensors at these paths."""
        return [self.get_tensor(name) for name in names]

    def set_tensors(self, names: Iterable[str], values: Iterable[Any]) -> None:
        """Set the tensors at these paths."""
        for name, value in _pairs(names, values):
            self.set_tensor(name, value)

    def set_tensors_dict(self, named_tensors: dict[str, Any]) -> None:
        """Set tensors; the keys are their paths."""
        for name, value in named_tensors.items():
            self.set_tensor(name, value)

    def del_tensors(self, names: Iterable[str]) -> None:
        """Remove the tensors at these paths."""
        for name in names:
            self.del_tensor(name)

    def swap_tensors(self, names: Iterable[str], values: Iterable[Any], allow_missing: bool = False) -> list[Any]:
        """Set the tensors at these paths and return the previous ones."""
        return [self.swap_tensor(name, value, allow_missing) for name, value in _pairs(names, values)]

    def swap_tensors_dict(
        self, named_tensors: dict[str, Any], allow_missing: bool = False
    ) -> tuple[dict[str, Any], list[str]]:
        """Set tensors, keyed by path, and return the previous ones.

        Returns
        -------
        before, missing
            The previous tensors, and the paths that had none. After an exception all changes are
            undone.
        """
        before: dict[str, Any] = {}
        missing: list[str] = []
        try:
            for name, tensor in named_tensors.items():
                before[name] = self.swap_tensor(name, tensor, allow_missing=True)
                if before[name] is _MISSING:
                    missing.append(name)
            if missing and not allow_missing:
                raise RuntimeError(f"Missing key(s): {', '.join(map(repr, missing))}.")
        except Exception:
            for name, tensor in before.items():
                self.swap_tensor(name, tensor, allow_missing=True)
            raise
        return before, missing

    def check_keys(self, keys: Iterable[str]) -> tuple[list[str], list[str]]:
        """Return the tensor paths missing from `keys`, and the keys that are not tensor paths."""
        given = set(keys)
        valid = {name for name, _ in self.named_tensors(remove_duplicate=False)}
        return sorted(valid - given), sorted(given - valid)

    def named_parameters(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Iterate over the parameters and their paths."""
        yield from self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Iterate over the buffers and their paths."""
        yield from self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Iterate over the parameters and buffers and their paths."""
        yield from self.named_parameters(remove_duplicate)
        yield from self.named_buffers(remove_duplicate)

    def named_modules(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """Iterate over the modules and their paths."""
        yield from self.module.named_modules(remove_duplicate=remove_duplicate)


def _pairs(names: Iterable[str], values: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    keys, tensors = list(names), list(values)
    if len(keys) != len(tensors):
        raise AssertionError(f"names and values must have the same length, got {len(keys)} vs {len(tensors)}")
    return iter(zip(keys, tensors, strict=True))


__all__ = ["NamedMemberAccessor", "swap_tensor"]
