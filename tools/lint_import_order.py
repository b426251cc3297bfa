"""Find modules that are imported before their package: ``python tools/lint_import_order.py``.

Importing a package locks the package, then the modules that it imports. A thread that begins with
one of these modules locks it first, and then the package. Python breaks the deadlock by raising, or
by returning a partially imported module. So ``import candelabra.a`` comes before
``from candelabra.a.b import name``, where ``candelabra.a`` imports ``b`` itself.

Nothing is imported: the tool reads import statements, and calls of ``import_module`` with a
constant name. An import at the top of a file counts for the functions of the file, an import in a
function only for what follows in that function. Modules of one package, such as ``candelabra.nn``,
import one another in any order: a thread that imports them has locked the package.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "candelabra"


class Import(NamedTuple):
    """A statement that imports a module: its line, the module, and names that may be modules."""

    line: int
    module: str
    names: tuple[str, ...] = ()


class Scope(NamedTuple):
    """The imports of a file or of a function, in order, and the functions in it."""

    imports: list[Import]
    functions: list[Scope]


def scope_of(node: ast.AST, package: list[str]) -> Scope:
    """Return the imports below a node of the file of a package, but those under TYPE_CHECKING."""
    found = Scope([], [])
    _collect(node, package, found)
    return found


def _collect(node: ast.AST, package: list[str], found: Scope) -> None:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            found.functions.append(scope_of(child, package))
        elif isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            for other in child.orelse:
                _collect(ast.Module([other], []), package, found)
        else:
            found.imports.extend(_imports_of(child, package))
            _collect(child, package, found)


def _imports_of(node: ast.AST, package: list[str]) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield Import(node.lineno, alias.name)
    elif isinstance(node, ast.ImportFrom):
        above = package[: len(package) - node.level + 1] if node.level else []
        name = ".".join([*above, *([node.module] if node.module else [])])
        yield Import(node.lineno, name, tuple(alias.name for alias in node.names))
    elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
        first = node.args[0] if node.args else None
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            yield Import(node.lineno, first.value)


class Sources:
    """The modules of all distributions, by name."""

    def __init__(self, folders: list[Path]) -> None:
        self.files: dict[str, Path] = {}
        for folder in folders:
            for file in sorted(folder.glob(f"{PACKAGE}/**/*.py")):
                parts = file.relative_to(folder).with_suffix("").parts
                self.files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
        self.loaded = functools.cache(self._loaded)

    @functools.cached_property
    def scopes(self) -> dict[str, Scope]:
        """The imports of each module."""
        return {
            name: scope_of(ast.parse(file.read_text(encoding="utf-8")), self.package_of(name))
            for name, file in self.files.items()
        }

    def package_of(self, name: str) -> list[str]:
        """Return the parts of the name of the package that relative imports begin at."""
        parts = name.split(".")
        return parts if self.files[name].name == "__init__.py" else parts[:-1]

    def modules_of(self, one: Import) -> list[str]:
        """Return the modules that a statement imports, in the order in which Python does."""
        named = (f"{one.module}.{name}" for name in one.names)
        return [name for name in (one.module, *named) if name in self.files]

    def _loaded(self, name: str) -> frozenset[str]:
        """Return the modules that have been imported once a module is, itself among them."""
        found: set[str] = set()
        waiting = [name]
        while waiting:
            module = waiting.pop()
            if module in found or module not in self.files:
                continue
            found.add(module)
            waiting.append(module.rpartition(".")[0])
            waiting.extend(other for one in self.scopes[module].imports for other in self.modules_of(one))
        return frozenset(found)

    def faults(self) -> Iterator[str]:
        """Yield what is wrong with the order in all modules."""
        for name, scope in self.scopes.items():
            # What else is in the package has locked it.
            run = Run(self, set(self.loaded(PACKAGE)))
            run.load(_distribution(name))
            run.load(name)
            yield from run.faults
            for function in scope.functions:
                yield from Run(self, set(run.begun)).faults_of_function(name, function)


class Run:
    """Modules that a thread imports one after the other, as Python does."""

    def __init__(self, sources: Sources, begun: set[str]) -> None:
        self.sources = sources
        #: Modules whose code has begun to run.
        self.begun = begun
        self.faults: list[str] = []

    def load(self, name: str) -> None:
        """Import a module, after its packages."""
        for end in [at for at, letter in enumerate(name) if letter == "."] + [len(name)]:
            module = name[:end]
            if module not in self.begun and module in self.sources.files:
                self.begun.add(module)
                self._run(module, self.sources.scopes[module])

    def _run(self, name: str, scope: Scope) -> None:
        for one in scope.imports:
            for module in self.sources.modules_of(one):
                self._check(name, one, module)
                self.load(module)

    def _check(self, name: str, one: Import, module: str) -> None:
        if _distribution(name) == _distribution(module):
            return
        for inner, package in _with_packages(module):
            if inner in self.begun or package in self.begun or inner not in self.sources.loaded(package):
                continue
            self.faults.append(
                f"{self.sources.files[name]}:{one.line}: {inner} is imported before {package}, which imports it"
            )

    def faults_of_function(self, name: str, scope: Scope) -> list[str]:
        """Return the faults of a function of a module that has been imported."""
        self._run(name, scope)
        for function in scope.functions:
            self.faults += Run(self.sources, set(self.begun)).faults_of_function(name, function)
        return self.faults


def _distribution(module: str) -> str:
    """Return the package that a module is part of, such as ``candelabra.nn``."""
    return ".".join(module.split(".")[:2])


def _with_packages(module: str) -> Iterator[tuple[str, str]]:
    """Yield a module with its package, and so on outwards."""
    while "." in module:
        package = module.rpartition(".")[0]
        yield module, package
        module = package


def source_folders(root: Path) -> list[Path]:
    """Return the folders that the distributions' modules are in."""
    return sorted([*root.glob("packages/*/python"), *root.glob("packages/*/src")])


def faults(root: Path = ROOT) -> list[str]:
    """Return what is wrong, with files and lines."""
    return sorted(set(Sources(source_folders(root)).faults()))


def main() -> int:
    found = faults()
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
