"""Say which names are there when ``import torch`` is Candelabra: ``python resolve.py NAMES
OUT``.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings

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


def main() -> None:
    """Write the names that are missing."""
    warnings.simplefilter("ignore")
    candelabra.torch.install()
    with open(sys.argv[1]) as file:
        listed = json.load(file)
    missing = {
        "modules": {module: missing_names(module, names) for module, names in listed["modules"].items()},
        "classes": {path: missing_members(path, names) for path, names in listed["classes"].items()},
    }
    with open(sys.argv[2], "w") as file:
        json.dump(missing, file)


if __name__ == "__main__":
    main()
