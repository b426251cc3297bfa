"""What runs in each rank: checks by name, of which each reports how it went."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import candelabra
import candelabra_collectives_mpi as mpi

CHECKS: dict[str, Callable[[Any], None]] = {}


def check(function: Callable[[Any], None]) -> Callable[[Any], None]:
    CHECKS[function.__name__] = function
    return function


class Ranks:
    """The engine, and a communicator of all ranks."""

    def __init__(self) -> None:
        self.rank, self.size = mpi.start(30.0)
        self.engine = mpi.Engine()
        self.engine.start(self.rank, self.size, None, candelabra.device("cpu"))
        self.world = self.engine.communicator(range(self.size), 0, "world", 20.0)
        self.others = [rank for rank in range(self.size) if rank != self.rank]


def run_checks() -> None:
    """Run all checks, and write what failed to the folder given on the command line."""
    ranks = Ranks()
    found = {}
    for name, function in CHECKS.items():
        try:
            function(ranks)
            found[name] = ""
        except Exception:
            found[name] = traceback.format_exc()
    (Path(sys.argv[1]) / f"{ranks.rank}.json").write_text(json.dumps(found))


def raised(kind: type[BaseException], text: str, function: Callable[..., object], *arguments: object) -> None:
    """Require that a call raises this exception itself, with this text in its message."""
    with pytest.raises(kind) as caught:
        function(*arguments)
    assert caught.type is kind
    assert text in str(caught.value), f"{text!r} is not in {str(caught.value)!r}"
