"""Say which names are there when ``import torch`` is Candelabra: ``python resolve.py NAMES
OUT``.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
import warnings
from typing import Any

import candelabra.torch

#: Objects of classes that have their members in objects only.
EXAMPLES = {
    "torch.finfo": lambda: candelabra.finfo(candelabra.float32),
    "torch.iinfo": lambda: candelabra.iinfo(candelabra.int8),
}


def missing_names(module: str, names: list[str]) -> list[str]:
    """Return the names that a module does not have; ``""`` first if it cannot be imported."""
    try:
        found = importlib.import_module(module)
    except ImportError:
        return ["", *names]
    return [name for name in names if not hasattr(found, name)]


def missing_members(path: str, names: list[str]) -> list[str]:
    """Return the members that a class does not have, in objects either."""
    module, _, name = path.rpartition(".")
    found = getattr(importlib.import_module(module), name, None)
    if path in EXAMPLES:
        found = EXAMPLES[path]()
    return [name for name in names if not hasattr(found, name)]


def missing_parameters(path: str, names: list[str]) -> list[str]:
    """Return the parameters that a function or class has not. One that is missing has been listed
    as a name, and one that takes anything raises.
    """
    parts = path.split(".")
    for length in range(len(parts) - 1, 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:length]))
            break
        except ImportError:
            continue
    for part in parts[length:]:
        found = getattr(found, part, None)
    try:
        parameters = inspect.signature(found).parameters if callable(found) else {}
    except ValueError:
        return []
    kinds = {each.kind for each in parameters.values()}
    if not callable(found) or {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} <= kinds:
        return []
    return [name for name in names if name not in parameters]


def main() -> None:
    """Write the names that are missing."""
    warnings.simplefilter("ignore")
    candelabra.torch.install()
    with open(sys.argv[1]) as file:
        listed = json.load(file)
    missing = {
        "modules": {module: missing_names(module, names) for module, names in listed["modules"].items()},
        "classes": {path: missing_members(path, names) for path, names in listed["classes"].items()},
        "signatures": {path: missing_parameters(path, names) for path, names in listed["signatures"].items()},
    }
    with open(sys.argv[2], "w") as file:
        json.dump(missing, file)


if __name__ == "__main__":
    main()
