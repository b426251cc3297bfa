"""Writes the pages of the packages' modules, one for each module and one for each of its classes;
`conf.py` runs this on each build.

Operators have pages of their own, which `operator_pages.py` writes.
"""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

#: Which modules have pages, by what a reader looks for.
MODULES = {
    "The core": [
        "candelabra", "candelabra.library", "candelabra.serialization", "candelabra.safetensors", "candelabra.overrides",
        "candelabra.python_dispatch", "candelabra.fake_tensor", "candelabra.backends", "candelabra.accelerator",
    ],
    "Gradients": [
        "candelabra.autograd", "candelabra.autograd.functional", "candelabra.autograd.forward_ad", "candelabra.autograd.graph",
        "candelabra.autograd.checkpoint", "candelabra.autograd.profiler", "candelabra.func", "candelabra.profiler", "candelabra.amp",
    ],
    "Networks": [
        "candelabra.nn", "candelabra.nn.init", "candelabra.nn.modules.lazy", "candelabra.nn.parallel", "candelabra.nn.grad",
        "candelabra.nn.utils", "candelabra.nn.utils.rnn", "candelabra.nn.utils.parametrize", "candelabra.nn.utils.parametrizations",
        "candelabra.nn.utils.prune", "candelabra.nn.utils.stateless",
    ],
    "Optimizers": ["candelabra.optim", "candelabra.optim.lr_scheduler", "candelabra.optim.swa_utils"],
    "Data, training and tools": [
        "candelabra.utils.data", "candelabra.utils.trainer", "candelabra.utils.summaries", "candelabra.utils.flop_counter",
        "candelabra.utils.frames", "candelabra.utils.benchmark", "candelabra.utils.cpp_extension", "candelabra.utils.tensorboard",
        "candelabra.utils.collect_env", "candelabra.hub",
    ],
    "Compiling and files": ["candelabra.compiler", "candelabra.export", "candelabra.onnx", "candelabra.jit", "candelabra.fx"],
    "Probability": [
        "candelabra.distributions", "candelabra.distributions.constraints", "candelabra.distributions.transforms",
    ],
    "Several processes": [
        "candelabra.multiprocessing", "candelabra.distributed", "candelabra.distributed.data_parallel",
        "candelabra.distributed.checkpoint", "candelabra.distributed.tensor",
    ],
}  # fmt: skip
#: What the module `candelabra` has besides operators and what other modules show. PyTorch's old
#: constructors and typed storages are left out, and `Tensor` is among the operators.
TYPES = [
    "AcceleratorError", "BackendError", "BackendVersionError", "Generator", "OutOfMemoryError", "Size", "UntypedStorage", "device",
    "dtype", "finfo", "iinfo", "layout", "memory_format",
]  # fmt: skip


def public(module: Any) -> dict[str, Any]:
    """Return the classes and functions that a module shows, by name.

    Operators and constants are left out, and so are names of other packages.
    """
    if module.__name__ == "candelabra":
        return {name: getattr(module, name) for name in TYPES}
    names = getattr(module, "__all__", None)
    # A module that does not say what it shows has what its package defines.
    homes = "candelabra" if names else ".".join(module.__name__.split(".")[:2])
    found = {}
    for name in sorted(names or [name for name in vars(module) if not name.startswith("_")]):
        target = getattr(module, name)
        home = str(getattr(target, "__module__", ""))
        if (inspect.isclass(target) or inspect.isfunction(target)) and home.startswith(homes):
            found[name] = target
    return found


def summary(target: Any) -> str:
    """Return the first sentence of a docstring, on one line, after a signature if it has one."""
    paragraphs = inspect.cleandoc(target.__doc__ or "").split("\n\n")
    if len(paragraphs) > 1 and re.fullmatch(r"\w+\(.*\)", paragraphs[0]):
        paragraphs = paragraphs[1:]
    text = paragraphs[0].replace("\n", " ")
    return text.split(". ")[0].rstrip(".") + "." if text else ""


def heading(text: str, mark: str = "=") -> list[str]:
    """Return a heading as lines."""
    return [text, mark * len(text), ""]


def module_page(name: str, classes: dict[str, Any], functions: dict[str, Any]) -> str:
    """Return the page of a module: its text, a table of its classes, and its functions."""
    lines = [*heading(name), "Of :doc:`all modules <index>`.", "", f".. automodule:: {name}", "   :no-members:", ""]
    if classes:
        lines += [*heading("Classes", "-"), ".. list-table::", "   :widths: 35 65", ""]
        for item, target in classes.items():
            lines += [f"   * - :doc:`{item} <{name}.{item}>`", f"     - {summary(target)}"]
        lines.append("")
    if functions:
        lines += heading("Functions", "-")
        for item in functions:
            lines += [f".. autofunction:: {name}.{item}", ""]
    return "\n".join(lines) + "\n"


def class_page(name: str, item: str) -> str:
    """Return the page of a class."""
    lines = [*heading(item), f"Of :doc:`{name}`.", "", f".. autoclass:: {name}.{item}", "   :members:"]
    if item == "device":  # docstrings that say `type` mean Python's, not this attribute
        lines.append("   :exclude-members: type")
    return "\n".join([*lines, ""])


def index_page() -> str:
    """Return the list of all modules."""
    lines = [*heading("Modules"), "What each package has besides :doc:`operators <../index>`.", ""]
    for subject, names in MODULES.items():
        lines += [*heading(subject, "-"), ".. list-table::", "   :widths: 40 60", ""]
        for name in names:
            lines += [f"   * - :doc:`{name} <{name}>`", f"     - {summary(importlib.import_module(name))}"]
        lines.append("")
    lines += [".. toctree::", "   :hidden:", "   :glob:", "", "   *", ""]
    return "\n".join(lines)


def pages() -> dict[str, str]:
    """Return the text of every page by file name.

    A class that several modules show has one page, under the first of them that is its home.
    """
    made = {"index.rst": index_page()}
    modules = {name: public(importlib.import_module(name)) for names in MODULES.values() for name in names}
    seen: set[int] = set()
    # A submodule claims its classes before the package that shows them, too.
    for name in sorted(modules, key=lambda name: -name.count(".")):
        mine = {item: target for item, target in modules[name].items() if id(target) not in seen}
        seen |= {id(target) for target in mine.values()}
        classes = {item: target for item, target in mine.items() if inspect.isclass(target)}
        functions = {item: target for item, target in mine.items() if not inspect.isclass(target)}
        made[f"{name}.rst"] = module_page(name, classes, functions)
        made |= {f"{name}.{item}.rst": class_page(name, item) for item in classes}
    return made


def write(folder: Path) -> int:
    """Write all pages, and return their number.

    Pages that have not changed are left alone, so that Sphinx need not read them again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made = pages()
    for old in folder.glob("*.rst"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    return len(made)
