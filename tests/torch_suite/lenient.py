"""Imports PyTorch's tests and their harness, and keeps names that are absent as `Absent` objects.

A test that uses an absent name fails with that name; the other tests of its file run.
"""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

#: Modules that are the harness, and not what is tested; `.` at the end: with their submodules.
HARNESS = (
    "torch.testing._internal.",
    "torch._subclasses.meta_utils",
    "torch._vendor.",
    "torch.testing._comparison",
    "torch.testing._utils",
    "torch.utils._import_utils",
    "torch.utils._mode_utils",
    "torchgen.",
)


class AbsentNameError(Exception):
    """A test used a name that is absent."""


class Absent:
    """A name that is absent. While files are imported it stands for anything; then its use
    raises.
    """

    loading = 0

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name

    def _used(self) -> None:
        if not Absent.loading:
            raise AbsentNameError(f"absent: {self._name}")

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return []
        if name.startswith("__"):
            raise AttributeError(name)
        self._used()
        return Absent(f"{self._name}.{name}")

    def __call__(self, *values: Any, **named: Any) -> Any:
        self._used()
        return self

    def __iter__(self) -> Iterator[Any]:
        self._used()
        return iter(())

    def __bool__(self) -> bool:
        self._used()
        return False

    def __enter__(self) -> Absent:
        self._used()
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def __getitem__(self, index: Any) -> Absent:
        return self

    def __or__(self, other: Any) -> Any:
        return other

    __ror__ = __add__ = __radd__ = __or__

    def __instancecheck__(self, value: object) -> bool:
        return False

    def __subclasscheck__(self, kind: type) -> bool:
        return False

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return ()

    def __repr__(self) -> str:
        return self._name


def imported(module: str) -> Any:
    """Return a module, or what stands for it where it is absent."""
    try:
        return importlib.import_module(module)
    except (ImportError, AttributeError, NotImplementedError):
        if module.startswith(HARNESS[0]) and importlib.util.find_spec(module):
            raise
        return Absent(module)


def taken(module: str, name: str) -> Any:
    """Return a name of a module, or what stands for it where it is absent."""
    there = imported(module)
    try:
        return getattr(there, name)
    except (AttributeError, NotImplementedError):
        return imported(f"{module}.{name}") if hasattr(there, "__path__") else Absent(f"{module}.{name}")


def reached(root: Any, *names: str) -> Any:
    """Return what a chain of attributes leads to, or what stands for it where it is absent."""
    place = root
    said = getattr(root, "__name__", None) or repr(root)
    for name in names:
        said += f".{name}"
        try:
            place = getattr(place, name)
        except (AttributeError, NotImplementedError):
            place = Absent(said)
    return place


def looked_up(place: Any, name: Any, *default: Any) -> Any:
    """Do what `getattr` does; while files are imported, return what stands for an absent name."""
    if isinstance(name, Absent):
        return default[0] if default else name
    if default or not Absent.loading:
        return getattr(place, name, *default)
    return reached(place, name)


class _Rewriting(ast.NodeTransformer):
    """Sends what a file imports and reads from torch while it is imported through this module."""

    def __init__(self) -> None:
        self.roots = {"torch"}

    def _call(self, function: str, *texts: str, first: ast.expr | None = None) -> ast.expr:
        values = [] if first is None else [first]
        return ast.Call(ast.Name(function, ast.Load()), [*values, *(ast.Constant(text) for text in texts)], [])

    def visit_Import(self, node: ast.Import) -> Any:
        parts: list[ast.stmt] = []
        for alias in node.names:
            whole, named = alias.name, alias.asname
            if whole.partition(".")[0] != "torch" or whole == "torch":
                parts.append(ast.Import([alias]))
                continue
            call = self._call("__imported__", whole)
            if named:
                self.roots.add(named)
                parts.append(ast.Assign([ast.Name(named, ast.Store())], call))
            else:
                parts += [ast.Expr(call), ast.Import([ast.alias("torch", None)])]
        return parts

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        if node.level or (node.module or "").partition(".")[0] != "torch" or node.names[0].name == "*":
            return node
        parts: list[ast.stmt] = []
        for alias in node.names:
            named = alias.asname or alias.name
            self.roots.add(named)
            parts.append(
                ast.Assign([ast.Name(named, ast.Store())], self._call("__taken__", node.module or "", alias.name))
            )
        return parts

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        names, place = [node.attr], node.value
        while isinstance(place, ast.Attribute):
            names.insert(0, place.attr)
            place = place.value
        if isinstance(place, ast.Name) and place.id in self.roots and isinstance(node.ctx, ast.Load):
            return self._call("__reached__", *names, first=place)
        return self.generic_visit(node)

    def _outside(self, node: Any) -> Any:
        """Rewrite a function's decorators and defaults; its body runs later."""
        node.decorator_list = [self.visit(entry) for entry in node.decorator_list]
        node.args = self.visit(node.args)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return self._outside(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        return self._outside(node)

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        return node


def load(name: str, path: Path, module: ModuleType | None = None) -> ModuleType:
    """Import a file of the tests or of the harness under a name."""
    tree = ast.parse(path.read_text(), str(path))
    tree = ast.fix_missing_locations(_Rewriting().visit(tree))
    code = compile(tree, str(path), "exec", dont_inherit=True)
    if module is None:
        module = ModuleType(name)
        module.__file__ = str(path)
        sys.modules[name] = module
    vars(module).update(__imported__=imported, __taken__=taken, __reached__=reached, getattr=looked_up)
    Absent.loading += 1
    try:
        exec(code, vars(module))
    finally:
        Absent.loading -= 1
    return module


class HarnessFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the harness's modules in a folder, and the modules of the folder of tests."""

    def __init__(self, folder: Path, tests: Path) -> None:
        self.folder, self.tests = folder, tests

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        """Return the spec of a module of the harness or of the tests, or None for others."""
        if not name.startswith("torch"):
            found = PathFinder.find_spec(name, path, target)
            if found is None or not str(found.origin).startswith(str(self.tests)):
                return None
            return importlib.util.spec_from_file_location(
                name, found.origin, loader=self, submodule_search_locations=found.submodule_search_locations
            )
        if not any(f"{name}.".startswith(entry) or name == entry for entry in HARNESS):
            return None
        place = self.folder.joinpath(*name.split("."))
        package = place.is_dir()
        file = place / "__init__.py" if package else place.with_suffix(".py")
        if not file.exists():
            return None
        spec = importlib.util.spec_from_file_location(
            name, file, loader=self, submodule_search_locations=[str(place)] if package else None
        )
        return spec

    def exec_module(self, module: ModuleType) -> None:
        """Import the file."""
        load(module.__name__, Path(module.__file__ or ""), module)
