"""Fuzz one target: ``python tests/fuzz/coverage/target.py NAME [options] [corpora]``."""

from __future__ import annotations

import ctypes
import importlib
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import atheris

sys.path.insert(0, str(Path(__file__).parent))
#: What Atheris instruments of Python, and what is imported before, because it need not be.
MODULES = [
    "candelabra.serialization", "candelabra.safetensors", "candelabra.legacy.t7", "candelabra.export.encoding", "candelabra.export.files",
]  # fmt: skip
PLAIN = ["candelabra", "candelabra.nn", "candelabra.fx", "candelabra.testing.hostile"]
#: The library of counters.cpp.
COUNTERS = "CANDELABRA_FUZZ_COUNTERS"


def attach_counters() -> None:
    """Give libFuzzer the coverage of the compiled libraries."""
    library = ctypes.CDLL(os.environ[COUNTERS])
    core = importlib.import_module("atheris.core_with_libfuzzer").__file__
    if not library.attach_counters(os.fsencode(str(core))):
        raise RuntimeError(f"{core} does not hold libFuzzer, or not the functions that counters.cpp looks for")


def mutator(targets: Any, name: str) -> Callable[[bytes, int, int], bytes] | None:
    """Return what changes inputs of a format with a structure, in half of all cases."""
    change = targets.MUTATORS.get(name)
    if change is None:
        return None
    others = targets.seeds()[name]

    def mutate(data: bytes, max_size: int, seed: int) -> bytes:
        draw = random.Random(seed)
        if draw.random() < 0.5:
            return atheris.Mutate(data, max_size)
        return change(data, draw, others)[:max_size]

    return mutate


def main() -> None:
    """Run libFuzzer on the target that the first argument names."""
    name = sys.argv.pop(1)
    for module in PLAIN:
        importlib.import_module(module)
    with atheris.instrument_imports(include=MODULES):
        targets = importlib.import_module("targets")
        for module in MODULES:
            importlib.import_module(module)
    if COUNTERS in os.environ:
        attach_counters()
    atheris.Setup(sys.argv, targets.TARGETS[name], custom_mutator=mutator(targets, name), internal_libfuzzer=True)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
