"""Start jobs of the rank program, and read what it prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from .rank import MARK

PROGRAM = Path(__file__).parent / "rank.py"
_LAUNCHERS = {"candelabra": "candelabra.distributed.run", "torch": "torch.distributed.run"}
_TIMEOUT = 600


def run(library: str, python: str, ranks: int, what: str, seconds: float, *more: str) -> list[Any]:
    """Run a job, and return what its ranks have printed.

    Parameters
    ----------
    library : str
        ``candelabra`` or ``torch``.
    python : str
        The interpreter of its environment.
    ranks : int
        The number of processes, of one thread each.
    what : str
        The measurement.
    seconds : float
        Of each round.
    *more : str
        Further arguments of the program.

    Raises
    ------
    RuntimeError
        No rank has printed a result.
    """
    command = [python, "-m", _LAUNCHERS[library], "--nproc-per-node", str(ranks)]
    if library == "torch":
        command.append("--standalone")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, str(PROGRAM), library, what, str(seconds), *more],
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
        env=environment,
        stdin=subprocess.DEVNULL,
    )
    found = [json.loads(line.removeprefix(MARK)) for line in done.stdout.splitlines() if line.startswith(MARK)]
    if not found:
        raise RuntimeError(f"{' '.join(command)} {what} has printed no result\n{done.stdout}\n{done.stderr}")
    return found


def pythons(torch: str | None) -> dict[str, str]:
    """Return the interpreter of each library: this one's, and the one that was named for
    PyTorch.
    """
    return {"candelabra": sys.executable} | ({} if torch is None else {"torch": torch})
