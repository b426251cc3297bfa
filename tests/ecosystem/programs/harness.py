"""Runs a program's `main` and prints its numbers and its time as one line of JSON."""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy
import torch
from known_numbers import known_numbers

#: Further runs of `main` until this many seconds have passed; the time is that of the fastest run.
_SECONDS = 1.0
MARK = "ecosystem-result:"


def plain(value: Any) -> Any:
    """Return a result as what JSON has: tensors and arrays as lists of numbers."""
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().double().tolist() if value.is_floating_point() else value.detach().tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return value.tolist() if hasattr(value, "tolist") else value


def rounded(value: Any) -> Any:
    """Return a result with numbers of seven digits."""
    if isinstance(value, dict):
        return {key: rounded(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [rounded(entry) for entry in value]
    return float(f"{value:.7g}") if isinstance(value, float) else value


def seed() -> None:
    """Seed the generators of PyTorch, NumPy and Python."""
    torch.manual_seed(0)
    numpy.random.seed(0)
    random.seed(0)


def run(main: Callable[[], dict[str, Any]]) -> None:
    """Print the numbers of `main` with random numbers that every library has, and its time."""
    seed()
    with known_numbers():
        numbers = plain(main())
    best, spent = float("inf"), 0.0
    while spent < _SECONDS:
        seed()
        started = time.perf_counter()
        main()
        seconds = time.perf_counter() - started
        best, spent = min(best, seconds), spent + seconds
    print(MARK + json.dumps({"numbers": rounded(numbers), "seconds": rounded(best)}), file=sys.stdout, flush=True)
